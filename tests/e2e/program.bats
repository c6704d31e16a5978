#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What the commands promise: help, records, the same bytes twice, folding.
load lib

@test "every command has a summary and a help" {
    "$s4d" --help > "$dir/help"
    for command in $(sed -n 's/^  \([a-z]*\) .*/\1/p' "$dir/help"); do
        "$s4d" "$command" --help > "$dir/one"
        grep -q 'Usage: scale4d' "$dir/one"
        "$s4d" help "$command" | cmp - "$dir/one"
    done
    [ "$(grep -c '^  [a-z]' "$dir/help")" -ge 10 ]
    for command in $("$s4d" track --help | awk '/^  [a-z]/ { print $1 }'); do
        "$s4d" help track "$command" | cmp - <("$s4d" track "$command" --help)
    done
    refuses 64 "expected a subcommand" -- help track nothing
}
@test "scale4d-run: help of a command, and the completion of a shell that it knows" {
    local run4d
    run4d=$(dirname "$s4d")/scale4d-run
    [ -x "$run4d" ] || skip "scale4d-run is not built"
    "$run4d" help train | cmp - <("$run4d" train --help)
    "$run4d" completion --help | grep -q 'Usage: scale4d-run completion'
    "$run4d" completion bash | bash -n
    for words in "completion" "completion zsh" "completion --nonsense" "help nothing"; do
        status=0 # shellcheck disable=SC2086
        "$run4d" $words > "$dir/out" 2> "$dir/err" || status=$?
        [ "$status" -eq 64 ] && [ ! -s "$dir/out" ] && [ -s "$dir/err" ]
    done
}
@test "--help: every header is whole and in its column, of all commands of both programs" {
    local names=0
    for program in "$s4d" "$(dirname "$s4d")/scale4d-run"; do
        [ -x "$program" ] || continue
        while read -r command; do
            # shellcheck disable=SC2086
            "$program" $command --help > "$dir/one"
            # A header, alone or with its text; a text; a group's title; text for people.
            if grep -nvE '^(  -., |      )--[a-z0-9-]+(\[?=[^ ]+)?( +[^ ].*)?$|^ {29}[^ ]|^ [A-Z]|^$|^[^ ]|^  [a-z]' \
                "$dir/one" || grep -nE '.{80}| $' "$dir/one"; then
                echo "$program $command"
                false
            fi
            names=$((names + 1))
        done < <("$program" --help | awk '/^  [a-z]/ && !/^  (completion|track) / { print $1 }'
            [ "$program" != "$s4d" ] || "$s4d" track --help | awk '/^  [a-z]/ { print "track", $1 }')
    done
    [ "$names" -ge 30 ]
}
@test "without a command: the list on standard error, exit 64" {
    run "$s4d"
    [ "$status" -eq 64 ]
    [[ $output == Usage:* ]]
    [ -z "$("$s4d" 2> /dev/null)" ]
}
@test "the version names the commit" {
    run "$s4d" --version
    [ "$status" -eq 0 ]
    [[ $output =~ ^scale4d\ [0-9]+\.[0-9]+\.[0-9]+\ \([0-9a-f] ]]
}
@test "every registry lists its rows, and every row can be asked for" {
    for command in machines workloads layers collectives fabrics; do
        "$s4d" "$command" > "$dir/list"
        for name in $(grep -v '^#' "$dir/list" | awk '{print $1}'); do
            "$s4d" "$command" "$name" > "$dir/one" || { echo "$command $name"; false; }
            [ -s "$dir/one" ]
        done
    done
}
@test "--json prints one record and nothing else" {
    "$s4d" "${small[@]}" --gpus 4 --grid 2x2x1x1 --json > "$dir/out" 2> "$dir/err"
    [ "$(wc -l < "$dir/out")" -eq 1 ]
    python3 - "$dir/out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
for key in ("iteration_time_s", "flops_per_s", "flops_executed_per_s", "exposed_s", "peak_fraction",
            "tokens_per_s", "memory_peak_bytes", "model_version", "machine", "workload", "grid",
            "provenance"):
    assert key in r, key
assert r["iteration_time_s"] > 0
assert abs(sum(r["exposed_s"].values()) / r["iteration_time_s"] - 1) < 1e-9, r["exposed_s"]
END
}
@test "two runs, the same bytes" {
    export SOURCE_DATE_EPOCH=0
    for arguments in "${small[*]} --gpus 8 --grid 2x2x2x1 --json" "${small[*]} --gpus 8 --grid auto --json" \
        "${small[*]} --gpus 8 --grid 2x1x2x2" "machines perlmutter" \
        "schedule --workload gpt-tiny --gpus 8 --grid 2x2x2x1 --global-batch 4" \
        "collective --machine perlmutter --op all_gather --ranks 64 -b 1M -e 64M -f 4 --json"; do
        # shellcheck disable=SC2086 # words
        "$s4d" $arguments > "$dir/1" 2> /dev/null
        # shellcheck disable=SC2086
        "$s4d" $arguments > "$dir/2" 2> /dev/null
        cmp "$dir/1" "$dir/2"
    done
}
@test "apart from provenance, a record does not depend on when and where" {
    "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json > "$dir/1"
    sleep 1
    (cd "$dir" && "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json > "$dir/2")
    python3 - "$dir/1" "$dir/2" <<'END'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert a.pop("provenance")["time"] != b.pop("provenance")["time"]
assert a == b
END
}
@test "folded and unfolded take the same time" {
    for grid in 2x2x4x4 1x1x64x1 4x4x2x2; do
        "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 64 --grid "$grid" --global-batch 64 --json > "$dir/1"
        "$s4d" simulate --machine perlmutter --workload gpt-tiny --gpus 64 --grid "$grid" --global-batch 64 --json --no-fold > "$dir/2"
        python3 - "$dir/1" "$dir/2" <<'END'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert abs(a["iteration_time_s"] / b["iteration_time_s"] - 1) < 1e-9
assert a["sim"]["gpu_classes"] <= b["sim"]["gpu_classes"] == 64
END
    done
}
@test "a grid found by auto is the one simulated" {
    "$s4d" "${small[@]}" --gpus 16 --grid auto --json > "$dir/1"
    python3 - "$dir/1" > "$dir/found" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
print("--grid", r["grid"], "--micro-batch", r["micro_batch"])
END
    # shellcheck disable=SC2046
    "$s4d" "${small[@]}" --gpus 16 $(cat "$dir/found") --json > "$dir/2"
    python3 - "$dir/1" "$dir/2" <<'END'
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
assert a["iteration_time_s"] == b["iteration_time_s"]
END
}
@test "a ring all-reduce takes its closed form" {
    # 4 ranks, 1 GiB, 50 GB/s, 500 ns: 2 * 3/4 * 1073741824 / 50e9 + 2 * 3 * 500e-9 = 0.03221525472 s
    "$s4d" collective --machine "$one_line" --op all_reduce --ranks 4 -b 1G -e 1G --algorithm ring --json > "$dir/1"
    python3 - "$dir/1" <<'END'
import json, sys
t = json.load(open(sys.argv[1]))["time_s"]
assert abs(t / 0.03221525472 - 1) < 1e-9, t
END
}
