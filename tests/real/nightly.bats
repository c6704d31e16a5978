#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run nightly and real/launch/nightly.sh: what fails, what is killed, and what is left of it.

load lib

# suite TEXT: $dir/n.yaml of tiny experiments, TEXT its end.
suite() {
    {
        printf 'repeats: 2\niterations: 4\nglobal_batch: 4\nprecision: f32\nrates: false\n'
        printf 'preflight: off\nworkload: gpt-tiny\ngrid: 2x1x1x1\nhost_class: test\n'
        printf '%s\n' "$1"
    } > "$dir/n.yaml"
}

# told FILE: a line a record: kind, experiment, repeat, exit, started, interrupted.
told() {
    python3 - "$1" <<'END'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    s = r["suite"]
    assert line.endswith("\n") and s["night"] and r["host_class"], r
    words = [r["kind"], s["experiment"], s.get("repeat"), r.get("exit"), r.get("started"),
             r.get("interrupted")]
    print(*["-" if w is None else w for w in words])
END
}

is_told() {
    told "$1" > "$dir/told"
    diff - "$dir/told"
}

@test "a night: A B A B, what fails is a record and the next goes on, preflight and rates" {
    suite 'experiments:
  - {name: a}
  - {name: grid, grid: 1x1x3x1}
  - {name: nan, learning_rate: 1000000, clip_norm: 0}
  - {name: file, text: /nonexistent}
  - {name: b, grid: 1x1x2x1, workload: real/compare-host/gpt-compare-s.yaml}'
    sed -i 's/preflight: off/preflight: go-on/; s/rates: false/rates: true/' "$dir/n.yaml"
    ends 1 "n.yaml:12: grid: --grid: expected a product of 2" "nan: iteration 1: the loss is" \
        "file: /nonexistent" "4 runs, 3 of 5 experiments failed" -- \
        "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl" --night 2026-11-29
    [ ! -e "$dir/o.jsonl.running" ]
    is_told "$dir/o.jsonl" <<'END'
preflight - - - - -
rates a - - - -
train a 1 - - False
failure grid 1 65 True False
rates nan - - - -
failure nan 1 1 True False
failure file 1 65 True False
rates b - - - -
train b 1 - - False
train a 2 - - False
train b 2 - - False
END
    # The rates of b: 2 layers of gpt-compare-s, h = 128, ffn = 512, s = 64; 4 sequences on two ranks
    # of z. A rank's up-projection is 128 x 512 x 128, 2 * 128 * 512 * 128 FLOPs; in each of 2 layers it
    # runs forward, and again for the backward pass: 4 calls an iteration. Its weight's gather is of
    # 128 * 512 fp32 numbers, 262144 B, of which a bus carries half.
    python3 - "$dir/o.jsonl" <<'END'
import json, math, sys
r = [json.loads(line) for line in open(sys.argv[1])]
b = [x for x in r if x["kind"] == "rates" and x["suite"]["experiment"] == "b"][0]
t = [x for x in r if x["kind"] == "train" and x["suite"]["experiment"] == "b"][0]
for key in ("backend", "host_class", "workload", "gpus", "grid", "global_batch", "micro_batch", "overlap",
            "precision", "threads", "progress", "model_version"):
    assert b[key] == t[key], key
up = [g for g in b["gemm"] if (g["m"], g["n"], g["k"], g["transpose_b"]) == (128, 512, 128, False)][0]
assert up["calls"] == 4, up
assert math.isclose(up["flops_per_s"] * up["time_s"], 2 * 128 * 512 * 128)
assert math.isclose(b["gemm_s"], sum(g["calls"] * g["time_s"] for g in b["gemm"]))
gather = [c for c in b["collectives"] if c["op"] == "all_gather" and c["bytes"] == 262144][0]
assert gather["ranks"] == 2 and gather["groups"] == 1 and gather["stream"] == "z-gather", gather
assert math.isclose(gather["busbw_Bps"] * gather["time_s"], 262144 / 2)
assert all(c["wrong"] == 0 for c in b["collectives"])
z = [c for c in b["collectives"] if c["stream"] in ("z-gather", "z-scatter")]
assert math.isclose(b["communication_s"]["z"], sum(c["calls"] * c["time_s"] for c in z))
assert set(b["busbw_Bps"]) == {c["stream"] for c in b["collectives"]} == set(t["busbw_Bps"])
assert b["attention_s"] > 0 and b["kernels_s"] > 0
of = b["gemm_flops_per_s_of_ranks"]
measured = [x for x in of if x is not None]
assert len(of) == 2 and measured and b["nodes"][0]["ranks"] == 2
assert min(measured) == b["gemm_flops_per_s"] == b["nodes"][0]["gemm_flops_per_s"]
assert of[b["slowest_rank"]] == min(measured)
END
    # A second night; both are in a store.
    ends 1 -- "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl" --night 2026-11-30 --only a --only nan
    build/scale4d track add --store "$dir/s" "$dir/o.jsonl" > "$dir/added"
    grep ' 0 wrong' "$dir/added"
    build/scale4d track list --store "$dir/s" > "$dir/list"
    grep -E ' 2 +4 +2026-11-30 .* train test gpt-tiny 2 GPUs 2x1x1x1' "$dir/list"
    grep -E ' 2 +2 +2026-11-30 .* rates test gpt-tiny 2 GPUs 2x1x1x1' "$dir/list"
}

