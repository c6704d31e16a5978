#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d sweep: alone, by shares, again, interrupted, with workers that die, and with bad files.
load lib

# Four experiments in $dir/s.yaml.
experiments() {
    for v in $(env | grep -oE '^(OMPI_COMM_WORLD|PMI|MV2|FLUX|SLURM)_[A-Z_]*'); do unset "$v"; done
    cd "$dir"
    cat > s.yaml <<END
machine: "$one_line"
global_batch: 16
points:
  - {workload: gpt-tiny, gpus: 4, grid: 1x1x4x1}
  - {name: eight, workload: gpt-tiny, gpus: 8, grid: auto}
product:
  overlap: [all, none]
END
}
names() {
    python3 -c '
import json, sys
for line in open(sys.argv[1]): print(json.loads(line)["experiment"]["name"])' "$1"
}

@test "sweep: one record an experiment, in order, as simulate's; a rerun makes none again" {
    experiments
    "$s4d" sweep s.yaml -j 2 > out
    grep -q '^# 4 experiments, 0 finished before, 4 simulated, 0 failed, in s.jsonl  OK' out
    [ "$(names s.jsonl | sed -n 1p)" = "workload=gpt-tiny gpus=4 grid=1x1x4x1 overlap=all" ]
    [ "$(names s.jsonl | sed -n 4p)" = "eight overlap=none" ]
    "$s4d" simulate --machine "$one_line" --workload gpt-tiny --gpus 4 --grid 1x1x4x1 \
        --global-batch 16 --overlap none --json > one.jsonl
    sed -n 2p s.jsonl > second.jsonl
    "$s4d" compare one.jsonl second.jsonl
    cp s.jsonl before
    "$s4d" sweep s.yaml > out
    grep -q '^# 4 experiments, 4 finished before, 0 simulated' out
    cmp s.jsonl before
    "$s4d" sweep s.yaml --again > out
    grep -q '4 simulated' out
    [ "$(wc -l < s.jsonl)" -eq 4 ]
}
@test "sweep: other inputs are made, the others kept; what the file no longer has stays behind" {
    experiments
    "$s4d" sweep s.yaml
    sed -i 's/gpus: 4, grid: 1x1x4x1/gpus: 4, grid: 1x1x2x2/; s/name: eight/name: ate/' s.yaml
    "$s4d" sweep s.yaml > out
    grep -q '0 finished before, 4 simulated' out
    sed -i 's/\[all, none\]/[all]/' s.yaml
    "$s4d" sweep s.yaml > out
    grep -q '# 2 experiments, 2 finished before' out
    names s.jsonl | grep -q '^eight'
}
@test "sweep: ranks and array tasks share the work out, and a run alone collects it" {
    experiments
    for r in 0 1 2; do
        OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=3 "$s4d" sweep s.yaml > "out$r"
    done
    grep -q 'share 1 of 3 (OMPI_COMM_WORLD_RANK): 2 experiments' out0
    [ "$(cat s.part?.jsonl | wc -l)" -eq 4 ]
    [ ! -e s.jsonl ]
    # A job array of another size: nothing is left for it.
    SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=1 SLURM_ARRAY_TASK_COUNT=2 \
        "$s4d" sweep s.yaml > out
    grep -q 'share 2 of 2 (SLURM_ARRAY_TASK_ID): 2 experiments, 2 finished before' out
    "$s4d" sweep s.yaml > out
    grep -q '4 finished before, 0 simulated' out
    [ "$(names s.jsonl | sed -n 4p)" = "eight overlap=none" ]
    [ "$(wc -l < s.jsonl)" -eq 4 ]
    rm s.*jsonl
    "$s4d" sweep s.yaml --share 2/2 --output deep.jsonl > out
    [ "$(names deep.part2.jsonl | wc -l)" -eq 2 ]
}
@test "sweep: mpirun, side by side" {
    experiments
    command -v mpirun > /dev/null || skip "no mpirun"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        mpirun -n 2 "$s4d" sweep s.yaml > out
    [ "$(grep -c 'OK$' out)" -eq 2 ]
    [ "$(cat s.part?.jsonl | wc -l)" -eq 4 ]
}
@test "sweep: the experiment.yaml of a figure is a sweep" {
    experiments
    cp "$root/paper-figures/2502.08145/breakdown/experiment.yaml" .
    sed -i '/machine: frontier\|machine: alps\|workload: gpt-[1-9]0b/d' experiment.yaml
    "$s4d" sweep experiment.yaml > out
    grep -q '^# 3 experiments, .* OK' out
}
@test "sweep: an experiment that cannot be: the others finish, exit 65, and where it stands" {
    experiments
    sed -i '/name: eight/s/grid: auto/grid: 8x1x1x1, workload: gpt-5b/; s/workload: gpt-tiny, gpus: 8/gpus: 8/' s.yaml
    sed -i '2a set: device.memory_bytes=1GB' s.yaml
    status=0
    "$s4d" sweep s.yaml > out 2> err || status=$?
    [ "$status" -eq 65 ]
    [ "$(grep -c '^scale4d: s.yaml:6: eight overlap=' err)" -eq 2 ]
    grep -q '2 simulated, 2 failed, in s.jsonl  FAILED' out
    [ "$(wc -l < s.jsonl)" -eq 2 ]
}
@test "sweep: GPUs that no grid divides: exit 65, as it stands in the file" {
    experiments
    sed -i 's/gpus: 8/gpus: 7/' s.yaml
    status=0
    "$s4d" sweep s.yaml > out 2> err || status=$?
    [ "$status" -eq 65 ]
    grep -q '^scale4d: s.yaml:5: eight overlap=all: --gpus: no 4D grid of 7 GPUs' err
    grep -q '2 simulated, 2 failed' out
}
@test "sweep: a worker that dies is reported with its experiment, the others finish, exit 70" {
    experiments
    cat > s.yaml <<END
global_batch: 4096
points:
  - {name: long, machine: perlmutter, workload: gpt-40b, gpus: 1024, grid: 4x4x8x8, micro_batch: 1, no_fold: true}
  - {name: short, machine: "$one_line", workload: gpt-tiny, gpus: 4, grid: 1x1x4x1}
END
    "$s4d" sweep s.yaml -j 2 > out 2> err &
    pid=$!
    await_lines s.jsonl 1
    kill -KILL $(pgrep -P "$pid")
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 70 ] || { cat err; false; }
    grep -q '^scale4d: s.yaml:3: long: the simulation was ended by signal 9' err
    [ "$(names s.jsonl)" = short ]
    grep -q '1 simulated, 1 failed' out
}
@test "sweep: interrupted: exit 130, what is finished stays and is not made again" {
    experiments
    cat > s.yaml <<END
global_batch: 4096
points:
  - {name: short, machine: "$one_line", workload: gpt-tiny, gpus: 4, grid: 1x1x4x1}
  - {name: long, machine: perlmutter, workload: gpt-40b, gpus: 1024, grid: 4x4x8x8, micro_batch: 1, no_fold: true}
END
    set -m # a process group of its own, as at a terminal
    "$s4d" sweep s.yaml -j 2 > out 2> err &
    pid=$!
    set +m
    await_lines s.jsonl 1
    kill -INT -- "-$pid"
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 130 ] || { cat err; false; }
    grep -q 'What is finished stays in s.jsonl' err
    [ "$(names s.jsonl)" = short ]
    printf '{"kind": "simul' >> s.jsonl # as if it had been killed while it wrote
    sed -i '/name: long/d' s.yaml
    "$s4d" sweep s.yaml > out
    grep -q '1 finished before, 0 simulated, 0 failed' out
    [ "$(wc -l < s.jsonl)" -eq 1 ]
}
@test "sweep: two at once on one file: the second is refused" {
    experiments
    exec 9>> s.jsonl
    flock 9
    refuses 74 "s.jsonl" "another" -- sweep s.yaml
    exec 9>&-
    "$s4d" sweep s.yaml
}
@test "sweep: into a pipe, each record once; a device that is full is said" {
    experiments
    "$s4d" sweep s.yaml --output s.jsonl
    timeout 300 "$s4d" sweep s.yaml -j 1 --output >(cat > piped) 3>&-
    await_lines piped "$(wc -l < s.jsonl)"
    diff <(names s.jsonl | sort) <(names piped | sort)
    run "$s4d" sweep s.yaml --output /dev/full
    [ "$status" -eq 74 ]
    [[ $output == *"/dev/full: cannot be written: No space left"* ]]
}
@test "sweep: an output that holds something else is left as it is" {
    experiments
    printf 'my notes, of one line' > notes
    cp notes before
    run "$s4d" sweep s.yaml --output notes
    [ "$status" -eq 65 ]
    [[ $output == *"notes:1: expected a record"* ]]
    cmp notes before
}

