/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of element types and op kinds. */
#include "schedule/op.h"

#include <math.h>
#include <stddef.h>

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

const char *const s4d_channel_names[S4D_CHANNELS] = {
    [S4D_CHANNEL_FORWARD] = "forward",
    [S4D_CHANNEL_BACKWARD] = "backward",
    [S4D_CHANNEL_ENDS] = "ends",
};

/* Constants of a kind: the fields of its member of the union. */
#define FIELD(member, field, what)                                                                 \
    {                                                                                              \
        .name = #field, .type = S4D_CONSTANT_##what,                                               \
        .offset = offsetof(union s4d_constants, member.field)                                      \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, S4D_CONSTANT_INT, 0                                                                  \
    }
static const struct s4d_constant gemm_constants[] = {FIELD(gemm, m, INT),
                                                     FIELD(gemm, n, INT),
                                                     FIELD(gemm, k, INT),
                                                     FIELD(gemm, transpose_a, BOOL),
                                                     FIELD(gemm, transpose_b, BOOL),
                                                     FIELD(gemm, beta, REAL),
                                                     END};
static const struct s4d_constant attention_constants[] = {
    FIELD(attention, batch, INT),    FIELD(attention, seq, INT),
    FIELD(attention, heads, INT),    FIELD(attention, kv_heads, INT),
    FIELD(attention, head_dim, INT), FIELD(attention, scale, REAL),
    FIELD(attention, causal, BOOL),  END};
static const struct s4d_constant norm_constants[] = {FIELD(norm, width, INT),
                                                     FIELD(norm, epsilon, REAL), END};
static const struct s4d_constant rotary_constants[] = {
    FIELD(rotary, seq, INT),      FIELD(rotary, heads, INT),
    FIELD(rotary, head_dim, INT), FIELD(rotary, theta, REAL),
    FIELD(rotary, factor, REAL),  FIELD(rotary, low, REAL),
    FIELD(rotary, high, REAL),    FIELD(rotary, original, REAL),
    FIELD(rotary, inverse, BOOL), END};
static const struct s4d_constant activation_constants[] = {FIELD(activation, function, FUNCTION),
                                                           END};
static const struct s4d_constant embedding_constants[] = {FIELD(embedding, first, EXPR), END};
static const struct s4d_constant goldfish_constants[] = {FIELD(goldfish, k, INT),
                                                         FIELD(goldfish, context, INT), END};
static const struct s4d_constant loss_constants[] = {FIELD(loss, first, EXPR),
                                                     FIELD(loss, valid, EXPR), END};
static const struct s4d_constant norm2_constants[] = {FIELD(norm2, valid, EXPR),
                                                      FIELD(norm2, accumulate, BOOL), END};
static const struct s4d_constant clip_constants[] = {FIELD(clip, clip_norm, REAL), END};
static const struct s4d_constant adamw_constants[] = {
    FIELD(adamw, beta1, REAL), FIELD(adamw, beta2, REAL), FIELD(adamw, epsilon, REAL),
    FIELD(adamw, weight_decay, REAL), END};
static const struct s4d_constant scale_constants[] = {FIELD(scale, interval, INT), END};
static const struct s4d_constant read_tokens_constants[] = {FIELD(read_tokens, first, EXPR), END};

/* Operand accesses: read, written, accumulated, accumulated or written; O marks an optional one. */
#define R(name, contract)                                                                          \
    {                                                                                              \
        name, 'r', false, contract                                                                 \
    }
#define W(name, contract)                                                                          \
    {                                                                                              \
        name, 'w', false, contract                                                                 \
    }
#define A(name, contract)                                                                          \
    {                                                                                              \
        name, 'a', false, contract                                                                 \
    }
#define B(name, contract)                                                                          \
    {                                                                                              \
        name, 'b', false, contract                                                                 \
    }
#define RO(name, contract)                                                                         \
    {                                                                                              \
        name, 'r', true, contract                                                                  \
    }
#define WO(name, contract)                                                                         \
    {                                                                                              \
        name, 'w', true, contract                                                                  \
    }
