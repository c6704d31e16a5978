/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of a layer's ops, forward and backward, as schedule/op.h states it: operands are
 * numbered in the order given there. */
#include <math.h>
#include <string.h>

#include "tests/lib/interpreter_internal.h"

/* A row-major (rows, cols) from its transpose. */
static const double *transposed(struct s4d_turn *t, const double *x, int64_t rows, int64_t cols)
{
    double *y = s4d_turn_new(t, rows * cols);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            y[i * cols + j] = x[j * rows + i];
    return y;
}

static void gemm(struct s4d_turn *t)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    int64_t m = c->gemm.m, n = c->gemm.n, k = c->gemm.k;
    if (!s4d_turn_expect(t, 0, m * k) || !s4d_turn_expect(t, 1, k * n) ||
        !s4d_turn_expect(t, 2, m * n))
        return;
    const double *a = s4d_turn_load(t, 0), *b = s4d_turn_load(t, 1);
    const double *before = c->gemm.beta != 0 ? s4d_turn_load(t, 2) : NULL;
    a = c->gemm.transpose_a ? transposed(t, a, m, k) : a;
    b = c->gemm.transpose_b ? transposed(t, b, k, n) : b;
    double *d = s4d_turn_new(t, m * n);
    memset(d, 0, (size_t)(m * n) * sizeof *d);
    for (int64_t i = 0; i < m; i++)
        for (int64_t l = 0; l < k; l++)
            for (int64_t j = 0; j < n; j++)
                d[i * n + j] += a[i * k + l] * b[l * n + j];
    for (int64_t i = 0; before && i < m * n; i++)
        d[i] += before[i];
    s4d_turn_store(t, 2, d);
}

/* Pointers into one sequence's rows of qkv for one head. */
struct head {
    int64_t s, dim, row; /* row: elements from one token to the next in qkv */
    double scale;
    bool causal;
    const double *q, *k, *v;
};

static struct head head_of(const struct s4d_turn *t, const double *qkv, int64_t batch, int64_t head)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    int64_t heads = c->attention.heads, kv = c->attention.kv_heads, dim = c->attention.head_dim;
    struct head h = {c->attention.seq,
                     dim,
                     (heads + 2 * kv) * dim,
                     c->attention.scale,
                     c->attention.causal,
                     NULL,
                     NULL,
                     NULL};
    const double *base = qkv + batch * h.s * h.row;
    int64_t shared = head / (heads / kv); /* heads / kv query heads share a key and value head */
    h.q = base + head * dim;
    h.k = base + (heads + shared) * dim;
    h.v = base + (heads + kv + shared) * dim;
    return h;
}

static double score(const struct head *h, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t d = 0; d < h->dim; d++)
        sum += h->q[i * h->row + d] * h->k[j * h->row + d];
    return sum * h->scale;
}

static bool attention_shapes(struct s4d_turn *t, bool backward)
{
    const union s4d_constants *c = s4d_turn_constants(t);
    int64_t tokens = c->attention.batch * c->attention.seq, heads = c->attention.heads;
    int64_t wide = tokens * (heads + 2 * c->attention.kv_heads) * c->attention.head_dim;
    int64_t out = tokens * heads * c->attention.head_dim;
    return s4d_turn_expect(t, 0, wide) && s4d_turn_expect(t, 1, out) &&
           s4d_turn_expect(t, 2, tokens * heads) &&
           (!backward || (s4d_turn_expect(t, 3, out) && s4d_turn_expect(t, 4, wide)));
}

static void attention_forward(struct s4d_turn *t)
{
    if (!attention_shapes(t, false))
        return;
    int64_t heads = s4d_turn_constants(t)->attention.heads;
    const double *qkv = s4d_turn_load(t, 0);
    double *out = s4d_turn_new(t, s4d_turn_elements(t, 1));
    double *lse = s4d_turn_new(t, s4d_turn_elements(t, 2));
    for (int64_t bh = 0; bh < s4d_turn_constants(t)->attention.batch * heads; bh++) {
        struct head h = head_of(t, qkv, bh / heads, bh % heads);
        for (int64_t i = 0; i < h.s; i++) {
            int64_t last = h.causal ? i : h.s - 1;
            double max = -INFINITY, sum = 0;
            for (int64_t j = 0; j <= last; j++)
                max = fmax(max, score(&h, i, j));
            for (int64_t j = 0; j <= last; j++)
                sum += exp(score(&h, i, j) - max);
            lse[bh * h.s + i] = max + log(sum);
            double *o = out + (bh / heads * h.s + i) * heads * h.dim + bh % heads * h.dim;
            memset(o, 0, (size_t)h.dim * sizeof *o);
            for (int64_t j = 0; j <= last; j++) {
                double p = exp(score(&h, i, j) - lse[bh * h.s + i]);
                for (int64_t d = 0; d < h.dim; d++)
                    o[d] += p * h.v[j * h.row + d];
            }
        }
    }
    s4d_turn_store(t, 1, out);
    s4d_turn_store(t, 2, lse);
}

