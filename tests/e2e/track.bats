#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d track from the command line: the store, what goes in and comes out. Its faults are in
# track_faults.bats.

load lib.bash
load track.bash

@test "track: a record twice is added once, whatever its spaces and the order of its keys" {
    nights 3 > "$dir/a"
    "$s4d" track add "$dir/a" > "$dir/out"
    grep -qF "$dir/a: 3 added, 0 there already, 0 wrong" "$dir/out"
    python3 -c '
import json, sys
for line in open(sys.argv[1]):
    print(json.dumps(json.loads(line), sort_keys=True, separators=(",", ":")))' "$dir/a" > "$dir/b"
    "$s4d" track add "$dir/b" "$dir/a" - < "$dir/a" > "$dir/out"
    grep -qF "$dir/b: 0 added, 3 there already, 0 wrong" "$dir/out"
    grep -qF "standard input: 0 added, 3 there already, 0 wrong" "$dir/out"
    [ "$(wc -l < "$dir/out")" -eq 3 ]
}

@test "track: what is exported is what was added, byte for byte, and add takes it back" {
    {
        nights 3
        echo ' { "kind" : "failure", "exit":64,"x": [1e9, 1.50, -0, 0.1, 1E+5, 12345678901234567],"provenance":{"time":"2024-03-01T00:00:00Z","host":"n1"}}'
        nights 2 'r["workload"]["name"] = "<b>\"x\"</b> \\ \n \u00e4 \U0001f600"; r["note"] = "a\tb"'
    } > "$dir/a"
    "$s4d" track add "$dir/a"
    "$s4d" track export > "$dir/b"
    cmp "$dir/a" "$dir/b"
    "$s4d" track add --store "$dir/second.sqlite" "$dir/b" | grep -qF "6 added, 0 there already, 0 wrong"
    "$s4d" track export --store "$dir/second.sqlite" --output "$dir/c"
    cmp "$dir/b" "$dir/c"
    "$s4d" track check | grep -q '^# 6 records read  OK'
    "$s4d" track export --since 2024-03-02 --until 2024-03-02 > "$dir/d"
    [ "$(wc -l < "$dir/d")" -eq 2 ]
    # A name with a newline is one line of the list, and no other.
    "$s4d" track list > "$dir/out"
    [ "$(grep -vc '^#' "$dir/out")" -eq 3 ]
    grep -qF '<b>"x"</b> \ ? ä 😀' "$dir/out"
}

@test "track: list and show: nights, medians by hand, commits, records" {
    nights 3 > "$dir/a"
    "$s4d" track add "$dir/a"
    "$s4d" track list > "$dir/out"
    grep -qE '^ +1 +3 +3  2024-03-03  +' "$dir/out"
    "$s4d" track show 1 --metric iteration_time_s > "$dir/out"
    # The samples of night i are 1 + i/100 s, and 0.01 s below and 0.02 s above it.
    grep -qE '^2024-03-01 +3 +1 +0\.99 +1\.02  c0 ' "$dir/out"
    grep -qE '^2024-03-03 +3 +1\.02 +1\.01 +1\.04  c1 ' "$dir/out"
    # flops_per_s of each sample: 1e12 / 1.0 is the median of the first night.
    "$s4d" track show train --nights 3 | grep -qE '^2024-03-01 +3 +1e\+12 '
    hash=$(awk '/^2024-03-02/ { print $NF }' "$dir/out")
    "$s4d" track show --record "${hash:0:8}" > "$dir/record"
    sed -n 2p "$dir/a" | cmp - "$dir/record"
    "$s4d" track show 1 --json | python3 -c '
import json, sys
r = json.loads(sys.stdin.read())
m = {x["metric"]: x for x in r["metrics"]}
assert [n["night"] for n in m["iteration_time_s"]["nights"]] == ["2024-03-01", "2024-03-02", "2024-03-03"]
assert m["busbw_Bps.z-gather"]["nights"][0]["samples"] == [25e9]
assert m["exposed_s.x"]["direction"] == -1 and m["flops_per_s"]["unit"] == "FLOP/s"
assert r["series"]["gpus"] == 4 and r["series"]["options"]["precision"] == "f32"'
    "$s4d" track list --json | python3 -c '
import json, sys
s = json.loads(sys.stdin.read())["series"]
assert len(s) == 1 and s[0]["nights"] == 3 and s[0]["last"] == "2024-03-03"'
}

