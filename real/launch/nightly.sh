#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One night: runs the suite, goes on after a run that ended the job, simulates the same experiments,
# puts all into the store, and says in one line what changed. For cron, `make nightly`, and
# nightly.sbatch; plots/TRACK.md tells how.
#
#   real/launch/nightly.sh SUITE.yaml
#
# Environment:
#   LAUNCH         how ranks are started (mpirun -n 2); srun --mpi=pmix --cpu-bind=cores
#   OUT            the folder of everything (build/nightly)
#   SCALE4D_STORE  the store (OUT/track.sqlite)
#   NIGHT          its date (today, UTC)
#   RETRIES        how often the suite goes on after the job has ended (10)
#   REFERENCES     a file for `track verdict --references`
#   CALIBRATE      what `scale4d-run calibrate` is given on the first night, for OUT/host-NAME.yaml, which
#                  is put in front of SUITE-simulated.yaml where that names no machine
#   SUITE_OPTIONS  more for `scale4d-run nightly`
# Exit: the suite's status; 1 also where the verdict finds something confirmed.
set -u
suite=$(realpath -- "${1:?expected SUITE.yaml}") || exit
cd "$(dirname "$0")/../.." || exit
suite=${suite#"$PWD"/}
out=${OUT:-build/nightly}
night=${NIGHT:-$(date -u +%F)}
read -ra launch <<< "${LAUNCH:-mpirun -n 2}"
name=$(basename "$suite" .yaml)
simulated=${suite%.yaml}-simulated.yaml
records=$out/$name-$night.jsonl
mkdir -p "$out" || exit 74
export SCALE4D_STORE=${SCALE4D_STORE:-$out/track.sqlite}
# Open MPI refuses both unless told; MPICH does not look at these.
if [ "${LAUNCH:-mpirun}" = mpirun ] || [ "${launch[0]##*/}" = mpirun ]; then
    export OMPI_MCA_rmaps_base_oversubscribe=1
    if [ "$(id -u)" -eq 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
fi
exec 9> "$out/lock"
if ! flock -n 9; then
    echo "scale4d: $out: another night is running there" >&2
    exit 75
fi

# SIGTERM and Ctrl-C are for the job; then what there is goes into the store.
asked=
job=
# shellcheck disable=SC2317 # by a trap
ask() {
    asked=1
    [ -z "$job" ] || kill -TERM "$job" 2> /dev/null
}
trap ask TERM INT

# started COMMAND...: it runs, and hears of SIGTERM; its status.
started() {
    local status=0
    "$@" 9>&- &
    job=$!
    while :; do
        status=0
        wait "$job" || status=$?
        kill -0 "$job" 2> /dev/null || break # a trap, too, ends `wait`
    done
    job=
    return $status
}

run_suite() {
    local again=() tries=0 more
    read -ra more <<< "${SUITE_OPTIONS-}"
    [ ! -e "$records.running" ] || again=(--resume) # of a night that the machine did not outlive
    while :; do
        started "${launch[@]}" build/scale4d-run nightly "$suite" --output "$records" --night "$night" \
            "${more[@]}" "${again[@]}"
        status=$?
        [ -z "$asked" ] && [ -e "$records.running" ] && [ $tries -lt "${RETRIES:-10}" ] || return $status
        tries=$((tries + 1))
        again=(--resume)
        echo "# the job ended (status $status): going on with the next, $tries of ${RETRIES:-10}"
    done
}

# The machine as it was on the first night: simulated records change only when the model does. Its file
# is named by that night's host, so that hosts which share a store have series of their own.
measured=("$out"/host-*.yaml)
machine=${measured[0]}
[ -e "$machine" ] || machine=$out/host-$(uname -n | tr -c '[:alnum:]\n' -).yaml
measure_machine() {
    local arguments
    [ ! -e "$machine" ] && [ -n "${CALIBRATE-}" ] || return 0
    read -ra arguments <<< "$CALIBRATE"
    echo "# measuring this machine, once: $machine"
    started "${launch[@]}" build/scale4d-run calibrate "${arguments[@]}" --output "$machine" \
        > "${machine%.yaml}.txt"
}

simulate() {
    [ -e "$simulated" ] || return 0
    measure_machine || return
    {
        grep -q '^machine:' "$simulated" || echo "machine: $machine"
        cat "$simulated"
    } > "$out/$name-simulated.yaml"
    started build/scale4d sweep "$out/$name-simulated.yaml" --again --suite "$name" --night "$night" \
        --output "$out/$name-simulated.jsonl"
}

run_suite
suite_status=$?
[ -z "$asked" ] || [ $suite_status -eq 0 ] || suite_status=75 # launchers say what they like
status=$suite_status
worse() {
    [ "$status" -ne 0 ] || status=$1
}
[ -n "$asked" ] || simulate || worse $?
for file in "$records" "$out/$name-simulated.jsonl"; do
    [ ! -s "$file" ] || build/scale4d track add "$file" || worse $?
done
# What a cause is simulated with: the machine, and models that are files.
causes=()
[ ! -s "$machine" ] || causes=(--machine "$machine")
while read -r file; do
    [ ! -e "$file" ] || causes+=(--workload "$file")
done < <(grep -oE 'workload: *[^ ,}]+[.](yaml|json)' "$suite" | sed 's/workload: *//' | sort -u)
references=()
[ -z "${REFERENCES-}" ] || references=(--references "$REFERENCES")
# Of this night: where nothing was added for it, yesterday's good news are none.
build/scale4d track verdict --night "$night" "${references[@]}" "${causes[@]}" > "$out/verdict.txt"
verdict=$?
cat "$out/verdict.txt"
worse $verdict
if command -v gnuplot > /dev/null; then
    build/scale4d track report --night "$night" "${references[@]}" "${causes[@]}" --output "$out/report.html" || worse $?
else
    echo "# no report: there is no gnuplot here; elsewhere: scale4d track report --store $SCALE4D_STORE"
fi
said=$(tail -n 1 "$out/verdict.txt" | sed 's/^# //')
[ $suite_status -eq 0 ] && suite_said=OK || suite_said="FAILED ($suite_status)"
echo "# $name, night $night: suite $suite_said, ${said:-no verdict}"
exit "$status"
