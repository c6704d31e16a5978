#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parts of a machine that differ, and jobs that are not on its first nodes.

load lib

tree=synthetic:topology=fat-tree,nics_per_leaf=16,oversubscription=2,nodes=64,devices_per_node=4,link=100GB/s,nic=2GB/s,latency=2us,peak=100TFLOP/s,memory_bandwidth=1TB/s,library=nccl
job=(simulate --machine "$tree" --workload gpt-tiny --gpus 64 --grid 2x2x4x4 --global-batch 64 --json)

field() { # field PATH: of the JSON record on standard input
    python3 -c "import json, sys; print(json.load(sys.stdin)$1)"
}

@test "simulate: with each asymmetry folded is unfolded" {
    plain=$("$s4d" "${job[@]}" | field "['sim']['gpu_classes']")
    "$s4d" "${job[@]}" | grep -q '"scenario"' && false
    for set in nics.n1.nic2=dead nics.n1.nic2=0.5 'links.n2.gpu0->gpu1=dead' links.leaf0.out=0.5 devices.n3.gpu1=0.8; do
        "$s4d" "${job[@]}" --set "$set" > "$dir/folded"
        "$s4d" "${job[@]}" --set "$set" --no-fold > "$dir/full"
        [ "$(field "['sim']['gpu_classes']" < "$dir/folded")" -ge "$plain" ]
        [ "$(field "['sim']['gpu_classes']" < "$dir/full")" -eq 64 ]
        [ "$(field "['scenario']['differences']" < "$dir/full")" = "['$set']" ]
        python3 - "$(field "['iteration_time_s']" < "$dir/folded")" "$(field "['iteration_time_s']" < "$dir/full")" <<'END'
import sys
a, b = map(float, sys.argv[1:])
assert abs(a / b - 1) < 1e-9, (a, b)
END
    done
}

@test "simulate: rates of computing and of an axis, in files too; where they mean nothing" {
    printf 'rates:\n  compute: 0.5\n  z: 0.88\n' > "$dir/night.yaml"
    "$s4d" "${job[@]}" --diff "$dir/night.yaml" > "$dir/folded"
    "$s4d" "${job[@]}" --set rates.compute=0.5 --set rates.z=0.88 --no-fold > "$dir/full"
    "$s4d" "${job[@]}" > "$dir/plain"
    one=(simulate --machine "$tree" --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 4 --json)
    "$s4d" "${one[@]}" > "$dir/one"
    "$s4d" "${one[@]}" --set rates.compute=0.5 > "$dir/half"
    python3 - "$dir"/{folded,full,plain,one,half} <<'END'
import json, sys
folded, full, plain, one, half = (json.load(open(f)) for f in sys.argv[1:])
assert folded["scenario"] == full["scenario"] and "scenario" not in plain
assert abs(folded["iteration_time_s"] / full["iteration_time_s"] - 1) < 1e-9
assert folded["iteration_time_s"] > plain["iteration_time_s"]
assert abs(folded["gemm_flops_per_s"] / plain["gemm_flops_per_s"] - 0.5) < 1e-9
assert abs(half["exposed_s"]["compute"] / one["exposed_s"]["compute"] - 2) < 1e-9
END
    refuses 64 "--set rates.zz" "unknown rate" -- "${job[@]}" --set rates.zz=0.9
    refuses 64 "rates.z=0.9" "--axis" -- collective --machine "$tree" --op all_gather --ranks 8 --set rates.z=0.9
    refuses 64 "rates.z=0.9" "a way has links" -- route --machine "$tree" --set rates.z=0.9 0 1
    for op in all_gather reduce_scatter; do
        call=(collective --machine "$tree" --op $op --axis z --grid 2x2x4x4 -b 4M -e 4M --json)
        a=$("$s4d" "${call[@]}" | field "['busbw_Bps']")
        b=$("$s4d" "${call[@]}" --set rates.z=0.88 | field "['busbw_Bps']")
        python3 -c "import sys; sys.exit(not abs($b / $a - 0.88) < 1e-9)"
    done
}

