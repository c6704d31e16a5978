#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d simulate from the command line.

load lib.bash

simulate() {
    "$s4d" simulate --workload gpt-5b --machine perlmutter --global-batch 256 "$@"
}

number() {
    grep -o "\"$1\": [^,}]*" | head -n 1 | sed 's/.*: //'
}

@test "simulate: two runs, the same bytes" {
    export SOURCE_DATE_EPOCH=0
    simulate --gpus 64 --grid 2x2x4x4 --json > "$dir/a"
    simulate --gpus 64 --grid 2x2x4x4 --json > "$dir/b"
    cmp "$dir/a" "$dir/b"
    simulate --gpus 64 --grid auto --workers 1 > "$dir/a" 2> /dev/null
    simulate --gpus 64 --grid auto --workers 1 > "$dir/b" 2> /dev/null
    cmp "$dir/a" "$dir/b"
}

@test "simulate: without SOURCE_DATE_EPOCH only provenance differs" {
    simulate --gpus 64 --grid 1x1x64x1 --json | sed 's/"provenance": .*//' > "$dir/a"
    simulate --gpus 64 --grid 1x1x64x1 --json | sed 's/"provenance": .*//' > "$dir/b"
    grep -q iteration_time_s "$dir/a"
    cmp "$dir/a" "$dir/b"
}

@test "simulate: --json prints one line; the rest goes to standard error" {
    simulate --gpus 64 --grid auto --json > "$dir/out" 2> /dev/null
    [ "$(wc -l < "$dir/out")" -eq 1 ]
    python3 -m json.tool "$dir/out" > /dev/null
}

@test "simulate: folded and unfolded agree to 1e-9" {
    for grid in 2x2x4x4 4x2x2x4 1x2x32x1; do
        folded=$(simulate --gpus 64 --grid $grid --json 2> /dev/null)
        full=$(simulate --gpus 64 --grid $grid --no-fold --json 2> /dev/null)
        [ "$(number gpu_classes <<< "$full")" -eq 64 ]
        [ "$(number gpu_classes <<< "$folded")" -lt 64 ]
        awk -v a="$(number iteration_time_s <<< "$folded")" \
            -v b="$(number iteration_time_s <<< "$full")" \
            'BEGIN { d = a / b - 1; exit !(a > 0 && d < 1e-9 && d > -1e-9) }'
    done
}

@test "simulate: --grid auto says what it did, and its grid simulates to the same time" {
    export SOURCE_DATE_EPOCH=0
    best=$(simulate --gpus 64 --grid auto --json 2> /dev/null)
    [ "$(number simulated <<< "$best")" -eq 10 ]
    grid=$(number grid <<< "$best" | tr -d '"')
    alone=$(simulate --gpus 64 --grid "$grid" --json 2> /dev/null)
    [ "$(number iteration_time_s <<< "$alone")" = "$(number iteration_time_s <<< "$best")" ]
    simulate --gpus 64 --grid auto 2> /dev/null | grep -q "^# grid chosen: .* best by the model simulated"
}

@test "simulate: --grid auto ranks by the machine's rates; where it runs, the simulations know" {
    # z at a twentieth: weights are sharded no more. By all rates in full they are, 64 or 16 ways.
    grid=$(simulate --gpus 64 --grid auto --set rates.z=0.05 --json 2> /dev/null | number grid)
    [ "$grid" = '"4x1x1x16"' ]
    [ "$(simulate --gpus 64 --grid auto --placement random:3 --json 2> /dev/null | number simulated)" -eq 10 ]
}

@test "simulate: exposed parts sum to the iteration" {
    simulate --gpus 64 --grid 2x2x4x4 --json 2> /dev/null > "$dir/out"
    python3 - "$dir/out" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r["exposed_s"]) == {"compute", "x", "y", "z", "data", "other"}
assert abs(sum(r["exposed_s"].values()) / r["iteration_time_s"] - 1) < 1e-12
END
}

@test "simulate: --set changes the machine" {
    slow=$(simulate --gpus 64 --grid 1x1x64x1 --json --set device.gemm_flops_per_s="100 TFLOP/s")
    fast=$(simulate --gpus 64 --grid 1x1x64x1 --json)
    awk -v a="$(number iteration_time_s <<< "$slow")" -v b="$(number iteration_time_s <<< "$fast")" \
        'BEGIN { exit !(a > 1.5 * b) }'
}

@test "simulate: a type that the machine has no rates for" {
    refuses 65 "f64" -- simulate --workload gpt-5b --machine perlmutter --global-batch 256 \
        --gpus 64 --grid 1x1x64x1 --precision f64
}

# Groups of several axes share NICs and run beside each other. In blocks the iteration differs by 0.2
# to 0.7 %, and by less the finer they are cut.
@test "simulate: message by message tends to the coupled flows" {
    machine=synthetic:topology=single-switch,nodes=4,devices_per_node=4,link=200GB/s,nic=25GB/s,latency=1us,peak=100TFLOP/s
    for grid in 1x1x8x2 2x2x2x2; do
        last=1
        for passes in 1 16 64; do
            d=$("$s4d" simulate --machine $machine --workload gpt-tiny --gpus 16 --grid $grid \
                --global-batch 16 --stepwise=$passes --json | number difference)
            awk -v d="$d" -v last="$last" 'BEGIN { d = d < 0 ? -d : d; exit !(d < last / 2 && d < 0.01) }'
            last=${d#-}
        done
        awk -v d="$last" 'BEGIN { exit !(d < 2e-4) }'
    done
}

@test "simulate: too many messages are counted, not begun" {
    refuses 65 "--stepwise" "expected at most 4194304 messages, found " "hint:" -- \
        simulate --machine perlmutter --workload gpt-5b --gpus 64 --grid 2x2x4x4 --global-batch 64 --stepwise=64
    refuses 64 "--stepwise" "'0'" -- "${small[@]}" --gpus 2 --grid 1x1x2x1 --stepwise=0
}