@test "sweep: bad files" {
    experiments
    refuses 64 "one file" -- sweep
    refuses 65 "nothing.yaml" -- sweep nothing.yaml
    sed -i 's/^global_batch/globl_batch/' s.yaml
    refuses 65 "s.yaml:2" "global_batch?" -- sweep s.yaml
    experiments
    sed -i 's/overlap: \[all, none\]/overlapp: [all, none]/' s.yaml
    refuses 65 "s.yaml:7" "overlap?" -- sweep s.yaml
    experiments
    sed -i 's/gpus: 4, grid: 1x1x4x1/gpus: 4, grid: 1x1x4x1, gpu: 3/' s.yaml
    refuses 65 "s.yaml:4" "gpus?" -- sweep s.yaml
    experiments
    sed -i '5a \  - {name: eight, workload: gpt-5b, gpus: 8, grid: auto}' s.yaml
    refuses 65 "s.yaml:6" "'eight overlap=all'" "line 5" -- sweep s.yaml
    experiments
    sed -i 's/gpus: 4, grid: 1x1x4x1/gpus: 4, grid: 1x1x4x2/' s.yaml
    refuses 65 "s.yaml:4: grid" "product of 4" -- sweep s.yaml
    experiments
    sed -i 's/workload: gpt-tiny, gpus: 4/workload: gpt-tinny, gpus: 4/' s.yaml
    refuses 65 "s.yaml:4: workload" "gpt-tiny?" -- sweep s.yaml
    experiments
    sed -i 's/, gpus: 4,/,/' s.yaml
    refuses 65 "s.yaml:4" "gpus: expected the number of devices, not given" -- sweep s.yaml
    experiments
    sed -i 's/^machine:.*/machine: perlmutter\nset: [node.nic_bandwith_Bps=1GB\/s]/' s.yaml
    refuses 65 "s.yaml:2: set" "nic_bandwidth_Bps" -- sweep s.yaml
    experiments
    sed -i "s/^machine:.*/machine: perlmutter\nset: [node.nic_bandwidth_Bps=1]/" s.yaml
    refuses 65 "s.yaml:2: set" "node.nic_bandwidth_Bps: expected a bandwidth" -- sweep s.yaml
    experiments
    refuses 64 "--share" "2/8" -- sweep s.yaml --share 9/8
    OMPI_COMM_WORLD_RANK=1 refuses 64 "OMPI_COMM_WORLD_SIZE" "--share" -- sweep s.yaml
    refuses 74 "none/s.jsonl" -- sweep s.yaml --output none/s.jsonl
    refuses 64 "--output" -- sweep s.yaml --output s.yaml
    echo no > s.jsonl
    refuses 65 "s.jsonl:1" "record" -- sweep s.yaml
}