@test "track: a night is the suite's, and its repeats are one night" {
    nights 2 'r["suite"]["night"] = "2024-03-01"' > "$dir/a"
    nights 1 'r["suite"]["repeat"] = 2; del r["suite"]["night"]' >> "$dir/a"
    "$s4d" track add "$dir/a" 2> "$dir/err"
    "$s4d" track show 1 > "$dir/out"
    [ "$(grep -c '^2024' "$dir/out")" -eq 1 ]
    grep -qE '^2024-03-01 +9 ' "$dir/out"
}

@test "track: series are told apart by inputs, not by contents or time" {
    nights 1 > "$dir/a"
    nights 1 'r["workload"]["hash"] = "other"; r["provenance"]["commit"] = "c9"; r["model_version"] = "9"' >> "$dir/a"
    nights 1 'r["grid"] = "4x1x1x1"' >> "$dir/a"
    nights 1 'r["precision"] = "bf16"' >> "$dir/a"
    nights 1 'r["host_class"] = "other"' >> "$dir/a"
    "$s4d" track add "$dir/a"
    "$s4d" track list > "$dir/out"
    [ "$(grep -vc '^#' "$dir/out")" -eq 4 ]
    grep -qF 'precision="bf16"' "$dir/out"
    grep -qE '^ +1 +1 +2 ' "$dir/out"
    # Without a class: the host's name without its digits, so n017 and n003 are one.
    nights 1 'del r["host_class"]; r["global_batch"] = 4' > "$dir/c"
    nights 2 'del r["host_class"]; r["global_batch"] = 4; r["provenance"]["host"] = "n003"' | tail -n 1 >> "$dir/c"
    "$s4d" track add "$dir/c"
    "$s4d" track list | grep -E '^ +[0-9]+ +2 +2 .* train n gpt-tiny 4 GPUs '
    # Simulated: the model's version tells them apart, too. Without a class: the machine's name.
    "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json > "$dir/b"
    sed 's/"model_version": "[0-9]*"/"model_version": "999"/' "$dir/b" >> "$dir/b"
    "$s4d" track add "$dir/b" | grep -qF "2 added"
    "$s4d" track list | grep -c 'simulate simulated:synthetic.* model=' | grep -qx 2
}

@test "track: annotations restart a history, are listed and removed" {
    nights 6 > "$dir/a"
    "$s4d" track add "$dir/a"
    "$s4d" track annotate --accepted-since c1 --series 1 --text 'new <MPI>, "slower"' --author me |
        grep -qxF '# annotation 1, from the night of 2024-03-03 on'
    "$s4d" track annotate --note 2024-03-05 --all --text 'power cut'
    "$s4d" track annotate --list > "$dir/out"
    grep -qE '^ +1  2024-03-03 +1  accepted  new <MPI>, "slower"  \(me, 2.*, since commit c1\)$' "$dir/out"
    grep -qE '^ +2  2024-03-05 +all  note ' "$dir/out"
    "$s4d" track show 1 | grep -E '^2024-03-03.*annotation 1: the history starts again'
    [ "$("$s4d" track show 1 | grep -c annotation)" -eq 1 ]
    "$s4d" track annotate --list --json | python3 -c '
import json, sys
a = json.loads(sys.stdin.read())["annotations"]
assert a[0]["restarts"] and a[0]["series"] == 1 and a[1]["series"] is None and not a[1]["restarts"]'
    "$s4d" track annotate --remove 1
    [ "$("$s4d" track show 1 | grep -c annotation)" -eq 0 ]
    refuses 65 "no annotation 1" -- track annotate --remove 1
    refuses 65 "no record is of commit 'c77'" -- track annotate --accepted-since c77 --series 1 --text x
    refuses 64 "--text" -- track annotate --accepted-since c1 --series 1
    refuses 64 "--series" -- track annotate --accepted-since c1 --text x
    refuses 64 "one of" -- track annotate --text x
    refuses 64 "one of" -- track annotate --list --remove 1
}

