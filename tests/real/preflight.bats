#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run preflight, and train --preflight. On a busy machine one rank may be slower than another by
# any factor: none is slow here beside the others.

load lib

run_double=${BUILD:-build}/tests/double/scale4d-run
check=(preflight --precision f32 --slower 100)


@test "preflight: every check of two ranks, and a verdict" {
    ends 0 "# 6 checks of 2 devices, slow or wrong in 0  OK" -- "$mpirun" -n 2 "$run4d" "${check[@]}"
    for name in gemm-alone gemm memory to-device from-device world; do
        grep -qE "^$name +.*[0-9]+ [kMGT]?(FLOP|B)/s" "$dir/out" || { echo "no $name"; false; }
    done
}

@test "preflight: one rank has no peers, and sums nothing" {
    ends 0 "# 5 checks of 1 devices, slow or wrong in 0  OK" -- "$run4d" "${check[@]}"
}

@test "preflight: the record" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${check[@]}" --json
    python3 - "$dir/out" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["kind"] == "preflight" and r["ok"] and r["slow"] == [] and r["gpus"] == 2
assert r["machine"] is None and r["precision"] == "f32" and r["slower"] == 1
for c in r["checks"]:
    assert len(c["rates"]) == 2 and min(c["rates"]) == c["least"] > 0
    assert c["rates"][c["slowest_rank"]] == c["least"] and c["expected"] is None
    assert ("n" in c) == (c["unit"] == "FLOP/s")
assert [d["rank"] for d in r["devices"]] == [0, 1] and r["devices"][0]["name"]
assert r["provenance"]["tool"]
PY
}

@test "preflight: a machine file that nobody reaches: exit 1, every device named" {
    ends 1 "memory: rank 0 ($(hostname), " "memory: rank 1 (" "% below the machine file" \
        "slow or wrong in" "FAILED" -- \
        "$mpirun" -n 2 "$run4d" "${check[@]}" --machine dgx-a100
    # Its products are in bf16, which is said; and a tolerance that all are within.
    grep -q "products are not compared with the machine: it has no rates of f32" "$dir/out"
    ends 0 "OK" -- "$mpirun" -n 2 "$run4d" "${check[@]}" --machine dgx-a100 --tolerance 100
    ends 1 "world: the group of rank 0" -- \
        "$mpirun" -n 2 "$run4d" "${check[@]}" --machine dgx-a100 --tolerance 100 --tolerance world=0
    [ "$(grep -c '^warning: ' "$dir/err")" -eq 1 ]
}

@test "preflight: bad input" {
    ends 64 "'gemn'" "gemm" -- "$run4d" "${check[@]}" --machine dgx-a100 --tolerance gemn=5
    ends 64 "from 0 to 100" -- "$run4d" "${check[@]}" --machine dgx-a100 --tolerance 101
    ends 64 "--machine is not given" -- "$run4d" "${check[@]}" --tolerance 5
    ends 65 "dgx-a1000" -- "$run4d" "${check[@]}" --machine dgx-a1000
    ends 64 "--backend host has none" -- "$run4d" "${check[@]}" --tf32
    ends 64 "--slower" -- "$run4d" preflight --slower 101
}

@test "train --preflight: checks, then trains; the check is in the record" {
    ends 0 -- "$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 1 --preflight --json
    [ "$(field "['preflight']['kind']")" = preflight ]
    [ "$(field "['completed']")" = 1 ]
}

@test "train --preflight: slow devices are named, and nothing is trained" {
    one=("$run4d" "${tiny[@]}" --grid 1x1x1x1 --iterations 1)
    ends 1 "memory: rank 0 (" "below the machine file" "not trained" -- \
        "${one[@]}" --preflight --machine dgx-a100 --json
    [ "$(field "['kind']")" = preflight ]
    [ "$(field "['ok']")" = False ]
    ends 64 "--preflight" -- "${one[@]}" --machine dgx-a100
}

@test "preflight: on CUDA's double; a device that fails, and a rank that hangs" {
    [ -x "$run_double" ] || skip "built without CUDA"
    two=("$mpirun" -n 2 "$run_double" "${check[@]}" --backend cuda)
    ends 0 "6 checks of 2 devices, slow or wrong in 0  OK" -- "${two[@]}"
    S4D_DOUBLE_GPUS=0 ends 69 "rank 0 (" "no CUDA-capable device is detected" -- "${two[@]}"
    S4D_DOUBLE_FAIL=product:3:1 ends 69 "scale4d: rank 1 (" -- "${two[@]}"
    S4D_DOUBLE_FAIL=cublasGemmStridedBatchedEx:5:1:hang ends 75 "(--timeout)" -- \
        "${two[@]}" --timeout 3s
    S4D_DOUBLE_FAIL=join:1:1 ends 75 "nothing has completed for " " s (--timeout)" -- \
        "${two[@]}" --timeout 3s
}
