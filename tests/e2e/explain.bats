#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What happened in a simulation: --explain, --critical-path, --links, --timeline.

load lib

four=(--machine "$one_line" --workload gpt-tiny --gpus 4 --grid 1x1x4x1 --global-batch 16)

@test "explain: watching changes no number of the record" {
    "$s4d" simulate "${four[@]}" --json > "$dir/a"
    "$s4d" simulate "${four[@]}" --json --links "$dir/l" --critical-path "$dir/p" \
        --timeline "$dir/t" --timeline-ranks 0,3 > "$dir/b"
    /usr/bin/python3 - "$dir/a" "$dir/b" <<'END'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
del a["provenance"], b["provenance"]
assert a == b
END
}

@test "explain: tables for people, the same in the record" {
    run "$s4d" simulate "${four[@]}" --explain
    [ "$status" -eq 0 ]
    [[ $output == *"# critical path: "* && $output == *"full links"*"nic-out, nic-in"* ]]
    [[ $output == *"# computing is "*" % of the critical path"* ]]
    "$s4d" simulate "${four[@]}" --explain --json > "$dir/r"
    /usr/bin/python3 - "$dir/r" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
total = sum(s["time_s"] for s in r["explain"]["critical_path"]["by_stream"])
assert abs(total - r["iteration_time_s"]) < 1e-12 * total, (total, r["iteration_time_s"])
END
}

@test "explain: with a chosen grid it is that grid's" {
    "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 4 --grid auto \
        --global-batch 16 --json --explain --links "$dir/l" > "$dir/r"
    /usr/bin/python3 - "$dir/r" "$dir/l" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
head = [l for l in open(sys.argv[2]) if l.startswith("#")]
assert f'grid {r["grid"]} ' in head[-1], head[-1]
total = sum(s["time_s"] for s in r["explain"]["critical_path"]["by_stream"])
assert abs(total - r["iteration_time_s"]) < 1e-12 * total
END
}

@test "explain: with a straggler the path runs through it" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 16 --grid 2x2x2x2 \
        --global-batch 16 --set devices.n2.gpu1=0.5 --json --explain > "$dir/r" 2> "$dir/err"
    /usr/bin/python3 - "$dir/r" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
first = r["explain"]["critical_path"]["by_rank"][0]
assert first["members"] == 1 and first["rank"] == r["slowest_rank"], first
assert first["rank"] // 4 == 2, first
assert first["time_s"] > 0.9 * r["iteration_time_s"], first
END
}

@test "links: a line a link with provenance, also of links that nothing crosses" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 8 --grid 1x1x4x2 \
        --global-batch 16 --links "$dir/l" > /dev/null 2>&1
    head -n 1 "$dir/l" | grep -q '^# scale4d '
    grep -q '^link	kind	class	capacity_Bps	bytes	busy_s	mean_use	peak_use$' "$dir/l"
    [ "$(grep -c '^n0\.nic' "$dir/l")" -eq 8 ]
    grep -qE '	-	[0-9.e+]+	0	0	0	0$' "$dir/l"
}

@test "timeline: events of the chosen ranks, streams as the program names them" {
    "$s4d" simulate "${four[@]}" --timeline "$dir/t" --timeline-ranks 1,3 > /dev/null
    /usr/bin/python3 - "$dir/t" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
runs = [e for e in events if e["ph"] == "X"]
assert {e["pid"] for e in runs} == {1, 3}
names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert {"compute", "z-gather", "z-scatter"} <= names, names
# in a stream nothing overlaps, but for the rounding to nanoseconds
for pid, tid in {(e["pid"], e["tid"]) for e in runs}:
    mine = sorted((e["ts"], e["dur"]) for e in runs if (e["pid"], e["tid"]) == (pid, tid))
    for (a, da), (b, _) in zip(mine, mine[1:]):
        assert a + da <= b + 0.0021, (pid, tid, a, da, b)
END
}

@test "explain: what cannot be is refused" {
    refuses 64 "--timeline-ranks" "given without --timeline" -- simulate "${four[@]}" --timeline-ranks 0
    refuses 64 "--timeline-ranks" "from 0 to 3" -- \
        simulate "${four[@]}" --timeline "$dir/t" --timeline-ranks 0,4
    refuses 64 "rank 2 twice" -- simulate "${four[@]}" --timeline "$dir/t" --timeline-ranks 2,2
    refuses 64 "--timeline-ranks" -- simulate "${four[@]}" --timeline "$dir/t" --timeline-ranks 0,
    for option in links critical-path timeline; do
        refuses 74 "written" "No such file" -- simulate "${four[@]}" --$option "$dir/none/file"
    done
}

@test "explain: a full disk is an error" {
    [ -w /dev/full ] || skip "no /dev/full"
    for option in links critical-path timeline; do
        refuses 74 /dev/full "cannot be written" -- simulate "${four[@]}" --$option /dev/full
    done
}

@test "links: sums by kind, and a picture" {
    "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 8 --grid 1x1x4x2 \
        --global-batch 16 --links "$dir/l.tsv" > /dev/null 2>&1
    for value in mean peak; do
        run "$s4d" links "$dir/l.tsv" --value $value --output "$dir/map.png"
        [ "$status" -eq 0 ]
        [[ $output == *"grid 1x1x4x2"*"peak use"*"nic-out"* ]]
        [ "$(head -c 4 "$dir/map.png" | tail -c 3)" = PNG ]
        [ -s "$dir/map.svg" ] && [ -s "$dir/map.pdf" ] && [ -s "$dir/map.gp" ]
    done
    # the bytes of a kind are the sum of its lines
    sum=$(awk -F'\t' '$2 == "nic-out" { s += $5 } END { printf "%.3f", s / 1e9 }' "$dir/l.tsv")
    echo "$output" | grep -E "^nic-out +8 +8 +$sum "
    # four GPU links of each node are a row each, and nodes are columns
    [ "$(awk -F'\t' '$4 == "nic0.out"' "$dir/map.tsv" | wc -l)" -eq 2 ]
}

@test "links: other files are refused, with the line" {
    head='link	kind	class	capacity_Bps	bytes	busy_s	mean_use	peak_use'
    refuses 65 "none" -- links "$dir/none"
    echo "a	b" > "$dir/a"
    refuses 65 "$dir/a:1" "head of a table" -- links "$dir/a"
    : > "$dir/b"
    refuses 65 "holds no link" -- links "$dir/b"
    printf '%s\n%s\n' "$head" "n0.nic0.out	nic-out	0	1e9	5	0.1	1.5	1" > "$dir/c"
    refuses 65 "$dir/c:2" "shares from 0 to 1" -- links "$dir/c"
    printf '%s\n%s\n' "$head" "n0.nic0.out	nic-out	0	1e9	-5	0.1	0.5	1" > "$dir/d"
    refuses 65 "$dir/d:2" -- links "$dir/d"
    printf '%s\n%s\n' "$head" "n0.nic0.out	nic-out	0	1e9	5" > "$dir/e"
    refuses 65 "$dir/e:2" "eight columns" -- links "$dir/e"
    printf '%s\n%s\n' "$head" "it's	nic-out	0	1e9	5	0	0	0" > "$dir/f"
    refuses 65 "$dir/f:2" "name of a link" -- links "$dir/f"
    refuses 64 "one table" -- links
}
