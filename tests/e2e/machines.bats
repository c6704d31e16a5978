#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d machines, fabrics and route from the command line.

load lib

@test "machines: a line each" {
    "$s4d" machines > "$dir/out"
    grep -qE '^perlmutter +1536 +4  A100' "$dir/out"
    [ "$("$s4d" machines --json | wc -l)" -eq "$(grep -c -v '^#' "$dir/out")" ]
}

@test "machines: every value of one with its tag and source" {
    "$s4d" machines perlmutter > "$dir/out"
    grep -qE '^device.launch_s +2.7 us +read +eth-cscs' "$dir/out"
    grep -qE '^fabric.global_links_per_group +292 +assumed +[^ ]' "$dir/out"
    bad=$(grep -v '^#' "$dir/out" |
        grep -vE ' +[^ ].* (read|secondary|derived|measured|fitted|assumed) +[^ ]') || true
    [ -z "$bad" ] || { echo "$bad"; false; }
}

@test "machines: every printed quantity may be written back with --set" {
    "$s4d" machines perlmutter | grep -vE '^#|\[| a curve | a table | layout|node.layout' |
        sed -E 's/^([^ ]+) +([^ ]+( [A-Za-z]+\/?s?)?)  +.*/\1=\2/' > "$dir/settings"
    [ "$(wc -l < "$dir/settings")" -ge 40 ]
    while read -r setting; do
        "$s4d" machines perlmutter --set "$setting" > "$dir/out" || { echo "$setting"; false; }
        grep -F "${setting%%=*} " "$dir/out" | grep -qE 'assumed +--set' || { echo "$setting"; false; }
    done < "$dir/settings"
}

@test "machines: SCALE4D_MACHINES is another folder; a file needs no folder" {
    cp sim/machines/perlmutter.yaml "$dir/mine.yaml"
    SCALE4D_MACHINES=$dir "$s4d" machines mine | head -n 1 | grep -q '^# mine: '
    SCALE4D_MACHINES='' "$s4d" machines perlmutter | head -n 1 | grep -q '^# perlmutter: '
    "$s4d" machines "$dir/mine.yaml" | head -n 1 | grep -q '^# mine: '
    refuses 65 "unknown machine 'mine'" -- machines mine
}

@test "machines: what is refused" {
    refuses 65 "unknown machine" "did you mean perlmutter?" -- machines perlmuter
    refuses 64 "--set device.launch_s" "time" -- machines perlmutter --set device.launch_s=3
    refuses 64 "unknown key" "did you mean device.launch_s?" -- machines perlmutter --set device.launch=3us
    refuses 64 "--set" "name of a machine" -- machines --set device.launch_s=3us
    refuses 65 "synthetic: nic" "more than 0" -- machines "${one_line/50GB/0GB}"
    refuses 65 "unknown topology" -- machines "${one_line/single-switch/hypercube}"
    refuses 65 "fabric.colour" "unknown key" -- machines "$one_line,colour=4"
    refuses 65 "fabric.nodes_per_group" "missing" -- machines "${one_line/single-switch/dragonfly},groups=4"
    sed 's/global_links_per_group/global_links/' sim/machines/perlmutter.yaml > "$dir/m.yaml"
    refuses 65 "m.yaml:" "fabric.global_links" "unknown key" -- machines "$dir/m.yaml"
    head -c 4000 sim/machines/perlmutter.yaml > "$dir/cut.yaml"
    refuses 65 "cut.yaml:" -- machines "$dir/cut.yaml"
}

@test "fabrics: every one builds from the line and from the --set that its page names" {
    names=$("$s4d" fabrics | awk '{print $1}')
    [ "$(echo "$names" | wc -l)" -ge 6 ]
    for name in $names; do
        [ "$name" != simgrid ] || continue # a file: platform.bats
        "$s4d" fabrics "$name" > "$dir/page"
        line=$(grep -o 'synthetic:.*' "$dir/page")
        "$s4d" route --machine "$line" 0 63 | grep -q '^n63.nic0.in '
        sets=$(echo "$line" | grep -o 'topology=.*,nodes=' | sed 's/,nodes=$//' | tr ',' '\n' | sed 's/^/--set fabric./')
        # shellcheck disable=SC2086
        "$s4d" route --machine "$one_line" $sets 0 63 | grep -q '^n63.nic0.in '
    done
}

@test "fabrics: --set changes the topology of a machine, and refuses what it does not have" {
    tree=(--set fabric.topology=fat-tree --set fabric.nics_per_leaf=32)
    "$s4d" route --machine perlmutter "${tree[@]}" --set fabric.oversubscription=4 0 4095 |
        grep -qE '^leaf0.out +leaf-out +200.0 GB/s'
    "$s4d" machines perlmutter "${tree[@]}" --set fabric.routing=d-mod-k |
        grep -qE '^fabric.routing +d-mod-k +assumed +--set'
    "$s4d" machines perlmutter "${tree[@]}" --set fabric.routing=d-mod-k --json |
        grep -q '"value": "d-mod-k"'
    refuses 64 "--set fabric.nics_per_leaf" "missing" -- machines perlmutter --set fabric.topology=fat-tree
    refuses 64 "--set fabric.oversubscription" "unknown key" -- machines perlmutter --set fabric.oversubscription=4
    refuses 64 "--set fabric.routing" "found 'shortest'" -- machines perlmutter --set fabric.routing=shortest
    refuses 64 "--set fabric.topology" "expected one of" -- machines perlmutter --set fabric.topology=hypercube
    refuses 64 "fabric.topology" "name" -- machines perlmutter --set fabric.topology=3
    refuses 64 "fabric.nodes" "make room for 64" -- machines perlmutter "${tree[@]}" --set fabric.leaves=8
    refuses 64 "fabric.oversubscription" "from 0.01" -- machines perlmutter "${tree[@]}" --set fabric.oversubscription=0
}

