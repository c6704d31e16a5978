#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Bad input: a clear message and the right exit status; never a crash, a hang, or silence.
load lib

@test "unknown command, the nearest is named" {
    refuses 64 "'simulat'" "did you mean simulate?" -- simulat
}
@test "unknown option, the nearest is named" {
    refuses 64 "--overlp" "did you mean --overlap?" -- "${small[@]}" --gpus 1 --grid 1x1x1x1 --overlp all
}
@test "unknown machine, the nearest is named" {
    refuses 65 "'perlmuter'" "did you mean perlmutter?" -- \
        simulate --machine perlmuter --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 4
}
@test "unknown machine or workload, but there is a file of that name" {
    cd "$dir"
    touch lab.yaml
    refuses 65 "'lab'" "'lab.yaml'" -- simulate --machine lab --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 4
    refuses 65 "'lab'" "'lab.yaml'" -- simulate --machine "$one_line" --workload lab --gpus 1 --grid 1x1x1x1 --global-batch 4
}
@test "unknown workload, the nearest is named" {
    refuses 65 "'gpt-tiny2'" "did you mean gpt-tiny?" -- \
        simulate --machine "$one_line" --workload gpt-tiny2 --gpus 1 --grid 1x1x1x1 --global-batch 4
}
@test "unknown choice" {
    refuses 64 "--recompute" "none, selective, full" "'some'" -- "${small[@]}" --gpus 1 --grid 1x1x1x1 --recompute some
}
@test "an argument that is not asked for" {
    refuses 64 "'more'" -- "${small[@]}" --gpus 1 --grid 1x1x1x1 more
}
@test "an option without its value" {
    refuses 64 "--gpus" -- "${small[@]}" --grid 1x1x1x1 --gpus
}
@test "machine, workload, GPUs, grid and batch must be given" {
    refuses 64 "--machine: expected a machine, not given" "scale4d machines" -- simulate --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 4
    refuses 64 "--workload" -- simulate --machine "$one_line" --gpus 1 --grid 1x1x1x1 --global-batch 4
    refuses 64 "--gpus" -- "${small[@]}" --grid 1x1x1x1
    refuses 64 "--grid" "1x1x4x1" "auto" -- "${small[@]}" --gpus 4
    refuses 64 "--global-batch" -- simulate --machine "$one_line" --workload gpt-tiny --gpus 1 --grid 1x1x1x1
}

