#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Files that are not what they should be, launchers that disagree, and records that go with the
# simulator's.

load lib

@test "refused on two ranks, without a hang: weights that do not fit" {
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 0 --save "$dir/w.safetensors"
    python3 - "$dir" <<'END'
import copy, json, struct, sys
at = sys.argv[1]
data = open(at + "/w.safetensors", "rb").read()
n = 8 + struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:n]), data[n:]

def write(name, header, body, size=None):
    text = json.dumps(header).encode()
    with open(at + "/" + name, "wb") as f:
        f.write(struct.pack("<Q", size or len(text)) + text + body)

changed = copy.deepcopy(header)
changed["wpe.weight"]["shape"].reverse()
write("shape", changed, body)
# The last tensor and its bytes are gone.
last = max((k for k in header if k != "__metadata__"), key=lambda k: header[k]["data_offsets"][1])
changed = copy.deepcopy(header)
start, _ = changed.pop(last)["data_offsets"]
write("missing", changed, body[:start])
write("size", header, body, 1 << 62)
changed = copy.deepcopy(header)
changed["wpe.weight"]["data_offsets"][1] += 1 << 40
write("offsets", changed, body)
write("short", header, body[:-100])
END
    two=("$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --load)
    ends 65 "wpe.weight: expected shape [32, 64], found [64, 32]" -- "${two[@]}" "$dir/shape"
    ends 65 "missing: ln_f.bias (1 of the model's tensors)" -- "${two[@]}" "$dir/missing"
    ends 65 "expected a header of at most" -- "${two[@]}" "$dir/size"
    ends 65 'wpe.weight: expected "data_offsets" within' -- "${two[@]}" "$dir/offsets"
    ends 65 'expected "data_offsets" within' -- "${two[@]}" "$dir/short"
    ends 65 "cannot read" -- "${two[@]}" "$dir/absent"
}

@test "token files: too short, not whole; one that ends is begun again, said once" {
    head -c 64 /dev/zero > "$dir/t"
    ends 65 "expected at least 33 tokens" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --tokens "$dir/t"
    head -c 101 /dev/zero > "$dir/t"
    ends 65 "expected a multiple of 2 bytes" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --tokens "$dir/t"
    head -c 100 README.md > "$dir/t"
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x1x2x1 --iterations 3 --text "$dir/t"
    [ "$(grep -c 'from its beginning again' "$dir/err")" -eq 1 ]
    # Seven sequences of 32 and a target: of the eight only the last, rank 1's, is past the end.
    head -c 225 README.md > "$dir/t"
    ends 0 "it has 7 sequences, and 1 iterations take 8" -- \
        "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x1x1x2 --iterations 1 --text "$dir/t"
    [ "$(grep -c 'from its beginning again' "$dir/err")" -eq 1 ]
    head -c 257 README.md > "$dir/t"
    ends 0 -- "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 1x1x1x2 --iterations 1 --text "$dir/t"
    ! grep -q 'from its beginning again' "$dir/err"
}

@test "a NaN in the loss ends training: iteration, rank, and a record that has none for a number" {
    for grid in 1x1x1x1 2x1x1x1; do
        rm -f "$dir/record"
        ends 1 "rank 0 (" "iteration 1: the loss is" "hint: --check-finite" "INTERRUPTED" -- \
            "$mpirun" -n "${grid%%x*}" "$run4d" "${tiny[@]}" --grid $grid --iterations 5 \
            --learning-rate 1000000 --clip-norm 0 --record "$dir/record" --save "$dir/w"
        [ ! -e "$dir/w" ]
        ! grep -q 'OK' "$dir/out"
        mv "$dir/record" "$dir/out"
        [ "$(field "['loss'][-1]")" = None ]
        [ "$(field "['interrupted']")" = True ]
    done
}

@test "weights that are NaN are not loaded" {
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 0 --save "$dir/w"
    printf '\0\0\300\177' | dd of="$dir/w" bs=1 seek=$(($(stat -c %s "$dir/w") - 4)) conv=notrunc 2> "$dir/dd"
    ends 65 "ln_f.bias: expected finite weights, found nan" -- \
        "$mpirun" -n 2 "$run4d" "${tiny[@]}" --grid 2x1x1x1 --load "$dir/w"
}

