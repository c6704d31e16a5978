/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of loss, element types and optimizer, as schedule/op.h states it: operands are
 * numbered in the order given there. */
#include <math.h>
#include <string.h>

#include "tests/lib/interpreter_internal.h"

static void token_count(struct s4d_turn *t)
{
    const double *targets = s4d_turn_load(t, 0);
    double kept = 0;
    for (int64_t i = 0; i < s4d_turn_elements(t, 0); i++)
        kept += targets[i] >= 0;
    if (s4d_turn_expect(t, 1, 1))
        s4d_turn_store(t, 1, &kept);
}

static void loss_max(struct s4d_turn *t)
{
    int64_t v = s4d_turn_columns(t, 0), tokens = s4d_turn_elements(t, 0) / v;
    int64_t valid = s4d_turn_value(t, &s4d_turn_constants(t)->loss.valid);
    if (!s4d_turn_expect(t, 1, tokens))
        return;
    const double *logits = s4d_turn_load(t, 0);
    double *max = s4d_turn_new(t, tokens);
    for (int64_t i = 0; i < tokens; i++) {
        max[i] = -INFINITY;
        for (int64_t j = 0; j < valid; j++)
            max[i] = fmax(max[i], logits[i * v + j]);
    }
    s4d_turn_store(t, 1, max);
}

static void loss_sum(struct s4d_turn *t)
{
    int64_t v = s4d_turn_columns(t, 0), tokens = s4d_turn_elements(t, 0) / v;
    int64_t valid = s4d_turn_value(t, &s4d_turn_constants(t)->loss.valid);
    int64_t first = s4d_turn_value(t, &s4d_turn_constants(t)->loss.first);
    if (!s4d_turn_expect(t, 1, tokens) || !s4d_turn_expect(t, 2, tokens) ||
        !s4d_turn_expect(t, 3, 2 * tokens))
        return;
    const double *logits = s4d_turn_load(t, 0), *max = s4d_turn_load(t, 1);
    const double *target = s4d_turn_load(t, 2);
    double *sums = s4d_turn_new(t, 2 * tokens);
    for (int64_t i = 0; i < tokens; i++) {
        sums[2 * i] = sums[2 * i + 1] = 0;
        for (int64_t j = 0; j < valid; j++) {
            sums[2 * i] += exp(logits[i * v + j] - max[i]);
            if (target[i] == (double)(first + j))
                sums[2 * i + 1] = logits[i * v + j];
        }
    }
    s4d_turn_store(t, 3, sums);
}

static void loss_backward(struct s4d_turn *t)
{
    int64_t v = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0), tokens = n / v;
    int64_t valid = s4d_turn_value(t, &s4d_turn_constants(t)->loss.valid);
    int64_t first = s4d_turn_value(t, &s4d_turn_constants(t)->loss.first);
    if (!s4d_turn_expect(t, 1, tokens) || !s4d_turn_expect(t, 2, 2 * tokens) ||
        !s4d_turn_expect(t, 3, tokens) || !s4d_turn_expect(t, 4, 1) || !s4d_turn_expect(t, 6, 1) ||
        !s4d_turn_expect(t, 7, n))
        return;
    const double *logits = s4d_turn_load(t, 0), *max = s4d_turn_load(t, 1);
    const double *sums = s4d_turn_load(t, 2), *target = s4d_turn_load(t, 3);
    double factor = s4d_turn_scalar(t, 5, 1) / s4d_turn_scalar(t, 4, 1),
           *loss = s4d_turn_load(t, 6);
    double *d = s4d_turn_new(t, n);
    for (int64_t i = 0; i < tokens; i++) {
        if (target[i] >= 0)
            loss[0] += log(sums[2 * i]) + max[i] - sums[2 * i + 1];
        for (int64_t j = 0; j < v; j++) {
            double p = exp(logits[i * v + j] - max[i]) / sums[2 * i];
            double hit = target[i] == (double)(first + j);
            d[i * v + j] = target[i] >= 0 && j < valid ? (p - hit) * factor : 0;
        }
    }
    s4d_turn_store(t, 6, loss);
    s4d_turn_store(t, 7, d);
}

