#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d track verdict, on nights made from one simulated record.

load lib.bash

setup_file() {
    cd "$BATS_TEST_DIRNAME/../.."
    build/scale4d simulate --machine perlmutter --workload gpt-5b --global-batch 8 --gpus 4 --grid 1x1x4x1 \
        --set device.memory_bytes=unlimited --json > "$BATS_FILE_TMPDIR/record"
}

# nights OPTION=VALUE...: appends to $dir/nights a series of five runs a night as if measured: seed, nights,
# from (the first), step (the night from which it is slower), loss,
# skip=A,B, host. Values are of a fixed seed.
nights() {
    python3 - "$BATS_FILE_TMPDIR/record" "$@" >> "$dir/nights" <<'PY'
import copy, datetime, json, random, sys
record = json.loads(open(sys.argv[1]).readline())
o = dict(a.split("=", 1) for a in sys.argv[2:])
rng = random.Random(int(o.get("seed", 1)))
step, loss = int(o.get("step", 10**6)), float(o.get("loss", 0.03))
skip = {int(x) for x in o.get("skip", "").split(",") if x}
for k in ("machine", "fold", "sim", "peak_fraction", "peak_fraction_measured", "model_version"):
    record.pop(k)
record.update(kind="train", backend="host", host_class=o.get("host", "test x4 n"))
for t in range(int(o.get("from", 0)), int(o.get("nights", 40))):
    night = (datetime.date(2026, 10, 1) + datetime.timedelta(days=t)).isoformat()
    of_night = rng.gauss(0, 0.003)
    for repeat in range(5):
        r = copy.deepcopy(record)
        slower = (1 + of_night + rng.gauss(0, 0.01)) / (1 - loss if t >= step else 1)
        if t in skip:
            continue
        r["iteration_time_s"] *= slower
        r["samples_s"] = [r["iteration_time_s"]] * 3
        r["flops_per_s"] = r["flops_formula"] / r["iteration_time_s"]
        r["exposed_s"] = {k: v * slower for k, v in r["exposed_s"].items()}
        r["busbw_Bps"] = {k: v / slower for k, v in r["busbw_Bps"].items()}
        r["suite"] = {"name": "nightly", "experiment": "a", "night": night, "repeat": repeat + 1, "repeats": 5}
        r["provenance"]["commit"] = "%07x" % (0xabc000 + t)
        r["provenance"]["time"] = "%sT03:%02d:00Z" % (night, repeat)
        print(json.dumps(r))
PY
}
add() { "$s4d" track add --store "$dir/store" "${@:-$dir/nights}"; }
verdict() { run "$s4d" track verdict --store "$dir/store" "$@"; }
# A value of the last record printed, as Python writes it.
value() { python3 -c 'import json, sys; r = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$output" "$1"; }

@test "verdict: a step is watched on its first night and fails on its second" {
    nights nights=40 step=38
    add
    verdict --night 2026-11-07
    [ "$status" -eq 0 ]
    [[ $output == *"night of 2026-11-07, 1 series: 0 worse, 1 unchanged  OK"* ]]
    verdict --night 2026-11-08
    [ "$status" -eq 0 ]
    [[ $output == *"watch "*"this night"*"a second night would confirm it"* ]]
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *"worse "*" lost "*" % since the night of 2026-11-08 (p = 0.0"*"2 nights)"* ]]
    [[ $output == *"commits 0abc025..0abc026"*"also iteration_time_s +"* ]]
    [[ $output == *"(seed 1)"* ]]
}

@test "verdict: one change of several metrics is one finding, and the same bytes again" {
    nights nights=50 step=45 loss=0.08
    add
    export SOURCE_DATE_EPOCH=0
    verdict --json
    [ "$status" -eq 1 ]
    [ "$(value 'len(r["findings"]), r["counts"]["worse"], r["passed"]')" = "(1, 1, False)" ]
    [ "$(value 'r["findings"][0]["metric"], r["findings"][0]["since"], r["findings"][0]["nights"]')" = "('flops_per_s', '2026-11-15', 5)" ]
    [ "$(value 'abs(r["findings"][0]["change"] + 0.08) < 0.01 and r["findings"][0]["p"] <= 0.002')" = True ]
    [ "$(value '{m["metric"] for m in r["findings"][0]["also"]} >= {"iteration_time_s", "exposed_s.compute"}')" = True ]
    first=$output
    verdict --json
    [ "$output" = "$first" ]
    verdict --json --seed 2
    [ "$(value 'r["options"]["seed"]')" = 2 ]
}

