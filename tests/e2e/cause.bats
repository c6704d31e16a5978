#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a verdict puts a change down to: nights made by simulation, through the store.

load lib

# Writes the nights of seven clusters into $dir/nights.jsonl: 12 where all is well, then 3 of which
# each has its own fault. What is trained and what the suite measures is simulated.
make_nights() {
    python3 - "$s4d" "$dir/nights.jsonl" <<'END'
import datetime, json, random, subprocess, sys

s4d, out = sys.argv[1], open(sys.argv[2], "w")
shape = ["--machine", "dgx-a100", "--grid", "1x2x8x4"]
job = ["simulate", "--workload", "gpt-5b", "--gpus", "64", "--global-batch", "32",
       "--micro-batch", "1", "--overlap", "none"]
calls = {"y": "all_reduce", "z-gather": "all_gather", "z-scatter": "reduce_scatter",
         "data": "all_reduce"}


def run(*arguments):
    return json.loads(subprocess.run([s4d, *arguments, "--json"], check=True,
                                     capture_output=True, text=True).stdout)


def night(*settings):  # the iteration, and its operations alone
    setting = [x for s in settings for x in ("--set", s)]
    rates = [x for s in settings if s.startswith("rates") for x in ("--set", s)]
    record = run(*job, *shape, *setting)
    busbw = {stream: run("collective", *shape, *rates, "--op", op, "--axis", stream.split("-")[0],
                         "-b", "64M", "-e", "64M")["busbw_Bps"] for stream, op in calls.items()}
    return record, busbw


well = night()
faults = {
    "gemm": (night("rates.gemm=0.97"), 1, None),
    "z": (night("rates.z=0.88"), 1, None),
    "node": (night("devices.n7.gpu*=0.9"), 1, 0.9),
    "all": (night("rates.gemm=0.97", "rates.z=0.88", "devices.n7.gpu*=0.9"), 1, 0.9),
    "nobody": (night(), 1.04, None),
    "norates": (night("rates.z=0.88"), 1, None),
    "unknown": (night("rates.z=0.88"), 1, None),
}
luck = random.Random(7)
for host, (bad, longer, slow) in faults.items():
    for day in range(15):
        (record, busbw), part = (bad, longer) if day >= 12 else (well, 1)
        date = datetime.date(2026, 11, 1) + datetime.timedelta(day)
        time_s = record["iteration_time_s"] * part * (1 + luck.gauss(0, 1e-4))
        train = dict(record, kind="train", backend="cuda", host_class=host,
                     suite={"name": "test", "experiment": "a", "night": str(date)},
                     provenance={"time": f"{date}T04:00:00Z", "host": "n010",
                                 "version": "1", "commit": "c%02d" % (day // 12)},
                     iteration_time_s=time_s, flops_per_s=record["flops_formula"] / time_s,
                     samples_s=[time_s * (1 + luck.gauss(0, 1e-3)) for _ in range(5)])
        train.pop("scenario", None)
        if host == "unknown":
            train["workload"] = {"name": "gpt-of-mine", "hash": "0"}
        if host == "z":
            train.pop("machine") # as scale4d-run writes it
        # A slow node's simulation says how fast its products are; the others' are not the slower.
        rate = well[0]["gemm_flops_per_s"] * (0.97 if day >= 12 and host in ("gemm", "all") else 1)
        nodes = [{"host": "n%03d" % (10 + i), "ranks": 8, "slowest_rank": 8 * i,
                  "gemm_flops_per_s": rate * (slow if slow and i == 7 and day >= 12 else 1 - 1e-3 * (i == 3))}
                 for i in range(8)]
        rates = {k: v for k, v in train.items() if k in (
            "backend", "host_class", "suite", "provenance", "workload", "gpus", "grid",
            "rank_order", "global_batch", "micro_batch", "recompute", "overlap", "precision")}
        rates.update(kind="rates", busbw_Bps=busbw, nodes=nodes,
                     gemm_flops_per_s=min(n["gemm_flops_per_s"] for n in nodes))
        for r in [train] if host == "norates" else [rates, train]:
            out.write(json.dumps(r) + "\n")
json.dump({host: bad[0]["iteration_time_s"] / well[0]["iteration_time_s"] * longer - 1
           for host, (bad, longer, _) in faults.items()}, open(sys.argv[2] + ".changes", "w"))
END
}

@test "track verdict: names GEMM -3 %, z -12 % and a slow node, and what nobody explains" {
    make_nights
    export SCALE4D_STORE=$dir/store.sqlite
    "$s4d" track add "$dir/nights.jsonl" > "$dir/added"
    run "$s4d" track verdict
    [ "$status" -eq 1 ]
    echo "$output"
    "$s4d" track verdict --json > "$dir/verdict.json" || [ $? -eq 1 ]
    python3 - "$dir/verdict.json" "$dir/nights.jsonl.changes" <<'END'
import json, sys
verdict, changes = (json.load(open(f)) for f in sys.argv[1:])
causes = {}
for f in verdict["findings"]:
    if f["cause"] and f["metric"] == "flops_per_s":
        causes[f["series"]["host_class"]] = f
assert set(causes) == set(changes), causes.keys()
for host, f in causes.items():
    c, longer = f["cause"], changes[host]
    print(host, c["text"])
    # The parts are of FLOP/s, which fall as time grows; they sum to the finding's change.
    assert abs(sum(c["parts"].values()) - c["change"]) < 1e-12
    assert abs(c["change"] - f["change"]) < 1e-9, (c["change"], f["change"])
    assert abs(f["change"] - (1 / (1 + longer) - 1)) < 0.002
    parts = {k: v for k, v in c["parts"].items() if abs(v) >= 0.005} # half a point
    one = {"gemm": "compute", "z": "z", "node": "slow_node", "nobody": "unexplained",
           "norates": "z", "unknown": "z"}.get(host)
    if one:
        assert set(parts) == {one}, (host, parts)
        assert abs(parts[one] - f["change"]) < 0.005
    else:
        assert set(parts) == {"compute", "z", "slow_node"}, parts
    assert c["by"] == ("exposed_s" if host in ("norates", "unknown") else "rates")
    if c["by"] == "rates":
        rates = {r["of"]: r["change"] for r in c["rates"]}
        gemm, z = (-0.03 if host in ("gemm", "all") else 0), (-0.12 if host in ("z", "all") else 0)
        assert abs(rates["gemm"] - gemm) < 0.005 and abs(rates["z-gather"] - z) < 0.005
        assert abs(rates["z-scatter"] - z) < 0.005 and abs(rates["data"]) < 0.005
        below = 0.1 if host in ("node", "all") else 0.001
        assert c["slowest"]["host"] == ("n017" if below == 0.1 else "n013")
        assert abs(c["slowest"]["below"] - below) < 0.005
        assert c["simulated"]["machine"] == ("made of the rates" if host == "z" else "dgx-a100")
assert "no rates" in causes["norates"]["cause"]["note"]
assert "gpt-of-mine" in causes["unknown"]["cause"]["note"]
END
    "$s4d" track verdict > "$dir/text" || [ $? -eq 1 ]
    grep -q 'GEMM down 3.0 %, node n013 slowest (0.1 % below the others); simulated, of -[0-9.]* %: compute -' "$dir/text"
    grep -q 'GEMM unchanged, all-gather on z down 12.0 %, reduce-scatter on z down 12.0 %, ' "$dir/text"
    grep -q 'GEMM unchanged, node n017 slowest (10.0 % below the others); simulated, of .*: slow node -' "$dir/text"
    grep -q 'by exposed_s, of -[0-9.]* %: z -.*(no rates were measured in these nights)' "$dir/text"
    "$s4d" track verdict --causes 0 > "$dir/text" || [ $? -eq 1 ]
    ! grep -q 'slowest (' "$dir/text"
    "$s4d" track verdict --causes 2 > "$dir/text" || [ $? -eq 1 ]
    [ "$(grep -c 'slowest (' "$dir/text")" -eq 2 ]
    grep -q 'causes were looked for of the first 2 findings' "$dir/text"
    sed 's/^name: .*/name: gpt-of-mine/' workloads/gpt-5b.yaml > "$dir/mine.yaml"
    "$s4d" track verdict --workload "$dir/mine.yaml" --machine dgx-a100 > "$dir/text" || [ $? -eq 1 ]
    grep -q "not simulated: unknown workload 'gpt-of-mine'" "$dir/text" # of another content
    # What each night's rates make of its iteration, on the machine itself and on one made of them.
    "$s4d" track predict --json --machine dgx-a100 > "$dir/predicted"
    "$s4d" track predict --json --night 2026-11-03 >> "$dir/predicted"
    python3 - "$dir/predicted" <<'END'
import json, sys
seen = {}
for line in open(sys.argv[1]):
    p = json.loads(line)
    host = p["series"]["host_class"]
    if host in ("norates", "unknown"):
        assert p["simulated_s"] is None and ("no rates" in p["message"] or "gpt-of-mine" in p["message"])
        continue
    seen[host, p["night"]] = error = p["simulated_s"] / p["measured_s"] - 1
    assert p["error"] == error and p["machine"] in ("dgx-a100", "made of the rates")
    # The made one knows nothing of kernels that were not measured.
    expected = 1 / 1.04 - 1 if host == "nobody" and p["night"] == "2026-11-15" else 0
    assert abs(error - expected) < (0.01 if p["machine"] == "dgx-a100" else 0.1), seen
assert len(seen) == 10
END
    "$s4d" track predict > "$dir/text"
    [ "$(grep -c '^# night of 2026-11-15' "$dir/text")" -eq 1 ]
    [ "$(grep -c '(machine dgx-a100)$' "$dir/text")" -eq 4 ]
    [ "$(grep -c '(machine made of the rates)$' "$dir/text")" -eq 1 ]
    grep -q "gpt-of-mine 64 GPUs .* (unknown workload 'gpt-of-mine')$" "$dir/text"
    refuses 65 "no training of the night of 2026-12-24" -- track predict --night 2026-12-24 --json
    printf 'nobody:\n  - flops_per_s: [5.7, -0.02, null, PFLOP/s]\n' > "$dir/references.yaml"
    "$s4d" track verdict --references "$dir/references.yaml" > "$dir/text" || [ $? -eq 1 ]
    grep -A 1 'references.yaml\|the reference' "$dir/text" | grep -q '^ *GEMM unchanged, node n013 slowest (0.1 % below the others)$'
    refuses 65 "none.yaml" -- track verdict --workload "$dir/none.yaml"
    refuses 65 "no-such-machine" -- track verdict --machine no-such-machine
}

# Two changes of one series, each with its own cause: z on the 9th, products on the 17th.
@test "track verdict: a change is put down to what changed with it, not to an earlier one" {
    python3 - "$s4d" "$dir/twice.jsonl" <<'END'
import json, subprocess, sys
job = [sys.argv[1], "simulate", "--machine", "dgx-a100", "--workload", "gpt-5b", "--gpus", "64",
       "--grid", "1x2x8x4", "--global-batch", "32", "--micro-batch", "1", "--overlap", "none", "--json"]
levels = [[], ["rates.z=0.8"], ["rates.z=0.8", "rates.gemm=0.9"]]
records = [json.loads(subprocess.run(job + [x for s in l for x in ("--set", s)], check=True,
                                     capture_output=True).stdout) for l in levels]
with open(sys.argv[2], "w") as out:
    for day in range(1, 25):
        level = (day >= 9) + (day >= 17)
        record = records[level]
        record.update(kind="train", backend="cuda", host_class="a",
                      samples_s=[record["iteration_time_s"] * (1 + 1e-5 * (day * i % 7)) for i in range(5)],
                      provenance={"host": "a", "version": "1", "commit": f"c{level}",
                                  "time": f"2026-11-{day:02}T04:00:00Z"})
        record.pop("scenario", None)
        rates = {k: record[k] for k in ("backend", "host_class", "provenance", "workload", "gpus",
                                        "grid", "overlap")}
        rates.update(kind="rates", gemm_flops_per_s=record["gemm_flops_per_s"],
                     busbw_Bps=record["busbw_Bps"]) # with nothing beside them they are alone
        out.write(json.dumps(rates) + "\n" + json.dumps(record) + "\n")
END
    export SCALE4D_STORE=$dir/twice.sqlite
    "$s4d" track add "$dir/twice.jsonl" > "$dir/added"
    "$s4d" track verdict --json > "$dir/verdict.json" || [ $? -eq 1 ]
    python3 - "$dir/verdict.json" <<'END'
import json, sys
found = {}
for f in json.load(open(sys.argv[1]))["findings"]:
    if f["metric"] == "flops_per_s":
        found[f["since"]] = {k for k, v in f["cause"]["parts"].items() if abs(v) > 0.01}
        print(f["since"], f["cause"]["text"])
assert found == {"2026-11-09": {"z"}, "2026-11-17": {"compute"}}, found
END
}

@test "track verdict: a simulated record that changed is split by its own exposed_s" {
    job=(simulate --workload gpt-5b --gpus 64 --grid 1x2x8x4 --global-batch 32 --json)
    for nic in 50 45; do
        "$s4d" "${job[@]}" --machine dgx-a100 --set node.nic_bandwidth_Bps=${nic}GB/s
    done | python3 -c '
import json, sys
for day, line in enumerate(sys.stdin):
    record = json.loads(line)
    record["provenance"]["time"] = f"2026-11-{10 + day}T04:00:00Z"
    print(json.dumps(record))' > "$dir/two.jsonl"
    export SCALE4D_STORE=$dir/simulated.sqlite
    "$s4d" track add "$dir/two.jsonl" > "$dir/added"
    "$s4d" track verdict --json > "$dir/verdict.json" || [ $? -eq 1 ]
    python3 - "$dir"/{verdict.json,two.jsonl} <<'END'
import json, sys
finding, = json.load(open(sys.argv[1]))["findings"]
a, b = (json.loads(line) for line in open(sys.argv[2]))
cause, longer = finding["cause"], b["iteration_time_s"] / a["iteration_time_s"]
assert finding["kind"] == "simulated" and cause["by"] == "exposed_s" and "note" not in cause
assert abs(cause["change"] - (1 / longer - 1)) < 1e-12 and abs(cause["parts"]["unexplained"]) < 1e-9
for axis in ("compute", "x", "y", "z", "data", "other"):
    made = (b["exposed_s"][axis] - a["exposed_s"][axis]) / a["iteration_time_s"]
    assert abs(cause["parts"][axis] + made / longer) < 1e-12, axis
END
}

@test "track verdict: a part of nothing has no minus" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 8 --grid 1x1x4x2 --global-batch 16 --json > "$dir/one"
    python3 - "$dir/one" <<'END' > "$dir/two"
import json, sys
r = json.loads(open(sys.argv[1]).readline())
for night, factor in (("2026-11-01", 1), ("2026-11-02", 1.0000001)):
    time_s = r["iteration_time_s"] * factor
    r.update(suite={"name": "s", "experiment": "a", "night": night}, iteration_time_s=time_s, samples_s=[time_s],
             flops_per_s=r["flops_formula"] / time_s)
    print(json.dumps(r))
END
    "$s4d" track add --store "$dir/store" "$dir/two"
    run "$s4d" track verdict --store "$dir/store"
    [ "$status" -eq 1 ]
    [[ $output == *"by exposed_s, of +0.0 %: unexplained +0.0"* ]]
}

@test "track verdict: a record names no file or pipe that is read for its cause" {
    mkfifo "$dir/pipe" "$dir/pipe.json"
    python3 - "$dir" <<'END' > "$dir/nights.jsonl"
import json, random, sys
luck = random.Random(3)
for name in (sys.argv[1] + "/pipe", "pipe.json"):
    for day in range(1, 21):
        time_s = (1 if day < 17 else 1.1) * (1 + luck.gauss(0, 1e-3))
        night = f"2026-11-{day:02}"
        r = {"backend": "cuda", "host_class": "h x4 n", "workload": {"name": name, "hash": "1"}, "gpus": 4,
             "grid": "1x1x4x1", "global_batch": 8, "suite": {"name": "s", "experiment": name, "night": night},
             "provenance": {"time": night + "T03:00:00Z", "commit": "c1", "host": "n1"}}
        print(json.dumps(dict(r, kind="train", iteration_time_s=time_s, samples_s=[time_s], flops_formula=1e15,
                              flops_per_s=1e15 / time_s, exposed_s={"compute": 0.6, "z": time_s - 0.6})))
        print(json.dumps(dict(r, kind="rates", gemm_flops_per_s=1e14, busbw_Bps={"z-gather": 1e10 / time_s},
                              nodes=[{"host": "n1", "ranks": 4, "gemm_flops_per_s": 1e14}])))
END
    "$s4d" track add --store "$dir/store" "$dir/nights.jsonl"
    cd "$dir"
    run timeout 120 "$s4d" track verdict --store "$dir/store"
    [ "$status" -eq 1 ]
    [ "$(grep -c "not simulated: unknown workload '.*pipe" <<< "$output")" -eq 2 ]
}