static void loss_mean(struct s4d_turn *t)
{
    double mean = s4d_turn_scalar(t, 0, 0) / s4d_turn_scalar(t, 1, 1);
    if (s4d_turn_expect(t, 0, 1) && s4d_turn_expect(t, 1, 1) && s4d_turn_expect(t, 2, 1))
        s4d_turn_store(t, 2, &mean);
}

static void add(struct s4d_turn *t)
{
    int64_t n = s4d_turn_elements(t, 1);
    if (!s4d_turn_expect(t, 0, n))
        return;
    const double *x = s4d_turn_load(t, 0);
    double *out = s4d_turn_load(t, 1);
    for (int64_t i = 0; i < n; i++)
        out[i] += x[i];
    s4d_turn_store(t, 1, out);
}

/* cast, copy and the copies between host and device */
static void move(struct s4d_turn *t)
{
    if (s4d_turn_expect(t, 0, s4d_turn_elements(t, 1)))
        s4d_turn_store(t, 1, s4d_turn_load(t, 0));
}

static void copy(struct s4d_turn *t)
{
    const struct s4d_op *op = s4d_rank_op(t->in, t->rank, t->op);
    enum s4d_type from = s4d_rank_program(t->in, t->rank)->tensors[op->operand[0].tensor].type;
    enum s4d_type to = s4d_rank_program(t->in, t->rank)->tensors[op->operand[1].tensor].type;
    if (from != to)
        s4d_fault(t->in, t->rank, t->op, "copies %s to %s", s4d_type_names[from],
                  s4d_type_names[to]);
    move(t);
}

static void zero(struct s4d_turn *t)
{
    int64_t n = s4d_turn_elements(t, 0);
    double *out = s4d_turn_new(t, n);
    memset(out, 0, (size_t)n * sizeof *out);
    s4d_turn_store(t, 0, out);
}

static void squared_norm(struct s4d_turn *t)
{
    int64_t n = s4d_turn_elements(t, 0),
            valid = s4d_turn_value(t, &s4d_turn_constants(t)->norm2.valid);
    if (!s4d_turn_expect(t, 2, 2))
        return;
    if (valid < 0 || valid > n) {
        s4d_fault(t->in, t->rank, t->op, "%lld valid elements of %lld", (long long)valid,
                  (long long)n);
        return;
    }
    const double *x = s4d_turn_load(t, 0);
    double scale = s4d_turn_scalar(t, 1, 1), zeros[2] = {0, 0};
    double *out = s4d_turn_constants(t)->norm2.accumulate ? s4d_turn_load(t, 2) : zeros;
    for (int64_t i = 0; i < valid; i++) {
        out[0] += x[i] / scale * (x[i] / scale);
        out[1] = isfinite(x[i]) ? out[1] : 1;
    }
    s4d_turn_store(t, 2, out);
}

static void clip_factor(struct s4d_turn *t)
{
    const double *parts = s4d_turn_load(t, 0);
    double norm = 0, found = 0, clip = 1;
    for (int64_t i = 0; i < s4d_turn_elements(t, 0) / 2; i++) {
        norm += parts[2 * i];
        found = parts[2 * i + 1] != 0 ? 1 : found;
    }
    norm = sqrt(norm);
    if (s4d_turn_constants(t)->clip.clip_norm != 0)
        clip = fmin(1, s4d_turn_constants(t)->clip.clip_norm / (norm + 1e-6));
    s4d_turn_store(t, 1, &norm);
    s4d_turn_store(t, 2, &found);
    s4d_turn_store(t, 3, &clip);
}

static void step(struct s4d_turn *t)
{
    double value = s4d_turn_scalar(t, 1, 0) + (s4d_turn_scalar(t, 0, 0) != 0 ? 0 : 1);
    s4d_turn_store(t, 1, &value);
}

