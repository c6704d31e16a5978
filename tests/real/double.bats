#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The CUDA backend when something fails, on the double of NVIDIA's libraries (tests/double): every
# message names rank, host, call and the library's words, and all ranks end within 30 s.

load lib

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    [ -x "${BUILD:-build}/tests/double/scale4d-run" ] || skip "built without CUDA"
}

run_double=${BUILD:-build}/tests/double/scale4d-run
small=(train --workload gpt-tiny --global-batch 8 --precision bf16 --grid 2x1x1x1 --iterations 1
    --backend cuda)

# fails FAIL STATUS TEXT... -- OPTION...: a run of two ranks in which FAIL (S4D_DOUBLE_FAIL) happens.
# Every run has another seed, the same ones every time.
seed=0
fails() {
    local fail=$1 status=$2 start try
    shift 2
    local texts=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    seed=$((seed + 1))
    for try in 1 2 3; do # again, where it takes long: other work may have held it up
        start=$SECONDS
        S4D_DOUBLE_FAIL=$fail S4D_DOUBLE_SEED=$seed ends "$status" "${texts[@]}" -- \
            "$mpirun" -n 2 "$run_double" "${small[@]}" "${@:2}" || { echo "with $fail, seed $seed"; return 1; }
        [ $((SECONDS - start)) -gt 30 ] || break
    done
    [ $((SECONDS - start)) -le 30 ] || { echo "$fail: took $((SECONDS - start)) s"; return 1; }
}

@test "double: trains, and says which libraries it stands for, and the part of what GPUs advertise" {
    ends 0 "CUDA 1" -- "$mpirun" -n 2 "$run_double" "${small[@]}"
    ! grep -q advertised "$dir/out"
    # NVIDIA H200: 989 TFLOP/s in bf16. One that is not known: nothing is said of all.
    S4D_DOUBLE_NAME="NVIDIA H200" ends 0 "% of the advertised peak" -- "$mpirun" -n 2 "$run_double" \
        "${small[@]}" --record "$dir/record"
    python3 -c "
import json
r = json.load(open('$dir/record'))
assert r['peak_flops_per_s'] == 2 * 989e12 and r['peak_source'], r['peak_flops_per_s']
assert abs(r['peak_fraction'] * 2 * 989e12 / r['flops_per_s'] - 1) < 1e-12, r['peak_fraction']"
    ends 0 -- "$mpirun" -n 1 -x "S4D_DOUBLE_NAME=NVIDIA H200" "$run_double" "${small[@]}" --json \
        : -n 1 "$run_double" "${small[@]}" --json
    ! grep -q peak_f "$dir/out"
}

@test "double: every place that calls a library fails once, and says rank, host, call and its words" {
    JOBS=6 tests/double/sites.sh > "$dir/tap" || { grep -v '^ok' "$dir/tap"; false; }
    [ "$(grep -c '^ok' "$dir/tap")" -ge 80 ]
}

@test "double: a call of GEMM tuning that fails leaves no cache file; one that does not writes it" {
    local tuned=(-- --gemm-tuning full --gemm-cache)
    fails cublasGetVersion:1:0 69 "rank 0 (" "cublasGetVersion: cuBLAS: " "${tuned[@]}" "$dir/none"
    fails product:20:0 69 "rank 0 (" "(cudaErrorLaunchFailure)" "while the product" "${tuned[@]}" "$dir/none"
    [ ! -e "$dir/none" ]
    fails none 0 "${tuned[@]}" "$dir/cache"
    [ "$(grep -vc '^#' "$dir/cache")" -gt 5 ]
}

