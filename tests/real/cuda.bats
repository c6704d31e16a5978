#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The CUDA backend where there is no GPU: it is compiled and linked, it loads, and it says what it
# misses.
load lib

has_gpu() {
    ls /dev/nvidia[0-9]* > /dev/null 2>&1
}
is_built() {
    [ -e "$(dirname "$run4d")/scale4d-cuda.so" ]
}

@test "cuda: loads, and names its libraries; else says why not" {
    run "$run4d" train --list-backends
    [ "$status" -eq 0 ]
    if is_built; then
        echo "$output" | grep -qE '^cuda +yes +CUDA 1[0-9]\.[0-9]+, NCCL 2\.'
    else
        echo "$output" | grep -qE '^cuda +no +built without: there was no /'
    fi
}
@test "cuda: a program without it beside says so" {
    cp "$run4d" "$dir/scale4d-run"
    run "$dir/scale4d-run" train --list-backends
    [ "$status" -eq 0 ]
    echo "$output" | grep -qE '^cuda +no +(there is no scale4d-cuda.so|built without)'
    ends 69 "--backend: this build has no cuda: " -- "$dir/scale4d-run" "${tiny[@]}" --backend cuda
    ends 69 "--backend: this build has no cuda: " -- \
        "$mpirun" -n 2 "$dir/scale4d-run" collective --op all_reduce --backend cuda
}
@test "cuda: a library that does not load is told in the loader's words" {
    cp "$run4d" "$dir/scale4d-run"
    echo nothing > "$dir/scale4d-cuda.so"
    run "$dir/scale4d-run" train --list-backends
    echo "$output" | grep -qE '^cuda +no +.*scale4d-cuda.so: file too short'
}
@test "cuda: no GPU is said once, with rank, call and CUDA's words" {
    is_built || skip "built without CUDA"
    has_gpu && skip "there is a GPU"
    ends 69 "rank 0 (" "cudaGetDeviceCount: CUDA: " "(cudaError" "hint: " -- \
        "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --backend cuda
    [ "$(grep -c '^scale4d: ' "$dir/err")" -eq 1 ]
    for other in "layers --workload gpt-tiny" "collective --op all_reduce" preflight \
        "calibrate --workload gpt-tiny --global-batch 4 gemm" "calibrate collectives"; do
        # shellcheck disable=SC2086
        ends 69 "scale4d: rank 0 (" "): cudaGetDeviceCount: CUDA: " -- \
            "$mpirun" -n 2 "$run4d" $other --backend cuda --group-timeout "5 s"
        [ "$(grep -c '^scale4d: ' "$dir/err")" -eq 1 ]
        grep -q '^scale4d: rank.* rank' "$dir/err" && false
        # All ranks end by themselves: nobody is aborted.
        grep -qi mpi_abort "$dir/err" && false
    done
    true
}
@test "cuda: --tf32, --group-timeout, --gemm-tuning and --cuda-graphs are its own" {
    for other in "${tiny[*]}" "layers --workload gpt-tiny" "collective --op all_reduce" preflight \
        "calibrate collectives"; do
        # shellcheck disable=SC2086
        ends 64 "--group-timeout: --backend host has none" -- \
            "$mpirun" -n 2 "$run4d" $other --group-timeout "5 s"
    done
    ends 64 "--cuda-graphs: --backend host has none" -- "$run4d" "${tiny[@]}" --cuda-graphs
    if is_built; then
        ends 64 "--cuda-graphs: --check-finite looks at every op" -- \
            "$run4d" "${tiny[@]}" --backend cuda --cuda-graphs --check-finite
        ends 64 "--cuda-graphs: expected --iterations 2 or more, got 1" -- \
            "$run4d" "${tiny[@]}" --backend cuda --cuda-graphs --iterations 1
    fi
    ends 64 "--tf32: --backend host has none" -- "$run4d" "${tiny[@]}" --tf32
    ends 64 "--gemm-tuning: --backend host has none" -- "$run4d" "${tiny[@]}" --gemm-tuning full
}
@test "cuda: machine code for every chip asked for, and PTX for later ones" {
    is_built || skip "built without CUDA"
    python3 tests/cuda/fat_binary.py "$(dirname "$run4d")/scale4d-cuda.so" codes > "$dir/codes"
    for arch in $(cat build/cuda/archs); do
        [ "$(grep -cx "machine code $arch" "$dir/codes")" -eq "$(ls real/cuda/kernels/*.cu | wc -l)" ]
    done
    [ "$(grep -cx "PTX $arch" "$dir/codes")" -eq "$(ls real/cuda/kernels/*.cu | wc -l)" ]
}
@test "cuda: kernels that go over matrices have 16-byte accesses; none has atomics, or a local array" {
    is_built || skip "built without CUDA"
    python3 tests/cuda/fat_binary.py "$(dirname "$run4d")/scale4d-cuda.so" accesses real/cuda/kernels/*.cu
}