/* Row i of one head: with p = softmax, ds = p (dp - sum_j p dp), dp_j = d_out . v_j; the sum is
 * also d_out . out. */
static void attention_row(const struct head *h, int64_t i, double lse, const double *o,
                          const double *d_o, double *dq, double *dk, double *dv)
{
    double delta = 0;
    for (int64_t d = 0; d < h->dim; d++)
        delta += d_o[d] * o[d];
    for (int64_t j = 0; j <= (h->causal ? i : h->s - 1); j++) {
        double p = exp(score(h, i, j) - lse), dp = 0;
        for (int64_t d = 0; d < h->dim; d++)
            dp += d_o[d] * h->v[j * h->row + d];
        double ds = p * (dp - delta) * h->scale;
        for (int64_t d = 0; d < h->dim; d++) {
            dq[i * h->row + d] += ds * h->k[j * h->row + d];
            dk[j * h->row + d] += ds * h->q[i * h->row + d];
            dv[j * h->row + d] += p * d_o[d];
        }
    }
}

static void attention_backward(struct s4d_turn *t)
{
    if (!attention_shapes(t, true))
        return;
    int64_t heads = s4d_turn_constants(t)->attention.heads, wide = s4d_turn_elements(t, 4);
    const double *qkv = s4d_turn_load(t, 0), *out = s4d_turn_load(t, 1);
    const double *lse = s4d_turn_load(t, 2), *d_out = s4d_turn_load(t, 3);
    double *d_qkv = s4d_turn_new(t, wide);
    memset(d_qkv, 0, (size_t)wide * sizeof *d_qkv);
    for (int64_t bh = 0; bh < s4d_turn_constants(t)->attention.batch * heads; bh++) {
        struct head h = head_of(t, qkv, bh / heads, bh % heads);
        for (int64_t i = 0; i < h.s; i++) {
            int64_t o = (bh / heads * h.s + i) * heads * h.dim + bh % heads * h.dim;
            attention_row(&h, i, lse[bh * h.s + i], out + o, d_out + o, d_qkv + (h.q - qkv),
                          d_qkv + (h.k - qkv), d_qkv + (h.v - qkv));
        }
    }
    s4d_turn_store(t, 4, d_qkv);
}

static void norm_partial(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), tokens = s4d_turn_elements(t, 0) / h;
    if (!s4d_turn_expect(t, 1, 2 * tokens))
        return;
    const double *x = s4d_turn_load(t, 0);
    double *sums = s4d_turn_new(t, 2 * tokens);
    for (int64_t i = 0; i < tokens; i++) {
        sums[2 * i] = sums[2 * i + 1] = 0;
        for (int64_t j = 0; j < h; j++) {
            sums[2 * i] += x[i * h + j];
            sums[2 * i + 1] += x[i * h + j] * x[i * h + j];
        }
    }
    s4d_turn_store(t, 1, sums);
}

/* mean and 1 / sqrt(variance + epsilon) of a row, from its all-reduced sums. */
static void moments(const struct s4d_turn *t, const double *sums, double *mean, double *r)
{
    double width = (double)s4d_turn_constants(t)->norm.width;
    *mean = sums[0] / width;
    *r = 1 / sqrt(sums[1] / width - *mean * *mean + s4d_turn_constants(t)->norm.epsilon);
}

static void norm_apply(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, 2 * n / h) || !s4d_turn_expect(t, 2, h) ||
        !s4d_turn_expect(t, 3, h) || !s4d_turn_expect(t, 4, n))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2), *bias = s4d_turn_load(t, 3);
    double *y = s4d_turn_new(t, n), mean, r;
    for (int64_t i = 0; i < n; i++) {
        moments(t, sums + 2 * (i / h), &mean, &r);
        y[i] = (x[i] - mean) * r * gain[i % h] + bias[i % h];
    }
    s4d_turn_store(t, 4, y);
}

