/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of RMSNorm, rotary positions, gated units and the goldfish loss, as schedule/op.h
 * states it: operands are numbered in the order given there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/lib/interpreter_internal.h"

static void rms_partial(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), tokens = s4d_turn_elements(t, 0) / h;
    if (!s4d_turn_expect(t, 1, tokens))
        return;
    const double *x = s4d_turn_load(t, 0);
    double *sums = s4d_turn_new(t, tokens);
    for (int64_t i = 0; i < tokens; i++) {
        sums[i] = 0;
        for (int64_t j = 0; j < h; j++)
            sums[i] += x[i * h + j] * x[i * h + j];
    }
    s4d_turn_store(t, 1, sums);
}

static double reciprocal(const struct s4d_turn *t, double sum)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    return 1 / sqrt(sum / (double)c->norm.width + c->norm.epsilon);
}

static void rms_apply(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, n / h) || !s4d_turn_expect(t, 2, h) || !s4d_turn_expect(t, 3, n))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2);
    double *y = s4d_turn_new(t, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * reciprocal(t, sums[i / h]) * gain[i % h];
    s4d_turn_store(t, 3, y);
}

static void rms_backward_partial(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, n / h) || !s4d_turn_expect(t, 2, h) || !s4d_turn_expect(t, 3, n) ||
        !s4d_turn_expect(t, 4, n / h) || !s4d_turn_expect(t, 5, h))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2), *dy = s4d_turn_load(t, 3);
    double *back = s4d_turn_new(t, n / h), *d_gain = s4d_turn_load(t, 5);
    memset(back, 0, (size_t)(n / h) * sizeof *back);
    for (int64_t i = 0; i < n; i++) {
        double xhat = x[i] * reciprocal(t, sums[i / h]);
        back[i / h] += dy[i] * gain[i % h] * xhat;
        d_gain[i % h] += dy[i] * xhat;
    }
    s4d_turn_store(t, 4, back);
    s4d_turn_store(t, 5, d_gain);
}

static void rms_backward_apply(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, n / h) || !s4d_turn_expect(t, 2, h) || !s4d_turn_expect(t, 3, n) ||
        !s4d_turn_expect(t, 4, n / h) || !s4d_turn_expect(t, 6, n))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2), *dy = s4d_turn_load(t, 3);
    const double *back = s4d_turn_load(t, 4), *residual = s4d_turn_load(t, 5);
    double *dx = s4d_turn_new(t, n), width = (double)s4d_turn_constants(t)->norm.width;
    for (int64_t i = 0; i < n; i++) {
        double r = reciprocal(t, sums[i / h]);
        dx[i] = r * (dy[i] * gain[i % h] - x[i] * r * back[i / h] / width);
        dx[i] += residual ? residual[i] : 0;
    }
    s4d_turn_store(t, 6, dx);
}

static void rotary(struct s4d_turn *t)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    int64_t d = c->rotary.head_dim, n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 0, n / (c->rotary.heads * d) * c->rotary.heads * d))
        return;
    double *x = s4d_turn_load(t, 0);
    for (int64_t head = 0; head < n / d; head++)
        for (int64_t i = 0; i < d / 2; i++) {
            double at = (double)(head / c->rotary.heads % c->rotary.seq);
            double angle = (c->rotary.inverse ? -at : at) * s4d_rotary_frequency(c, i);
            double *a = &x[head * d + i], *b = a + d / 2, was = *a;
            *a = was * cos(angle) - *b * sin(angle);
            *b = *b * cos(angle) + was * sin(angle);
        }
    s4d_turn_store(t, 0, x);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void gated_forward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 1), n = s4d_turn_elements(t, 1);
    S4D_ASSERT(s4d_turn_constants(t)->activation.function == S4D_SILU, "gated by another function");
    if (!s4d_turn_expect(t, 0, 2 * n))
        return;
    const double *x = s4d_turn_load(t, 0);
    double *y = s4d_turn_new(t, n);
    for (int64_t i = 0; i < n; i++) {
        const double *gate = x + i / h * 2 * h + i % h;
        y[i] = silu(gate[0]) * gate[h];
    }
    s4d_turn_store(t, 1, y);
}

static void gated_backward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 1), n = s4d_turn_elements(t, 1);
    if (!s4d_turn_expect(t, 0, 2 * n) || !s4d_turn_expect(t, 2, 2 * n))
        return;
    const double *x = s4d_turn_load(t, 0), *dy = s4d_turn_load(t, 1);
    double *dx = s4d_turn_new(t, 2 * n);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i / h * 2 * h + i % h;
        double gate = x[at], up = x[at + h], p = 1 / (1 + exp(-gate));
        dx[at] = dy[i] * up * (p + gate * p * (1 - p));
        dx[at + h] = dy[i] * silu(gate);
    }
    s4d_turn_store(t, 2, dx);
}

static void goldfish(struct s4d_turn *t)
{
    int64_t s = s4d_turn_columns(t, 1), n = s4d_turn_elements(t, 1), rows = n / s;
    int64_t context = s4d_turn_constants(t)->goldfish.context,
            k = s4d_turn_constants(t)->goldfish.k;
    if (!s4d_turn_expect(t, 0, n + rows))
        return;
    const double *tokens = s4d_turn_load(t, 0);
    double *targets = s4d_turn_new(t, n);
    int32_t *before = s4d_malloc((size_t)context * sizeof *before);
    for (int64_t i = 0; i < n; i++) {
        const double *next = tokens + i / s * (s + 1) + i % s + 1;
        bool whole = i % s + 1 >= context;
        for (int64_t b = 0; whole && b < context; b++)
            before[b] = (int32_t)next[b - context];
        targets[i] = whole && s4d_goldfish_hash(before, context) % (uint64_t)k == 0 ? -1 : *next;
    }
    free(before);
    s4d_turn_store(t, 1, targets);
}

const s4d_kernel s4d_llama_kernels[S4D_OP_KINDS] = {
    [S4D_OP_RMS_PARTIAL] = rms_partial,
    [S4D_OP_RMS_APPLY] = rms_apply,
    [S4D_OP_RMS_BACKWARD_PARTIAL] = rms_backward_partial,
    [S4D_OP_RMS_BACKWARD_APPLY] = rms_backward_apply,
    [S4D_OP_ROTARY] = rotary,
    [S4D_OP_GATED_FORWARD] = gated_forward,
    [S4D_OP_GATED_BACKWARD] = gated_backward,
    [S4D_OP_GOLDFISH] = goldfish,
};
