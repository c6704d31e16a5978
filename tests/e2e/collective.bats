#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d collective from the command line.

setup() {
    cd "$BATS_TEST_DIRNAME/../.."
    export SOURCE_DATE_EPOCH=0
    single=synthetic:topology=single-switch,nodes=4096,devices_per_node=1,nic=50GB/s,latency=500ns,peak=312TFLOP/s
}

collective() {
    build/scale4d collective "$@"
}

# refused STATUS TEXT ARGUMENT...: that exit status, nothing on standard output, TEXT in the message.
refused() {
    local status=0 text=$2 expected=$1 out said
    shift 2
    out=$(mktemp) said=$(mktemp)
    collective "$@" > "$out" 2> "$said" || status=$?
    cat "$said"
    [ "$status" -eq "$expected" ] && [ ! -s "$out" ] && grep -qF -- "$text" "$said"
}

field() {
    grep -o "\"$1\": [^,}]*" | sed 's/.*: //'
}

# 2 x 4095/4096 x 2^30 / 50e9 + 2 x 4095 x 500 ns = 47.0341872 ms; the targets are 0.1 s and 200 MB.
@test "collective: 1 GiB on 4,096 ranks of a single switch" {
    t=$(collective --machine $single --op all_reduce --ranks 4096 -b 1G -e 1G --json | field time_s)
    awk -v t="$t" 'BEGIN { d = t / 47.0341872e-3 - 1; exit !(d < 1e-9 && d > -1e-9) }'
}

@test "collective: folded and unfolded agree" {
    args="--machine perlmutter --op all_gather --axis z --grid 2x2x16x2 -b 1M -e 64M -f 8 --json"
    folded=$(collective $args | field time_s)
    full=$(collective $args --no-fold | field time_s)
    [ "$(wc -l <<< "$folded")" -eq 3 ]
    paste <(echo "$folded") <(echo "$full") |
        awk '{ d = $1 / $2 - 1; if (d > 1e-9 || d < -1e-9) exit 1 }'
}

@test "collective: the ring's channels are told, whatever the algorithm" {
    for a in ring tree; do
        collective --machine $single --op all_reduce --ranks 4 -b 1M -e 1M --algorithm $a |
            grep -q ", 1 ring channel$"
    done
}

@test "collective: two runs, the same bytes" {
    args="--machine perlmutter --op all_reduce --axis data --grid 2x2x4x8 -b 1K -e 1G -f 32"
    [ "$(collective $args)" = "$(collective $args)" ]
    [ "$(collective $args --json)" = "$(collective $args --json)" ]
}

@test "collective: bad input" {
    refused 64 "--machine: expected a machine, not given"
    refused 64 "expected one of all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, send_recv, got 'scan'" \
        --machine $single --op scan --ranks 4
    refused 65 "unknown machine 'perlmuter'" --machine perlmuter --op all_reduce --ranks 4
    refused 64 "--ranks" --machine $single --op all_reduce --ranks 1
    refused 64 "--ranks" --machine $single --op all_reduce --ranks 4k
    refused 65 "4096 nodes" --machine $single --op all_reduce --ranks 4097
    refused 64 "expected --ranks, or --axis and --grid" --machine $single --op all_reduce
    refused 64 "cannot go with" --machine $single --op all_reduce --ranks 4 --axis z
    refused 64 "--axis" --machine $single --op all_reduce --axis q --grid 1x1x4x1
    refused 64 "one member" --machine $single --op all_reduce --axis x --grid 1x1x4x1
    refused 64 "--grid" --machine $single --op all_reduce --axis x --grid 4x0x1x1
    refused 64 "expected auto" --machine $single --op all_reduce --ranks 4 --algorithm star
    refused 64 "tree does not do all-gather" --machine $single --op all_gather --ranks 4 \
        --algorithm tree
    refused 64 "at most -e" --machine $single --op all_gather --ranks 4 -b 2M -e 1M
    refused 64 "--stepfactor" --machine $single --op all_gather --ranks 4 -f 1
    refused 64 "--minbytes" --machine $single --op all_gather --ranks 4 -b 1e6
    refused 64 "--minbytes" --machine $single --op all_gather --ranks 4 -b 0
    refused 64 "--maxbytes" --machine $single --op all_gather --ranks 4 -e 65G
    refused 64 "node.nics" --machine $single --op all_gather --ranks 4 --set node.nics=3
}

sample=tests/fuzz/corpus/nccl_tests