@test "verdict: one that fails and cannot be written says so, and still fails" {
    [ -e /dev/full ] || skip "no /dev/full"
    nights nights=30 step=26 loss=0.09
    add
    status=0
    "$s4d" track verdict --store "$dir/store" > /dev/full 2> "$dir/err" || status=$?
    [ "$status" -eq 1 ]
    grep -q '^scale4d: standard output: cannot be written' "$dir/err"
}

@test "verdict: what changed around the program on that night is named" {
    nights nights=30 step=26 loss=0.09
    python3 -c '
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    late = r["suite"]["night"] >= "2026-10-27"
    r["provenance"]["commit"] = "abc"
    r["provenance"]["environment"] = {"NCCL_ALGO": "Tree" if late else "Ring", "SAME": "1", "SLURM_JOB_ID": r["suite"]["night"]}
    if late:
        r["provenance"]["environment"]["NEW"] = "1"
        r["workload"]["hash"] = "other"
    print(json.dumps(r))' < "$dir/nights" > "$dir/changed"
    add "$dir/changed"
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *"; the same commit abc; changed with it: NCCL_ALGO, workload.hash, NEW; also "* ]]
    verdict --json
    [ "$(value 'r["findings"][0]["environment"]')" = "NCCL_ALGO, workload.hash, NEW" ]
    "$s4d" track report --store "$dir/store" --output "$dir/r.html"
    grep -q 'same commit <code>abc</code>; changed with it: <code>NCCL_ALGO, workload.hash, NEW</code>' "$dir/r.html"
    grep -q '<details open><summary>Commit or environment changed on 1 night<' "$dir/r.html"
}