@test "a grid whose product is not the number of GPUs" {
    refuses 64 "--grid" "2x2x2x2 = 16" "8" "--gpus 16" "mpirun -n 16" -- "${small[@]}" --gpus 8 --grid 2x2x2x2
}
@test "a grid that does not divide the heads" {
    refuses 64 "heads" "4" "8" -- "${small[@]}" --gpus 8 --grid 8x1x1x1
}
@test "a grid that does not divide the hidden size" {
    sed 's/^hidden_size:.*/hidden_size: 60/' workloads/gpt-tiny.yaml > "$dir/w.yaml"
    grep -q 'hidden_size: 60' "$dir/w.yaml"
    refuses 64 "hidden" "60" -- simulate --machine "$one_line" --workload "$dir/w.yaml" --global-batch 16 --gpus 8 --grid 1x8x1x1
}
@test "a grid that does not divide the batch" {
    refuses 64 "batch" "16" -- "${small[@]}" --gpus 32 --grid 1x1x32x1
    refuses 64 "batch" -- "${small[@]}" --gpus 3 --grid 1x1x3x1
}
@test "a micro-batch that does not divide the batch of a rank" {
    refuses 64 "micro" -- "${small[@]}" --gpus 2 --grid 1x1x2x1 --micro-batch 3
}
@test "what no grid can mend is named, not the grid" {
    refuses 64 "--cache-layers" "0 to 2" -- "${small[@]}" --gpus 4 --grid auto --cache-layers 50
}
@test "a decay of AdamW's moments that is 1" {
    refuses 64 "--beta1" -- schedule --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 1 --beta1 1
    refuses 64 "--beta2" -- schedule --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 1 --beta2 1
}
@test "frequency scaling that is not whole" {
    sed 's/^rope_theta:.*/&\nrope_scaling_factor: 8\nrope_low_freq_factor: 1/' workloads/llama-tiny.yaml > "$dir/w.yaml"
    grep -q '^rope_low_freq_factor: 1' "$dir/w.yaml"
    refuses 65 "rope_scaling_factor" "or none" -- \
        schedule --workload "$dir/w.yaml" --gpus 1 --grid 1x1x1x1 --global-batch 1
}
@test "more micro-batches than a program can hold" {
    refuses 64 "--micro-batch" "1073741824" "hint: a larger" -- \
        simulate --machine "$one_line" --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 1073741824 --micro-batch 1
    refuses 64 "--micro-batch" -- schedule --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch 100000
}
@test "a zero, a negative or a huge axis" {
    refuses 64 "--grid" "'0x1x1x1'" -- "${small[@]}" --gpus 1 --grid 0x1x1x1
    refuses 64 "--grid" "'-1x1x1x1'" -- "${small[@]}" --gpus 1 --grid=-1x1x1x1
    refuses 64 "--grid" -- "${small[@]}" --gpus 1 --grid 4294967297x1x1x1
    refuses 64 "--grid" -- "${small[@]}" --gpus 1 --grid 1x1x1
    refuses 64 "--grid" -- "${small[@]}" --gpus 1 --grid 1x1x1x1x1
    refuses 64 "--grid" -- "${small[@]}" --gpus 1 --grid ""
}
@test "numbers that are not plain" {
    refuses 64 "--gpus" "'1e3'" -- "${small[@]}" --grid auto --gpus 1e3
    refuses 64 "--gpus" "'4k'" -- "${small[@]}" --grid auto --gpus 4k
    refuses 64 "--gpus" "'0'" -- "${small[@]}" --grid auto --gpus 0
    refuses 64 "--gpus" -- "${small[@]}" --grid auto --gpus 99999999999999999999
    refuses 64 "--global-batch" -- simulate --machine "$one_line" --workload gpt-tiny --gpus 1 --grid 1x1x1x1 --global-batch -4
}
@test "a hint only where it helps: not for a number out of range" {
    refuses 64 "--gpus" "'-1'" -- "${small[@]}" --grid auto --gpus -1
    [ "$(grep -c hint: "$dir/err")" -eq 0 ]
    refuses 64 "--clip-norm" "[0, 1e+30]" "'-1'" -- "${small[@]}" --gpus 1 --grid 1x1x1x1 --clip-norm -1
    [ "$(grep -c hint: "$dir/err")" -eq 0 ]
}
@test "pipelines do not exist yet" {
    refuses 64 "--pipeline" -- "${small[@]}" --gpus 2 --grid 1x1x1x1 --pipeline 2
}
@test "an overlap that is none" {
    refuses 64 "--overlap" "'fast'" -- "${small[@]}" --gpus 1 --grid 1x1x1x1 --overlap fast
}
@test "more GPUs than the machine has" {
    refuses 65 "perlmutter" "6144" -- \
        simulate --machine perlmutter --workload gpt-5b --gpus 8192 --grid 1x1x8x1024 --global-batch 8192
}
@test "a model that does not fit: by how much, and a grid that does" {
    refuses 65 "GB" "hint:" -- \
        simulate --machine perlmutter --workload gpt-40b --gpus 64 --grid 1x1x1x64 --global-batch 64
    grep -oE '[0-9]+x[0-9]+x[0-9]+x[0-9]+' "$dir/err" | tail -n 1 > "$dir/grid"
    grep -q x "$dir/grid"
    "$s4d" simulate --machine perlmutter --workload gpt-40b --gpus 64 --grid "$(cat "$dir/grid")" \
        --global-batch 64 --json > "$dir/out"
    grep -q iteration_time_s "$dir/out"
}
@test "a model that no grid fits" {
    refuses 65 "GB" -- simulate --machine perlmutter --workload gpt-640b --gpus 4 --grid auto --global-batch 8
}

