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
    refused 64 "--machine: is required"
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
    refused 64 "'node.nics'" --machine $single --op all_gather --ranks 4 --set node.nics=3
}