@test "the same by CUDA's double" {
    double=$PWD/${BUILD:-build}/tests/double/scale4d-run
    [ -x "$double" ] || skip "the double of CUDA is not built"
    suite 'experiments: [{name: a}]'
    sed -i 's/rates: false/rates: true/; s/precision: f32/precision: bf16\nbackend: cuda/' "$dir/n.yaml"
    ends 0 "2 runs, 0 of 1 experiments failed" -- \
        "$mpirun" -n 2 "$double" nightly "$dir/n.yaml" --output "$dir/o.jsonl"
    is_told "$dir/o.jsonl" <<'END'
rates a - - - -
train a 1 - - False
train a 2 - - False
END
    head -n 1 "$dir/o.jsonl" > "$dir/out"
    [ "$(field "['backend']")" = cuda ]
    [ "$(field "['gemm_flops_per_s'] > 0")" = True ]
}

@test "bad files and options: file, line, what was expected; nothing is run" {
    bad() { # EXIT WORDS: of the suite on standard input
        local want=$1
        cat > "$dir/bad.yaml"
        shift
        ends "$want" "$@" -- "$run4d" nightly "$dir/bad.yaml" --output "$dir/bad.jsonl"
        [ ! -e "$dir/bad.jsonl" ]
    }
    bad 65 "bad.yaml:2: grit: unknown key 'grit'" "did you mean grid?" <<'END'
experiments:
  - {name: a, grit: 1x1x1x1}
END
    bad 65 "bad.yaml:1: iterations: expected an integer" <<'END'
iterations: many
experiments:
  - {name: a, workload: gpt-tiny}
END
    bad 65 "bad.yaml:3: name: a second experiment named 'a', the first is in line 2" <<'END'
experiments:
  - {name: a, workload: gpt-tiny}
  - {name: a, workload: gpt-tiny}
END
    bad 65 "bad.yaml:1: experiments: expected a list of 1 to" <<< 'experiments: []'
    bad 65 "bad.yaml:1: the key experiments is missing" <<< 'repeats: 2'
    bad 65 "bad.yaml:1: the key workload is missing" <<< 'experiments: [{name: a}]'
    bad 65 "bad.yaml:1: save: an experiment of a suite has none" \
        <<< 'experiments: [{name: a, workload: gpt-tiny, save: w}]'
    ends 65 "absent.yaml" -- "$run4d" nightly "$dir/absent.yaml"
    suite 'experiments: [{name: first}]'
    ends 64 "expected one file of experiments, got 0" -- "$run4d" nightly
    ends 64 "did you mean first?" -- "$run4d" nightly "$dir/n.yaml" --only frist
    ends 64 "--night: expected a date" -- "$run4d" nightly "$dir/n.yaml" --night 2026-02-30
    ends 64 "--night: expected a date" -- \
        build/scale4d sweep real/nightly/gpu-64-simulated.yaml --suite n --night 2026-13-01
    ends 64 "--suite: goes with --night" -- \
        build/scale4d sweep real/nightly/gpu-64-simulated.yaml --suite n
    ends 74 "$dir: cannot be written" -- "$run4d" nightly "$dir/n.yaml" --output "$dir"
    echo '{"kind": "train"' > "$dir/o.jsonl"
    echo '{}' >> "$dir/o.jsonl"
    ends 65 "o.jsonl:1: expected a record" "remove the line" -- \
        "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl"
}

