#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run from the command line: what it trains and records, what it refuses, how it ends.

load lib

@test "four ranks and one give the same losses, which fall on a text" {
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --text README.md --learning-rate 0.003 --json
    one=$(field "['loss']")
    ends 0 -- "$mpirun" -n 4 "$run4d" "${tiny[@]}" --grid 2x1x2x1 --text README.md \
        --learning-rate 0.003 --json
    four=$(field "['loss']")
    python3 -c "
a, b = $one, $four
assert len(a) == 10 and a[-1] < a[0] - 0.5, a
assert all(abs(x - y) <= 1e-5 * x for x, y in zip(a, b)), (a, b)"
}

@test "the record: all samples but the warm-up's, their median, the slowest rank, the parts' sum" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --iterations 7 --warmup 2 --json
    python3 - "$dir/out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["kind"] == "train" and r["gpus"] == 2 and r["grid"] == "2x1x1x1" and r["warmup"] == 2
assert len(r["samples_s"]) == 5 and len(r["loss"]) == 7
assert r["iteration_time_s"] == sorted(r["samples_s"])[2]
assert r["slowest_rank"] in (0, 1) and not r["interrupted"]
assert abs(sum(r["exposed_s"].values()) - r["iteration_time_s"]) < 1e-9
assert r["tokens_per_s"] == 8 * 32 / r["iteration_time_s"]
END
}

@test "two runs give the same bits, whoever drives the collectives" {
    for progress in panels thread none; do
        ends 0 -- "$mpirun" -n 4 "$run4d" "${tiny[@]}" --grid 2x2x1x1 --iterations 3 --json \
            --progress $progress
        field "['loss'], json.load(open('$dir/out'))['grad_norm']" > "$dir/$progress"
    done
    cmp "$dir/panels" "$dir/thread"
    cmp "$dir/panels" "$dir/none"
}

@test "--progress auto: a thread where ranks have processors of their own, nobody where they share" {
    local processor
    processor=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 2 --json
    [ "$(field "['progress']")" = thread ]
    ends 0 -- "$mpirun" -n 2 taskset -c "$processor" "$run4d" "${tiny[@]}" --grid 2x1x1x1 \
        --iterations 2 --json
    [ "$(field "['progress']")" = none ]
}

