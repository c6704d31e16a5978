#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d accuracy from the command line.

load lib

@test "accuracy: report, data and a plot of every series" {
    "$s4d" accuracy --output "$dir/out" > "$dir/said"
    series=$(cut -f 1-3 "$dir/out/data.tsv" | sed 1d | sort -u | wc -l)
    [ "$(ls "$dir"/out/*.png | wc -l)" -eq "$series" ]
    [ "$(grep -c '^## .*, .*: ' "$dir/out/report.md")" -eq "$series" ]
    [ "$(wc -l < "$dir/out/data.tsv")" -eq "$(wc -l < sim/measured/collectives.csv)" ]
    # What is input and was not held out is no check, and an outlier never is.
    awk -F '\t' 'NR > 1 { checked = $8 != "nan" && $8 != "-nan"
        if ($14 == "yes" && checked || $12 == "yes" && $4 == $13 && checked ||
            $12 == "yes" && $13 == 0 && checked) exit 1
        n += checked } END { exit n < 150 }' "$dir/out/data.tsv"
    # The sum of the terminal is that of the data.
    awk -F '\t' 'NR > 1 && $1 == "dgx-a100" { n++; s += $9 < 0 ? -$9 : $9 } END { printf "%.1f\n", s / n }' \
        "$dir/out/data.tsv" > "$dir/mean"
    grep -qE "^  dgx-a100 .* $(cat "$dir/mean") " "$dir/said"
}

@test "accuracy: a held out row is what the command says with that table alone" {
    "$s4d" accuracy --output "$dir/out" > "$dir/said"
    awk '/^        - ranks: / { keep = $3 == 64 } /^    - op: / { keep = 1 } /^        - ranks: /, 0 { if (!keep) next } 1' \
        sim/machines/perlmutter.yaml > "$dir/half.yaml"
    "$s4d" collective --machine "$dir/half.yaml" --op all_gather --ranks 128 -b 64M -e 64M --json |
        grep -o '"busbw_Bps": [0-9.e+]*' | awk '{ printf "%.5g\n", $2 * 1e-9 }' > "$dir/one"
    awk -F '\t' '$1 == "perlmutter" && $3 == "all_gather" && $4 == 128 && $6 == 67108864 { printf "%.5g\n", $8 }' \
        "$dir/out/data.tsv" > "$dir/two"
    [ -s "$dir/one" ]
    diff "$dir/one" "$dir/two"
}

@test "accuracy: bad input" {
    refuses 64 "--nothing" -- accuracy --nothing
    refuses 65 "collectives.csv" -- accuracy --data "$dir"
    header=machine,library,op,ranks,ranks_per_node,total_MiB,busbw_GBps,outlier,note,source
    data() { cp sim/measured/*.csv "$dir"; printf '%s\n' "$header" "$1" > "$dir/collectives.csv"; }
    data perlmutter,NCCL,all_gather,16,4,1,3.8,no,,s
    sed -i 1d "$dir/collectives.csv"
    refuses 65 "collectives.csv:1" "header" -- accuracy --data "$dir"
    data perlmuter,NCCL,all_gather,16,4,1,3.8,no,,s
    refuses 65 "unknown machine 'perlmuter'" -- accuracy --data "$dir"
    data perlmutter,NCCL,scan,16,4,1,3.8,no,,s
    refuses 65 "unknown operation 'scan'" -- accuracy --data "$dir"
    data "perlmutter,NCCL (star),all_gather,16,4,1,3.8,no,,s"
    refuses 65 "unknown algorithm 'star'" -- accuracy --data "$dir"
    data perlmutter,NCCL,all_gather,16,8,1,3.8,no,,s
    refuses 65 "4 of 16 ranks on a node, expected 8" -- accuracy --data "$dir"
}

@test "accuracy: a folder that cannot be written is said before anything is simulated" {
    refuses 74 "/proc/x" "cannot be made" -- accuracy --output /proc/x
    refuses 74 "/dev/null/data.tsv" -- accuracy --output /dev/null
}