#define ROW(kind, name, class, constants, n, ...)                                                  \
    [S4D_OP_##kind] = {name, S4D_CLASS_##class, n, {__VA_ARGS__}, constants}

const struct s4d_op_info s4d_op_kinds[S4D_OP_KINDS] = {
    ROW(GEMM, "gemm", GEMM, gemm_constants, 3, R("a", "f -"), R("b", "= -"), B("d", "f -")),
    ROW(ATTENTION_FORWARD, "attention-forward", ATTENTION, attention_constants, 3, R("qkv", "f Tq"),
        W("out", "= Th"), W("lse", "a -")),
    ROW(ATTENTION_BACKWARD, "attention-backward", ATTENTION, attention_constants, 5,
        R("qkv", "f Tq"), R("out", "= Th"), R("lse", "a -"), R("d_out", "= Th"),
        W("d_qkv", "= Tq")),
    ROW(NORM_PARTIAL, "norm-partial", KERNEL, NULL, 2, R("x", "f Th"), W("sums", "a T2")),
    ROW(NORM_APPLY, "norm-apply", KERNEL, norm_constants, 5, R("x", "f Th"), R("sums", "a T2"),
        R("gain", "a h"), R("bias", "a h"), W("y", "f Th")),
    ROW(NORM_BACKWARD_PARTIAL, "norm-backward-partial", KERNEL, norm_constants, 7, R("x", "f Th"),
        R("sums", "a T2"), R("gain", "a h"), R("dy", "f Th"), W("back_sums", "a T2"),
        A("d_gain", "a h"), A("d_bias", "a h")),
    ROW(NORM_BACKWARD_APPLY, "norm-backward-apply", KERNEL, norm_constants, 7, R("x", "f Th"),
        R("sums", "a T2"), R("gain", "a h"), R("dy", "f Th"), R("back_sums", "a T2"),
        RO("residual", "f Th"), W("dx", "f Th")),
    ROW(RMS_PARTIAL, "rms-partial", KERNEL, NULL, 2, R("x", "f Th"), W("sums", "a T")),
    ROW(RMS_APPLY, "rms-apply", KERNEL, norm_constants, 4, R("x", "f Th"), R("sums", "a T"),
        R("gain", "a h"), W("y", "f Th")),
    ROW(RMS_BACKWARD_PARTIAL, "rms-backward-partial", KERNEL, norm_constants, 6, R("x", "f Th"),
        R("sums", "a T"), R("gain", "a h"), R("dy", "f Th"), W("back_sums", "a T"),
        A("d_gain", "a h")),
    ROW(RMS_BACKWARD_APPLY, "rms-backward-apply", KERNEL, norm_constants, 7, R("x", "f Th"),
        R("sums", "a T"), R("gain", "a h"), R("dy", "f Th"), R("back_sums", "a T"),
        RO("residual", "f Th"), W("dx", "f Th")),
    ROW(ROTARY, "rotary", KERNEL, rotary_constants, 1, A("x", "f Tq")),
    ROW(ACTIVATION_FORWARD, "activation-forward", KERNEL, activation_constants, 3, R("x", "f Th"),
        RO("bias", "a h"), W("y", "f Th")),
    ROW(ACTIVATION_BACKWARD, "activation-backward", KERNEL, activation_constants, 4, R("x", "f Th"),
        RO("bias", "a h"), R("dy", "f Th"), W("dx", "f Th")),
    ROW(GATED_FORWARD, "gated-forward", KERNEL, activation_constants, 2, R("x", "f Tg"),
        W("y", "f Th")),
    ROW(GATED_BACKWARD, "gated-backward", KERNEL, activation_constants, 3, R("x", "f Tg"),
        R("dy", "f Th"), W("dx", "f Tg")),
    ROW(BIAS, "bias", KERNEL, NULL, 2, R("bias", "a h"), A("y", "f Th")),
    ROW(COLUMN_SUM, "column-sum", KERNEL, NULL, 2, R("x", "f Th"), A("out", "a h")),
    ROW(RESIDUAL, "residual", KERNEL, NULL, 4, R("a", "f Th"), R("b", "f Th"), RO("bias", "a h"),
        W("out", "f Th")),
    ROW(EMBEDDING_FORWARD, "embedding-forward", KERNEL, embedding_constants, 3, R("tokens", "i T"),
        R("w", "f Vh"), W("x", "f Th")),
    ROW(EMBEDDING_BACKWARD, "embedding-backward", KERNEL, embedding_constants, 3,
        R("tokens", "i T"), R("dx", "f Th"), A("d_w", "f Vh")),
    ROW(POSITION_FORWARD, "position-forward", KERNEL, NULL, 2, R("p", "a sh"), A("x", "f Th")),
    ROW(POSITION_BACKWARD, "position-backward", KERNEL, NULL, 2, R("dx", "f Th"), A("d_p", "a sh")),
    ROW(GOLDFISH, "goldfish", KERNEL, goldfish_constants, 2, R("tokens", "i rt"),
        W("targets", "i rs")),
    ROW(TOKEN_COUNT, "token-count", KERNEL, NULL, 2, R("targets", "i -"), W("out", "a 1")),
    ROW(LOSS_MAX, "loss-max", KERNEL, loss_constants, 2, R("logits", "f Tv"), W("max", "a T")),
    ROW(LOSS_SUM, "loss-sum", KERNEL, loss_constants, 4, R("logits", "f Tv"), R("max", "a T"),
        R("targets", "i T"), W("sums", "a T2")),
    ROW(LOSS_BACKWARD, "loss-backward", KERNEL, loss_constants, 8, R("logits", "f Tv"),
        R("max", "a T"), R("sums", "a T2"), R("targets", "i T"), R("denominator", "a 1"),
        RO("loss_scale", "a 1"), A("loss", "a 1"), W("d_logits", "f Tv")),
    ROW(LOSS_MEAN, "loss-mean", KERNEL, NULL, 3, R("sum", "a 1"), R("denominator", "a 1"),
        W("loss", "a 1")),
    ROW(ADD, "add", KERNEL, NULL, 2, R("x", "f n"), A("out", "f n")),
    ROW(CAST, "cast", KERNEL, NULL, 2, R("x", "f n"), W("out", "f n")),
    ROW(COPY, "copy", KERNEL, NULL, 2, R("x", "? n"), W("out", "= n")),
    ROW(ZERO, "zero", KERNEL, NULL, 1, W("out", "? -")),
    ROW(SQUARED_NORM, "squared-norm", KERNEL, norm2_constants, 3, R("x", "f -"),
        RO("loss_scale", "a 1"), B("out", "a 2")),
    ROW(CLIP_FACTOR, "clip-factor", KERNEL, clip_constants, 4, R("parts", "a -"), W("norm", "a 1"),
        W("found_inf", "a 1"), W("clip", "a 1")),
    ROW(STEP, "step", KERNEL, NULL, 2, RO("found_inf", "a 1"), A("step", "a 1")),
    ROW(ADAMW, "adamw", KERNEL, adamw_constants, 10, R("gradient", "f n"), RO("loss_scale", "a 1"),
        RO("clip", "a 1"), RO("found_inf", "a 1"), R("lr", "a 1"), R("step", "a 1"), A("m", "a n"),
        A("v", "a n"), A("master", "a n"), WO("working", "f n")),
    ROW(SCALE_UPDATE, "scale-update", KERNEL, scale_constants, 3, R("found_inf", "a 1"),
        A("loss_scale", "a 1"), A("good", "a 1")),
    ROW(ALL_REDUCE, "all-reduce", COLLECTIVE, NULL, 2, R("in", "? n"), W("out", "= n")),
    ROW(ALL_GATHER, "all-gather", COLLECTIVE, NULL, 2, R("in", "? -"), W("out", "= -")),
    ROW(REDUCE_SCATTER, "reduce-scatter", COLLECTIVE, NULL, 2, R("in", "? -"), W("out", "= -")),
    ROW(SEND, "send", MESSAGE, NULL, 1, R("in", "? n")),
    ROW(RECEIVE, "receive", MESSAGE, NULL, 1, W("out", "? n")),
    ROW(READ_TOKENS, "read-tokens", HOST, read_tokens_constants, 1, W("tokens", "i -")),
    ROW(HOST_TO_DEVICE, "host-to-device", COPY, NULL, 2, R("host", "? n"), W("device", "= n")),
    ROW(DEVICE_TO_HOST, "device-to-host", COPY, NULL, 2, R("device", "? n"), W("host", "= n")),
};

bool s4d_communicates(enum s4d_op_kind kind)
{
    return s4d_op_kinds[kind].op_class == S4D_CLASS_COLLECTIVE ||
           s4d_op_kinds[kind].op_class == S4D_CLASS_MESSAGE;
}

int64_t s4d_collective_bytes(const union s4d_constants *c, enum s4d_op_kind kind)
{
    if (s4d_op_kinds[kind].op_class == S4D_CLASS_MESSAGE)
        return c->message.count * s4d_type_bytes[c->message.type];
    int64_t block = c->collective.count * s4d_type_bytes[c->collective.type];
    return kind == S4D_OP_ALL_REDUCE ? block : block * c->collective.members;
}

double s4d_bus_factor(enum s4d_op_kind kind, int members)
{
    if (kind == S4D_OP_SEND || kind == S4D_OP_RECEIVE)
        return 1;
    return (kind == S4D_OP_ALL_REDUCE ? 2.0 : 1.0) * (members - 1) / members;
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