@test "a disk that is full ends the night, and leaves no half line" {
    suite 'experiments: [{name: a, grid: 1x1x1x1}, {name: b, grid: 1x1x1x1}]'
    head -c $((32 * 1024 * 1024 - 99)) /dev/zero | tr '\0' '\n' > "$dir/o.jsonl"
    ulimit -f $((32 * 1024)) # KiB a file may have
    ends 74 "o.jsonl: cannot be written: File too large" -- \
        "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl"
    [ "$(stat -c %s "$dir/o.jsonl")" -eq $((32 * 1024 * 1024 - 99)) ]
}

@test "time limits: of a run, of an experiment's repeats, of the night" {
    suite 'experiments:
  - {name: a}
  - {name: long, iterations: 1000000, time_limit: 700 ms}
  - {name: b, time_limit: 4000 s}'
    ends 75 "the time limit has passed, after " -- \
        "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl"
    # It is looked at a few times a second.
    python3 -c "
import re
after = float(re.search(r'limit has passed, after ([0-9.]+) s', open('$dir/err').read())[1])
assert 0.7 <= after < 30, after"
    # As if b had run for more than an hour before.
    python3 - "$dir/o.jsonl.running" <<'END'
import json, sys
state = json.load(open(sys.argv[1]))
assert state["experiment"] == "long" and state["spent_s"]["a"] > 0 and state["spent_s"]["b"] == 0, state
state["spent_s"]["b"] = 5000
json.dump(state, open(sys.argv[1], "w"))
END
    ends 75 "-/2   FAILED, exit 75: its time limit of 4000.000 s has passed" \
        "2 runs, 2 of 3 experiments failed" -- \
        "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl" --resume
    [ ! -e "$dir/o.jsonl.running" ]
    told "$dir/o.jsonl" | grep -v '^train long' > "$dir/told"
    diff - "$dir/told" <<'END'
train a 1 - - False
failure long 1 75 True False
failure b - 75 False False
train a 2 - - False
END
    # The night's: what has not begun is a record.
    ends 75 "the night's time limit of 1.00 us has passed" -- \
        "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --output "$dir/p.jsonl" --time-limit "1 us"
    [ "$(told "$dir/p.jsonl" | grep -c '^failure [a-z]* - 75 False False$')" -eq 3 ]
}

@test "preflight: stop runs nothing where devices are slow" {
    suite 'machine: dgx-h100
experiments: [{name: a, grid: 1x1x1x1}, {name: not-asked, grid: 1x1x1x1}]'
    sed -i '/preflight/d' "$dir/n.yaml"
    ends 1 "preflight: devices are slow" "0 runs, 1 of 2 experiments failed" -- \
        "$run4d" nightly "$dir/n.yaml" --output "$dir/o.jsonl" --only a
    is_told "$dir/o.jsonl" <<'END'
preflight - - - - -
failure a - 1 False False
END
}