static void norm_backward_partial(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, 2 * n / h) || !s4d_turn_expect(t, 2, h) ||
        !s4d_turn_expect(t, 3, n) || !s4d_turn_expect(t, 4, 2 * n / h) ||
        !s4d_turn_expect(t, 5, h) || !s4d_turn_expect(t, 6, h))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2), *dy = s4d_turn_load(t, 3);
    double *back = s4d_turn_new(t, 2 * n / h), mean, r;
    double *d_gain = s4d_turn_load(t, 5), *d_bias = s4d_turn_load(t, 6);
    memset(back, 0, (size_t)(2 * n / h) * sizeof *back);
    for (int64_t i = 0; i < n; i++) {
        moments(t, sums + 2 * (i / h), &mean, &r);
        double xhat = (x[i] - mean) * r, dxhat = dy[i] * gain[i % h];
        back[2 * (i / h)] += dxhat;
        back[2 * (i / h) + 1] += dxhat * xhat;
        d_gain[i % h] += dy[i] * xhat;
        d_bias[i % h] += dy[i];
    }
    s4d_turn_store(t, 4, back);
    s4d_turn_store(t, 5, d_gain);
    s4d_turn_store(t, 6, d_bias);
}

static void norm_backward_apply(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, 2 * n / h) || !s4d_turn_expect(t, 2, h) ||
        !s4d_turn_expect(t, 3, n) || !s4d_turn_expect(t, 4, 2 * n / h) || !s4d_turn_expect(t, 6, n))
        return;
    const double *x = s4d_turn_load(t, 0), *sums = s4d_turn_load(t, 1);
    const double *gain = s4d_turn_load(t, 2), *dy = s4d_turn_load(t, 3);
    const double *back = s4d_turn_load(t, 4), *residual = s4d_turn_load(t, 5);
    double *dx = s4d_turn_new(t, n), mean, r, width = (double)s4d_turn_constants(t)->norm.width;
    for (int64_t i = 0; i < n; i++) {
        const double *b = back + 2 * (i / h);
        moments(t, sums + 2 * (i / h), &mean, &r);
        double xhat = (x[i] - mean) * r;
        dx[i] = r * (dy[i] * gain[i % h] - b[0] / width - xhat * b[1] / width);
        dx[i] += residual ? residual[i] : 0;
    }
    s4d_turn_store(t, 6, dx);
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x)
{
    double c = sqrt(2 / M_PI), th = tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + th) + 0.5 * x * (1 - th * th) * c * (1 + 3 * 0.044715 * x * x);
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double silu_slope(double x)
{
    double p = 1 / (1 + exp(-x));
    return p + x * p * (1 - p);
}

static const struct {
    double (*value)(double), (*slope)(double);
} functions[S4D_FUNCTIONS] = {
    [S4D_GELU_TANH] = {gelu, gelu_slope}, [S4D_SILU] = {silu, silu_slope}};

static void activation_forward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    const double *x = s4d_turn_load(t, 0), *bias = s4d_turn_load(t, 1);
    if ((bias && !s4d_turn_expect(t, 1, h)) || !s4d_turn_expect(t, 2, n))
        return;
    double *y = s4d_turn_new(t, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = functions[s4d_turn_constants(t)->activation.function].value(
            x[i] + (bias ? bias[i % h] : 0));
    s4d_turn_store(t, 2, y);
}

static void activation_backward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    const double *x = s4d_turn_load(t, 0), *bias = s4d_turn_load(t, 1);
    if ((bias && !s4d_turn_expect(t, 1, h)) || !s4d_turn_expect(t, 2, n) ||
        !s4d_turn_expect(t, 3, n))
        return;
    const double *dy = s4d_turn_load(t, 2);
    double *dx = s4d_turn_new(t, n);
    for (int64_t i = 0; i < n; i++)
        dx[i] = dy[i] * functions[s4d_turn_constants(t)->activation.function].slope(
                            x[i] + (bias ? bias[i % h] : 0));
    s4d_turn_store(t, 3, dx);
}

static void bias(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 1), n = s4d_turn_elements(t, 1);
    if (!s4d_turn_expect(t, 0, h))
        return;
    const double *b = s4d_turn_load(t, 0);
    double *y = s4d_turn_load(t, 1);
    for (int64_t i = 0; i < n; i++)
        y[i] += b[i % h];
    s4d_turn_store(t, 1, y);
}

static void column_sum(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 1, h))
        return;
    const double *x = s4d_turn_load(t, 0);
    double *out = s4d_turn_load(t, 1);
    for (int64_t i = 0; i < n; i++)
        out[i % h] += x[i];
    s4d_turn_store(t, 1, out);
}