@test "--threads 2: the same losses, or a word about a BLAS that has one" {
    # Debian keeps libopenblas-pthread here; the loader takes the folder's libopenblas.so.0.
    local threaded
    threaded=$(echo /usr/lib/*/openblas-pthread)
    [ ! -d "$threaded" ] || export LD_LIBRARY_PATH=$threaded
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --json
    one=$(field "['loss']")
    if ! "$run4d" train --list-backends | grep -q 'host.*OpenBLAS' || [ -d "$threaded" ]; then
        ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --json --threads 2
        [ "$(field "['threads']")" = 2 ]
        two=$(field "['loss']")
        python3 -c "
a, b = $one, $two
assert len(a) == 10 and all(abs(x - y) <= 1e-5 * x for x, y in zip(a, b)), (a, b)"
    else
        ends 69 "--threads: this BLAS computes with 1 threads, not 2" -- \
            "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --threads 2
    fi
}

@test "files that cannot be written are refused before anything is trained" {
    ends 74 "$dir/none/w: no file can be written there" -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" \
        --grid 2x1x1x1 --iterations 100000 --save "$dir/none/w"
    for option in --save --save-gradients --timeline --record; do
        ends 74 "$dir" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 100000 $option "$dir"
        ends 74 "/proc/w: no file can be written there" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 100000 \
            $option /proc/w
    done
}

@test "nothing is written over what is read, and weights only where a file can be renamed to" {
    cp README.md "$dir/t"
    cp workloads/gpt-tiny.yaml "$dir/w.yaml"
    local one=("$run4d" train --workload "$dir/w.yaml" --global-batch 8 --precision f32
        --grid 1x1x1x1 --text "$dir/t" --iterations 1)
    for option in --save --save-gradients --timeline --record; do
        ends 64 "$option: '$dir/t' is the file of --text, too" -- "${one[@]}" $option "$dir/t"
        ends 64 "$option: '$dir/w.yaml' is the file of --workload, too" -- "${one[@]}" $option "$dir/w.yaml"
    done
    cmp README.md "$dir/t"
    cmp workloads/gpt-tiny.yaml "$dir/w.yaml"
    ends 0 -- "${one[@]}" --save "$dir/w"
    ends 0 -- "${one[@]}" --load "$dir/w" --save "$dir/w"
    ends 64 "--timeline: '$dir/w' is the file of --load, too" -- "${one[@]}" --load "$dir/w" --timeline "$dir/w"
    mkfifo "$dir/pipe"
    for option in --save --save-gradients; do
        ends 74 "/dev/null: expected a file to replace, found a device or pipe" -- \
            "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 1000000 $option /dev/null
    done
    ends 65 "$dir/pipe: expected a file, found a device or pipe" -- \
        "$run4d" "${tiny[@]}" --grid 1x1x1x1 --load "$dir/pipe"
}

@test "refused: options of what is not asked for, and more than memory or 10,000,000 iterations hold" {
    local one=("$run4d" "${tiny[@]}" --grid 1x1x1x1)
    ends 64 "--token-type: is of --tokens" -- "${one[@]}" --token-type u32 --text README.md
    ends 64 "--gemm-cache: is of --gemm-tuning" -- "${one[@]}" --gemm-cache "$dir/c"
    ends 64 "--iterations: expected an integer in [0, 10000000]" -- "${one[@]}" --iterations 1000000000
    ends 69 "memory: a rank takes" "(micro-batches of 262144), 2 of them are on this node" "hint: " -- \
        "$mpirun" -n 2 "$run4d" train --workload llama-3-405b --grid 1x1x1x2 --global-batch 524288 \
        --micro-batch 262144
}

@test "without --micro-batch train and simulate choose the same: the largest that fits" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x1x2x1 --iterations 1 --json
    [ "$(field "['micro_batch']")" = 4 ]
    build/scale4d simulate --machine perlmutter --gpus 2 "${tiny[@]:1:4}" --grid 1x1x2x1 --json > "$dir/out"
    [ "$(field "['micro_batch']")" = 4 ]
}

@test "weights saved on one grid are loaded on another" {
    ends 0 -- "$mpirun" -n 4 "$run4d" "${tiny[@]}" --grid 2x1x2x1 --iterations 3 \
        --save "$dir/w.safetensors"
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x2x1x1 --iterations 0 \
        --load "$dir/w.safetensors" --save "$dir/same.safetensors"
    cmp "$dir/w.safetensors" "$dir/same.safetensors"
}

@test "initial weights depend on the seed alone" {
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 0 --save "$dir/one.safetensors"
    ends 0 -- "$mpirun" -n 4 "$run4d" "${tiny[@]}" --grid 2x1x2x1 --iterations 0 \
        --save "$dir/four.safetensors"
    cmp "$dir/one.safetensors" "$dir/four.safetensors"
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 0 --seed 2 --save "$dir/two.safetensors"
    ! cmp -s "$dir/one.safetensors" "$dir/two.safetensors"
}

@test "the timeline has every op of every rank, with the streams' names" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x1x2x1 --iterations 2 \
        --micro-batch 1 --timeline "$dir/t.json"
    build/scale4d schedule --workload gpt-tiny --gpus 2 --grid 1x1x2x1 --global-batch 8 \
        --precision f32 --micro-batch 1 --json > "$dir/program.json"
    python3 - "$dir/t.json" "$dir/program.json" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
ops = json.load(open(sys.argv[2]))["ops"]
spans = [e for e in events if e["ph"] == "X"]
assert len(spans) == 2 * 2 * len(ops), (len(spans), len(ops))
names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert names == {o["stream"] for o in ops}, names
assert all(e["dur"] >= 0 for e in spans)
END
}

@test "refused: what the ranks were not told alike" {
    ends 64 "command line: differs between rank 0 and rank 1" -- \
        "$mpirun" -n 1 "$run4d" "${tiny[@]}" --grid 2x1x1x1 : \
        -n 1 "$run4d" "${tiny[@]}" --grid 1x2x1x1
}

@test "refused: files that are not alike" {
    mkdir -p "$dir/a" "$dir/b"
    head -c 100000 /dev/zero | tr '\0' 'a' > "$dir/a/t.txt"
    head -c 100000 /dev/zero | tr '\0' 'b' > "$dir/b/t.txt"
    cat > "$dir/in" <<END
#!/bin/sh
cd $dir/\$1 && shift && SCALE4D_WORKLOADS=$PWD/workloads exec $run4d "\$@"
END
    chmod +x "$dir/in"
    ends 64 "--text file: differs between rank 0 and rank 1" -- \
        "$mpirun" -n 1 "$dir/in" a "${tiny[@]}" --grid 2x1x1x1 --text t.txt : \
        -n 1 "$dir/in" b "${tiny[@]}" --grid 2x1x1x1 --text t.txt
}

@test "refused: a grid that is not the job's, a warm-up that leaves nothing, a token too large" {
    ends 64 "--grid: expected a product of 2" -- \
        "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x2x1x1
    ends 64 "--warmup" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 3 --warmup 3
    yes 'zz' | head -c 8000 > "$dir/tokens"
    ends 65 "expected 0 to 255" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --tokens "$dir/tokens"
    ends 65 "safetensors" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --load "$dir/tokens"
}

@test "a launcher that says something else than MPI" {
    status=0
    OMPI_COMM_WORLD_RANK=3 PMIX_RANK=3 timeout 60 "$run4d" "${tiny[@]}" --grid 1x1x1x1 \
        > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -ne 0 ]
    grep -q "the launcher says 3, MPI says rank 0" "$dir/err" || { cat "$dir/err"; false; }
}

@test "--check-finite names iteration, op and rank" {
    ends 1 "--check-finite: iteration 1: op" "rank 0" -- \
        "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --learning-rate 1000000 --clip-norm 0 \
        --check-finite
}

# starts ARGUMENT...: a job of four ranks that would go on for hours, in its iterations; `job` is its
# launcher.
starts() {
    "$mpirun" -n 4 "$run4d" "${tiny[@]}" --grid 2x1x2x1 --iterations 100000 "$@" \
        > "$dir/out" 2> "$dir/err" < /dev/null 3>&- &
    job=$!
    for ((i = 0; i < 1200; i++)); do
        grep -q '^ *1 ' "$dir/out" && return
        kill -0 "$job" || break
        sleep 0.1
    done
    cat "$dir/out" "$dir/err"
    return 1
}

# The process of rank 1: a child of the launcher, or of its proxy on this machine (MPICH).
rank_1() {
    local p parent
    for p in $(pgrep -f "scale4d-run train"); do
        tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null |
            grep -qxE '(OMPI_COMM_WORLD_RANK|PMI_RANK)=1' || continue
        parent=$(ps -o ppid= -p "$p" | tr -d ' ')
        if [ "$parent" = "$job" ] || [ "$(ps -o ppid= -p "$parent" | tr -d ' ')" = "$job" ]; then
            echo "$p"
        fi
    done
}

# ended: the launcher, within 30 s, with a status that is not 0
ended() {
    local began=$SECONDS status=0
    wait "$job" || status=$?
    [ $((SECONDS - began)) -lt 30 ]
    [ "$status" -ne 0 ]
}

@test "SIGKILL of a rank: the job ends, naming it and the ops that waited" {
    starts
    kill -KILL "$(rank_1)"
    ended
    if ! "$mpirun" --version | grep -q 'Open MPI'; then
        # MPICH's launcher kills the other ranks (SIGKILL, which none can answer) before they look,
        # also with -disable-auto-cleanup: the words are the launcher's.
        grep -q 'BAD TERMINATION' "$dir/out"
        grep -q 'Killed (signal 9)' "$dir/out"
        return
    fi
    grep -qE "rank [023] .*: rank 1 \(process [0-9]+ on [^)]+\) is gone; waiting in .*\(op [0-9]+, stream" "$dir/err" ||
        { cat "$dir/err"; false; }
    # Who was slowest is not known of ranks that are gone.
    grep -qw nan "$dir/out" && { cat "$dir/out"; false; }
    ! pgrep -f "$dir" > /dev/null
}

@test "a rank that hangs: --timeout ends the job, naming the ops that waited" {
    starts --timeout "5 s" # less than the start may take where other work is done
    kill -STOP "$(rank_1)"
    ended
    nothing_for 5
    grep -qE " s \(--timeout\); waiting in .*\(op [0-9]+, stream" "$dir/err" || { cat "$dir/err"; false; }
}

@test "SIGTERM: the record of what was done" {
    starts --record "$dir/record"
    kill -TERM "$job"
    ended
    mv "$dir/record" "$dir/out" # Open MPI's launcher drops the end of a long line
    [ "$(field "['interrupted']")" = True ]
    [ "$(field "['completed'] > 1")" = True ]
    [ "$(field "['iteration_time_s'] > 0")" = True ]
}

# What tools that read Megatron-LM's logs look for.
@test "--log-throughput: Megatron-LM's line an iteration, on rank 0 alone; --json keeps standard output" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --iterations 3 --log-throughput \
        --learning-rate 0.003
    grep -E '^ \[[-0-9]{10} [0-9:]{8}\.[0-9]{6}\] iteration ' "$dir/out" > "$dir/lines"
    [ "$(wc -l < "$dir/lines")" -eq 3 ]
    python3 - "$dir/lines" << 'END'
import re, sys
keys = ["consumed samples", "elapsed time per iteration (ms)", "throughput per GPU (TFLOP/s/GPU)", "learning rate",
        "global batch size", "lm loss", "loss scale", "grad norm", "number of skipped iterations", "number of nan iterations"]
for i, line in enumerate(open(sys.argv[1]), 1):
    at, *parts = line.rstrip("\n").rstrip("|").split("|")
    assert re.search(r"iteration +%d/ +3 $" % i, at), at
    values = dict(p.strip().split(": ") for p in parts)
    assert list(values) == keys, values
    v = [float(x) for x in values.values()]
    assert v[0] == 8 * i and v[4] == 8 and v[3] == 0.003 and 5 < v[5] < 7 and v[6] == 1 and v[8:] == [0, 0], values
    # 8 sequences of gpt-tiny on two ranks, as far as the digits say: 96 B s l h^2 (1 + s/6h + V/16lh) =
    # 96 * 8 * 32 * 2 * 64^2 * (1 + 32/384 + 256/2048).
    flop = 243269632
    digit = 5e-5 if v[2] < 10 else 0.05
    low, high = ((v[2] + s * digit) * 1e12 * 2 * (v[1] + s * 0.05) / 1e3 for s in (-1, 1))
    assert low <= flop <= high, (low, flop, high)
END
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --iterations 3 --log-throughput --json
    [ "$(grep -c 'elapsed time per iteration' "$dir/err")" -eq 3 ]
    field "['kind']" | grep -qx train
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 2 --clip-norm 0 --log-throughput
    grep -q 'lm loss' "$dir/out"
    ! grep -q 'grad norm' "$dir/out"
}
