# SPDX-License-Identifier: Apache-2.0
# scale4d tune from the command line.

load lib.bash

tune() {
    "$s4d" tune --records "$dir/tune.jsonl" "$@"
}

# field KEY < record
field() {
    python3 -c "import json,sys; print(eval('json.loads(sys.stdin.readline())' + sys.argv[1]))" "$1"
}

@test "tune ranks, simulates the best, names the winner" {
    tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16 --simulate 5 > "$dir/out"
    grep -q '^# 20 grids, 19 divide model and batch; [0-9]* configurations, [0-9]* fit; ranked in' "$dir/out"
    grep -q '^# best: grid [0-9x]*, micro-batch [0-9]*, recompute [a-z]*, [0-2] cached layers: .* simulated' "$dir/out"
    grep -q '^# rank correlation of model and simulation (Spearman), 5 configurations: ' "$dir/out"
    grep -q '^# what is simulated is kept in .*tune.jsonl' "$dir/out"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 5 ]
    # No more than two of one grid, unless asked for.
    [ "$(grep -o '"grid": "[^"]*"' "$dir/tune.jsonl" | sort | uniq -c | sort -rn | awk 'NR == 1 { print $1 }')" -le 2 ]
}

@test "tune: a finished simulation is taken from the file, whatever else the command asks for" {
    args=(--machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16)
    tune "${args[@]}" --simulate 4 --json > "$dir/one"
    tune "${args[@]}" --simulate 6 > "$dir/two"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 6 ]
    grep -q '^# 4 of 6 were simulated before' "$dir/two"
    tune "${args[@]}" --simulate 4 --json > "$dir/again"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 6 ]
    [ "$(field "['configurations']" < "$dir/one")" = "$(field "['configurations']" < "$dir/again")" ]
    # Another batch is another job.
    tune "${args[@]::6}" --global-batch 32 --simulate 1 --json > "$dir/other"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 7 ]
}

@test "tune's times are simulate's, and its memory" {
    tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16 --simulate 3 --json > "$dir/out"
    best="['best']"
    grid=$(field "$best['grid']" < "$dir/out")
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16 --grid "$grid" \
        --micro-batch "$(field "$best['micro_batch']" < "$dir/out")" \
        --recompute "$(field "$best['recompute']" < "$dir/out")" \
        --cache-layers "$(field "$best['cached_layers']" < "$dir/out")" --json > "$dir/sim"
    [ "$(field "['iteration_time_s']" < "$dir/sim")" = "$(field "$best['iteration_time_s']" < "$dir/out")" ]
    [ "$(field "['memory_peak_bytes']" < "$dir/sim")" = \
        "$(field "$best['memory_peak_bytes']" < "$dir/out" | sed 's/\.0$//')" ]
}

@test "tune --strategy has the grids of each system" {
    for s in fsdp:1x1x8x1 hsdp:1x1x4x2 megatron-tp:4x1x1x2; do
        tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16 --simulate 0 \
            --top 1000 --strategy "${s%:*}" > "$dir/out"
        grep -qF " ${s#*:} " "$dir/out"
    done
    ! grep -E '^ +[0-9]+ [0-9]+x[0-9]*[2-9]x' "$dir/out" # y is 1
}

@test "tune --gpus N,N shows strong scaling; options fix what is not tried" {
    tune --machine perlmutter --workload gpt-tiny --gpus 4,8 --global-batch 16 --simulate 2 \
        --recompute none --micro-batch 1 --cache-layers 1 > "$dir/out"
    [ "$(grep -c '^# best' "$dir/out")" -eq 2 ]
    grep -qE '^ +4 .* 1 none .* 1\.00 +100\.0$' "$dir/out"
    ! grep -E ' (full|selective) ' "$dir/out"
}

@test "tune: K larger than the list is said, and all are simulated" {
    tune --machine perlmutter --workload gpt-tiny --gpus 2 --global-batch 2 --micro-batch 1 --recompute full \
        --cache-layers 0 --simulate 50 > "$dir/out" 2> "$dir/err"
    grep -q '^warning: --simulate 50: [0-9]* configurations of 2 GPUs fit; all [0-9]* are simulated' "$dir/err"
    ! grep -E '^ +[0-9]+ [0-9]+x.* - +- ' "$dir/out"
}