@test "fabrics: a line each, the parameters of one" {
    "$s4d" fabrics | grep -qE '^single-switch +[^ ]'
    "$s4d" fabrics dragonfly | grep -qE '^  global_links_per_group +[^ ]'
    "$s4d" fabrics --json | grep -q '"name": "dragonfly"'
    refuses 65 "unknown fabric 'tours'" "torus" -- fabrics tours
}

@test "route: the links with capacities, in a node and across groups" {
    "$s4d" route --machine perlmutter 0 3 | grep -qE '^n0.gpu0->gpu3 +node +80.0 GB/s +1$'
    "$s4d" route --machine perlmutter 0 515 | grep -v '^#' | cut -d' ' -f1 > "$dir/links"
    printf '%s\n' n0.nic0.out group0.switch0.out group0.out group1.in group1.switch3.in n128.nic3.in |
        cmp - "$dir/links"
    [ "$("$s4d" route --machine perlmutter 0 515 --json | grep -o '"weight"' | wc -l)" -eq 6 ]
}

@test "route: what is refused" {
    refuses 64 "--machine" "not given" -- route 0 1
    refuses 64 "two ranks" -- route --machine perlmutter 0
    refuses 64 "first rank" -- route --machine perlmutter x 1
    refuses 64 "second rank" "[0, 6143]" -- route --machine perlmutter 0 6144
    refuses 64 "different" -- route --machine perlmutter 7 7
    refuses 65 "has 1536 nodes" -- route --machine perlmutter --gpus 6145 0 1
    refuses 64 "--gpus" -- route --machine perlmutter --gpus 0 0 1
}

# The job whose sensitivity is asked for; later options replace none of these.
job=(--workload gpt-tiny --gpus 8 --grid 2x1x4x1 --global-batch 16)

@test "machines --sensitivity: by effect; what is assumed alone; the same twice" {
    "$s4d" machines perlmutter --sensitivity "${job[@]}" > "$dir/out"
    grep -qE '^entry +tag +value +halved +doubled$' "$dir/out"
    grep -qE '^device.launch_s +read +2.7e-06 +-[0-9.]+ +\+[0-9.]+$' "$dir/out"
    grep -q '^# fabric.nodes_per_group halved: .*make room for' "$dir/out"
    # descending by the larger of the two
    grep -E '^(device|node|fabric|library)[.]' "$dir/out" |
        awk '{ a = $(NF - 1); b = $NF; gsub(/[^0-9.]/, "", a); gsub(/[^0-9.]/, "", b); a += 0; b += 0; m = a > b ? a : b
               if (NR > 1 && m > last + 0.011) { print "not sorted: " $0; exit 1 } last = m }'
    "$s4d" machines perlmutter --sensitivity "${job[@]}" --tag assumed --tag fitted > "$dir/some"
    grep -E '^(device|node|fabric|library)[.]' "$dir/some" | awk '$2 != "assumed" && $2 != "fitted" { print; exit 1 }'
    for i in 1 2; do
        SOURCE_DATE_EPOCH=0 "$s4d" machines perlmutter --sensitivity "${job[@]}" --json > "$dir/$i"
    done
    cmp "$dir/1" "$dir/2"
    [ "$(wc -l < "$dir/1")" -eq 1 ]
    grep -q '"kind": "sensitivity"' "$dir/1"
    [ "$(grep -o '"effect_percent"' "$dir/1" | wc -l)" -ge 50 ]
}

@test "machines --sensitivity: a change agrees with --set" {
    "$s4d" machines perlmutter --sensitivity "${job[@]}" --json > "$dir/all"
    "$s4d" simulate --machine perlmutter "${job[@]}" --set device.launch_s=5.4us --json > "$dir/one"
    python3 - "$dir/all" "$dir/one" << 'END'
import json, sys
many, one = (json.load(open(f)) for f in sys.argv[1:])
entry = [e for e in many["sensitivity"] if e["key"] == "device.launch_s"][0]
assert entry["doubled"]["iteration_time_s"] == one["iteration_time_s"], (entry, one["iteration_time_s"])
END
}

@test "machines --sensitivity: what is refused" {
    refuses 64 "--workload" "needs the job" -- machines perlmutter --sensitivity
    refuses 64 "--gpus" "needs the job" -- machines perlmutter --sensitivity --workload gpt-tiny
    refuses 64 "--grid" -- machines perlmutter --sensitivity --workload gpt-tiny --gpus 8
    refuses 64 "--sensitivity" "name of a machine" -- machines --sensitivity "${job[@]}"
    refuses 64 "--tag" "did you mean assumed?" -- machines perlmutter --sensitivity "${job[@]}" --tag asumed
    refuses 65 "are more" -- machines "$one_line" --sensitivity --workload gpt-tiny --gpus 128 --grid 2x1x64x1 --global-batch 64
    refuses 64 "need --sensitivity" -- machines perlmutter --set links.n0.nic0.out=0.5
}