static void residual(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 0), n = s4d_turn_elements(t, 0);
    const double *a = s4d_turn_load(t, 0), *b = s4d_turn_load(t, 1), *c = s4d_turn_load(t, 2);
    if (!s4d_turn_expect(t, 1, n) || (c && !s4d_turn_expect(t, 2, h)) || !s4d_turn_expect(t, 3, n))
        return;
    double *out = s4d_turn_new(t, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = a[i] + b[i] + (c ? c[i % h] : 0);
    s4d_turn_store(t, 3, out);
}

static void embedding_forward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 2), tokens = s4d_turn_elements(t, 2) / h;
    int64_t first = s4d_turn_value(t, &s4d_turn_constants(t)->embedding.first),
            rows = s4d_turn_elements(t, 1) / h;
    if (!s4d_turn_expect(t, 0, tokens) || !s4d_turn_expect(t, 1, rows * h))
        return;
    const double *token = s4d_turn_load(t, 0), *w = s4d_turn_load(t, 1);
    double *x = s4d_turn_new(t, tokens * h);
    for (int64_t i = 0; i < tokens * h; i++) {
        int64_t row = (int64_t)token[i / h] - first;
        x[i] = token[i / h] >= 0 && row >= 0 && row < rows ? w[row * h + i % h] : 0;
    }
    s4d_turn_store(t, 2, x);
}

static void embedding_backward(struct s4d_turn *t)
{
    int64_t h = s4d_turn_columns(t, 1), tokens = s4d_turn_elements(t, 1) / h;
    int64_t first = s4d_turn_value(t, &s4d_turn_constants(t)->embedding.first),
            rows = s4d_turn_elements(t, 2) / h;
    if (!s4d_turn_expect(t, 0, tokens) || !s4d_turn_expect(t, 2, rows * h))
        return;
    const double *token = s4d_turn_load(t, 0), *dx = s4d_turn_load(t, 1);
    double *dw = s4d_turn_load(t, 2);
    for (int64_t i = 0; i < tokens * h; i++) {
        int64_t row = (int64_t)token[i / h] - first;
        if (token[i / h] >= 0 && row >= 0 && row < rows)
            dw[row * h + i % h] += dx[i];
    }
    s4d_turn_store(t, 2, dw);
}

static void position_forward(struct s4d_turn *t)
{
    int64_t table = s4d_turn_elements(t, 0), n = s4d_turn_elements(t, 1);
    if (!s4d_turn_expect(t, 1, n / table * table) ||
        s4d_turn_columns(t, 0) != s4d_turn_columns(t, 1))
        return;
    const double *p = s4d_turn_load(t, 0);
    double *x = s4d_turn_load(t, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] += p[i % table];
    s4d_turn_store(t, 1, x);
}

static void position_backward(struct s4d_turn *t)
{
    int64_t table = s4d_turn_elements(t, 1), n = s4d_turn_elements(t, 0);
    if (!s4d_turn_expect(t, 0, n / table * table) ||
        s4d_turn_columns(t, 0) != s4d_turn_columns(t, 1))
        return;
    const double *dx = s4d_turn_load(t, 0);
    double *dp = s4d_turn_load(t, 1);
    for (int64_t i = 0; i < n; i++)
        dp[i % table] += dx[i];
    s4d_turn_store(t, 1, dp);
}

const s4d_kernel s4d_layer_kernels[S4D_OP_KINDS] = {
    [S4D_OP_GEMM] = gemm,
    [S4D_OP_ATTENTION_FORWARD] = attention_forward,
    [S4D_OP_ATTENTION_BACKWARD] = attention_backward,
    [S4D_OP_NORM_PARTIAL] = norm_partial,
    [S4D_OP_NORM_APPLY] = norm_apply,
    [S4D_OP_NORM_BACKWARD_PARTIAL] = norm_backward_partial,
    [S4D_OP_NORM_BACKWARD_APPLY] = norm_backward_apply,
    [S4D_OP_ACTIVATION_FORWARD] = activation_forward,
    [S4D_OP_ACTIVATION_BACKWARD] = activation_backward,
    [S4D_OP_BIAS] = bias,
    [S4D_OP_COLUMN_SUM] = column_sum,
    [S4D_OP_RESIDUAL] = residual,
    [S4D_OP_EMBEDDING_FORWARD] = embedding_forward,
    [S4D_OP_EMBEDDING_BACKWARD] = embedding_backward,
    [S4D_OP_POSITION_FORWARD] = position_forward,
    [S4D_OP_POSITION_BACKWARD] = position_backward,
};
