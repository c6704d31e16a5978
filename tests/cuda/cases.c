/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/cases.h"

#include <math.h>

#include "support/random.h"

/* clang-format off */
const struct s4d_kernel_case s4d_kernel_cases[] = {
    {S4D_OP_GEMM, {"cMKx", "cKNx", "fMNx"}, {{0}}},
    {S4D_OP_ATTENTION_FORWARD, {"cTQx", "=TOx", "aLSx"}, {{0}}},
    {S4D_OP_ATTENTION_BACKWARD, {"cTQx", "=TOx", "aLSl", "=TOx", "=TQx"}, {{0}}},
    {S4D_OP_NORM_PARTIAL, {"cTHx", "aT2x"}, {{0}}},
    {S4D_OP_NORM_APPLY, {"cTHx", "aT2s", "a1Hx", "a1Hx", "fTHx"}, {{0}}},
    {S4D_OP_NORM_BACKWARD_PARTIAL, {"cTHx", "aT2s", "a1Hx", "fTHx", "aT2x", "a1Hx", "a1Hx"}, {{0}}},
    {S4D_OP_NORM_BACKWARD_APPLY, {"cTHx", "aT2s", "a1Hx", "fTHx", "aT2x", "?fTHx", "fTHx"},
     {{6, 3}, {6, 5}}},
    {S4D_OP_RMS_PARTIAL, {"cTHx", "aT1x"}, {{0}}},
    {S4D_OP_RMS_APPLY, {"cTHx", "aT1s", "a1Hx", "fTHx"}, {{0}}},
    {S4D_OP_RMS_BACKWARD_PARTIAL, {"cTHx", "aT1s", "a1Hx", "fTHx", "aT1x", "a1Hx"}, {{0}}},
    {S4D_OP_RMS_BACKWARD_APPLY, {"cTHx", "aT1s", "a1Hx", "fTHx", "aT1x", "?fTHx", "fTHx"},
     {{6, 3}, {6, 5}}},
    {S4D_OP_ROTARY, {"cTRx"}, {{0}}},
    {S4D_OP_ACTIVATION_FORWARD, {"cTH6", "?a1Hx", "fTHx"}, {{2, 0}}},
    {S4D_OP_ACTIVATION_BACKWARD, {"cTH6", "?a1Hx", "fTHx", "fTHx"}, {{3, 2}}},
    {S4D_OP_GATED_FORWARD, {"cTG6", "fTHx"}, {{0}}},
    {S4D_OP_GATED_BACKWARD, {"cTG6", "fTHx", "fTGx"}, {{2, 0}}},
    {S4D_OP_BIAS, {"a1Hx", "cTHx"}, {{0}}},
    {S4D_OP_COLUMN_SUM, {"cTHx", "a1Hx"}, {{0}}},
    {S4D_OP_RESIDUAL, {"cTHx", "fTHx", "?a1Hx", "fTHx"}, {{3, 0}, {3, 1}}},
    {S4D_OP_EMBEDDING_FORWARD, {"iBSv", "cWHx", "fTHx"}, {{0}}},
    {S4D_OP_EMBEDDING_BACKWARD, {"iBSv", "cTHx", "aWHx"}, {{0}}},
    {S4D_OP_POSITION_FORWARD, {"aSHx", "cTHx"}, {{0}}},
    {S4D_OP_POSITION_BACKWARD, {"cTHx", "aSHx"}, {{0}}},
    {S4D_OP_GOLDFISH, {"iBUv", "iBSv"}, {{0}}},
    {S4D_OP_TOKEN_COUNT, {"iBSv", "a11x"}, {{0}}},
    {S4D_OP_LOSS_MAX, {"cTVx", "aT1x"}, {{0}}},
    {S4D_OP_LOSS_SUM, {"cTVx", "aT1x", "iBSv", "aT2x"}, {{0}}},
    {S4D_OP_LOSS_BACKWARD, {"cTVx", "aT1x", "aT2p", "iBSv", "a11p", "?a11p", "a11x", "fTVx"},
     {{7, 0}}},
    {S4D_OP_LOSS_MEAN, {"a11x", "a11p", "a11x"}, {{0}}},
    {S4D_OP_ADD, {"fTHx", "cHTx"}, {{0}}},
    {S4D_OP_ADD, {"fTHx", "cTHx"}, {{0}}},
    {S4D_OP_CAST, {"fTHx", "cHTx"}, {{0}}},
    {S4D_OP_CAST, {"fTHx", "cTHx"}, {{0}}},
    {S4D_OP_COPY, {"cTHx", "=HTx"}, {{0}}},
    {S4D_OP_COPY, {"iTHv", "iTHv"}, {{0}}},
    {S4D_OP_ZERO, {"fTHx"}, {{0}}},
    {S4D_OP_SQUARED_NORM, {"aTHx", "?a11p", "a12x"}, {{0}}},
    {S4D_OP_CLIP_FACTOR, {"aB2p", "a11x", "a11x", "a11x"}, {{0}}},
    {S4D_OP_STEP, {"?a110", "a11p"}, {{0}}},
    {S4D_OP_ADAMW, {"fTHx", "?a11p", "?a11p", "?a110", "a11p", "a11p", "aTHx", "aTHp", "aTHx",
                    "?cTHx"}, {{0}}},
    {S4D_OP_SCALE_UPDATE, {"a110", "a11p", "a11p"}, {{0}}},
};
/* clang-format on */
const int s4d_n_kernel_cases = sizeof s4d_kernel_cases / sizeof *s4d_kernel_cases;