@test "tune: nothing that divides, nothing that fits" {
    refuses 64 "no 4D grid of 31 GPUs divides gpt-tiny and a global batch of 32" \
        "nearest numbers of GPUs that have a grid: 16, 32" -- \
        tune --machine perlmutter --workload gpt-tiny --gpus 31 --global-batch 32 --records "$dir/r"
    refuses 65 "gpt-640b fits no 4D grid of 16 GPUs: the nearest, " " more than the " "use more GPUs" -- \
        tune --machine perlmutter --workload gpt-640b --gpus 16 --global-batch 32 --records "$dir/r"
    refuses 65 "6144 are more" -- tune --machine "$one_line" --workload gpt-tiny --gpus 6144 \
        --global-batch 6144 --records "$dir/r"
    [ ! -e "$dir/r" ]
}

@test "tune: bad options" {
    refuses 64 "--machine" "not given" -- tune --workload gpt-tiny --gpus 8 --global-batch 8
    refuses 64 "--gpus" "not given" -- tune --machine perlmutter --workload gpt-tiny --global-batch 8
    refuses 64 "--global-batch" -- tune --machine perlmutter --workload gpt-tiny --gpus 8
    refuses 64 "--gpus" "several with commas" -- \
        tune --machine perlmutter --workload gpt-tiny --gpus 8,x --global-batch 8
    refuses 64 "--gpus" -- tune --machine perlmutter --workload gpt-tiny --gpus 8,,8 --global-batch 8
    refuses 64 "--strategy" -- \
        tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 8 --strategy ddp
    refuses 64 "--grid" "simulate takes a grid" -- \
        tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 8 --grid 1x1x8x1
    echo garbage > "$dir/r"
    refuses 65 "$dir/r:1" -- \
        tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 8 --records "$dir/r"
    refuses 74 "/nowhere/r" -- tune --machine perlmutter --workload gpt-tiny --gpus 8 \
        --global-batch 8 --simulate 1 --records /nowhere/r
}

large=(--machine perlmutter --workload gpt-5b --gpus 128 --global-batch 512 --simulate 40 --variants 9)

@test "tune: Ctrl-C leaves what is finished, and the next run goes on from there" {
    "$s4d" tune "${large[@]}" --records "$dir/tune.jsonl" -j 1 > "$dir/out" 2> "$dir/err" &
    pid=$!
    await_lines "$dir/tune.jsonl" 2
    kill -INT "$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ]
    grep -qF "What is finished stays in $dir/tune.jsonl" "$dir/err"
    n=$(wc -l < "$dir/tune.jsonl")
    python3 -c "import json,sys; [json.loads(l) for l in open(sys.argv[1])]" "$dir/tune.jsonl"
    tune "${large[@]}" > "$dir/out"
    grep -q "^# $n of 40 were simulated before" "$dir/out"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 40 ]
}

@test "tune: a worker that dies is reported, the others finish, and it is tried again" {
    "$s4d" tune "${large[@]}" --records "$dir/tune.jsonl" -j 1 > "$dir/out" 2> "$dir/err" &
    pid=$!
    await_lines "$dir/tune.jsonl" 1
    # A worker that has ended, and not been waited for, takes a signal too: stopped, it has not.
    child=
    until [ "$(ps -o stat= -p "${child:-$pid}" | cut -c1)" = T ]; do
        kill -0 "$pid"
        child=$(pgrep -P "$pid" | head -n 1)
        [ -z "$child" ] || kill -STOP "$child" 2> /dev/null || true
    done
    kill -KILL "$child"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 70 ]
    grep -q 'failed .* ended by signal 9' "$dir/out"
    grep -q '^# best: ' "$dir/out"
    grep -q '^scale4d: 1 of the simulations did not end; the others did' "$dir/err"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 39 ]
    tune "${large[@]}" > "$dir/out"
    [ "$(wc -l < "$dir/tune.jsonl")" -eq 40 ]
}

@test "simulate --explain prints the models' terms beside the simulated times" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 16 --grid 2x2x2x2 --global-batch 16 \
        --explain > "$dir/out"
    for term in gemm kernels AG,z RS,z AR,y AR,x AR,data other total; do
        grep -qE "^$term( +[0-9.-]+){4}" "$dir/out"
    done
    "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 16 --grid 2x2x2x2 --global-batch 16 \
        --explain --json > "$dir/out"
    [ "$(field "['explain']['model']['terms'][2]['published_s']" < "$dir/out")" = None ]
}