@test "double: a GEMM cache that cannot be read, or written, or is of another library" {
    local full=(-- --gemm-tuning full --gemm-cache) cached=(-- --gemm-tuning cached --gemm-cache) n
    yes $'\xff\x01\x80\t' | tr -d '\n' | head -c 3000 > "$dir/noise"
    echo >> "$dir/noise" # half a last line would be passed over
    printf 'one line\n' > "$dir/text"
    mkdir "$dir/folder"
    fails none 65 "rank 0 (" "$dir/text:1: expected 19 columns: device" "hint: " "${full[@]}" "$dir/text"
    fails none 65 "$dir/noise:1: expected 19 columns" "${cached[@]}" "$dir/noise"
    fails none 65 "rank 0 (" "$dir/folder: expected a file, found a folder" "${cached[@]}" "$dir/folder"
    # Before anything is timed: no product fails that never comes.
    fails product:1:0 74 "rank 0 (" "/proc/none/cache: no file can be written there: " "${full[@]}" /proc/none/cache
    fails none 0 "${full[@]}" "$dir/cache"
    n=$(grep -vc '^#' "$dir/cache")
    # What another library chose is kept, and not used; half a last line is not.
    sed -i 's/\tcuBLAS [0-9]*\t/\tcuBLAS 1\t/' "$dir/cache"
    printf 'half a' >> "$dir/cache"
    fails none 0 "${full[@]}" "$dir/cache"
    [ "$(grep -c 'cuBLAS 1'$'\t' "$dir/cache")" -eq "$n" ]
    [ "$(grep -vc '^#' "$dir/cache")" -eq $((2 * n)) ]
    # One number of an own line that is damaged.
    sed -i '$s/\t[0-9]*\t/\tx\t/' "$dir/cache"
    sed -i '$s/as-is\|turn-[a-z]*/turned/' "$dir/cache"
    fails none 65 "$dir/cache:$((2 * n + 1)): expected 19 columns" "${full[@]}" "$dir/cache"
}

@test "double: what fails while scale4d-run measures ends it, too" {
    local small=(calibrate --backend cuda --workload gpt-tiny --global-batch 4 --grid 2x1x1x1 --samples 3)
    fails cudaLaunchKernel:50:1 69 "scale4d: rank 1 (" "cudaLaunchKernel: CUDA: " "in token-count denominator (op"
    fails kernel:90:0 69 "scale4d: rank 0 (" "(cudaErrorLaunchFailure)" "work on the GPU, of " "stream compute"
    fails cudaMalloc:2:1 69 "scale4d: rank 1 (" "cudaMalloc: CUDA: out of memory" "MB asked for"
    small=(collective --backend cuda --op all_gather -e 64k)
    fails ncclAllGather:5:1 69 "scale4d: rank 1 (" "ncclAllGather: NCCL: " "with rank 0"
    fails collective:9:0 69 "scale4d: rank 0 (" "NCCL: remote process exited" "with rank 1"
}

graphs=(-- --iterations 5 --cuda-graphs)

@test "double: CUDA graphs: the same losses, every op in the timeline, the record says so" {
    local eager
    ends 0 -- "$mpirun" -n 2 "$run_double" "${small[@]}" --iterations 5 --json
    eager=$(field "['loss']")
    [ "$(field "['cuda_graphs']")" = False ]
    ends 0 -- "$mpirun" -n 2 "$run_double" "${small[@]}" --iterations 5 --json --cuda-graphs \
        --timeline "$dir/t.json"
    [ "$(field "['loss']")" = "$eager" ]
    [ "$(field "['cuda_graphs']")" = True ]
    [ "$(field "['warmup']")" = 3 ]
    python3 - "$dir/t.json" "$dir/out" <<'END'
import json, sys
events = [e for e in json.load(open(sys.argv[1]))["traceEvents"] if e["ph"] == "X"]
record = json.load(open(sys.argv[2]))
assert len(events) % (2 * 5) == 0 and len(events) > 1000, len(events)
assert all(e["dur"] >= 0 for e in events)
# Every moment of the compute stream is accounted for, and computing is what the timeline has of it.
exposed = record["exposed_s"]
assert abs(sum(exposed.values()) - record["iteration_time_s"]) < 1e-9
computed = [e for e in events if e["pid"] == record["slowest_rank"] and e["tid"] == 0]
assert all(e["dur"] > 0 for e in computed)
sums = [sum(e["dur"] for e in computed if e["args"]["iteration"] == i) * 1e-6 for i in (3, 4)]
busy = record["busy_s"]["compute"]
assert min(abs(s - busy) for s in sums) < 1e-6 and busy > 0, (sums, busy)
# It may begin before the last rank has ended the iteration before.
waited = sum(t for name, t in exposed.items() if name != "compute")
assert abs(exposed["compute"] - busy) < 1e-9 or (waited < 1e-9 and exposed["compute"] < busy), record
END
}