workload_with() { # SED-EXPRESSION: a copy of gpt-tiny, changed
    sed "$1" workloads/gpt-tiny.yaml > "$dir/w.yaml"
    ! cmp -s workloads/gpt-tiny.yaml "$dir/w.yaml"
    given=(simulate --machine "$one_line" --workload "$dir/w.yaml" --gpus 1 --grid 1x1x1x1 --global-batch 4)
}
@test "workload: hidden_size: 4k" {
    workload_with 's/^hidden_size:.*/hidden_size: 4k/'
    line=$(grep -n hidden_size "$dir/w.yaml" | cut -d: -f1)
    refuses 65 "w.yaml:$line: hidden_size" "'4k'" -- "${given[@]}"
}
@test "workload: a missing key" {
    workload_with '/^hidden_size:/d'
    refuses 65 "w.yaml" "hidden_size" -- "${given[@]}"
}
@test "workload: a key too many, the nearest is named" {
    workload_with 's/^hidden_size:/hiden_size: 64\nhidden_size:/'
    refuses 65 "w.yaml:" "'hiden_size'" "hidden_size?" -- "${given[@]}"
}
@test "workload: a key twice" {
    workload_with 's/^hidden_size:/hidden_size: 64\nhidden_size:/'
    refuses 65 "w.yaml:" "hidden_size" -- "${given[@]}"
}
@test "workload: heads that do not divide the hidden size" {
    workload_with 's/^num_attention_heads:.*/num_attention_heads: 7/'
    refuses 65 "w.yaml" "7" -- "${given[@]}"
}
@test "workload: every truncation is refused or read, never a crash" {
    size=$(stat -c %s workloads/gpt-tiny.yaml)
    for ((n = 0; n < size; n += 7)); do
        head -c "$n" workloads/gpt-tiny.yaml > "$dir/w.yaml"
        status=0
        timeout 60 "$s4d" simulate --machine "$one_line" --workload "$dir/w.yaml" --gpus 1 --grid 1x1x1x1 \
            --global-batch 4 > "$dir/out" 2>&1 || status=$?
        [ "$status" -eq 0 ] || [ "$status" -eq 65 ] || { echo "$n bytes: $status"; cat "$dir/out"; false; }
    done
}
@test "workload: no such file, a folder, an empty file, no text" {
    given=(simulate --machine "$one_line" --gpus 1 --grid 1x1x1x1 --global-batch 4 --workload)
    refuses 65 "nothing.yaml" -- "${given[@]}" "$dir/nothing.yaml"
    mkdir "$dir/folder.yaml"
    refuses 65 "folder.yaml" -- "${given[@]}" "$dir/folder.yaml"
    : > "$dir/empty.yaml"
    refuses 65 "empty.yaml" -- "${given[@]}" "$dir/empty.yaml"
    head -c 4096 /dev/urandom > "$dir/noise.yaml"
    refuses 65 "noise.yaml" -- "${given[@]}" "$dir/noise.yaml"
}

machine_with() { # SED-EXPRESSION: a copy of perlmutter, changed
    sed "$1" sim/machines/perlmutter.yaml > "$dir/m.yaml"
    ! cmp -s sim/machines/perlmutter.yaml "$dir/m.yaml"
}
@test "machine: a number without its unit" {
    machine_with 's/value: 200 Gb\/s/value: 200/'
    refuses 65 "m.yaml:" "'200'" "Gb/s" -- machines "$dir/m.yaml"
}
@test "machine: an unknown unit, bits or bytes are not guessed" {
    machine_with 's/value: 200 Gb\/s/value: 200 Gbps/'
    refuses 65 "m.yaml:" "'200 Gbps'" -- machines "$dir/m.yaml"
}
@test "machine: a missing section" {
    sed '/^fabric:/,/^[a-z]/{/^fabric:/d;/^ /d}' sim/machines/perlmutter.yaml > "$dir/m.yaml"
    refuses 65 "m.yaml" "fabric" -- machines "$dir/m.yaml"
}
@test "machine: a key too many" {
    (cat sim/machines/perlmutter.yaml; echo 'fabrik: 1') > "$dir/m.yaml"
    refuses 65 "m.yaml:" "fabrik" "fabric?" -- machines "$dir/m.yaml"
}
@test "machine: a truncated file" {
    size=$(stat -c %s sim/machines/perlmutter.yaml)
    for part in 10 30 50 70 90; do
        head -c $((size * part / 100)) sim/machines/perlmutter.yaml > "$dir/m.yaml"
        refuses 65 "m.yaml" -- machines "$dir/m.yaml"
    done
}
@test "machine: a line with an unknown key, without a value, without a unit" {
    refuses 65 "latenzy" -- machines synthetic:topology=single-switch,nodes=4,nic=50GB/s,latency=500ns,peak=312TFLOP/s,latenzy=1us
    refuses 65 ": missing" -- machines synthetic:nodes=4
    refuses 65 "nic" -- machines synthetic:topology=single-switch,nodes=4,nic=50,latency=500ns,peak=312TFLOP/s
    refuses 65 "nodes" -- machines synthetic:topology=single-switch,nodes=,nic=50GB/s,latency=500ns,peak=312TFLOP/s
    refuses 65 "topology" "'mesh'" -- machines synthetic:topology=mesh,nodes=4,nic=50GB/s,latency=500ns,peak=312TFLOP/s
}
@test "machine: --set of an unknown key, and of a bad value" {
    refuses 64 "--set nonsense" "unknown key" -- machines perlmutter --set nonsense=1
    refuses 64 "--set node.latency_s" "'fast'" -- machines perlmutter --set node.latency_s=fast
    refuses 64 "--set" "'nonsense'" -- machines perlmutter --set nonsense
}