@test "verdict: the most that training lost comes first, the rates that show why under it" {
    nights nights=30 step=26 loss=0.04 host="a x4 n"
    nights nights=30 step=26 loss=0.09 host="b x4 n" seed=2
    # Rates of the same nights, which lost more than both.
    python3 -c '
import json, sys
for line in sys.stdin:
    r = json.loads(line)
    r["kind"] = "rates"
    r["busbw_Bps"] = {k: v * (0.7 if r["suite"]["night"] >= "2026-10-27" else 1) for k, v in r["busbw_Bps"].items()}
    for k in ("iteration_time_s", "samples_s", "flops_per_s", "exposed_s"):
        r.pop(k)
    print(json.dumps(r))' < "$dir/nights" > "$dir/rates"
    add "$dir/nights" "$dir/rates"
    verdict --json
    [ "$(value '[(f["series"]["kind"], f["series"]["host_class"][0]) for f in r["findings"] if f["standing"] == "worse"][:2]')" = "[('train', 'b'), ('train', 'a')]" ]
    [ "$(value '[[(g["series"]["kind"], g["series"]["host_class"][0], g["standing"]) for g in f["rates"]] for f in r["findings"]]')" = \
        "[[('rates', 'b', 'worse')], [('rates', 'a', 'worse')]]" ]
    [ "$(value 'len(r["findings"]), r["counts"]["worse"], {s["standing"] for s in r["series"]}')" = "(2, 4, {'worse'})" ]
    verdict
    [ "$status" -eq 1 ]
    [ "$(grep -c '^worse ' <<< "$output")" -eq 2 ]
    [ "$(grep -c '^           rates [ab] x4 n .*: busbw_Bps.x-y-z lost 3[0-9]\.' <<< "$output")" -eq 2 ]
    [[ $output == *", 4 series: 2 worse, 2 of rates that show why  FAILED" ]]
    verdict --format summary
    [[ $output == *"2 worse, 2 of rates that show why. train b x4 n gpt-5b "*" lost "*"; and 1 more" ]]
    # One failure each; what the rates say is in it.
    verdict --format junit
    [ "$(grep -c '<failure ' <<< "$output")" -eq 2 ]
    [ "$(grep -c '<failure .*message="train [ab] .*; rates [ab] x4 n .*: busbw_Bps.x-y-z lost 3[0-9]\.' <<< "$output")" -eq 2 ]
    "$s4d" track report --store "$dir/store" --output "$dir/r.html"
    [ "$(grep -o '<h3 id="h[0-9]*">[^<]*' "$dir/r.html" | sed 's/.*>//; s/ *$//' | sed -n '1,3p' | grep -c rates)" -eq 1 ]
    grep -q '<h1>2 regressions</h1>' "$dir/r.html"
    [ "$(grep -c '^<ul class="findings">' "$dir/r.html")" -eq 2 ]
    [ "$(grep -c '^<li class="worse">' "$dir/r.html")" -eq 4 ]
    # The page judges by what the verdict is told.
    "$s4d" track report --store "$dir/store" --output "$dir/r.html" --min-change 0.5
    grep -q '<h1>Nothing changed</h1>' "$dir/r.html"
    run "$s4d" track list --store "$dir/store"
    [[ $output == *" TFLOP/s  rates a x4 n "* ]] # not the first stream's bandwidth
}

@test "verdict: no name of a record makes a line of its own, or tells a terminal or reader anything" {
    nights nights=20 step=17 loss=0.09 host=$'a\n# night of 2026-10-20, 1 series: 0 worse  OK\r\e[2J\u009b1m\u202eb'
    sed -i 's|"commit": "|&\\u001b[31m|' "$dir/nights"
    add
    verdict
    [ "$status" -eq 1 ]
    [ "$(grep -c '^# night of' <<< "$output")" -eq 1 ]
    [[ $output == *"worse    train a?# night of 2026-10-20, 1 series: 0 worse  OK??[2J?1m?b gpt-5b"* ]]
    [[ $output == *"commits ?[31m0"* && $output != *$'\e'* ]]
    verdict --format summary
    [ "${#lines[@]}" -eq 1 ]
    [[ $output != *$'\e'* && $output != *$'\u202e'* ]]
}

@test "verdict: faster is said and passes; what went back does not stand" {
    nights nights=40 step=20 loss=-0.05
    add
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *"better "*"gained "*"since the night of 2026-10-21"*"0 worse, 1 better  OK"* ]]
    rm "$dir/store" "$dir/nights"
    nights nights=35 step=25 loss=0.05
    nights seed=2 from=35 nights=45
    add
    verdict --night 2026-11-04
    [ "$status" -eq 1 ]
    verdict
    [ "$status" -eq 0 ]
    [[ $output != *"worse  "* ]]
}

@test "verdict: accepted since a commit, the history starts again" {
    nights nights=45 step=30 loss=0.05
    add
    verdict
    [ "$status" -eq 1 ]
    "$s4d" track annotate --store "$dir/store" --all --accepted-since 0abc01e --text "the new driver"
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *"0 worse, 1 unchanged  OK"* ]]
}

@test "verdict: too few nights are said, and a series that is missing, and that it failed" {
    nights nights=6 step=3
    nights nights=5 host=other seed=2
    nights nights=6 host=third seed=3
    add
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *"too-few "*"test x4 n"*"6 nights of the "*" that a verdict needs"* ]]
    [[ $output == *"missing "*"other"*"no record of this night; the last is of 2026-10-05"* ]]
    [[ $output == *"3 series: 0 worse, 1 missing, 2 too short to judge  OK"* ]]
    verdict --missing-fails
    [ "$status" -eq 1 ]
    [[ $output == *"1 missing, 2 too short to judge  FAILED"* ]]
    python3 - "$dir/nights" > "$dir/failure" <<'PY'
import json, sys
r = json.loads(open(sys.argv[1]).readline())
r = {k: r[k] for k in ("backend", "workload", "grid", "provenance", "suite", "gpus")}
r.update(kind="failure", host_class="other", exit=69, where="rank 3", message="a peer is gone", started=True)
r["suite"].update(night="2026-10-06"), r["provenance"].update(time="2026-10-06T03:00:00Z")
print(json.dumps(r))
PY
    add "$dir/failure"
    verdict
    [[ $output == *"missing "*"it failed: a peer is gone"* ]]
}