static void adamw(struct s4d_turn *t)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    int64_t n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 6, n) || !s4d_turn_expect(t, 7, n) || !s4d_turn_expect(t, 8, n) ||
        (s4d_turn_elements(t, 9) && !s4d_turn_expect(t, 9, n)))
        return;
    double factor = s4d_turn_scalar(t, 2, 1) / s4d_turn_scalar(t, 1, 1),
           lr = s4d_turn_scalar(t, 4, 0), at = s4d_turn_scalar(t, 5, 0);
    if (s4d_turn_scalar(t, 3, 0) != 0)
        return;
    const double *gradient = s4d_turn_load(t, 0);
    double *m = s4d_turn_load(t, 6), *v = s4d_turn_load(t, 7), *master = s4d_turn_load(t, 8);
    double b1 = c->adamw.beta1, b2 = c->adamw.beta2;
    for (int64_t i = 0; i < n; i++) {
        double g = gradient[i] * factor;
        m[i] = b1 * m[i] + (1 - b1) * g;
        v[i] = b2 * v[i] + (1 - b2) * g * g;
        double mean = m[i] / (1 - pow(b1, at)), root = sqrt(v[i] / (1 - pow(b2, at)));
        master[i] -= lr * (mean / (root + c->adamw.epsilon) + c->adamw.weight_decay * master[i]);
    }
    s4d_turn_store(t, 6, m);
    s4d_turn_store(t, 7, v);
    s4d_turn_store(t, 8, master);
    s4d_turn_store(t, 9, master);
}

static void scale_update(struct s4d_turn *t)
{
    double scale = s4d_turn_scalar(t, 1, 1), good = s4d_turn_scalar(t, 2, 0);
    if (s4d_turn_scalar(t, 0, 0) != 0) {
        scale = fmax(scale / 2, 1);
        good = 0;
    } else if (++good >= (double)s4d_turn_constants(t)->scale.interval) {
        scale *= 2;
        good = 0;
    }
    s4d_turn_store(t, 1, &scale);
    s4d_turn_store(t, 2, &good);
}

static void read_tokens(struct s4d_turn *t)
{
    int64_t s1 = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    int64_t first = s4d_turn_value(t, &s4d_turn_constants(t)->read_tokens.first);
    int32_t tokens[4096];
    double *values = s4d_turn_new(t, n);
    S4D_ASSERT(s1 <= 4096 && t->in->options.tokens, "no tokens, or sequences too long");
    for (int64_t row = 0; row < n / s1; row++) {
        t->in->options.tokens(t->in->options.context, t->iteration, first + row, tokens, (int)s1);
        for (int64_t i = 0; i < s1; i++)
            values[row * s1 + i] = tokens[i];
    }
    s4d_turn_store(t, 0, values);
}

const s4d_kernel s4d_training_kernels[S4D_OP_KINDS] = {
    [S4D_OP_TOKEN_COUNT] = token_count,
    [S4D_OP_LOSS_MAX] = loss_max,
    [S4D_OP_LOSS_SUM] = loss_sum,
    [S4D_OP_LOSS_BACKWARD] = loss_backward,
    [S4D_OP_LOSS_MEAN] = loss_mean,
    [S4D_OP_ADD] = add,
    [S4D_OP_CAST] = move,
    [S4D_OP_COPY] = copy,
    [S4D_OP_ZERO] = zero,
    [S4D_OP_SQUARED_NORM] = squared_norm,
    [S4D_OP_CLIP_FACTOR] = clip_factor,
    [S4D_OP_STEP] = step,
    [S4D_OP_ADAMW] = adamw,
    [S4D_OP_SCALE_UPDATE] = scale_update,
    [S4D_OP_READ_TOKENS] = read_tokens,
    [S4D_OP_HOST_TO_DEVICE] = copy,
    [S4D_OP_DEVICE_TO_HOST] = copy,
};
