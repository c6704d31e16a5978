#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# scale4d-run against numbers that others computed, and against itself on other grids.

load lib

# golden NAME WEIGHTS RANKS GRID PRECISION: --save-gradients equals what PyTorch's automatic
# differentiation found in fp64 (tests/torch/golden.py), and so does the loss. PROGRAM and BACKEND:
# by another than the host.
golden() {
    local at=tests/torch
    ends 0 -- "$mpirun" -n "$3" "${PROGRAM:-$run4d}" train --backend "${BACKEND:-host}" --workload $at/"$1".yaml --grid "$4" \
        --global-batch 4 --precision "$5" --iterations 1 --warmup 0 --tokens $at/"$2".tokens \
        --load $at/"$2".weights.safetensors --save-gradients "$dir/g.safetensors" --json
    python3 - "$dir/out" "$dir/g.safetensors" $at/"$1".gradients.safetensors "$5" <<'END'
import array, json, struct, sys

def tensors(path):
    data = open(path, "rb").read()
    n = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:n])
    meta = header.pop("__metadata__")
    code = {"F32": "f", "F64": "d"}
    return meta, {k: (v["shape"], array.array(code[v["dtype"]], data[n + v["data_offsets"][0]:
                                                                 n + v["data_offsets"][1]]))
                  for k, v in header.items()}

out, ours, theirs, precision = sys.argv[1:]
_, a = tensors(ours)
meta, b = tensors(theirs)
exact = precision == "f64"
loss, expected = json.load(open(out))["loss"][0], float(meta["loss"])
assert abs(loss - expected) <= (1e-12 if exact else 1e-6) * expected, (loss, expected)
assert set(a) == set(b) and len(b) > 20, set(a) ^ set(b)
for name, (shape, y) in b.items():
    assert a[name][0] == shape, name
    x = a[name][1]
    apart = sum((p - q) ** 2 for p, q in zip(x, y)) ** 0.5
    size = sum(q * q for q in y) ** 0.5
    # The committed gradients are rounded to fp32.
    assert size > 0 and apart <= (1e-7 if exact else 1e-5) * size, (name, apart / size)
END
}

@test "PyTorch's loss and gradients: GPT, Llama, Llama 3 on one rank, f32 and f64" {
    for precision in f32 f64; do
        golden gpt gpt 1 1x1x1x1 $precision
        golden llama llama 1 1x1x1x1 $precision
        golden llama-3 llama 1 1x1x1x1 $precision
    done
}

@test "PyTorch's loss and gradients on four ranks" {
    golden gpt gpt 4 2x2x1x1 f64
    golden gpt gpt 4 1x1x2x2 f32
    golden llama llama 4 2x1x2x1 f32
    golden llama-3 llama 4 1x2x1x2 f64
}

# The CUDA backend on the double of NVIDIA's libraries.
on_double() {
    PROGRAM=$PWD/${BUILD:-build}/tests/double/scale4d-run
    BACKEND=cuda
    [ -x "$PROGRAM" ] || skip "built without CUDA"
}

@test "PyTorch's loss and gradients by CUDA's double, in several orders" {
    on_double
    for seed in 1 2; do
        export S4D_DOUBLE_SEED=$seed
        golden gpt gpt 1 1x1x1x1 f64
        golden llama-3 llama 1 1x1x1x1 f32
        golden gpt gpt 2 1x2x1x1 f32
        golden llama llama 2 2x1x1x1 f64
    done
    golden llama llama 4 1x2x2x1 f32
    golden llama-3 llama 4 2x1x1x2 f64
}

# ten WORKLOAD RANKS GRID [OPTION...]: ten steps on a text.
ten() {
    ends 0 -- "$mpirun" -n "$2" "${PROGRAM:-$run4d}" train --backend "${BACKEND:-host}" \
        --workload "$1" --grid "$3" --global-batch 8 --precision f32 --text README.md \
        --learning-rate 0.003 --json "${@:4}"
    field "['loss']"
}

# same WORKLOAD GRID...: ten steps give the losses of one rank on every grid, and those fall.
same() {
    one=$(ten "$1" 1 1x1x1x1)
    for grid in "${@:2}"; do
        IFS=x read -r x y z data <<< "$grid"
        found=$(ten "$1" $((x * y * z * data)) "$grid")
        python3 -c "
a, b = $one, $found
assert len(a) == 10 and a[-1] < a[0] - 0.4, a
assert all(abs(p - q) <= 1e-5 * p for p, q in zip(a, b)), ('$1', '$grid', a, b)"
    done
}

@test "ten steps on a text by CUDA's double, as graphs: the host's losses" {
    one=$(ten llama-tiny 1 1x1x1x1)
    on_double
    for grid in 1x2x1x1 1x1x2x1; do
        found=$(ten llama-tiny 2 $grid --cuda-graphs)
        python3 -c "
a, b = $one, $found
assert len(b) == 10 and all(abs(p - q) <= 1e-5 * p for p, q in zip(a, b)), ('$grid', a, b)"
    done
}

@test "ten steps on a text: the same falling losses on every grid" {
    same gpt-tiny 2x1x1x1 1x2x1x1 1x1x2x1 1x1x1x2 4x1x1x1 1x1x2x2
    same llama-tiny 2x2x1x1 1x2x2x1
}