@test "double: CUDA graphs: a capture, a launch and what runs in it fail; a missing wait is told" {
    fails cudaStreamEndCapture:2:0 69 "scale4d: rank 0 (" "cudaStreamEndCapture: CUDA: " "${graphs[@]}"
    fails cudaGraphLaunch:3:1 69 "scale4d: rank 1 (" "cudaGraphLaunch: CUDA: " "${graphs[@]}"
    fails kernel:800:1 69 "scale4d: rank 1 (" "unspecified launch failure (cudaErrorLaunchFailure)" \
        "iteration 4" "the launch of a CUDA graph" "${graphs[@]}"
    fails collective:60:1 69 "scale4d: rank 1 (" "remote process exited" "${graphs[@]}"
    S4D_DOUBLE_LOSE=join:1 fails none 69 "capturing stream has unjoined work" "${graphs[@]}"
}

@test "double: work that fails on the device, and a peer that NCCL misses, end the run" {
    # The next call meets it, whichever library's that is. In iteration 0 it is the only op.
    fails kernel:60:1 69 "scale4d: rank 1 (" "unspecified launch failure (cudaErrorLaunchFailure)" \
        "work on the GPU, of norm-partial norm2 (op 59, stream compute, recompute, layer 1), iteration 0, at or before the launch of norm_partial"
    fails product:100:0 69 "scale4d: rank 0 (" "unspecified launch failure (cudaErrorLaunchFailure)" \
        "work on the GPU, of attention-backward attention.core (op 82"
    grep -q '^  hint: compute-sanitizer names the access' "$dir/err"
    # Later others are enqueued as well: kernel 340 is of op 121 of iteration 1; the host goes on until
    # it has two portions of launches ahead, into iteration 2.
    fails kernel:340:0:late 69 "scale4d: rank 0 (" "work on the GPU, of an op from attention-backward attention.core (op 121, stream compute, backward, layer 0), iteration 1 to attention-forward attention.core (op 27, stream compute, forward, layer 1), iteration 2, at or before the launch of a product" \
        "hint: --check-finite completes every op before the next" -- --iterations 3
    fails collective:5:1:late 69 "scale4d: rank 1 (" "ncclCommGetAsyncError: NCCL: remote process exited or there was a network error" \
        "the communicator of stream x with rank 0; in all-reduce mlp.down (op 36, stream x"
}

@test "double: a rank that dies in a collective is named by the one that waits" {
    "$mpirun" --version | grep -q 'Open MPI' || skip "another launcher kills all ranks at once"
    # Its launcher has the last word: 128 and the signal.
    fails death:5:1 137 "scale4d: rank 0 (" "rank 1 (process" "on $(hostname)) is gone; waiting in"
}

@test "double: a communicator that never forms: who is missing, by those who wait, within 30 s" {
    local group=(-- --group-timeout 2s)
    fails join:1:1 69 "scale4d: rank 0 ($(hostname)): ncclCommInitRankConfig: NCCL: in progress for 2 s" \
        "the communicator of all 2 ranks; every rank is there and in this call" "NCCL_SOCKET_IFNAME" \
        "${group[@]}"
    fails ncclCommInitRankConfig:1:1:hang 69 "scale4d: rank 0 (" \
        "ncclCommInitRankConfig: NCCL: in progress" "no answer from rank 1 ($(hostname))" "${group[@]}"
    fails ncclCommSplit:2:0:hang 69 "scale4d: rank 1 (" "ncclCommSplit: NCCL: in progress" \
        "the communicator of stream x-y-z with rank 0; no answer from rank 0 ($(hostname))" "${group[@]}"
    fails ncclCommSplit:1:1:die 137 "scale4d: rank 0 (" "rank 1 (process" "on $(hostname)) is gone"
}

