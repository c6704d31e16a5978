#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# On a machine with an NVIDIA GPU: `make test-gpu`. Not part of `make test`.
load ../real/lib

# Kernels under compute-sanitizer are slower by far.
export LIMIT_S=550

# One word, where there is no GPU, for all tests.
setup_file() {
    local run4d=${BUILD:-build}/scale4d-run said
    "$run4d" train --list-backends | grep '^cuda *yes' > /dev/null || {
        "$run4d" train --list-backends
        return 1
    }
    said=$("$run4d" train --workload gpt-tiny --grid 1x1x1x1 --global-batch 8 --iterations 1 --backend cuda 2>&1) || {
        echo "nothing was tested: --backend cuda does not start here"
        echo "$said"
        return 1
    }
}

# losses BACKEND PRECISION OPTION...: of a few iterations, one a line, on as many ranks as `grid` has
grid=1x1x1x1
losses() {
    local launch=()
    [ "$grid" = 1x1x1x1 ] || launch=("$mpirun" -n 2)
    ends 0 -- "${launch[@]}" "$run4d" train --workload "$workload" --grid "$grid" --global-batch 8 --backend "$1" \
        --precision "$2" --iterations 5 "${@:3}" --json >&2
    field "['loss']" | tr -d '[],' | tr ' ' '\n'
}
# alike TOLERANCE: two columns of numbers on standard input
alike() {
    awk -v tolerance="$1" '{ d = $1 - $2; if (d < 0) d = -d; if (!(d <= tolerance * $1)) bad = 1; n++ }
        END { exit bad || n != 5 }'
}

@test "gpu: every kernel, product and attention as the host computes them" {
    run "${BUILD:-build}/tests/gpu_kernels"
    echo "$output" | grep -A2 '^not ok' || true
    [ "$status" -eq 0 ]
}
@test "gpu: losses of training are the host's, in every precision" {
    for workload in gpt-tiny llama-tiny; do
        for precision in f32:1e-5 f64:1e-12 bf16:2e-3 f16:1e-3; do
            losses host "${precision%:*}" > "$dir/host"
            losses cuda "${precision%:*}" > "$dir/cuda"
            paste "$dir/host" "$dir/cuda" | alike "${precision#*:}" || {
                echo "$workload $precision"
                paste "$dir/host" "$dir/cuda"
                false
            }
        done
    done
}
@test "gpu: tf32 and tuned products train alike" {
    workload=gpt-tiny
    losses host f32 > "$dir/host"
    losses cuda f32 --tf32 --gemm-tuning full --gemm-cache "$dir/cache.tsv" > "$dir/cuda"
    paste "$dir/host" "$dir/cuda" | alike 1e-3
    [ "$(grep -vc '^#' "$dir/cache.tsv")" -gt 5 ]
}
@test "gpu: an iteration is the same twice" {
    workload=gpt-tiny
    losses cuda bf16 > "$dir/one"
    losses cuda bf16 > "$dir/two"
    cmp "$dir/one" "$dir/two"
}
@test "gpu: as CUDA graphs it computes the same" {
    for workload in gpt-tiny llama-tiny; do
        losses cuda bf16 > "$dir/one"
        losses cuda bf16 --cuda-graphs > "$dir/two"
        cmp "$dir/one" "$dir/two"
    done
}
@test "gpu: two GPUs train as the host does, on every axis; as CUDA graphs the same" {
    [ "$(nvidia-smi -L | grep -c '^GPU')" -ge 2 ] || skip "one GPU"
    workload=llama-tiny
    for grid in 2x1x1x1 1x2x1x1 1x1x2x1 1x1x1x2; do
        losses host bf16 > "$dir/host"
        losses cuda bf16 > "$dir/cuda"
        losses cuda bf16 --cuda-graphs > "$dir/graphs"
        paste "$dir/host" "$dir/cuda" | alike 2e-3 || {
            echo "$grid"
            paste "$dir/host" "$dir/cuda"
            false
        }
        cmp "$dir/cuda" "$dir/graphs"
    done
}
@test "gpu: a health check, and no GPU is its own outlier" {
    ends 0 "OK" -- "$run4d" preflight --backend cuda
    cat "$dir/out"
    for name in gemm-alone gemm memory to-device from-device; do grep -q "^$name " "$dir/out"; done
}
@test "gpu: calibrate writes a machine that simulate takes" {
    ends 0 "0 wrong values  OK" -- "$run4d" calibrate --backend cuda --workload gpt-tiny --global-batch 4 \
        --precision bf16 --grid 1x1x1x1 --output "$dir/gpu.yaml"
    "${BUILD:-build}/scale4d" simulate --machine "$dir/gpu.yaml" --workload gpt-tiny --gpus 1 \
        --grid 1x1x1x1 --global-batch 4 --precision bf16
}
# The aim of a whole iteration is 60 % of the advertised peak: its layers cannot be below that. 50 %
# is assumed as what a GPU that is cold, shared or held back still reaches.
@test "gpu: the layers of GPT-5B, by op, and the part of the best product they get" {
    ends 0 -- "$run4d" layers --backend cuda --workload gpt-5b --precision bf16
    sed 's/^/# /' "$dir/out" >&3
    awk '$1 == "layer" && $2 == "all" { seen = 1; if ($6 > 100 || $6 < 50) bad = 1 } END { exit bad || !seen }' "$dir/out"
}
# Weights, gradients and AdamW's state take 18 bytes of each of 5 billion parameters. The aim is 60 %.
@test "gpu: GPT-5B trains, and what part of the advertised peak it gets, optimizer included" {
    [ "$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -n 1)" -gt 130000 ] ||
        skip "it needs a GPU of 130 GB"
    ends 0 -- "$run4d" train --backend cuda --workload gpt-5b --grid 1x1x1x1 --global-batch 16 --precision bf16 \
        --iterations 4 --gemm-tuning full --gemm-cache "$dir/cache.tsv" --record "$dir/record"
    grep '^# median' "$dir/out" >&3
    python3 -c "
import json
r = json.load(open('$dir/record'))
assert all(10 < x < 13 for x in r['loss']) and 0.1 < r.get('peak_fraction', 0.5) < 1, r"
}
@test "gpu: compute-sanitizer finds nothing" {
    command -v compute-sanitizer > /dev/null || skip "no compute-sanitizer"
    for tool in memcheck racecheck initcheck synccheck; do
        ends 0 -- compute-sanitizer --tool $tool --error-exitcode 9 "$run4d" train --workload llama-tiny \
            --grid 1x1x1x1 --global-batch 4 --backend cuda --precision bf16 --iterations 2
        ends 0 -- compute-sanitizer --tool $tool --error-exitcode 9 "$run4d" layers --workload gpt-tiny \
            --backend cuda --precision f16 --samples 3
    done
}