@test "a disk that is full: said with the file's name, on one rank, and no half a file is left" {
    sed 's/^vocab_size:.*/vocab_size: 262144/' workloads/gpt-tiny.yaml > "$dir/w.yaml"
    ulimit -f $((32 * 1024)) # KiB a file may have; the embedding is of 64 MiB
    for option in --save --save-gradients; do
        echo old > "$dir/w"
        ends 74 "rank 0 (" "$dir/w: cannot write $dir/w.partial: File too large" -- "$mpirun" -n 2 \
            "$run4d" train --workload "$dir/w.yaml" --global-batch 2 --grid 1x1x2x1 \
            --precision f32 --iterations 1 $option "$dir/w"
        [ "$(cat "$dir/w")" = old ]
        [ ! -e "$dir/w.partial" ]
    done
    # What was measured is not lost with them.
    ends 74 "$dir/w: cannot write" -- "$run4d" train --workload "$dir/w.yaml" --global-batch 2 \
        --grid 1x1x1x1 --precision f32 --iterations 1 --save "$dir/w" --record "$dir/r.jsonl"
    grep -q '"interrupted": false' "$dir/r.jsonl"
    truncate -s 32M "$dir/full"
    ends 74 "$dir/full: cannot be written: File too large" -- \
        "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 2 --record "$dir/full"
}

@test "srun without its MPI: ranks that each believe to be alone" {
    export SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=8 SLURM_LOCALID=3
    ends 69 "SLURM_PROCID: the launcher says 3, MPI says rank 0" -- "$run4d" "${tiny[@]}" --grid 1x1x1x1
    export SLURM_PROCID=0
    ends 69 "SLURM_STEP_NUM_TASKS: the launcher says 8, MPI says this is one of 1" -- \
        "$run4d" "${tiny[@]}" --grid 1x1x1x1
}

@test "a kill in the middle of --save leaves the file that was there" {
    # On a busy machine the file may be whole before one looks: stopped in its midst, it is not.
    for ((try = 0; try < 20; try++)); do
        echo old > "$dir/w.safetensors"
        "$run4d" train --workload tests/bench/gpt-12x512.yaml --global-batch 4 --precision f32 \
            --grid 1x1x1x1 --iterations 0 --save "$dir/w.safetensors" > "$dir/out" 2>&1 3>&- &
        job=$!
        until [ -s "$dir/w.safetensors.partial" ] || ! kill -0 "$job" 2> /dev/null; do sleep 0.01; done
        kill -STOP "$job" 2> /dev/null || true
        until [[ "$(ps -o stat= -p "$job")" != [RSD]* ]]; do sleep 0.01; done
        [ ! -s "$dir/w.safetensors.partial" ] || break
        kill -KILL "$job" 2> /dev/null || true
        wait "$job" || true
    done
    kill -KILL "$job"
    status=0
    wait "$job" || status=$?
    [ "$status" -eq 137 ]
    [ -s "$dir/w.safetensors.partial" ]
    [ "$(cat "$dir/w.safetensors")" = old ]
}

@test "records and timelines of both programs: the same keys mean the same" {
    export NCCL_ALGO=Ring OMP_PLACES=cores SLURM_JOB_NAME=scale SLURM_JWT=secret
    shape=(--workload gpt-tiny --global-batch 8 --micro-batch 2 --precision bf16 --grid 2x1x2x1)
    build/scale4d simulate "${shape[@]}" --machine perlmutter --gpus 4 --json \
        --timeline "$dir/s.json" > "$dir/s"
    ends 0 -- "$mpirun" -n 4 "$run4d" train "${shape[@]}" --iterations 3 --json \
        --timeline "$dir/t.json"
    python3 - "$dir" <<'END'
import json, sys
at = sys.argv[1]
s, t = json.load(open(at + "/s")), json.load(open(at + "/out"))
common = set(s) & set(t)
assert common >= {"workload", "gpus", "grid", "rank_order", "global_batch",
                  "micro_batch", "recompute", "overlap", "precision", "iteration_time_s",
                  "flops_per_s", "tokens_per_s", "exposed_s", "busy_s", "busbw_Bps",
                  "memory_peak_bytes", "provenance", "kind"}, sorted(s)
for key in common:
    kinds = [type(r[key]) for r in (s, t)]
    assert kinds[0] == kinds[1] or set(kinds) <= {int, float}, (key, kinds)
for key in ("workload", "gpus", "grid", "rank_order", "global_batch", "micro_batch",
            "recompute", "overlap", "precision", "parameters"):
    assert s[key] == t[key], (key, s[key], t[key])
# The simulated machine keeps 2.5 GB of a GPU for its libraries; what the schedule takes is one.
assert s["memory_peak_bytes"] - 2.5e9 == t["memory_peak_bytes"]
for key in ("busy_s", "exposed_s", "busbw_Bps"):
    # Copies and token reading take no simulated time.
    assert set(t[key]) - {"copy-in", "host"} == set(s[key]), (key, s[key], t[key])
seen = t["provenance"]["environment"]
assert seen["NCCL_ALGO"] == "Ring" and seen["OMP_PLACES"] == "cores", seen
assert seen["SLURM_JOB_NAME"] == "scale" and "SLURM_JWT" not in seen, seen

def streams(path):
    events = json.load(open(at + path))["traceEvents"]
    return {e["args"]["name"] for e in events if e["name"] == "thread_name"}
assert streams("/s.json") == streams("/t.json"), (streams("/s.json"), streams("/t.json"))
END
}