@test "double: a peer that hangs in its calls ends by --timeout, which names what was waited for" {
    # Whichever rank is first: the one that hangs says in what, the other what it waits for.
    fails cudaLaunchKernel:60:1:hang 75 "nothing has completed for " -- --timeout 3s
    nothing_for 3
    grep -qE 'rank 1 .*; waiting in norm-partial norm2 \(op 59, |rank 0 .*; waiting in all-reduce ' "$dir/err"
}

@test "double: what fails at the end is no failure of the run" {
    fails ncclCommDestroy:1 0
    fails cublasDestroy:1 0
}

@test "double: heads of 5 and of 6, odd widths and lengths: the host's losses" {
    local name backend
    local -A loss
    for name in gpt llama; do
        sed -E 's/^hidden_size:.*/hidden_size: 30/; s/^(num_attention_heads):.*/\1: 6/
            s/^(num_key_value_heads):.*/\1: 2/; s/^ffn_hidden_size:.*/ffn_hidden_size: 34/
            s/^vocab_size:.*/vocab_size: 19/; s/^seq_length:.*/seq_length: 7/' \
            workloads/$name-tiny.yaml > "$dir/$name.yaml"
    done
    sed -i 's/^hidden_size:.*/hidden_size: 36/' "$dir/llama.yaml"
    for name in gpt llama; do
        for backend in host cuda; do
            ends 0 -- "$mpirun" -n 2 "$run_double" train --workload "$dir/$name.yaml" --json \
                --global-batch 4 --precision bf16 --grid 2x1x1x1 --iterations 3 --backend $backend
            loss[$backend]=$(field "['loss'][2]")
        done
        python3 -c "a, b = ${loss[host]}, ${loss[cuda]}; assert abs(a / b - 1) < 1e-3, (a, b)"
    done
}

@test "double: every stream has a queue of the GPU; with one queue for all it trains alike" {
    local small=(train --workload gpt-tiny --global-batch 8 --precision f32 --grid 2x1x1x1 --iterations 3
        --backend cuda --json)
    for queues in '' 8 1; do
        env ${queues:+CUDA_DEVICE_MAX_CONNECTIONS=$queues} S4D_DOUBLE_CALLS="$dir/calls$queues" \
            "$mpirun" -n 2 "$run_double" "${small[@]}" > "$dir/out"
        field "['loss']" > "$dir/loss$queues"
    done
    ! grep '^shared-queue' "$dir/calls"
    grep -q '^shared-queue [1-9]' "$dir/calls8"
    cmp "$dir/loss" "$dir/loss8"
    cmp "$dir/loss" "$dir/loss1"
}

@test "double: the host runs ahead by no more than the driver's queues hold" {
    local small=(train --workload gpt-tiny --global-batch 16 --micro-batch 1 --precision bf16
        --grid 2x1x1x1 --iterations 6 --backend cuda)
    fails none 0 "# loss 5.5" --
}

