#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SimGrid platform files as machines.

load lib

head='<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">'
node=synthetic:topology=single-switch,nodes=1,devices_per_node=2,link=100GB/s,nic=10GB/s,latency=1us,peak=1TFLOP/s,library=nccl

# Three hosts in a full zone, the last joined to nothing.
apart() {
    cat <<END
$head
  <zone id="world" routing="Full">
    <host id="a10" speed="1Gf"><prop id="gpu" value="a100"/></host>
    <host id="a9" speed="1Gf"><prop id="gpu" value="a100-80"/></host>
    <host id="b1" speed="1Gf"/>
    <link id="l" bandwidth="5GBps" latency="1us"/>
    <link id="fat" bandwidth="100GBps" latency="2us" sharing_policy="FATPIPE"/>
    <route src="a9" dst="a10"><link_ctn id="l"/><link_ctn id="fat"/></route>
  </zone>
</platform>
END
}

@test "platform: hosts by property, in numeric order; shared and fat links; latency" {
    apart > "$dir/p.xml"
    "$s4d" route --machine "$dir/p.xml" --device "$node" --platform-hosts 'gpu=a100*' 0 3 > "$dir/out"
    grep -qE '^net.l +platform +5.00 GB/s +1$' "$dir/out"
    grep -qE '^net.fat@a9 +fatpipe +100.0 GB/s +1$' "$dir/out"
    grep -q 'latency 3.00 us' "$dir/out"
    "$s4d" route --machine "$dir/p.xml" --device "$node" --platform-hosts 'a*' 2 1 | grep -q '^net.fat@a10 '
    printf 'a10\na9\n' > "$dir/hosts"
    "$s4d" route --machine "$dir/p.xml" --device "$node" --platform-hosts 'a*' --hosts "$dir/hosts" 0 3 | grep -q '^net.fat@a10 '
    "$s4d" route --machine "$dir/p.xml" --device "$node" --platform-hosts 'a*' --set links.net.l=0.5 0 3 | grep -qE '^net.l +platform +2.50 GB/s'
}

@test "platform: machines shows it, and --sensitivity varies its links" {
    apart > "$dir/p.xml"
    of=(--device "$node" --platform-hosts 'a*')
    "$s4d" machines "$dir/p.xml" "${of[@]}" > "$dir/out"
    grep -qE "^fabric.nodes +2 +read +.*p.xml" "$dir/out"
    "$s4d" machines "$dir/p.xml" "${of[@]}" --sensitivity --workload gpt-tiny --gpus 4 --grid 1x1x4x1 --global-batch 8 > "$dir/out"
    grep -qE '^links.net.[*] +read +a table +[+][0-9.]+ +-[0-9.]+$' "$dir/out"
    refuses 64 "--device" "missing" -- machines "$dir/p.xml"
}

@test "platform: SimGrid's fat tree gives the times of ours, folded and unfolded" {
    cat > "$dir/tree.xml" <<END
$head
  <cluster id="c" prefix="n" suffix="" radical="0-31" speed="1Gf" bw="10GBps" lat="250ns" topology="FAT_TREE" topo_parameters="2;8,4;1,4;1,1" sharing_policy="SPLITDUPLEX"/>
</platform>
END
    one=synthetic:topology=single-switch,nodes=1,nic=10GB/s,latency=1us,peak=1TFLOP/s,library=nccl
    ours=synthetic:topology=fat-tree,nics_per_leaf=8,oversubscription=2,routing=d-mod-k,nodes=32,nic=10GB/s,latency=1us,peak=1TFLOP/s,library=nccl
    job=(--op all_reduce --grid 1x1x4x8 --axis data -b 64M -e 64M --json)
    for fold in "" --no-fold; do
        # shellcheck disable=SC2086
        a=$("$s4d" collective --machine "$dir/tree.xml" --device "$one" "${job[@]}" $fold)
        # shellcheck disable=SC2086
        b=$("$s4d" collective --machine "$ours" "${job[@]}" $fold)
        python3 - "$a" "$b" <<'END'
import json, sys
a, b = (json.loads(x)["time_s"] for x in sys.argv[1:])
assert abs(a / b - 1) < 1e-9, (a, b)
END
    done
}

