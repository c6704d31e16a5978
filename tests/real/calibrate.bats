#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run calibrate --backend cuda on the double of NVIDIA's libraries, whose times mean nothing:
# that everything is measured, and the file is a machine. (Of the host: tests/e2e/calibrate.bats.)

load lib

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    [ -x "${BUILD:-build}/tests/double/scale4d-run" ] || skip "built without CUDA"
}
run_double=${BUILD:-build}/tests/double/scale4d-run
small=(calibrate --backend cuda --workload gpt-tiny --global-batch 4 --precision bf16 --samples 3)

@test "calibrate: two GPUs become a machine that simulate takes" {
    S4D_DOUBLE_NAME="NVIDIA H200" ends 0 "# NVIDIA H200, 2 ranks" "; CUDA 1" " 0 wrong values  OK" -- \
        "$mpirun" -n 2 "$run_double" "${small[@]}" --output "$dir/gpu.yaml"
    for row in gemm attention-backward adamw host-to-device device-to-host all-reduce; do
        grep -qE "^$row " "$dir/out" || { echo "no $row"; false; }
    done
    grep -q 'peak_flops_per_s: { value: 989 TFLOP/s, tag: secondary, source: "stas00' "$dir/gpu.yaml"
    grep -q 'memory_bytes: { value: 16 GiB, tag: measured' "$dir/gpu.yaml"
    grep -q "compute_units: { value: unlimited" "$dir/gpu.yaml"
    "${BUILD:-build}/scale4d" simulate --machine "$dir/gpu.yaml" --workload gpt-tiny --gpus 2 \
        --grid 1x1x2x1 --global-batch 4 --precision bf16 > "$dir/simulated"
    grep -q 'of the advertised peak  OK' "$dir/simulated"
}

# The links are the file's, and a group takes on them what it took here.
@test "calibrate: links and ports of a topology file of NCCL's" {
    local topology=tests/fuzz/corpus/nccl_topology
    ends 0 -- "$mpirun" -n 2 "$run_double" "${small[@]}" --output "$dir/gpu.yaml" \
        --nccl-topology "$topology/pairs.xml"
    grep -q 'name: nccl' "$dir/gpu.yaml"
    grep -q 'nic_bandwidth_Bps: .* 12.5 GB/s.*pairs.xml' "$dir/gpu.yaml"
    # op, "N ranks,", size, "B", time in us
    awk '$1 == "all-reduce" && $4 == 65536 { print $6 }' "$dir/out" > "$dir/measured"
    "${BUILD:-build}/scale4d" collective --machine "$dir/gpu.yaml" --op all_reduce --ranks 2 -b 64K \
        -e 64K --json > "$dir/simulated"
    python3 -c "
import json
measured = float(open('$dir/measured').read()) * 1e-6
simulated = json.load(open('$dir/simulated'))['time_s']
assert abs(simulated / measured - 1) < 0.01, (simulated, measured)"
    ends 65 "describes 2 GPUs; 1 ranks run on a node" -- "$run_double" "${small[@]}" --output "$dir/m.yaml" \
        --nccl-topology "$topology/switch.xml"
    ends 64 "--nccl-topology" -- "$run_double" "${small[@]}" --nccl-topology "$topology/pairs.xml"
}

@test "calibrate: every shape with all transposes" {
    ends 0 "double of a GPU, its times mean nothing" -- "$run_double" "${small[@]}" --transposes gemm
    for t in nn nt tn tt; do
        grep -E '^gemm ' "$dir/out" | grep -q " $t " || { echo "no $t"; false; }
    done
    [ "$(grep -c '^gemm ' "$dir/out")" -eq "$((4 * $(grep '^gemm ' "$dir/out" | awk '{ print $2 }' | sort -u | wc -l)))" ]
}

@test "calibrate: tf32, and a device that fails" {
    ends 0 -- "$run_double" "${small[@]}" --precision f32 --tf32 gemm
    S4D_DOUBLE_FAIL=product:9:1 ends 69 "scale4d: rank 1 (" -- "$mpirun" -n 2 "$run_double" "${small[@]}" gemm
}