@test "collective --against: table and JSON of one run, errors as the times say" {
    for file in table.txt json.json; do
        collective --machine dgx-h100 --against $sample/$file | grep -v '^# \(scale4d\|against\)' > "$BATS_TEST_TMPDIR/$file"
        [ "$(grep -c '^ ' "$BATS_TEST_TMPDIR/$file")" -eq 9 ]
    done
    diff "$BATS_TEST_TMPDIR/table.txt" "$BATS_TEST_TMPDIR/json.json"
    t=$(collective --machine dgx-h100 --op all_reduce --ranks 8 -b 1G -e 1G --json | field time_s)
    e=$(awk -v t="$t" 'BEGIN { printf "%+.1f", 100 * (4029e-6 / t - 1) }')
    grep -E "^ +1073741824 .* \\$e +" "$BATS_TEST_TMPDIR/table.txt"
    collective --machine dgx-h100 --against $sample/json.json --json > "$BATS_TEST_TMPDIR/record"
    python3 - "$BATS_TEST_TMPDIR/record" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
errors = [row["measured_s"] / row["time_s"] - 1 for row in r["rows"]]
assert r["kind"] == "collective-against" and r["ranks"] == 8 and len(errors) == 9
assert abs(r["error"]["mean"] - sum(map(abs, errors)) / 9) < 1e-12
large = [abs(e) for e, row in zip(errors, r["rows"]) if row["bytes"] >= 4 << 20]
assert r["error_large"]["sizes"] == len(large) == 5
assert abs(r["error_large"]["worst"]) == max(large)
PY
}

@test "collective --against: our own table and records come back without error" {
    for json in "" --json; do
        collective --machine dgx-a100 --op reduce_scatter --ranks 16 -b 1M -e 64M -f 4 $json > "$BATS_TEST_TMPDIR/own"
        collective --machine dgx-a100 --against "$BATS_TEST_TMPDIR/own" > "$BATS_TEST_TMPDIR/out"
        [ "$(grep -c '^ ' "$BATS_TEST_TMPDIR/out")" -eq 4 ]
        grep -q 'Mean |error| 0.0 %' "$BATS_TEST_TMPDIR/out"
    done
}

@test "collective --against: bad input" {
    refused 65 "nothing.txt" --machine dgx-h100 --against nothing.txt
    refused 65 "neither a table" --machine dgx-h100 --against .clang-format
    head -n -4 $sample/table.txt > "$BATS_TEST_TMPDIR/cut.txt"
    refused 65 "cut.txt: is cut off after 9 rows" --machine dgx-h100 --against "$BATS_TEST_TMPDIR/cut.txt"
    head -c 900 $sample/json.json > "$BATS_TEST_TMPDIR/cut.json"
    refused 65 "cut.json:1: is not JSON" --machine dgx-h100 --against "$BATS_TEST_TMPDIR/cut.json"
    sed 's/busbw  #wrong     time/busbw   speed     time/' $sample/table.txt > "$BATS_TEST_TMPDIR/column.txt"
    refused 65 "unknown column 'speed'" --machine dgx-h100 --against "$BATS_TEST_TMPDIR/column.txt"
    refused 65 "is of 'all_reduce', expected all_gather" --machine dgx-h100 --op all_gather --against $sample/table.txt
    refused 65 "is of 8 ranks, expected 16" --machine dgx-h100 --ranks 16 --against $sample/table.txt
    refused 65 "has 8 of its ranks on a node, the machine has 4" --machine perlmutter --against $sample/table.txt
    refused 64 "does not say which" --machine perlmutter --against $sample/older.txt
    refused 65 "bus over algorithm bandwidth is 0.875" --machine perlmutter --op all_reduce --against $sample/older.txt
    refused 64 "cannot go with -b" --machine dgx-h100 -b 1M --against $sample/table.txt
    sed 's/all_reduce_perf/gather_perf/' $sample/table.txt > "$BATS_TEST_TMPDIR/gather.txt"
    refused 65 "got 'gather'" --machine dgx-h100 --against "$BATS_TEST_TMPDIR/gather.txt"
}

# Rings alone differ by rounding; a chain of seven edges in 16 messages fills in 6/16 of its transfer.
@test "collective: message by message" {
    ring=$(collective --machine $single --op all_gather --ranks 8 -b 1M -e 1M --stepwise --json)
    awk -v d="$(field difference <<< "$ring")" 'BEGIN { exit !(d < 1e-5 && d > -1e-5) }'
    [ "$(field messages <<< "$ring")" -eq 896 ] # 8 edges, 7 steps, 16 passes
    [ "$(field passes <<< "$ring")" = 16 ]
    collective --machine $single --op broadcast --ranks 8 -b 1M -e 1M --stepwise=16 --json |
        field difference | awk '{ exit !($1 > .31 && $1 < .375) }'
    collective --machine $single --op broadcast --ranks 8 -b 1M -e 1M --stepwise=64 |
        grep -qE ' chain +- +[0-9.]+ +[78]\.[0-9]+ +64 +448$'
    refused 65 "expected at most 4194304 messages, found 33546240" --machine $single \
        --op all_reduce --ranks 4096 -b 1M -e 1M --stepwise=1
    refused 64 "--stepwise: expected an integer in [1, 65536], got '0'" --machine $single \
        --op all_reduce --ranks 4 --stepwise=0
    refused 64 "--stepwise: expected an integer" --machine $single --op all_reduce --ranks 4 --stepwise=all
    refused 64 "found '16'" --machine $single --op all_reduce --ranks 4 --stepwise 16
}
