#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Simulated against measured on this machine (make compare-host): measures it with 1, 2 and 4 ranks,
# trains three small models on every grid of those, simulates the same on the machines measured, and
# writes FOLDER/report.md. Nothing of the training enters the machines.
#
#   real/compare-host.sh FOLDER
#
# Environment: RANKS ("1 2 4"), MODELS, BATCH (4), PRECISION (f32), MPIRUN (mpirun).
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
rm -f "$out"/*.jsonl "$out"/host-*.yaml

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

# About two seconds of each.
iterations() {
    case $1 in
    *-s.yaml) echo 100 ;;
    *-m.yaml) echo 20 ;;
    *) echo 8 ;;
    esac
}

load() {
    echo "load average $1: $(cut -d' ' -f1-3 /proc/loadavg 2> /dev/null || echo unknown)"
}

{
    echo "$(getconf _NPROCESSORS_ONLN) processors; ranks beyond that share them."
    load "at the start"
} > "$out/conditions"
options=(--global-batch "$batch" --micro-batch 1 --precision "${PRECISION:-f32}")
for n in $ranks; do
    echo "ranks: $n"
    "$mpirun" -n "$n" build/scale4d-run calibrate "${models[@]/#/--workload=}" "${options[@]}" \
        --output "$out/host-$n.yaml" > "$out/host-$n.txt"
    tail -n 2 "$out/host-$n.txt" | head -n 1
    for model in "${models[@]}"; do
        for grid in $(grids "$n"); do
            run=(--workload "$model" --grid "$grid" "${options[@]}" --json)
            "$mpirun" -n "$n" build/scale4d-run train "${run[@]}" \
                --iterations "$(iterations "$model")" >> "$out/measured.jsonl"
            build/scale4d simulate --machine "$out/host-$n.yaml" --gpus "$n" "${run[@]}" \
                >> "$out/simulated.jsonl" 2> "$out/simulate.err" || { cat "$out/simulate.err"; exit 1; }
        done
    done
done
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