@test "platform: what is refused" {
    apart > "$dir/p.xml"
    refuses 64 "--device" "missing" "perlmutter" -- route --machine "$dir/p.xml" 0 1
    refuses 64 "--device" ".xml" -- route --machine "$one_line" --device perlmutter 0 1
    refuses 64 "--platform-hosts" -- route --machine "$one_line" --platform-hosts 'a*' 0 1
    refuses 65 "unknown machine" -- route --machine "$dir/p.xml" --device nowhere 0 1
    refuses 65 "p.xml" "no way from a10 to b1" -- route --machine "$dir/p.xml" --device "$node" 0 1
    refuses 65 "no host matches 'c*'" -- route --machine "$dir/p.xml" --device "$node" --platform-hosts 'c*' 0 1
    refuses 65 "none.xml" "No such file" -- route --machine "$dir/none.xml" --device "$node" 0 1
    sed 's/5GBps/0GBps/' "$dir/p.xml" > "$dir/zero.xml"
    refuses 65 "link 'l'" "above 0" -- route --machine "$dir/zero.xml" --device "$node" --platform-hosts 'a*' 0 1
    for latency in nan inf 1e10s; do
        sed "s/1us/$latency/" "$dir/p.xml" > "$dir/late.xml"
        refuses 65 "link 'l'" "latency from 0 to 1000 s" -- route --machine "$dir/late.xml" --device "$node" --platform-hosts 'a*' 0 1
    done
    cat > "$dir/few.xml" <<XML
$head
  <cluster id="c" prefix="n" suffix="" radical="5-1" speed="1Gf" bw="10GBps" lat="250ns" topology="TORUS" topo_parameters="2,2"/>
</platform>
XML
    refuses 65 "few.xml" "number of radicals" -- route --machine "$dir/few.xml" --device "$node" 0 1
    sed 's/<link id="l"/<lnk id="l"/' "$dir/p.xml" > "$dir/bad.xml"
    refuses 65 "SimGrid does not read" "bad.xml:6" -- route --machine "$dir/bad.xml" --device "$node" 0 1
    head -n 7 "$dir/p.xml" > "$dir/cut.xml"
    refuses 65 "SimGrid does not read" -- route --machine "$dir/cut.xml" --device "$node" 0 1
    printf '\0\1' > "$dir/bin.xml"
    refuses 65 "SimGrid does not read" -- route --machine "$dir/bin.xml" --device "$node" 0 1
    refuses 65 "has 2 nodes" -- collective --machine "$dir/p.xml" --device "$node" --platform-hosts 'a*' --op all_reduce --ranks 6 -b 1M -e 1M
    refuses 64 "fabric.nodes" "has 2 hosts" -- route --machine "$dir/p.xml" --device "$node" --platform-hosts 'a*' --set fabric.nodes=3 0 1
    refuses 65 "platform file" -- route --machine "${one_line/single-switch/simgrid}" 0 1
}

@test "node: an NCCL topology file in place of the machine's node, --set over it" {
    xml=tests/fuzz/corpus/nccl_topology/switch.xml
    "$s4d" route --machine perlmutter --node $xml 0 1 2> "$dir/err" | grep -qE '^n0.gpu0->switch5 +node +240.0 GB/s'
    grep -q 'warning: .*slower than the fastest' "$dir/err"
    "$s4d" route --machine perlmutter --node $xml --set node.nic_bandwidth_Bps=5GB/s 1 2 2> /dev/null | grep -qE '^n0.nic1.out +nic-out +5.00 GB/s'
    "$s4d" collective --machine perlmutter --node $xml --op all_reduce --ranks 2 -b 64M -e 64M --json 2> /dev/null | grep -q '"ranks": 2'
    printf '<system>' > "$dir/cut.xml"
    refuses 65 "cut.xml:1" "no element found" -- route --machine perlmutter --node "$dir/cut.xml" 0 1
    refuses 65 "none.xml" "No such file" -- route --machine perlmutter --node "$dir/none.xml" 0 1
    refuses 64 "nodes.x" -- route --machine perlmutter --node "$xml" --set nodes.x=1 0 1
}