@test "a YAML bomb is refused at once" {
    {
        echo 'a: &a [x,x,x,x,x,x,x,x,x]'
        for c in b c d e f g h i; do
            p=$(echo "$c" | tr b-i a-h)
            echo "$c: &$c [*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p,*$p]"
        done
    } > "$dir/bomb.yaml"
    ulimit -t 2 # seconds of a processor, however busy the machine is
    refuses 65 "bomb.yaml:1" -- machines "$dir/bomb.yaml"
    refuses 65 "bomb.yaml:1" -- workloads "$dir/bomb.yaml"
}
@test "a YAML nested without end, and one that is too large" {
    head -c 100000 /dev/zero | tr '\0' '[' > "$dir/deep.yaml"
    refuses 65 "deep.yaml" -- workloads "$dir/deep.yaml"
    head -c 20000000 /dev/zero | tr '\0' 'a' > "$dir/large.yaml"
    refuses 65 "large.yaml" -- workloads "$dir/large.yaml"
}

@test "an output that cannot be written" {
    [ -e /dev/full ] || skip "no /dev/full"
    for arguments in "--help" "--version" "machines perlmutter" "workloads gpt-5b" "layers" \
        "collective --machine $one_line --op all_reduce --ranks 4 -b 1M -e 1M" \
        "collective --machine $one_line --op all_reduce --ranks 4 -b 1M -e 1M --json" \
        "schedule --workload gpt-tiny --gpus 2 --grid 1x1x2x1 --global-batch 4" \
        "${small[*]} --gpus 2 --grid 1x1x2x1" "${small[*]} --gpus 2 --grid 1x1x2x1 --json"; do
        status=0
        # shellcheck disable=SC2086 # words
        "$s4d" $arguments > /dev/full 2> "$dir/err" || status=$?
        [ "$status" -eq 74 ] || { echo "$status: $arguments"; cat "$dir/err"; false; }
        grep -q '^scale4d: ' "$dir/err"
    done
}