/* Random numbers of one test. */
static uint64_t stream, drawn;

void s4d_draw_from(uint64_t seed)
{
    stream = seed;
    drawn = 0;
}

int64_t s4d_draw(int64_t low, int64_t high)
{
    return low + (int64_t)(s4d_uniform_at(stream, drawn++) * (double)(high - low + 1));
}

struct s4d_case_shape s4d_draw_shape(enum s4d_op_kind kind)
{
    static const int64_t widths[] = {1, 7, 8, 64, 136, 1037};
    bool attention = kind == S4D_OP_ATTENTION_FORWARD || kind == S4D_OP_ATTENTION_BACKWARD;
    struct s4d_case_shape s = {
        .batch = s4d_draw(1, 3), .seq = s4d_draw(1, 19), .h = widths[s4d_draw(0, 5)]};
    if (attention)
        s.seq = s4d_draw(1, 170); /* tiles are of 64 rows */
    s.head_dim = s4d_draw(0, 1) ? 16 : 2 * s4d_draw(1, 13);
    s.kv = s4d_draw(1, 3);
    s.heads = s.kv * s4d_draw(1, 3);
    if (attention && s4d_draw(0, 39) == 0) { /* more heads than a batch of products has room for */
        s.batch = 1;
        s.seq = s4d_draw(1, 2);
        s.head_dim = 2;
        s.heads = s.kv = s4d_draw(65536, 66000);
    }
    s.vocab = s4d_draw(1, 1100);
    s.held = s4d_draw(1, 30);
    s.m = s4d_draw(1, 40);
    s.n = s4d_draw(1, 40);
    s.k = s4d_draw(1, 40);
    s.first = s4d_draw(0, 20);
    s.valid = s4d_draw(0, s.vocab);
    return s;
}

int64_t s4d_case_dimension(char letter, const struct s4d_case_shape *s)
{
    switch (letter) {
    case 'T':
        return s->batch * s->seq;
    case 'H':
        return s->h;
    case 'G':
        return 2 * s->h;
    case 'Q':
        return (s->heads + 2 * s->kv) * s->head_dim;
    case 'O':
    case 'R':
        return s->heads * s->head_dim;
    case 'L':
        return s->batch * s->heads;
    case 'S':
        return s->seq;
    case 'U':
        return s->seq + 1;
    case 'B':
        return s->batch;
    case 'V':
        return s->vocab;
    case 'W':
        return s->held;
    case 'M':
        return s->m;
    case 'N':
        return s->n;
    case 'K':
        return s->k;
    default:
        return letter - '0';
    }
}

