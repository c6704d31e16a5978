#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run calibrate and collective, on two ranks and tiny sizes; skipped where MPI is not.

load lib.bash

# ranks N ARGUMENT...: the program on N ranks, also as root and with more ranks than processors.
ranks() {
    local n=$1
    shift
    [ -x "$root/build/scale4d-run" ] || skip "build/scale4d-run is not built: no MPI or no CBLAS"
    command -v mpirun > /dev/null || skip "there is no mpirun"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
        OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -n "$n" "$root/build/scale4d-run" "$@"
}

tiny=(--workload gpt-tiny --global-batch 4 --precision f32)

@test "collective: every size, no wrong values" {
    local op
    for op in all_reduce all_gather reduce_scatter; do
        ranks 2 collective --op $op -b 8 -e 4K -f 8 -n 3 > "$dir/out" 2> /dev/null
        grep -q '#wrong' "$dir/out"
        [ "$(grep -Ec '^ +[0-9]+ .* 0$' "$dir/out")" -eq 4 ]
        grep -q '^# Out of bounds values : 0 OK' "$dir/out"
    done
}

@test "collective: the table and the records are read by scale4d collective --against" {
    local json
    for json in "" --json; do
        ranks 2 collective --op all_gather -b 1K -e 64K -f 8 -n 3 $json > "$dir/measured" 2> /dev/null
        "$s4d" collective --machine synthetic:topology=single-switch,nodes=2,devices_per_node=1,nic=5GB/s,latency=5us,peak=1TFLOP/s \
            --against "$dir/measured" > "$dir/out"
        [ "$(grep -c '^ ' "$dir/out")" -eq 3 ]
        grep -q 'of scale4d-run collective$' "$dir/out"
        grep -q ', all_gather, 2 ranks on 2 nodes' "$dir/out"
    done
    # A size and its time are those that were printed.
    awk -F '[:,]' 'NR == 2' "$dir/measured" | python3 -c "
import json, sys
r = json.loads(sys.stdin.read())
print('%12.0f %11.2f' % (r['bytes'], r['time_s'] * 1e6))" > "$dir/row"
    grep -qF -- "$(cat "$dir/row")" "$dir/out"
}

@test "collective: groups of an axis side by side, as records" {
    ranks 2 collective --op all_gather --axis x --grid 2x1x1x1 -b 16 -e 64 -n 3 --json \
        > "$dir/out" 2> /dev/null
    [ "$(wc -l < "$dir/out")" -eq 3 ]
    python3 - "$dir/out" <<'PY'
import json, sys
for line, size in zip(open(sys.argv[1]), (16, 32, 64)):
    r = json.loads(line)
    assert (r["kind"], r["backend"], r["bytes"], r["ranks"]) == ("collective", "host", size, 2)
    assert r["wrong"] == 0 and r["time_s"] > 0 and r["p99_s"] >= r["time_s"]
    assert abs(r["busbw_Bps"] * r["time_s"] - size / 2) < 1e-9 * size
PY
}

@test "calibrate: a machine that simulate takes, every number with its source" {
    ranks 2 calibrate "${tiny[@]}" --samples 3 --output "$dir/host.yaml" > "$dir/out" 2> "$dir/err"
    grep -q '^gemm ' "$dir/out"
    grep -q '^attention-backward ' "$dir/out"
    grep -q '^reduce-scatter  *2 ranks' "$dir/out"
    grep -q ' 0 wrong values  OK' "$dir/out"
    [ ! -e "$dir/host.yaml.partial" ]
    grep -q 'mpirun -n 2 scale4d-run calibrate' "$dir/host.yaml"
    "$s4d" machines "$dir/host.yaml" > "$dir/values"
    grep -q '^node.compute_units .*measured' "$dir/values"
    local grid
    for grid in 1x1x1x2 1x1x2x1 2x1x1x1 1x2x1x1; do
        "$s4d" simulate --machine "$dir/host.yaml" --gpus 2 --grid $grid "${tiny[@]}" > "$dir/out"
        grep -q '^# iteration .*OK' "$dir/out"
    done
}

@test "calibrate: some parts, of one grid" {
    ranks 1 calibrate "${tiny[@]}" --grid 1x1x1x1 --samples 3 gemm > "$dir/out" 2> /dev/null
    grep -q '^gemm ' "$dir/out"
    [ "$(grep -c '^adamw \|^attention\|^all-reduce' "$dir/out")" -eq 0 ]
    ranks 2 calibrate --samples 3 collectives > "$dir/out" 2> /dev/null
    grep -q '^all-gather ' "$dir/out"
}

# run_refuses STATUS TEXT -- ARGUMENT...: alone, one rank.
run_refuses() {
    local want=$1 text=$2 status=0
    shift 3
    ranks 1 "$@" > "$dir/out" 2> "$dir/err" || status=$?
    grep -qF -- "$text" "$dir/err" || { cat "$dir/err"; return 1; }
    [ "$status" -eq "$want" ]
}

@test "calibrate and collective: bad input" {
    [ -x build/scale4d-run ] || skip "build/scale4d-run is not built: no MPI or no CBLAS"
    run_refuses 64 "gemm" -- calibrate "${tiny[@]}" gem
    run_refuses 64 "--workload" -- calibrate gemm
    run_refuses 64 "all parts" -- calibrate "${tiny[@]}" gemm --output "$dir/m.yaml"
    run_refuses 64 "'auto'" -- calibrate "${tiny[@]}" --grid auto
    run_refuses 65 "gpt-tinny" -- calibrate --workload gpt-tinny --global-batch 4
    run_refuses 74 "none/m.yaml" -- calibrate "${tiny[@]}" --samples 3 --output "$dir/none/m.yaml"
    run_refuses 64 "--op" -- collective
    run_refuses 64 "all_reduce" -- collective --op allreduce
    run_refuses 64 "nobody" -- collective --op all_reduce
    [ ! -e "$dir/m.yaml" ]
}

@test "compare-host: every grid measured and simulated, a report and a figure" {
    [ -x build/scale4d-run ] || skip "build/scale4d-run is not built: no MPI or no CBLAS"
    command -v mpirun > /dev/null || skip "there is no mpirun"
    RANKS="1 2" MODELS=workloads/gpt-tiny.yaml real/compare-host.sh "$dir/out" > "$dir/text"
    grep -q '^# 5 points, mean error ' "$dir/text"
    [ "$(grep -c '^| gpt-tiny | [12] | ' "$dir/out/report.md")" -eq 5 ]
    grep -q 'load average at the end' "$dir/out/report.md"
    [ -s "$dir/out/validation.png" ]
}

@test "compare-host: without mpirun it says that it is skipped" {
    MPIRUN=no-such-mpirun real/compare-host.sh "$dir/out" > "$dir/text"
    grep -q '^compare-host is skipped' "$dir/text"
    [ ! -e "$dir/out" ]
}

@test "validate: bad input" {
    "$s4d" "${small[@]}" --gpus 2 --grid 1x1x2x1 --json > "$dir/simulated"
    refuses 64 "two files" -- validate "$dir/simulated"
    refuses 65 "$dir/none" -- validate "$dir/none" "$dir/simulated"
    refuses 65 "$dir/simulated" "kind train" -- validate "$dir/simulated" "$dir/simulated"
}