@test "double: no GPU, no driver, an old one, too few GPUs, too little memory" {
    two=("$mpirun" -n 2 "$run_double" "${small[@]}")
    S4D_DOUBLE_GPUS=0 ends 69 "rank 0 (" "no CUDA-capable device is detected" -- "${two[@]}"
    S4D_DOUBLE_DRIVER=0 ends 69 "this node has no NVIDIA driver" -- "${two[@]}"
    S4D_DOUBLE_DRIVER=11040 ends 69 "the driver is for CUDA 11.4, this program was built with" -- \
        "${two[@]}"
    S4D_DOUBLE_GPUS=1 ends 69 "local ranks 0 and 1, of 2 on this node, would share GPU" -- "${two[@]}"
    CUDA_VISIBLE_DEVICES= ends 69 "no CUDA-capable device is detected" "CUDA_VISIBLE_DEVICES is ''" -- "${two[@]}"
    CUDA_VISIBLE_DEVICES=-1 ends 69 "no CUDA-capable device" "CUDA_VISIBLE_DEVICES is '-1'" -- "${two[@]}"
    CUDA_VISIBLE_DEVICES=3 ends 69 "would share GPU 0000:04:00.0" "CUDA_VISIBLE_DEVICES is '3'" -- "${two[@]}"
    CUDA_VISIBLE_DEVICES=5,2 ends 0 -- "${two[@]}"
    # Each rank its own, as some launchers have it: one device is number 0 everywhere.
    ends 0 -- "$mpirun" -n 1 -x CUDA_VISIBLE_DEVICES=6 "$run_double" "${small[@]}" \
        : -n 1 -x CUDA_VISIBLE_DEVICES=7 "$run_double" "${small[@]}"
    S4D_DOUBLE_GPU_BYTES=34000000 ends 69 "the plan needs" "free are 0.000 of 0.034 GB" -- "${two[@]}"
}

# Kept free are 0.5 GB for the driver, and 544 MB for each of two communicators of two GPUs, nearly
# all of it buffers: of 512 KiB, 4800 KiB and what NCCL_BUFFSIZE says, 4 MiB unless it does. With 8
# MiB they are (512 + 4800 + 8192) / (512 + 4800 + 4096) = 1.4354 times as large.
@test "double: a plan leaves memory for what NCCL and the driver take later" {
    two=("$mpirun" -n 2 "$run_double" "${small[@]}")
    export S4D_DOUBLE_GPU_BYTES=100000000
    ends 69 "1.588 GB are kept for 2 of NCCL's communicators" "hint: " "SCALE4D_GPU_RESERVE" -- "${two[@]}"
    NCCL_BUFFSIZE=8388608 ends 69 "2.062 GB are kept for 2 of" -- "${two[@]}"
    NCCL_RUNTIME_CONNECT=0 ends 69 "0.500 GB are kept for 0 of" -- "${two[@]}"
    SCALE4D_GPU_RESERVE="1 MB" ends 0 -- "${two[@]}"
    SCALE4D_GPU_RESERVE="1" ends 64 "SCALE4D_GPU_RESERVE: expected" -- "${two[@]}"
    S4D_DOUBLE_GPU_BYTES=1700000000 ends 0 -- "${two[@]}"
}

@test "double: the Slurm script for GPUs, edited as it says: one rank a GPU, every rank sees all of its node" {
    mkdir -p "$dir/bin" "$dir/job/build"
    ln -s "$PWD/$run_double" "$dir/job/build/scale4d-run"
    cat > "$dir/bin/srun" <<END
#!/bin/bash
while [[ \$1 == --* ]]; do echo "\$1" >> "$dir/srun"; shift; done
exec "$mpirun" -n 2 "\$@"
END
    chmod +x "$dir/bin/srun"
    sed 's/^workload=.*/workload=gpt-tiny/; s/^grid=[^ ]*/grid=2x1x1x1/; s/^global_batch=.*/global_batch=8/
        s/--iterations 50/--iterations 2 --gemm-cache cache/' real/launch/train-gpu.sbatch > "$dir/job/train.sbatch"
    SLURM_SUBMIT_DIR=$dir/job SLURM_JOB_ID=7 PATH=$dir/bin:$PATH ends 0 -- bash "$dir/job/train.sbatch"
    grep -qx -- --kill-on-bad-exit=1 "$dir/srun" && ! grep -q gpu "$dir/srun"
    python3 -c "
import json
r = json.load(open('$dir/job/scale4d-7.jsonl'))
assert r['gemm_tuning'] == 'full' and len(r['loss']) == 2
assert len({d['pci'] for d in r['provenance']['devices']['ranks']}) == 2, r['provenance']['devices']"
    grep -qx '#SBATCH --ntasks-per-node=8' real/launch/train-gpu.sbatch
    grep -qx '#SBATCH --gpus-per-node=8' real/launch/train-gpu.sbatch
}
