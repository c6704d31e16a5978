/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of element types and op kinds. */
#include "schedule/op.h"

#include <math.h>

const char *const s4d_type_names[S4D_TYPES] = {
    [S4D_F64] = "f64", [S4D_F32] = "f32", [S4D_BF16] = "bf16", [S4D_F16] = "f16",
    [S4D_I64] = "i64", [S4D_I32] = "i32", [S4D_U16] = "u16",   [S4D_U8] = "u8",
};
const int s4d_type_bytes[S4D_TYPES] = {
    [S4D_F64] = 8, [S4D_F32] = 4, [S4D_BF16] = 2, [S4D_F16] = 2,
    [S4D_I64] = 8, [S4D_I32] = 4, [S4D_U16] = 2,  [S4D_U8] = 1,
};

const char *const s4d_function_names[S4D_FUNCTIONS] = {
    [S4D_GELU_TANH] = "gelu-tanh",
    [S4D_SILU] = "silu",
};

/* Operand accesses: read, written, accumulated, accumulated or written; O marks an optional one. */
#define R(name)                                                                                    \
    {                                                                                              \
        name, 'r', false                                                                           \
    }
#define W(name)                                                                                    \
    {                                                                                              \
        name, 'w', false                                                                           \
    }
#define A(name)                                                                                    \
    {                                                                                              \
        name, 'a', false                                                                           \
    }
#define B(name)                                                                                    \
    {                                                                                              \
        name, 'b', false                                                                           \
    }
#define RO(name)                                                                                   \
    {                                                                                              \
        name, 'r', true                                                                            \
    }
#define WO(name)                                                                                   \
    {                                                                                              \
        name, 'w', true                                                                            \
    }
#define ROW(kind, name, class, n, ...) [S4D_OP_##kind] = {name, S4D_CLASS_##class, n, {__VA_ARGS__}}

