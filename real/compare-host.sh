#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulated against measured on this machine (make compare-host): measures it with 1, 2 and 4 ranks,
# trains three small models on every grid of those, simulates the same on the machines measured, and
# writes FOLDER/report.md. Nothing of the training enters the machines.
#
#   real/compare-host.sh FOLDER
#
# Environment: RANKS ("1 2 4"), MODELS, BATCH (4), PRECISION (f32), MPIRUN (mpirun), BUDGET (210: seconds
# after which disturbed runs are no longer repeated).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?expected a folder}
ranks=${RANKS:-1 2 4}
read -ra models <<< "${MODELS:-$(echo real/compare-host/gpt-compare-{s,m,l}.yaml)}"
batch=${BATCH:-4}
mpirun=${MPIRUN:-mpirun}
if [ ! -x build/scale4d-run ] || ! command -v "$mpirun" > /dev/null; then
    echo 'compare-host is skipped: scale4d-run is not built, or there is no mpirun. Missing:'
    .ci/deps.sh quiet run || true
    exit 0
fi
# Open MPI refuses both unless told; MPICH does not look at these.
export OMPI_MCA_rmaps_base_oversubscribe=1
if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
mkdir -p "$out"
rm -rf "$out"/*.jsonl "$out"/host-*.yaml "$out/runs"
mkdir "$out/runs"

grids() {
    local n=$1 x y z
    for ((x = 1; x <= n; x++)); do
        for ((y = 1; x * y <= n; y++)); do
            for ((z = 1; x * y * z <= n; z++)); do
                [ $((n % (x * y * z))) -ne 0 ] || echo "${x}x${y}x${z}x$((n / (x * y * z)))"
            done
        done
    done
}

# About a second of each.
iterations() {
    case $1 in
    *-s.yaml) echo 60 ;;
    *-m.yaml) echo 15 ;;
    *) echo 6 ;;
    esac
}

# Into $used: the time of day, and the seconds of processors that all processes of the machine, and
# those of this script, have used. No subshell: its times would be its own.
used() {
    local tick
    tick=$(getconf CLK_TCK)
    times > "$out/times"
    used="$EPOCHREALTIME $({ cat /proc/stat 2> /dev/null || echo cpu 0; tail -n 1 "$out/times"; } |
        awk -v tick="$tick" '
        /^cpu / { all = ($2 + $3 + $4 + $7 + $8) / tick }
        /m.*s / { split($0, t, /[ms ]+/); own = 60 * (t[1] + t[3]) + t[2] + t[4] }
        END { printf "%.3f %.3f", all, own }')"
}

# measure N MODEL GRID: a training run. Beside its record goes what others used meanwhile, of one
# processor; of repeated runs the one that was least disturbed is kept.
measure() {
    local n=$1 model=$2 grid=$3 file began ended others before
    file=$out/runs/$(basename "$model" .yaml)-$grid
    used
    began=$used
    "$mpirun" -n "$n" build/scale4d-run train --workload "$model" --grid "$grid" "${options[@]}" \
        --json --iterations "$(iterations "$model")" > "$file.new"
    used
    others=$(echo "$began $used" | awk '{
        o = ($5 - $2 - $6 + $3) / ($4 - $1); printf("%.3f\n", o > 0 ? o : 0) }')
    before=$(cat "$file.others" 2> /dev/null || echo 1e9)
    if awk "BEGIN { exit !($others < $before) }"; then
        mv "$file.new" "$file.json"
        echo "$others" > "$file.others"
    fi
}

# The points whose best run was disturbed by more than a twentieth of a processor, worst first.
disturbed() {
    local point file
    for point in "${points[@]}"; do
        read -r n model grid <<< "$point"
        file=$out/runs/$(basename "$model" .yaml)-$grid
        echo "$(cat "$file.others") $point"
    done | awk '$1 > 0.05' | sort -gr
}

load() {
    echo "load average $1: $(cut -d' ' -f1-3 /proc/loadavg 2> /dev/null || echo unknown)"
}

{
    echo "$(getconf _NPROCESSORS_ONLN) processors; ranks beyond that share them."
    load "at the start"
} > "$out/conditions"
options=(--global-batch "$batch" --micro-batch 1 --precision "${PRECISION:-f32}")
points=()
for n in $ranks; do
    for model in "${models[@]}"; do
        for grid in $(grids "$n"); do
            points+=("$n $model $grid")
        done
    done
done
for n in $ranks; do
    echo "$SECONDS s: measuring the machine with $n ranks"
    "$mpirun" -n "$n" build/scale4d-run calibrate "${models[@]/#/--workload=}" "${options[@]}" \
        --output "$out/host-$n.yaml" > "$out/host-$n.txt"
    tail -n 2 "$out/host-$n.txt" | head -n 1
done
for ((i = 0; i < ${#points[@]}; i++)); do
    read -r n model grid <<< "${points[i]}"
    echo "$SECONDS s: training $((i + 1)) of ${#points[@]}: $(basename "$model" .yaml) $grid"
    measure "$n" "$model" "$grid"
done
while [ "$SECONDS" -lt "${BUDGET:-210}" ]; do
    worst=$(disturbed | head -n 1)
    [ -n "$worst" ] || break
    read -r others n model grid <<< "$worst"
    echo "$SECONDS s: again, others took $others of a processor: $(basename "$model" .yaml) $grid"
    measure "$n" "$model" "$grid"
done
for point in "${points[@]}"; do
    read -r n model grid <<< "$point"
    cat "$out/runs/$(basename "$model" .yaml)-$grid.json" >> "$out/measured.jsonl"
    build/scale4d simulate --machine "$out/host-$n.yaml" --gpus "$n" --workload "$model" \
        --grid "$grid" "${options[@]}" --json >> "$out/simulated.jsonl" 2> "$out/simulate.err" ||
        { cat "$out/simulate.err"; exit 1; }
done
echo "$SECONDS s in all" | tee -a "$out/conditions"
disturbed | awk '{ printf "DISTURBED, other processes took %.2f of a processor: %s %s\n", $1, $3, $4 }' \
    >> "$out/conditions"
load "at the end" >> "$out/conditions"
build/scale4d validate "$out/measured.jsonl" "$out/simulated.jsonl" --output "$out"
{
    echo
    echo '## Conditions'
    echo
    sed 's/^/- /' "$out/conditions"
    grep -h '^# .* measurements' "$out"/host-*.txt | sed 's/^# /- calibration: /'
    cat real/compare-host/notes.md
} >> "$out/report.md"