# Of a machine whose z is at a tenth of its rate the ranking's first has less of it, and tune's time is
# simulate's on that machine.
@test "tune on a night with other rates: the ranking and the simulation go by them, what it cannot is refused" {
    job=(--machine perlmutter --workload gpt-5b --gpus 64 --global-batch 64)
    tune "${job[@]}" --simulate 1 --json > "$dir/plain"
    tune "${job[@]}" --simulate 1 --json --set rates.z=0.1 > "$dir/slow"
    python3 - "$dir"/{plain,slow} "$dir/tune.jsonl" <<'END'
import json, sys
plain, slow = (json.load(open(f))["configurations"][0] for f in sys.argv[1:3])
z = lambda c: int(c["grid"].split("x")[2])
assert z(slow) < z(plain), (slow, plain)
assert slow["estimate_s"] > plain["estimate_s"]
assert json.load(open(sys.argv[2]))["scenario"]["differences"] == ["rates.z=0.1"]
assert "scenario" not in json.load(open(sys.argv[1]))
records = [json.loads(line) for line in open(sys.argv[3])]
assert ["scenario" in r for r in records] == [False, True]
END
    c=$(tail -n 1 "$dir/tune.jsonl")
    "$s4d" simulate "${job[@]}" --grid "$(field '["grid"]' <<< "$c")" --micro-batch "$(field '["micro_batch"]' <<< "$c")" \
        --recompute "$(field '["recompute"]' <<< "$c")" --cache-layers "$(field '["cache_layers"]' <<< "$c")" \
        --set rates.z=0.1 --json > "$dir/one"
    [ "$(field '["iteration_time_s"]' < "$dir/one")" = "$(field '["iteration_time_s"]' <<< "$c")" ]
    tune "${job[@]}" --simulate 0 --set rates.z=0.1 | grep -qx '# rates.z=0.1'
    refuses 64 "a placement: a ranking by closed forms knows rates and devices" -- tune "${job[@]}" --placement random
    refuses 64 "links.n0.*=0.5" "no single link" -- tune "${job[@]}" --set 'links.n0.*=0.5'
}

@test "tune --plot draws model against simulation, with a table" {
    tune --machine perlmutter --workload gpt-tiny --gpus 8 --global-batch 16 --simulate 6 --plot "$dir/p" > "$dir/out"
    [ "$(wc -l < "$dir/p.tsv")" -eq 8 ]
    [ "$(awk -F'\t' 'NR > 2 { print NF }' "$dir/p.tsv" | sort -u)" = 10 ]
    for kind in png svg pdf; do [ -s "$dir/p.$kind" ]; done
    grep -q '^# of the communication model of arXiv 2502.08145 and simulation: ' "$dir/out"
    refuses 64 "--plot" "one number of GPUs" -- tune --machine perlmutter --workload gpt-tiny --gpus 4,8 \
        --global-batch 16 --plot "$dir/q"
    # No tables of the paper's authors for this machine: the points of the links alone.
    tune --machine "$one_line" --workload gpt-tiny --gpus 8 --global-batch 16 --simulate 6 --plot "$dir/q" > "$dir/out"
    [ -s "$dir/q.png" ]
    ! grep -q "authors' bandwidths" "$dir/out"
}

@test "tune --gpus N,N: a number without a configuration takes nothing from the others" {
    status=0
    tune --machine perlmutter --workload gpt-5b --gpus 1,31,8,16 --global-batch 64 --simulate 1 > "$dir/out" 2> "$dir/err" ||
        status=$?
    [ "$status" -eq 65 ] # of the first
    grep -q '^warning: 1 GPUs: memory: gpt-5b fits no 4D grid of 1 GPUs' "$dir/err"
    grep -q '^warning: 31 GPUs: --gpus: no 4D grid of 31 GPUs' "$dir/err"
    grep -q '^scale4d: --gpus: 2 of the 4 numbers cannot be tuned' "$dir/err"
    [ "$(grep -c '^# best: grid' "$dir/out")" -eq 2 ]
    # speed-up against the first that there is
    [ "$(tail -n 2 "$dir/out" | awk '{ print $1, $6 }' | head -n 1)" = "8 1.00" ]
    status=0
    tune --machine perlmutter --workload gpt-5b --gpus 31,8 --global-batch 64 --simulate 0 --json > "$dir/out" 2> "$dir/err" ||
        status=$?
    [ "$status" -eq 64 ]
    [ "$(wc -l < "$dir/out")" -eq 1 ]
}