const struct s4d_op_info s4d_op_kinds[S4D_OP_KINDS] = {
    ROW(GEMM, "gemm", GEMM, 3, R("a"), R("b"), B("d")),
    ROW(ATTENTION_FORWARD, "attention-forward", ATTENTION, 3, R("qkv"), W("out"), W("lse")),
    ROW(ATTENTION_BACKWARD, "attention-backward", ATTENTION, 5, R("qkv"), R("out"), R("lse"),
        R("d_out"), W("d_qkv")),
    ROW(NORM_PARTIAL, "norm-partial", KERNEL, 2, R("x"), W("sums")),
    ROW(NORM_APPLY, "norm-apply", KERNEL, 5, R("x"), R("sums"), R("gain"), R("bias"), W("y")),
    ROW(NORM_BACKWARD_PARTIAL, "norm-backward-partial", KERNEL, 7, R("x"), R("sums"), R("gain"),
        R("dy"), W("back_sums"), A("d_gain"), A("d_bias")),
    ROW(NORM_BACKWARD_APPLY, "norm-backward-apply", KERNEL, 7, R("x"), R("sums"), R("gain"),
        R("dy"), R("back_sums"), RO("residual"), W("dx")),
    ROW(RMS_PARTIAL, "rms-partial", KERNEL, 2, R("x"), W("sums")),
    ROW(RMS_APPLY, "rms-apply", KERNEL, 4, R("x"), R("sums"), R("gain"), W("y")),
    ROW(RMS_BACKWARD_PARTIAL, "rms-backward-partial", KERNEL, 6, R("x"), R("sums"), R("gain"),
        R("dy"), W("back_sums"), A("d_gain")),
    ROW(RMS_BACKWARD_APPLY, "rms-backward-apply", KERNEL, 7, R("x"), R("sums"), R("gain"), R("dy"),
        R("back_sums"), RO("residual"), W("dx")),
    ROW(ROTARY, "rotary", KERNEL, 1, A("x")),
    ROW(ACTIVATION_FORWARD, "activation-forward", KERNEL, 3, R("x"), RO("bias"), W("y")),
    ROW(ACTIVATION_BACKWARD, "activation-backward", KERNEL, 4, R("x"), RO("bias"), R("dy"),
        W("dx")),
    ROW(GATED_FORWARD, "gated-forward", KERNEL, 2, R("x"), W("y")),
    ROW(GATED_BACKWARD, "gated-backward", KERNEL, 3, R("x"), R("dy"), W("dx")),
    ROW(BIAS, "bias", KERNEL, 2, R("bias"), A("y")),
    ROW(COLUMN_SUM, "column-sum", KERNEL, 2, R("x"), A("out")),
    ROW(RESIDUAL, "residual", KERNEL, 4, R("a"), R("b"), RO("bias"), W("out")),
    ROW(EMBEDDING_FORWARD, "embedding-forward", KERNEL, 3, R("tokens"), R("w"), W("x")),
    ROW(EMBEDDING_BACKWARD, "embedding-backward", KERNEL, 3, R("tokens"), R("dx"), A("d_w")),
    ROW(POSITION_FORWARD, "position-forward", KERNEL, 2, R("p"), A("x")),
    ROW(POSITION_BACKWARD, "position-backward", KERNEL, 2, R("dx"), A("d_p")),
    ROW(GOLDFISH, "goldfish", KERNEL, 2, R("tokens"), W("targets")),
    ROW(TOKEN_COUNT, "token-count", KERNEL, 2, R("targets"), W("out")),
    ROW(LOSS_MAX, "loss-max", KERNEL, 2, R("logits"), W("max")),
    ROW(LOSS_SUM, "loss-sum", KERNEL, 4, R("logits"), R("max"), R("targets"), W("sums")),
    ROW(LOSS_BACKWARD, "loss-backward", KERNEL, 8, R("logits"), R("max"), R("sums"), R("targets"),
        R("denominator"), RO("loss_scale"), A("loss"), W("d_logits")),
    ROW(LOSS_MEAN, "loss-mean", KERNEL, 3, R("sum"), R("denominator"), W("loss")),
    ROW(ADD, "add", KERNEL, 2, R("x"), A("out")),
    ROW(CAST, "cast", KERNEL, 2, R("x"), W("out")),
    ROW(COPY, "copy", KERNEL, 2, R("x"), W("out")),
    ROW(ZERO, "zero", KERNEL, 1, W("out")),
    ROW(SQUARED_NORM, "squared-norm", KERNEL, 3, R("x"), RO("loss_scale"), B("out")),
    ROW(CLIP_FACTOR, "clip-factor", KERNEL, 4, R("parts"), W("norm"), W("found_inf"), W("clip")),
    ROW(STEP, "step", KERNEL, 2, RO("found_inf"), A("step")),
    ROW(ADAMW, "adamw", KERNEL, 10, R("gradient"), RO("loss_scale"), RO("clip"), RO("found_inf"),
        R("lr"), R("step"), A("m"), A("v"), A("master"), WO("working")),
    ROW(SCALE_UPDATE, "scale-update", KERNEL, 3, R("found_inf"), A("loss_scale"), A("good")),
    ROW(ALL_REDUCE, "all-reduce", COLLECTIVE, 2, R("in"), W("out")),
    ROW(ALL_GATHER, "all-gather", COLLECTIVE, 2, R("in"), W("out")),
    ROW(REDUCE_SCATTER, "reduce-scatter", COLLECTIVE, 2, R("in"), W("out")),
    ROW(READ_TOKENS, "read-tokens", HOST, 1, W("tokens")),
    ROW(HOST_TO_DEVICE, "host-to-device", COPY, 2, R("host"), W("device")),
    ROW(DEVICE_TO_HOST, "device-to-host", COPY, 2, R("device"), W("host")),
};

int64_t s4d_collective_bytes(const union s4d_constants *c, enum s4d_op_kind kind)
{
    int64_t block = c->collective.count * s4d_type_bytes[c->collective.type];
    return kind == S4D_OP_ALL_REDUCE ? block : block * c->collective.members;
}

double s4d_rotary_frequency(const union s4d_constants *c, int64_t i)
{
    double f = pow(c->rotary.theta, -2.0 * (double)i / (double)c->rotary.head_dim);
    if (c->rotary.factor == 0)
        return f;
    double turns = c->rotary.original * f / (2 * M_PI); /* in the original context */
    if (turns > c->rotary.high)
        return f;
    if (turns < c->rotary.low)
        return f / c->rotary.factor;
    double m = (turns - c->rotary.low) / (c->rotary.high - c->rotary.low);
    return (1 - m) * f / c->rotary.factor + m * f;
}

uint64_t s4d_goldfish_hash(const int32_t *tokens, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int64_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)tokens[i]) * 0x100000001b3;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
}
