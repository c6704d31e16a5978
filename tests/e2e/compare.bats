#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d compare from the command line.

load lib.bash

# records FILE [OPTION...]: two simulations on the same machine's name.
records() {
    local file=$1 grid
    shift
    for grid in 1x1x4x1 2x2x1x1; do
        "$s4d" simulate --machine perlmutter --workload gpt-5b --global-batch 8 --gpus 4 \
            --grid $grid --set device.memory_bytes=unlimited --json "$@"
    done > "$file"
}

@test "compare: the same simulations, whatever their provenance" {
    records "$dir/old"
    SOURCE_DATE_EPOCH=0 records "$dir/new"
    "$s4d" compare "$dir/old" "$dir/new" > "$dir/out"
    grep -q '^# 2 compared, 0 simulated ones not the same  OK' "$dir/out"
    "$s4d" compare "$dir/old" "$dir/new" --threshold 0
}

@test "compare: a slower machine is beyond -3%, not beyond -60%; simulated ones differ" {
    records "$dir/old"
    records "$dir/new" --set device.gemm_flops_per_s=200TFLOP/s
    run "$s4d" compare "$dir/old" "$dir/new" --threshold -3%
    [ "$status" -eq 1 ]
    [[ "$output" == *"2 beyond -3 %  FAILED"* ]]
    run "$s4d" compare "$dir/new" "$dir/old" --threshold -0.03
    [ "$status" -eq 0 ]
    run "$s4d" compare "$dir/old" "$dir/new" --threshold -60%
    [ "$status" -eq 0 ]
    run "$s4d" compare "$dir/old" "$dir/new"
    [ "$status" -eq 1 ]
    [[ "$output" == *"iteration_time_s: "* ]]
}

@test "compare: --json holds the pairs, and what only one file has" {
    records "$dir/old"
    head -n 1 "$dir/old" > "$dir/new"
    "$s4d" compare "$dir/old" "$dir/new" --json --allow-missing > "$dir/out"
    python3 - "$dir/out" <<'PY'
import json, sys
r = json.loads(open(sys.argv[1]).read())
assert r["kind"] == "compare" and len(r["pairs"]) == 1 and r["beyond"] == 0
assert [o["grid"] for o in r["only_old"]] == ["2x2x1x1"] and r["only_new"] == []
t = r["pairs"][0]["results"]["iteration_time_s"]
assert t["old"] == t["new"] > 0 and t["change"] == 0
PY
    "$s4d" compare "$dir/old" "$dir/new" --allow-missing | grep -q '^# only in OLD: .* 2x2x1x1'
}

@test "compare: what NEW lacks fails, what OLD lacked does not" {
    records "$dir/old"
    head -n 1 "$dir/old" > "$dir/new"
    for more in "" "--threshold -50%"; do
        run "$s4d" compare "$dir/old" "$dir/new" $more
        [ "$status" -eq 1 ]
        [[ "$output" == *"1 of OLD missing from NEW  FAILED"* ]]
        "$s4d" compare "$dir/old" "$dir/new" $more --allow-missing
        "$s4d" compare "$dir/new" "$dir/old" $more
    done
    run "$s4d" compare "$dir/old" "$dir/new" --json
    [ "$status" -eq 1 ]
    [[ "$output" == *'"missing":1'* || "$output" == *'"missing": 1'* ]]
}

@test "compare: bad input" {
    records "$dir/old"
    echo '{"a": 1}' > "$dir/odd"
    echo 'no' > "$dir/text"
    : > "$dir/empty"
    "$s4d" "${small[@]}" --gpus 4 --grid 1x1x4x1 --json > "$dir/other"
    refuses 64 "two files" -- compare "$dir/old"
    refuses 64 "--threshold" "-3%" -- compare "$dir/old" "$dir/old" --threshold 3%
    refuses 65 "$dir/none" -- compare "$dir/none" "$dir/old"
    refuses 65 "$dir/text:1" -- compare "$dir/old" "$dir/text"
    refuses 65 "$dir/odd" "no kind" -- compare "$dir/odd" "$dir/old"
    refuses 65 "$dir/empty" "no record" -- compare "$dir/old" "$dir/empty"
    "$s4d" fabrics --json > "$dir/fabrics"
    refuses 65 "$dir/fabrics" "for --threshold" -- compare "$dir/fabrics" "$dir/fabrics" --threshold -3%
    refuses 65 "no record of OLD" -- compare "$dir/old" "$dir/other"
}
