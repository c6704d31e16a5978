#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run layers: the table, the record, and what is refused.

load lib

run_double=${BUILD:-build}/tests/double/scale4d-run
one=(layers --workload gpt-tiny --precision f32 --samples 3)

@test "layers: every op of a layer once, forward and backward, and their sums" {
    ends 0 "# layer 1 of gpt-tiny, f32, 1 sequences; best product: " \
        "nothing is advertised of this device that is known here" -- "$run4d" "${one[@]}"
    # Four products forward, twice as many backward; attention each way; three sums.
    [ "$(grep -cE '^forward .* gemm ' "$dir/out")" -eq 4 ]
    [ "$(grep -cE '^backward .* gemm ' "$dir/out")" -eq 8 ]
    [ "$(grep -cE '^(forward|backward) .* attention-(forward|backward) ' "$dir/out")" -eq 2 ]
    [ "$(grep -cE '^(forward|backward|layer) +all ' "$dir/out")" -eq 3 ]
}

# A gpt-tiny sequence is 32 tokens of 64 numbers: mlp.up is 2 * 32 * 64 * 256 FLOP.
@test "layers: the record's rates and parts are those of its times" {
    ends 0 -- "$mpirun" -n 2 "$run4d" "${one[@]}" --layer 0 --json
    python3 - "$dir/out" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
close = lambda a, b: abs(a - b) <= 1e-9 * abs(b)
assert r["kind"] == "layers" and r["backend"] == "host" and r["layer"] == 0 and r["gpus"] == 2
assert r["peak_flops_per_s"] is None and r["grid"] == "1x1x1x2" and r["global_batch"] == 2
up, = [o for o in r["ops"] if o["name"] == "mlp.up" and o["phase"] == "forward" and o["kind"] == "gemm"]
assert up["flops"] == 2 * 32 * 64 * 256 and up["shape"] == "32x256x64 nn"
for o in r["ops"]:
    assert o["time_s"] > 0 and ("flops" in o) != ("bandwidth_Bps" in o) and "of_peak" not in o
    if "flops" in o:
        assert close(o["flops_per_s"], o["flops"] / o["time_s"])
        assert close(o["of_best"], o["flops_per_s"] / r["best_gemm_flops_per_s"])
        assert o["of_best"] <= 1 + 1e-9 or o["kind"] != "gemm"
forward, backward, layer = r["sums"]
assert close(forward["time_s"] + backward["time_s"], layer["time_s"])
assert close(layer["time_s"], sum(o["time_s"] for o in r["ops"]))
assert close(layer["flops"], sum(o.get("flops", 0) for o in r["ops"])) and 0 < layer["gemm_share"] < 1
assert r["provenance"]["devices"]["all"]["name"]
PY
}

@test "layers: bad input" {
    ends 64 "expected one of 0 to 1, got 2" -- "$run4d" "${one[@]}" --layer 2
    ends 64 "--workload" -- "$run4d" layers
    ends 64 "'auto'" -- "$run4d" "${one[@]}" --grid auto --global-batch 2
    ends 64 "--backend host has none" -- "$run4d" "${one[@]}" --tf32
    ends 64 "--gemm-tuning" -- "$run4d" "${one[@]}" --gemm-tuning full
    ends 65 "gpt-tinny" -- "$run4d" layers --workload gpt-tinny
    ends 64 "--grid" -- "$run4d" "${one[@]}" --grid 2x1x1x1 --global-batch 2
}

@test "layers: on CUDA's double, with a peak that is advertised, and products tuned" {
    [ -x "$run_double" ] || skip "built without CUDA"
    S4D_DOUBLE_NAME="NVIDIA H100 80GB HBM3" ends 0 "advertised: 989.0 TFLOP/s (stas00" -- \
        "$run_double" layers --backend cuda --workload llama-tiny --samples 3 --gemm-tuning full \
        --gemm-cache "$dir/cache"
    [ "$(grep -vc '^#' "$dir/cache")" -gt 5 ]
    grep -qE '^layer +all .* [0-9.]+ +[0-9.]+$' "$dir/out"
}