@test "verdict: an experiment that never went well is said, and not twice" {
    nights nights=12
    python3 - "$dir/nights" > "$dir/failures" <<'PY'
import json, sys
r = json.loads(open(sys.argv[1]).readline())
r = {k: r[k] for k in ("backend", "workload", "grid", "provenance", "suite", "host_class")}
r["suite"]["night"], r["provenance"]["time"] = "2026-10-12", "2026-10-12T05:00:00Z"
for grid in (r["grid"], "3x1x1x1"):  # of the first there is a record of this night, too
    print(json.dumps(dict(r, kind="failure", grid=grid, exit=65, where="--grid", message="expected a product of 4",
                          started=False)))
PY
    add "$dir/nights" "$dir/failures"
    verdict
    [ "$status" -eq 0 ]
    [ "$(grep -c '^missing' <<< "$output")" -eq 1 ]
    [[ $output == *"missing  failure test x4 n gpt-5b 3x1x1x1 (host): expected a product of 4; no night of it went well lately"* ]]
    [[ $output == *"2 series: 0 worse, 1 missing, 1 unchanged  OK"* ]]
    verdict --missing-fails
    [ "$status" -eq 1 ]
    verdict --night 2026-10-11
    [[ $output != *missing* ]]
    "$s4d" track report --store "$dir/store" --output "$dir/r.html"
    grep -q '<strong>No record</strong> of this night. It failed: <q>expected a product of 4</q>' "$dir/r.html"
    "$s4d" track verdict --store "$dir/store" --format junit > "$dir/r.xml"
    [ "$(grep -c '<testcase classname="failure .*3x1x1x1' "$dir/r.xml")" -eq 1 ]
    [ "$(grep -c '<error .*expected a product of 4' "$dir/r.xml")" -eq 2 ]
    "$s4d" track verdict --store "$dir/store" --json > "$dir/json"
}

@test "verdict: a night without records, an empty store, wrong options" {
    nights nights=20 skip=12
    add
    refuses 65 "there is no record of the night of 2026-10-13" "2026-10-20" -- track verdict --store "$dir/store" --night 2026-10-13
    refuses 65 "no record" -- track verdict --store "$dir/store" --night 2027-01-01
    SOURCE_DATE_EPOCH=1792454400 verdict --night today # 2026-10-20
    [ "$status" -eq 0 ]
    refuses 64 "2026-13-01" -- track verdict --store "$dir/store" --night 2026-13-01
    refuses 64 "--window" -- track verdict --store "$dir/store" --window 3
    refuses 65 "none" -- track verdict --store "$dir/none"
}

@test "verdict: references with signed fractions" {
    nights nights=12
    add
    cat > "$dir/references.yaml" <<'YAML'
test x4 n:
  - series: {workload: gpt-5b, gpus: 4}
    flops_per_s: [1, -0.05, 0.1, PFLOP/s]
    iteration_time_s: [804, null, 0.05, ms]
  - series: {workload: gpt-80b}
    flops_per_s: [1, -0.05, null, PFLOP/s]
YAML
    verdict --references "$dir/references.yaml" --json
    [ "$status" -eq 1 ]
    [ "$(value '[(f["kind"], f["metric"], f["nights"]) for f in r["findings"]]')" = "[('reference', 'flops_per_s', 12)]" ]
    [ "$(value 'r["findings"][0]["before"], r["findings"][0]["lower"], -0.13 < r["findings"][0]["change"] < -0.1')" = "(1000000000000000.0, -0.05, True)" ]
    verdict --references "$dir/references.yaml"
    [[ $output == *"below the reference 1.00 PFLOP/s (-5.0 % is allowed), for 12 nights, since that of 2026-10-01"* ]]
    [[ $output == *"references.yaml:6: no series of the store has this reference"* ]]
    sed -i 's/\[1, -0.05, 0.1, PFLOP/[900, -0.05, 0.1, TFLOP/' "$dir/references.yaml"
    verdict --references "$dir/references.yaml"
    [ "$status" -eq 0 ]
}

@test "verdict: references are read strictly" {
    nights nights=3
    add
    wrong() { # TEXT LINE
        printf '%s\n' 'test x4 n:' "  - $2" > "$dir/r.yaml"
        refuses 65 "r.yaml:2" "$1" -- track verdict --store "$dir/store" --references "$dir/r.yaml"
    }
    wrong "flops_per_s" 'flops_per_sec: [1, -0.05, null, TFLOP/s]'
    wrong "unit of" 'flops_per_s: [1, -0.05, null, s]'
    wrong "unit of" 'flops_per_s: [1e9, -0.05, null, FLOP/s]'
    wrong "lower fraction" 'flops_per_s: [1, 0.05, null, TFLOP/s]'
    wrong "lower fraction" 'flops_per_s: [1, -5, null, TFLOP/s]'
    wrong "upper fraction" 'flops_per_s: [1, null, -0.05, TFLOP/s]'
    wrong "null twice" 'flops_per_s: [1, null, null, TFLOP/s]'
    wrong "[value, lower, upper, unit]" 'flops_per_s: [1, -0.05, TFLOP/s]'
    wrong "expected a metric" 'series: {gpus: 4}'
    wrong "workload" '{series: {workloads: a}, flops_per_s: [1, -0.05, null, TFLOP/s]}'
    wrong "integer" '{series: {gpus: four}, flops_per_s: [1, -0.05, null, TFLOP/s]}'
    printf 'a:\n  - flops_per_s: [1, -0.1, null, TFLOP/s]\n  - flops_per_s: [2, -0.1, null, TFLOP/s]\n' > "$dir/r.yaml"
    refuses 65 "r.yaml:3" "r.yaml:2" -- track verdict --store "$dir/store" --references "$dir/r.yaml"
    refuses 65 "no.yaml" -- track verdict --store "$dir/store" --references "$dir/no.yaml"
}

# simulated NIGHT COMMIT [PYTHON]: the record itself on that night, r changed by the statement.
simulated() {
    python3 -c '
import json, sys
r = json.loads(open(sys.argv[1]).readline())
r["provenance"].update(time=sys.argv[2] + "T03:00:00Z", commit=sys.argv[3])
exec(sys.argv[4])
print(json.dumps(r))' "$BATS_FILE_TMPDIR/record" "$1" "$2" "${3:-}" > "$dir/simulated"
    add "$dir/simulated"
}

@test "verdict: simulated records must be the same; a change names the commits, a model_version is said" {
    simulated 2026-10-01 aaa0001
    verdict
    [[ $output == *"too-few"*"1 night of the 2"* ]]
    simulated 2026-10-02 aaa0002
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *"0 worse, 1 unchanged  OK"* ]]
    simulated 2026-10-03 aaa0003 'r["iteration_time_s"] *= 1 + 1e-12; r["samples_s"] = [r["iteration_time_s"]]'
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *"simulated otherwise"*"commits aaa0002..aaa0003"*"not the same: "*"iteration_time_s"* ]]
    simulated 2026-10-04 aaa0004 'r["iteration_time_s"] *= 1 + 1e-12; r["samples_s"] = [r["iteration_time_s"]]'
    verdict
    [ "$status" -eq 0 ]
    simulated 2026-10-05 aaa0005 'r["iteration_time_s"] *= 1 + 1e-12; r["samples_s"] = [r["iteration_time_s"]]; r["machine"]["hash"] = "0" * 16'
    verdict
    [ "$status" -eq 1 ]
    [[ $output == *"not the same: machine.hash"* ]]
    simulated 2026-10-06 aaa0006 'r["model_version"] = "next"; r["flops_per_s"] *= 1.02; r["iteration_time_s"] /= 1.02; r["samples_s"] = [r["iteration_time_s"]]'
    verdict
    [ "$status" -eq 0 ]
    [[ $output == *"noted "*"has model_version next, not "*"gained 2.0 %"*"commits aaa0005..aaa0006"* ]]
    [[ $output != *missing* ]]
}

@test "verdict: it is in track --help, and its own help names its defaults" {
    "$s4d" track --help | grep -q '^  verdict '
    "$s4d" track verdict --help > "$dir/out"
    grep -q -- '--references=FILE' "$dir/out"
    grep -q -- '--window=N' "$dir/out"
}