@test "track: prune says what goes, keeps annotations, and gives room back" {
    nights 6 > "$dir/a"
    nights 6 'r["host_class"] = "other"' >> "$dir/a"
    "$s4d" track add "$dir/a"
    "$s4d" track annotate --accepted-since 2024-03-02 --all --text x
    "$s4d" track annotate --note 2024-03-02 --series other --text y
    "$s4d" track prune --older-than 2024-03-04 --dry-run > "$dir/out"
    grep -qE '^would remove 3 of 6 records, 3 of 6 nights of series 1: ' "$dir/out"
    grep -qxF '# 6 records of nights before 2024-03-04: nothing removed' "$dir/out"
    [ "$("$s4d" track export | wc -l)" -eq 12 ]
    "$s4d" track prune --older-than 2024-03-04 --series 1 > "$dir/out"
    [ "$("$s4d" track export | wc -l)" -eq 9 ]
    hash=$("$s4d" track show 1 | awk '/^2024-03-06/ { print $NF }')
    "$s4d" track prune --record "$hash" | grep -qxF "removes record $hash"
    [ "$("$s4d" track export | wc -l)" -eq 8 ]
    # Older than a day is all of 2024: the annotated series stays, and so do the annotations.
    "$s4d" track prune --older-than 1d
    [ "$("$s4d" track export | wc -l)" -eq 0 ]
    [ "$("$s4d" track annotate --list | grep -vc '^#')" -eq 2 ]
    "$s4d" track add "$dir/a" | grep -qF "12 added"
    "$s4d" track show other | grep -c '^2024' | grep -qx 6
    "$s4d" track check | grep -q '12 records read  OK'
    refuses 64 "one of" -- track prune
    refuses 64 "--older-than" "400d" -- track prune --older-than 3w
    refuses 65 "no record has the hash" -- track prune --record 0123456789abcdef
    refuses 65 "6 to 16" -- track prune --record 01
}

@test "track: records of both programs as they are" {
    "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json > "$dir/a"
    "$s4d" collective --machine "$one_line" --op all_reduce --ranks 8 -b 1M -e 4M -f 4 --json >> "$dir/a"
    "$s4d" track add "$dir/a" | grep -qF "3 added, 0 there already, 0 wrong"
    "$s4d" track list > "$dir/out"
    grep -qF 'op="all_reduce"' "$dir/out"
    grep -qF 'bytes=4194304' "$dir/out"
    "$s4d" track show 'bytes=4194304' | grep -qF 'metric busbw_Bps, in B/s, more is better'
    "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json | "$s4d" track add - 2> "$dir/err"
    "$s4d" track export | sed 's/, "provenance".*//' > "$dir/out"
    [ "$(grep '"simulate"' "$dir/out" | sort -u | wc -l)" -eq 1 ]
}

@test "track: the store is where the option, the variables or the home say" {
    nights 1 > "$dir/a"
    unset SCALE4D_STORE
    HOME=$dir/home "$s4d" track add "$dir/a"
    [ -s "$dir/home/.local/share/scale4d/track.sqlite" ]
    HOME=$dir/home XDG_DATA_HOME=$dir/data "$s4d" track add "$dir/a"
    [ -s "$dir/data/scale4d/track.sqlite" ]
    SCALE4D_STORE=$dir/c.sqlite HOME=$dir/home "$s4d" track add "$dir/a"
    [ -s "$dir/c.sqlite" ]
    SCALE4D_STORE=$dir/c.sqlite "$s4d" track add --store "$dir/e" "$dir/a"
    [ -s "$dir/e" ]
    [ ! -e "$dir/e-wal" ]
}

@test "track: the command line" {
    "$s4d" track --help | grep -q '^  add '
    "$s4d" track add --help | grep -q -- '--store=FILE'
    refuses 64 "'ad'" "did you mean add" -- track ad
    refuses 64 "files of records" -- track add
    refuses 64 "--record HASH" -- track show
    status=0
    "$s4d" track > "$dir/out" 2> "$dir/err" || status=$?
    [ "$status" -eq 64 ]
    nights 2 > "$dir/a"
    nights 1 'r["grid"] = "4x1x1x1"' >> "$dir/a"
    "$s4d" track add "$dir/a"
    refuses 65 "'7'" "number of none" -- track show 7
    refuses 65 "several labels" "track list" -- track show gpt
    refuses 65 "'abc'" "no label" -- track show abc
    refuses 65 "--metric" "flops_per_s" -- track show 1 --metric flops
    refuses 64 "--since" "2026-11-30" -- track export --since yesterday
    refuses 64 "2024-02-30" -- track export --until 2024-02-30
    refuses 64 "the store itself" -- track export --output "$SCALE4D_STORE"
    refuses 74 "$dir/no" -- track export --output "$dir/no/file"
    printf 'kept' > "$dir/kept"
    refuses 65 "a part of no label" -- track export --output "$dir/kept" --series nothing
    [ "$(cat "$dir/kept")" = kept ]
}