@test "network: a fabric that does not hold the nodes" {
    for fabric in topology=torus,size_x=2,size_y=2,link_bandwidth_Bps=50GB/s topology=fat-tree,nics_per_leaf=2,leaves=2 \
        topology=rail-optimised,nodes_per_unit=2,units=2 \
        topology=dragonfly,groups=2,nodes_per_group=2,switches_per_group=2,switches_per_node=1,local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=25GB/s; do
        refuses 65 "fabric.nodes" "64 nodes" "make room for 4" -- \
            route --machine "${one_line/topology=single-switch/$fabric}" 0 1
    done
}
@test "network: bandwidths of zero and below" {
    for value in 0GB/s -1GB/s "0 B/s"; do
        refuses 65 "nic:" -- route --machine "${one_line/nic=50GB?s/nic=$value}" 0 1
        refuses 65 "link_bandwidth_Bps:" -- \
            route --machine "${one_line/single-switch/ring,link_bandwidth_Bps=$value}" 0 1
        refuses 64 "--set node.nic_bandwidth_Bps" -- machines perlmutter --set "node.nic_bandwidth_Bps=$value"
        machine_with "s/value: 200 Gb.s/value: ${value/\//\\/}/"
        refuses 65 "m.yaml:" "nic_bandwidth_Bps" -- machines "$dir/m.yaml"
        machine_with "s/\(brick_bandwidth_Bps: { value: \)[0-9.]* GB.s/\1${value/\//\\/}/"
        refuses 65 "m.yaml:" "brick_bandwidth_Bps" -- machines "$dir/m.yaml"
    done
}
@test "network: differences that name nothing or say nothing, hosts twice" {
    given=(simulate --machine perlmutter --workload gpt-tiny --gpus 8 --grid 1x1x8x1 --global-batch 8)
    for difference in "links:  nowhere.out: 0.5" "nics:  n0.nic9: dead" "devices:  n9999.gpu0: 0.5"; do
        printf '%s\n  %s\n' "${difference%%  *}" "${difference#*  }" > "$dir/d.yaml"
        refuses 65 "d.yaml:2" "names no" "hint:" -- "${given[@]}" --diff "$dir/d.yaml"
    done
    for value in 0 -1 "-1 GB/s" "0 GB/s" .nan slow; do
        printf 'nics:\n  n0.nic0: %s\n' "$value" > "$dir/d.yaml"
        refuses 65 "d.yaml:2" "expected dead, a part of its bandwidth" -- "${given[@]}" --diff "$dir/d.yaml"
    done
    printf 'nics:\n  n0.nic0: 0.5\n  n0.nic0: dead\n' > "$dir/d.yaml"
    refuses 65 "d.yaml:3" "repeated" -- "${given[@]}" --diff "$dir/d.yaml"
    printf 'n0\nn1\nn0\n' > "$dir/hosts"
    refuses 65 "hosts:3" "'n0' is there twice" "line 1" -- "${given[@]}" --hosts "$dir/hosts"
    printf 'n0\nn1536\n' > "$dir/hosts"
    refuses 65 "hosts:2" "no node 'n1536'" "n1535" -- "${given[@]}" --hosts "$dir/hosts"
    echo n0 > "$dir/hosts"
    refuses 65 "hosts: 1 hosts" "needs 2 nodes" -- "${given[@]}" --hosts "$dir/hosts"
}
@test "network: a table of efficiencies with a pair twice, or too few sizes to lie between" {
    machine_with '0,/- ranks: 32$/s//- ranks: 16/'
    refuses 65 "m.yaml:" "16 ranks, 4 a node: given twice" -- machines "$dir/m.yaml"
    sed '43s/size_bytes: .*/size_bytes: [8 B], efficiency: [0.5] }] }/' tests/fuzz/corpus/machine/measured.yaml > "$dir/m.yaml"
    refuses 65 "m.yaml:43" "at least two; found 1 and 1" -- machines "$dir/m.yaml"
    sed '43s/1 KiB/8 B/' tests/fuzz/corpus/machine/measured.yaml > "$dir/m.yaml"
    refuses 65 "m.yaml:43" "each above the last" -- machines "$dir/m.yaml"
}
@test "network: files of a platform without hosts, of a node with links that are not known" {
    cat > "$dir/p.xml" <<'END'
<?xml version="1.0"?><!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd"><platform version="4.1">
  <zone id="world" routing="Full"><link id="l" bandwidth="5GBps" latency="1us"/></zone>
</platform>
END
    refuses 65 "p.xml" "no host in this platform" -- route --machine "$dir/p.xml" --device "$one_line" 0 1
    for link in '<c2c bw="25000" count="10"/>' '<xgmi target="0:2" count="1"/>'; do
        echo "<system version='1'><cpu numaid='0'><pci busid='0:1'><gpu dev='0' sm='90'>
            $link</gpu></pci></cpu></system>" > "$dir/node.xml"
        refuses 65 "node.xml:2" "a link of kind '" "hint:" -- route --machine perlmutter --node "$dir/node.xml" 0 1
    done
    echo "<system version='1'><cpu numaid='0'/></system>" > "$dir/node.xml"
    refuses 65 "node.xml" "no GPU" -- route --machine perlmutter --node "$dir/node.xml" 0 1
}
@test "outputs: over each other, over what is read, and where none can be written" {
    of=(simulate --machine "$one_line" --workload gpt-tiny --gpus 4 --grid 2x2x1x1 --global-batch 4)
    refuses 64 "--timeline" "is the file of --links" -- "${of[@]}" --links "$dir/a" --timeline "$dir/./a"
    refuses 74 "$dir/none/a" -- "${of[@]}" --links "$dir/none/a"
    [ ! -e "$dir/a" ]
    "$s4d" "${of[@]}" --links "$dir/l.tsv" --timeline /dev/null --critical-path /dev/null > "$dir/out"
    cp "$dir/l.tsv" "$dir/before"
    refuses 64 "l.tsv is the table itself" -- links "$dir/l.tsv" --output "$dir/./l"
    cmp "$dir/l.tsv" "$dir/before"
    [ "$("$s4d" "${of[@]}" --links /dev/stdout | grep -c '^n[0-9.]*\.nic0\.out')" -ge 4 ]
    refuses 64 "--plot" "is the file of --records" -- tune --machine "$one_line" --workload gpt-tiny \
        --gpus 4 --global-batch 4 --records "$dir/t.tsv" --plot "$dir/t"
    ln -s sweep.yaml "$dir/sweep.jsonl"
    echo "points: [{ machine: '$one_line', workload: gpt-tiny, gpus: 4, grid: 1x1x4x1, global_batch: 4 }]" > "$dir/sweep.yaml"
    cp "$dir/sweep.yaml" "$dir/before"
    refuses 64 "--output" "file of experiments itself" -- sweep "$dir/sweep.yaml" --output "$dir/sweep.jsonl"
    cmp "$dir/sweep.yaml" "$dir/before"
}
@test "files without an end or a newline: bounded, and no record is lost" {
    for command in links compare validate; do
        file=(/dev/zero)
        [ $command = links ] || file+=(/dev/zero)
        (ulimit -v 2000000 && refuses 65 "/dev/zero" "found a longer one" -- $command "${file[@]}")
    done
    "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 4 --grid 2x2x1x1 --global-batch 4 --json > "$dir/r"
    printf %s "$(cat "$dir/r")" > "$dir/whole"
    "$s4d" compare "$dir/r" "$dir/whole" | grep -q '1 compared'
    head -c 300 "$dir/r" > "$dir/half"
    refuses 65 "half:1" "one JSON object a line" -- compare "$dir/r" "$dir/half"
}
@test "lines of records: CRLF, zero bytes, a folder, standard input, the same to every reader" {
    export SCALE4D_STORE=$dir/store
    "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 4 --grid 2x2x1x1 --global-batch 4 --json > "$dir/r"
    { sed 's/$/\r/' "$dir/r"; printf '\r\n \n'; } > "$dir/crlf" # and lines without anything
    "$s4d" compare "$dir/r" "$dir/crlf" | grep -q '1 compared'
    "$s4d" compare - "$dir/crlf" < "$dir/r" | grep -q '1 compared'
    [ "$("$s4d" convert "$dir/crlf" --to summary)" = "$("$s4d" convert "$dir/r" --to summary)" ]
    "$s4d" track add "$dir/crlf" | grep -q '1 added'
    "$s4d" track export | cmp - "$dir/r"
    { cat "$dir/r"; printf 'a\0b\n'; cat "$dir/r"; } > "$dir/zero"
    for command in "compare $dir/r $dir/zero" "convert $dir/zero --to junit"; do
        refuses 65 "$dir/zero:2" "zero byte" -- $command
    done
    status=0
    "$s4d" track add "$dir/zero" > "$dir/out" 2> "$dir/err" || status=$? # the other two are read
    [ "$status" -eq 65 ]
    grep -qF "$dir/zero:2: the line holds a zero byte" "$dir/err"
    grep -qF '0 added, 2 there already, 1 wrong' "$dir/out"
    for command in "compare $dir/r $dir" "convert $dir --to junit" "track add $dir" "links $dir"; do
        refuses 65 "$dir: expected a file, found a folder" -- $command
    done
}