@test "simulate: a placement with its seed, a file of hosts" {
    [ "$("$s4d" "${job[@]}" --placement random:7 | field "['scenario']['placement']")" = random:7 ]
    [ "$("$s4d" "${job[@]}" --placement fragmented | field "['scenario']['placement']")" = fragmented:1 ]
    seq 40 2 62 | sed 's/^/n/' > "$dir/hosts"
    printf 'n1\nn3\nn5\nn7\n' >> "$dir/hosts"
    "$s4d" "${job[@]}" --hosts "$dir/hosts" | grep -q '"hosts": \["n40", "n42"'
    "$s4d" route --machine "$tree" --hosts "$dir/hosts" --gpus 64 0 63 | grep -q '^n7.nic3.in '
    "$s4d" collective --machine "$tree" --op all_reduce --ranks 64 -b 1M -e 1M --hosts "$dir/hosts" | grep -q ' 1048576 '
    echo n1 >> "$dir/hosts"
    refuses 65 "hosts:17" "twice" "line 13" -- "${job[@]}" --hosts "$dir/hosts"
    head -n 3 "$dir/hosts" > "$dir/few"
    refuses 65 "3 hosts, but the job needs 16 nodes" -- "${job[@]}" --hosts "$dir/few"
    refuses 64 "--hosts" "--placement" -- "${job[@]}" --hosts "$dir/few" --placement random
    refuses 64 "--placement" "expected node-major" -- "${job[@]}" --placement scattered
    refuses 65 "$dir/none" -- "${job[@]}" --hosts "$dir/none"
}

@test "simulate: a file of differences, and the command line over it" {
    cat > "$dir/diff.yaml" <<'END'
set:
  fabric.oversubscription: 4
links:
  n0.gpu0->gpu1: 0.5
nics:
  n5.nic1: dead
devices:
  n0.gpu1: 0.9
END
    slow=$("$s4d" "${job[@]}" --diff "$dir/diff.yaml" | field "['iteration_time_s']")
    fast=$("$s4d" "${job[@]}" --diff "$dir/diff.yaml" --set fabric.oversubscription=1 | field "['iteration_time_s']")
    python3 -c "import sys; sys.exit(not $slow > $fast)"
    "$s4d" route --machine "$tree" --diff "$dir/diff.yaml" 21 0 | grep -q '^n5.nic0.out '
    printf 'set:\n  nics.n5.nic1: dead\n' > "$dir/in_set.yaml" # set takes all that --set takes
    "$s4d" route --machine "$tree" --diff "$dir/in_set.yaml" 21 0 | grep -q '^n5.nic0.out '
    printf 'set:\n  fabric.nodes: 64\n  fabric.colour: 4\n' > "$dir/bad.yaml"
    refuses 65 "bad.yaml:3: fabric.colour: unknown key" -- "${job[@]}" --diff "$dir/bad.yaml"
    printf 'set:\n  node.nic_bandwidth_Bps: 25\n' > "$dir/bad.yaml"
    refuses 65 "bad.yaml:2: node.nic_bandwidth_Bps: expected a bandwidth" -- "${job[@]}" --diff "$dir/bad.yaml"
    refuses 64 "--set node.nic_bandwidth_Bps" -- "${job[@]}" --set node.nic_bandwidth_Bps=25
    printf 'set:\n  nothing: 25\n' > "$dir/bad.yaml"
    refuses 65 "bad.yaml:2: nothing: unknown key" -- "${job[@]}" --diff "$dir/bad.yaml"
    { echo nics: && for n in {0..63}; do echo "  n$n.nic1: 0.5"; echo "  n$n.nic2: 0.5"; done; } > "$dir/many.yaml"
    "$s4d" simulate "${job[@]:1:10}" --diff "$dir/many.yaml" | grep -q '^# differences: nics.n0.nic1=0.5 .* and 64 more'
    echo 'cables:' >> "$dir/diff.yaml"
    refuses 65 "diff.yaml:" "cables" "links, nics, devices, rates or set" -- "${job[@]}" --diff "$dir/diff.yaml"
}

@test "simulate: differences of nothing, and ways that are cut off" {
    refuses 64 "--set links.leaf40.out" "names no link" "leaf15.in" -- "${job[@]}" --set links.leaf40.out=dead
    refuses 64 "--set nics.n0.nic9" "names no nic" -- "${job[@]}" --set nics.n0.nic9=dead
    refuses 64 "found 'links.leaf0.out=-2GB/s'" -- "${job[@]}" --set links.leaf0.out=-2GB/s
    refuses 64 "found 'nics.n0.nic0=0'" -- "${job[@]}" --set nics.n0.nic0=0
    refuses 65 "no way from n0.gpu0" "leaf0.out is dead" -- "${job[@]}" --set links.leaf0.out=dead
    refuses 65 "no way from n0.gpu0 to n9.gpu0" -- route --machine "$tree" --set links.leaf0.out=dead 0 36
    refuses 65 "n0" "reaches no NIC" -- "${job[@]}" --set 'nics.n0.*=dead'
    refuses 65 "leaf0.out is dead" -- collective --machine "$tree" --op all_reduce --ranks 64 -b 1M -e 1M --set links.leaf0.out=dead
    "$s4d" "${job[@]}" --set links.leaf9.out=dead > "$dir/out" # not crossed
    refuses 65 "has 64 nodes" -- simulate --machine "$tree" --workload gpt-tiny --gpus 512 --grid 2x2x8x16 --global-batch 512 --placement random
}
