#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Records in the formats of other programs, read back by those formats' own rules.

load lib

# Three nights of one series, then a run that died; names that are no good in XML, JSON or a file.
records() {
    python3 - <<'END' > "$BATS_TEST_TMPDIR/r.jsonl"
import json
def record(night, **more):
    r = {"kind": "train", "backend": "host", "host_class": "A|B <x1> \"n\"&/..", "workload": {"name": "gpt-<script>\n&'"},
         "gpus": 4, "grid": "2x1x2x1", "threads": 2, "samples_s": [2.0, 1.0, 4.0], "flops_formula": 8e12,
         "exposed_s": {"z": 0.25}, "completed": 3, "interrupted": False,
         "provenance": {"commit": "abc", "host": "n017", "time": night + "T04:05:06Z",
                        "environment": {"NCCL_ALGO": "Ring", "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "n[17-18]"}}}
    r.update(more)
    if r["samples_s"]:
        r["iteration_time_s"] = sorted(r["samples_s"])[(len(r["samples_s"]) - 1) // 2]
        r["flops_per_s"] = r["flops_formula"] / r["iteration_time_s"]
    print(json.dumps(r))
record("2026-11-28")
record("2026-11-29")
record("2026-11-30", samples_s=[1.0])
record("2026-11-30", samples_s=[2.0, 4.0])
record("2026-11-30", kind="failure", samples_s=None, exposed_s=None, where="rank 3", message="a peer <died>")
END
    cd "$BATS_TEST_TMPDIR"
}

@test "convert: github-action-benchmark's arrays, by direction, the last night's values" {
    records
    "$s4d" convert r.jsonl --to github-bigger-is-better > bigger.json
    "$s4d" convert r.jsonl --to github-smaller-is-better --output smaller.json
    python3 - <<'END'
import json
bigger, smaller = json.load(open("bigger.json")), json.load(open("smaller.json"))
for e in bigger + smaller:
    assert set(e) <= {"name", "unit", "value", "range", "extra"} and {"name", "unit", "value"} <= set(e), e
    assert isinstance(e["name"], str) and isinstance(e["unit"], str) and isinstance(e["value"], float), e
# The night's records together: 8e12 over 1, 2 and 4 s; the median, and half of 2e12 to 8e12's middle half.
(flops,) = bigger
assert flops["unit"] == "FLOP/s" and flops["value"] == 4e12 and flops["range"] == "± 1.5e+12", flops
assert "2026-11-30" in flops["extra"] and "abc" in flops["extra"] and "3 samples" in flops["extra"], flops
assert sorted(e["name"].split(": ")[-1] for e in smaller) == ["exposed_s.z", "iteration_time_s"], smaller
END
}

@test "convert: ReFrame's performance log, its fields, its files, its rotation" {
    records
    "$s4d" convert r.jsonl --to reframe-perflog --output logs
    python3 - <<'END'
import glob, os
files = sorted(glob.glob("logs/*/*/*"))
assert len(files) == 2 and all(f.endswith(".log") and f.startswith("logs/A_B_x1_n_../host/") for f in files), files
(train,) = [f for f in files if "/train_" in f]
lines = [l.split("|") for l in open(train).read().splitlines()]
head = lines[0]
# reframe/core/settings.py: result and time, then all loggable attributes by name.
fixed = [h for h in head if not h.rsplit("_", 1)[0].startswith(("flops", "iteration", "exposed")) ]
assert fixed == """result job_completion_time descr env_vars environ exclusive_access extra_resources
    job_completion_time_unix job_exitcode job_nodelist job_submit_time jobid modules name num_cpus_per_task
    num_gpus_per_node num_tasks num_tasks_per_core num_tasks_per_node num_tasks_per_socket partition
    short_name system unique_name use_multithreading""".split(), fixed
rows = [dict(zip(head, l, strict=True)) for l in lines[1:]]
assert [r["job_completion_time"] for r in rows] == ["2026-11-%dT04:05:06" % d for d in (28, 29, 30)], rows
r = rows[2]
assert r["result"] == "pass" and r["flops_per_s_value"] == "4000000000000" and r["flops_per_s_unit"] == "FLOP/s", r
assert r["flops_per_s_ref"] == "0" and r["flops_per_s_lower_thres"] == "None", r
assert r["iteration_time_s_value"] == "2" and r["num_tasks"] == "4" and r["num_cpus_per_task"] == "2", r
assert r["jobid"] == "77" and r["job_nodelist"] == "n[17-18]" and r["num_gpus_per_node"] == "null", r
(failed,) = [f for f in files if "/failure_" in f]
assert open(failed).read().splitlines()[1].startswith("fail|2026-11-30T04:05:06|rank 3: a peer <died>|"), failed
open("train", "w").write(train)
END
    # Another header: the file is put aside, twice; the same header: appended.
    train=$(cat train)
    sed 's/"exposed_s": {"z"/"exposed_s": {"y"/' r.jsonl > other.jsonl
    "$s4d" convert other.jsonl --to reframe-perflog --output logs
    "$s4d" convert r.jsonl --to reframe-perflog --output logs
    "$s4d" convert r.jsonl --to reframe-perflog --output logs
    [ "$(wc -l < "$train.h0")" -eq 4 ]
    [ "$(wc -l < "$train.h1")" -eq 4 ]
    [ "$(wc -l < "$train")" -eq 7 ]
    grep -q 'exposed_s.y_value' "$train.h1"
}

@test "convert: JUnit XML that counts right and holds any name" {
    records
    "$s4d" convert r.jsonl --to junit --output r.xml
    python3 - <<'END'
import re, xml.etree.ElementTree as E
root = E.parse("r.xml").getroot()
assert root.tag == "testsuites" and not root.attrib
(suite,) = root
# What JUnit.xsd requires of a suite, in its order.
assert {"name", "hostname", "package", "id", "tests", "failures", "errors", "time", "timestamp"} == set(suite.attrib)
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
tags = [c.tag for c in suite]
assert tags == ["properties"] + ["testcase"] * 4 + ["system-out", "system-err"], tags
cases = suite.findall("testcase")
assert suite.get("tests") == "4" and suite.get("errors") == "1" and suite.get("failures") == "0", suite.attrib
for c in cases:
    assert set(c.attrib) == {"classname", "name", "time"} and float(c.get("time")) >= 0
    assert c.get("classname").startswith(("train A|B <x1> \"n\"&/.. gpt-<script>", "failure A|B <x1>")), c.attrib
assert [float(c.get("time")) for c in cases] == [7, 7, 7, 0]
(error,) = cases[3]
assert error.tag == "error" and error.get("message") == error.text == "rank 3: a peer <died>" and error.get("type")
END
}

@test "convert: a line a run for chat; standard input; real records of scale4d" {
    records
    [ "$("$s4d" convert r.jsonl --to summary | wc -l)" -eq 4 ]
    "$s4d" convert - --to summary < r.jsonl | grep -q '^2026-11-30 failure .*: FAILED: rank 3: a peer <died>$'
    "$s4d" "${small[@]}" --gpus 4 --grid 2x1x1x2 --json > s.jsonl
    "$s4d" convert s.jsonl --to summary | grep -qE '^[0-9-]{10} simulate simulated:.* FLOP/s|TFLOP/s'
    "$s4d" convert | grep -q '^junit '
}

@test "convert: what is wrong is said, and no half file is left" {
    records
    refuses 64 "expected a format" -- convert r.jsonl
    refuses 64 "expected a file of records" -- convert --to junit
    refuses 64 "junit" -- convert r.jsonl --to junt
    refuses 65 "nowhere.jsonl: cannot be read" -- convert nowhere.jsonl --to junit
    (head -n 1 r.jsonl && echo "{") > r2.jsonl
    refuses 65 "expected a record" "r2.jsonl:2" -- convert r2.jsonl --to junit --output x.xml
    [ ! -e x.xml ]
    refuses 65 "/dev/null: has no records" "as --json prints it" -- convert /dev/null --to junit
    refuses 65 "standard input: has no records" -- convert - --to junit < /dev/null
    tail -n 1 r.jsonl > failure.jsonl
    refuses 65 "no record has a number of which more is better" -- convert failure.jsonl --to github-bigger-is-better --output x.json
    [ ! -e x.json ] && [ ! -e x.json.partial ]
    refuses 74 "cannot be written" -- convert r.jsonl --to junit --output nowhere/x.xml
    refuses 74 "cannot be written" -- convert r.jsonl --to reframe-perflog --output r.jsonl/logs
}