# night FILE: real/launch/nightly.sh, until it runs `long`; $job is it.
night() {
    OUT=$dir/night LAUNCH="$mpirun -n 2" real/launch/nightly.sh "$1" \
        > "$dir/out" 2> "$dir/err" < /dev/null 3>&- &
    job=$!
    for ((i = 0; i < 1200; i++)); do
        ! grep -qs long "$dir/night"/*.running || break
        sleep 0.1
    done
    [ "$i" -lt 1200 ] || { cat "$dir/out" "$dir/err"; return 1; }
    # Its start takes a tenth of a second of a processor: one that has had more of it since iterates.
    for i in 0 1; do
        has_computed "$(rank_of_night $i)" || { cat "$dir/out" "$dir/err"; return 1; }
    done
}

# has_computed PROCESS: for another second of a processor's time.
has_computed() {
    local began i
    began=$(ticks_of "$1") || return
    for ((i = 0; i < 1200; i++)); do
        [ "$(ticks_of "$1")" -lt $((began + $(getconf CLK_TCK))) ] || return 0
        sleep 0.1
    done
    return 1
}

# User and system time: fields 14 and 15, and the second has no space in it here.
ticks_of() {
    awk '{ print $14 + $15 }' "/proc/$1/stat"
}

rank_of_night() {
    local p
    for p in $(pgrep -f "scale4d-run nightly $dir/n.yaml"); do
        ! tr '\0' '\n' < "/proc/$p/environ" 2> /dev/null |
            grep -qxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" || echo "$p"
    done
}

@test "SIGKILL of a rank: a record, and the night goes on with the next" {
    suite 'experiments: [{name: a}, {name: long, iterations: 1000000}, {name: b, grid: 1x1x2x1}]'
    for rank in 0 1; do
        rm -rf "$dir/night"
        night "$dir/n.yaml"
        kill -KILL "$(rank_of_night $rank)"
        status=0
        wait "$job" || status=$?
        [ "$status" -eq 1 ] || { cat "$dir/out" "$dir/err"; false; }
        # Where rank 0 lives on, there is a record of what was done, too.
        told "$dir"/night/n-*.jsonl | grep -v '^train long' > "$dir/told"
        diff - "$dir/told" <<'END'
train a 1 - - False
failure long 1 69 True False
train b 1 - - False
train a 2 - - False
train b 2 - - False
END
        grep -q "going on with the next, 1 of 10" "$dir/out"
        grep -q "^# n, night .*: suite FAILED (1), .* 0 worse" "$dir/out"
        build/scale4d track list --store "$dir/night/track.sqlite" > "$dir/list"
        grep -qE ' 1 +2 .* train test gpt-tiny 2 GPUs 1x1x2x1' "$dir/list"
    done
}

@test "SIGTERM: the record of what was done, the rest marked, then --resume" {
    suite 'experiments: [{name: a}, {name: long, iterations: 1000000}, {name: b, grid: 1x1x2x1}]'
    night "$dir/n.yaml"
    kill -TERM "$job"
    status=0
    wait "$job" || status=$?
    [ "$status" -eq 75 ] || { cat "$dir/out" "$dir/err"; false; }
    is_told "$dir"/night/n-*.jsonl <<'END'
train a 1 - - False
train long 1 - - True
failure a - 75 False True
failure long 1 75 True True
failure b - 75 False True
END
    sed -i 's/iterations: 1000000/iterations: 4/' "$dir/n.yaml"
    ends 0 "6 runs, 0 of 3 experiments failed" -- \
        "$mpirun" -n 2 "$run4d" nightly "$dir/n.yaml" --resume \
        --output "$(echo "$dir"/night/n-*.jsonl)"
}

@test "the suites of this project, the same simulated; the Slurm script, edited as it says" {
    for name in nightly gpu-64; do
        ends 64 "has no experiment named 'none'" -- \
            "$run4d" nightly real/nightly/$name.yaml --only none
        for file in $name $name-simulated; do
            grep '^ *- {' real/nightly/"$file".yaml |
                sed -E 's/, (iterations|warmup): [0-9]+//g' > "$dir/$file"
        done
        diff "$dir/$name" "$dir/$name-simulated"
    done
    build/scale4d sweep real/nightly/gpu-64-simulated.yaml --output "$dir/simulated.jsonl"
    suite 'experiments: [{name: a}]'
    cat > "$dir/n-simulated.yaml" <<'END'
machine: perlmutter
global_batch: 4
points: [{name: a, workload: gpt-tiny, gpus: 2, grid: 2x1x1x1}]
END
    mkdir "$dir/bin"
    cat > "$dir/bin/srun" <<END
#!/bin/bash
while [[ \$1 == --* ]]; do shift; done
exec "$mpirun" -n 2 "\$@"
END
    chmod +x "$dir/bin/srun"
    sed "s|^suite=.*|suite=$dir/n.yaml|; s|^export OUT=[^ ]*|export OUT=$dir/slurm|" \
        real/launch/nightly.sbatch > "$dir/nightly.sbatch"
    SLURM_SUBMIT_DIR=$PWD PATH=$dir/bin:$PATH NIGHT=2025-12-24 bash "$dir/nightly.sbatch" > "$dir/out" 2>&1 ||
        { cat "$dir/out"; false; }
    grep -q "2 runs, 0 of 1 experiments failed" "$dir/out"
    grep -qE '^# n, night 2025-12-24: suite OK, night of 2025-12-24, 2 series: 0 worse' "$dir/out"
    [ -s "$dir/slurm/report.html" ]
    build/scale4d track list --store "$dir/slurm/track.sqlite" > "$dir/list"
    grep -qE ' 1 +2 +2025-12-24 .* train test gpt-tiny 2 GPUs 2x1x1x1' "$dir/list"
    grep -qE ' 1 +1 +2025-12-24 .* simulated:perlmutter gpt-tiny 2 GPUs 2x1x1x1' "$dir/list"
}