double s4d_draw_value(char letter, const struct s4d_case_shape *s)
{
    double u = s4d_uniform_at(stream, drawn++);
    switch (letter) {
    case '6': /* where activations bend */
        return 12 * u - 6;
    case 's': /* sums of a row's squares, of 2 h columns */
        return (double)s->h * (1 + 0.2 * u);
    case 'l': /* of an lse */
        return log((double)s->seq) + u;
    case 'p':
        return 1 + 3 * u;
    case '0': /* a flag */
        return u < 0.8 ? 0 : 1;
    case 'v': /* tokens: own ones and others, some of them dropped */
        return floor(u * (double)(s->first + s->held + 12)) - 4;
    default:
        return 2 * u - 1;
    }
}

enum s4d_type s4d_draw_type(char letter, enum s4d_type compute, enum s4d_type first)
{
    static const enum s4d_type small[] = {S4D_F32, S4D_BF16, S4D_F16};
    switch (letter) {
    case 'i':
        return S4D_I32;
    case 'a':
        return compute == S4D_F64 ? S4D_F64 : S4D_F32;
    case 'f':
        return compute == S4D_F64 ? S4D_F64 : s4d_draw(0, 1) ? compute : small[s4d_draw(0, 2)];
    case '=':
        return first;
    default:
        return compute;
    }
}

union s4d_constants s4d_draw_constants(enum s4d_op_kind kind, const struct s4d_case_shape *s)
{
    union s4d_constants c = {.gemm = {0}};
    switch (kind) {
    case S4D_OP_GEMM:
        c.gemm.m = s->m;
        c.gemm.n = s->n;
        c.gemm.k = s->k;
        c.gemm.beta = (double)s4d_draw(0, 1);
        break;
    case S4D_OP_ATTENTION_FORWARD:
    case S4D_OP_ATTENTION_BACKWARD:
        c.attention.batch = s->batch;
        c.attention.seq = s->seq;
        c.attention.heads = s->heads;
        c.attention.kv_heads = s->kv;
        c.attention.head_dim = s->head_dim;
        c.attention.scale = 0.3;
        c.attention.causal = s4d_draw(0, 2) > 0;
        break;
    case S4D_OP_ROTARY:
        c.rotary.seq = s->seq;
        c.rotary.heads = s->heads;
        c.rotary.head_dim = s->head_dim;
        c.rotary.theta = 10000;
        c.rotary.inverse = s4d_draw(0, 1) != 0;
        break;
    case S4D_OP_ACTIVATION_FORWARD:
    case S4D_OP_ACTIVATION_BACKWARD:
    case S4D_OP_GATED_FORWARD:
    case S4D_OP_GATED_BACKWARD:
        c.activation.function = s4d_draw(0, 1) ? S4D_SILU : S4D_GELU_TANH;
        break;
    case S4D_OP_EMBEDDING_FORWARD:
    case S4D_OP_EMBEDDING_BACKWARD:
        c.embedding.first = s4d_constant(s->first);
        break;
    case S4D_OP_GOLDFISH:
        c.goldfish.k = 3;
        c.goldfish.context = s4d_draw(1, 5);
        break;
    case S4D_OP_LOSS_MAX:
    case S4D_OP_LOSS_SUM:
    case S4D_OP_LOSS_BACKWARD:
        c.loss.first = s4d_constant(s->first);
        c.loss.valid = s4d_constant(s->valid);
        break;
    case S4D_OP_SQUARED_NORM:
        c.norm2.valid = s4d_constant(s4d_draw(0, s->batch * s->seq * s->h));
        c.norm2.accumulate = s4d_draw(0, 1) != 0;
        break;
    case S4D_OP_CLIP_FACTOR:
        c.clip.clip_norm = (double)s4d_draw(0, 1) * 0.5;
        break;
    case S4D_OP_ADAMW:
        c.adamw.beta1 = 0.9;
        c.adamw.beta2 = 0.95;
        c.adamw.epsilon = 1e-8;
        c.adamw.weight_decay = 0.1;
        break;
    case S4D_OP_SCALE_UPDATE:
        c.scale.interval = s4d_draw(1, 4);
        break;
    default:
        c.norm.width = 2 * s->h;
        c.norm.epsilon = 1e-5;
    }
    return c;
}
