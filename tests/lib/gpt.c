/* SPDX-License-Identifier: Apache-2.0 */
/* The serial GPT, a sequence at a time. s tokens, h hidden size, v vocabulary, f mlp width. */
#include "tests/lib/gpt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

enum { NORM1_W, NORM1_B, QKV_W, QKV_B, OUT_W, OUT_B, NORM2_W, NORM2_B, UP_W, UP_B, DOWN_W, DOWN_B };
enum { PER_LAYER = 12, TOKEN = 0, POSITION = 1, LAYERS = 2 };

static void declare(struct s4d_reference *r, const char *name, int layer, int64_t rows,
                    int64_t cols, int decay)
{
    char full[64];
    if (layer >= 0)
        snprintf(full, sizeof full, "h.%d.%s", layer, name);
    s4d_reference_add(r, layer >= 0 ? full : name, rows, cols, decay);
}

void s4d_gpt_declare(struct s4d_reference *r)
{
    const struct s4d_model *model = &r->model;
    int64_t h = model->hidden_size, f = model->ffn_hidden_size;
    int64_t kv = h / model->num_attention_heads * model->num_key_value_heads;
    declare(r, "wte.weight", -1, model->vocab_size, h, 1);
    declare(r, "wpe.weight", -1, model->seq_length, h, 1);
    for (int l = 0; l < model->num_layers; l++) {
        declare(r, "ln_1.weight", l, 1, h, 0);
        declare(r, "ln_1.bias", l, 1, h, 0);
        declare(r, "attn.c_attn.weight", l, h, h + 2 * kv, 1);
        declare(r, "attn.c_attn.bias", l, 1, h + 2 * kv, 0);
        declare(r, "attn.c_proj.weight", l, h, h, 1);
        declare(r, "attn.c_proj.bias", l, 1, h, 0);
        declare(r, "ln_2.weight", l, 1, h, 0);
        declare(r, "ln_2.bias", l, 1, h, 0);
        declare(r, "mlp.c_fc.weight", l, h, f, 1);
        declare(r, "mlp.c_fc.bias", l, 1, f, 0);
        declare(r, "mlp.c_proj.weight", l, f, h, 1);
        declare(r, "mlp.c_proj.bias", l, 1, h, 0);
    }
    declare(r, "ln_f.weight", -1, 1, h, 0);
    declare(r, "ln_f.bias", -1, 1, h, 0);
    if (!model->tie_word_embeddings)
        declare(r, "lm_head.weight", -1, model->vocab_size, h, 1);
}

/* y (s,n) = x (s,k) w (k,n) + b */
static void affine(const double *x, const double *w, const double *b, int64_t s, int64_t k,
                   int64_t n, double *y)
{
    for (int64_t t = 0; t < s; t++)
        for (int64_t j = 0; j < n; j++) {
            y[t * n + j] = b[j];
            for (int64_t i = 0; i < k; i++)
                y[t * n + j] += x[t * k + i] * w[i * n + j];
        }
}

/* Of the above: dx = dy w^T, dw += x^T dy, db += sum of rows of dy. */
static void affine_backward(const double *x, const double *dy, int64_t s,
                            struct s4d_reference_param *w, struct s4d_reference_param *b,
                            double *dx)
{
    int64_t k = w->rows, n = w->cols;
    memset(dx, 0, (size_t)(s * k) * sizeof *dx);
    for (int64_t t = 0; t < s; t++)
        for (int64_t j = 0; j < n; j++) {
            b->g[j] += dy[t * n + j];
            for (int64_t i = 0; i < k; i++) {
                dx[t * k + i] += dy[t * n + j] * w->w[i * n + j];
                w->g[i * n + j] += x[t * k + i] * dy[t * n + j];
            }
        }
}

static double mean_of(const double *x, int64_t h)
{
    double sum = 0;
    for (int64_t i = 0; i < h; i++)
        sum += x[i];
    return sum / (double)h;
}

static double deviation_of(const double *x, int64_t h, double mean, double epsilon)
{
    double sum = 0;
    for (int64_t i = 0; i < h; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / (double)h + epsilon);
}

static void layer_norm(const double *x, const double *w, const double *b, int64_t s, int64_t h,
                       double epsilon, double *y)
{
    for (int64_t t = 0; t < s; t++, x += h, y += h) {
        double mean = mean_of(x, h), deviation = deviation_of(x, h, mean, epsilon);
        for (int64_t i = 0; i < h; i++)
            y[i] = (x[i] - mean) / deviation * w[i] + b[i];
    }
}

/* dx += the gradient through the norm. */
static void layer_norm_backward(const double *x, const double *dy, int64_t s, double epsilon,
                                struct s4d_reference_param *w, struct s4d_reference_param *b,
                                double *dx)
{
    int64_t h = w->n;
    for (int64_t t = 0; t < s; t++, x += h, dy += h, dx += h) {
        double mean = mean_of(x, h), deviation = deviation_of(x, h, mean, epsilon);
        double first = 0, second = 0;
        for (int64_t i = 0; i < h; i++) {
            double unit = (x[i] - mean) / deviation, d = dy[i] * w->w[i];
            first += d / (double)h;
            second += d * unit / (double)h;
            w->g[i] += dy[i] * unit;
            b->g[i] += dy[i];
        }
        for (int64_t i = 0; i < h; i++) {
            double unit = (x[i] - mean) / deviation;
            dx[i] += (dy[i] * w->w[i] - first - unit * second) / deviation;
        }
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3))));
}

static double gelu_derivative(double x)
{
    double a = sqrt(2 / M_PI), u = a * (x + 0.044715 * pow(x, 3)), sech = 1 / cosh(u);
    return 0.5 * (1 + tanh(u)) + 0.5 * x * sech * sech * a * (1 + 3 * 0.044715 * x * x);
}

/* Shapes of attention: q|k|v of a token lie in one row. */
struct shape {
    int64_t s, h, heads, kv_heads, dim, row;
};

static struct shape shape_of(const struct s4d_model *m)
{
    struct shape a = {m->seq_length,
                      m->hidden_size,
                      m->num_attention_heads,
                      m->num_key_value_heads,
                      m->hidden_size / m->num_attention_heads,
                      0};
    a.row = a.h + 2 * a.kv_heads * a.dim;
    return a;
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static int64_t key_column(const struct shape *a, int64_t head)
{
    return a->h + head * a->kv_heads / a->heads * a->dim;
}

static int64_t value_column(const struct shape *a, int64_t head)
{
    return key_column(a, head) + a->kv_heads * a->dim;
}

/* weights (heads,s,s): row i is the softmax over j <= i; out (s,h). */
static void attend(const struct shape *a, const double *qkv, double *weights, double *out)
{
    memset(out, 0, (size_t)(a->s * a->h) * sizeof *out);
    for (int64_t head = 0; head < a->heads; head++)
        for (int64_t i = 0; i < a->s; i++) {
            double *w = weights + (head * a->s + i) * a->s, max = -INFINITY, sum = 0;
            for (int64_t j = 0; j <= i; j++) {
                w[j] = dot(qkv + i * a->row + head * a->dim, qkv + j * a->row + key_column(a, head),
                           a->dim) /
                       sqrt((double)a->dim);
                max = fmax(max, w[j]);
            }
            for (int64_t j = 0; j <= i; j++)
                sum += w[j] = exp(w[j] - max);
            for (int64_t j = 0; j <= i; j++) {
                w[j] /= sum;
                for (int64_t d = 0; d < a->dim; d++)
                    out[i * a->h + head * a->dim + d] +=
                        w[j] * qkv[j * a->row + value_column(a, head) + d];
            }
        }
}

static void attend_backward(const struct shape *a, const double *qkv, const double *weights,
                            const double *dout, double *dqkv)
{
    double *dw = s4d_malloc((size_t)a->s * sizeof *dw);
    memset(dqkv, 0, (size_t)(a->s * a->row) * sizeof *dqkv);
    for (int64_t head = 0; head < a->heads; head++)
        for (int64_t i = 0; i < a->s; i++) {
            const double *w = weights + (head * a->s + i) * a->s;
            const double *d_o = dout + i * a->h + head * a->dim;
            double mean = 0;
            for (int64_t j = 0; j <= i; j++) {
                dw[j] = dot(d_o, qkv + j * a->row + value_column(a, head), a->dim);
                mean += w[j] * dw[j];
            }
            for (int64_t j = 0; j <= i; j++)
                for (int64_t d = 0; d < a->dim; d++) {
                    int64_t q = i * a->row + head * a->dim + d;
                    int64_t k = j * a->row + key_column(a, head) + d;
                    double ds = w[j] * (dw[j] - mean) / sqrt((double)a->dim);
                    dqkv[q] += ds * qkv[k];
                    dqkv[k] += ds * qkv[q];
                    dqkv[j * a->row + value_column(a, head) + d] += w[j] * d_o[d];
                }
        }
    free(dw);
}

/* What a block keeps of one sequence. x: its input; mid: after the attention's residual. */
struct block {
    double *x, *norm1, *qkv, *weights, *attended, *mid, *norm2, *up, *active;
};

struct pass {
    struct s4d_reference *r;
    struct shape a;
    int64_t f, v;
    struct block *blocks;
    double *last, *norm, *logits; /* (s,h) after all blocks, its norm, (s,v) */
    struct s4d_arena memory;
};

static double *take(struct pass *p, int64_t n)
{
    return s4d_arena_alloc(&p->memory, (size_t)n * sizeof(double));
}

static struct pass pass_make(struct s4d_reference *r)
{
    struct pass p = {
        .r = r, .a = shape_of(&r->model), .f = r->model.ffn_hidden_size, .v = r->model.vocab_size};
    int64_t sh = p.a.s * p.a.h;
    p.blocks = s4d_arena_alloc(&p.memory, (size_t)r->model.num_layers * sizeof *p.blocks);
    for (int l = 0; l < r->model.num_layers; l++) {
        struct block b = {take(&p, sh),
                          take(&p, sh),
                          take(&p, p.a.s * p.a.row),
                          take(&p, p.a.heads * p.a.s * p.a.s),
                          take(&p, sh),
                          take(&p, sh),
                          take(&p, sh),
                          take(&p, p.a.s * p.f),
                          take(&p, p.a.s * p.f)};
        p.blocks[l] = b;
    }
    p.last = take(&p, sh);
    p.norm = take(&p, sh);
    p.logits = take(&p, p.a.s * p.v);
    return p;
}

static struct s4d_reference_param *of_layer(struct pass *p, int layer, int which)
{
    return &p->r->params[LAYERS + layer * PER_LAYER + which];
}

static struct s4d_reference_param *after_layers(struct pass *p, int which)
{
    return of_layer(p, p->r->model.num_layers, which);
}

static struct s4d_reference_param *head_of(struct pass *p)
{
    return p->r->model.tie_word_embeddings ? &p->r->params[TOKEN] : after_layers(p, 2);
}

static void block_forward(struct pass *p, int l, double *out)
{
    struct block *b = &p->blocks[l];
    int64_t s = p->a.s, h = p->a.h;
    double epsilon = p->r->model.norm_epsilon;
#define W(which) (of_layer(p, l, which)->w)
    layer_norm(b->x, W(NORM1_W), W(NORM1_B), s, h, epsilon, b->norm1);
    affine(b->norm1, W(QKV_W), W(QKV_B), s, h, p->a.row, b->qkv);
    attend(&p->a, b->qkv, b->weights, b->attended);
    affine(b->attended, W(OUT_W), W(OUT_B), s, h, h, b->mid);
    for (int64_t i = 0; i < s * h; i++)
        b->mid[i] += b->x[i];
    layer_norm(b->mid, W(NORM2_W), W(NORM2_B), s, h, epsilon, b->norm2);
    affine(b->norm2, W(UP_W), W(UP_B), s, h, p->f, b->up);
    for (int64_t i = 0; i < s * p->f; i++)
        b->active[i] = gelu(b->up[i]);
    affine(b->active, W(DOWN_W), W(DOWN_B), s, p->f, h, out);
    for (int64_t i = 0; i < s * h; i++)
        out[i] += b->mid[i];
#undef W
}

static void forward(struct pass *p, const int32_t *tokens)
{
    int64_t s = p->a.s, h = p->a.h;
    int layers = p->r->model.num_layers;
    double *x = layers ? p->blocks[0].x : p->last;
    for (int64_t i = 0; i < s * h; i++) {
        x[i] = p->r->params[POSITION].w[i];
        if (tokens[i / h] >= 0)
            x[i] += p->r->params[TOKEN].w[tokens[i / h] * h + i % h];
    }
    for (int l = 0; l < layers; l++)
        block_forward(p, l, l + 1 < layers ? p->blocks[l + 1].x : p->last);
    layer_norm(p->last, after_layers(p, 0)->w, after_layers(p, 1)->w, s, h,
               p->r->model.norm_epsilon, p->norm);
    for (int64_t i = 0; i < s * p->v; i++)
        p->logits[i] = dot(p->norm + i / p->v * h, head_of(p)->w + i % p->v * h, h);
}

/* Summed cross entropy of a sequence; logits become their gradient times `factor`. */
static double cross_entropy(struct pass *p, const int32_t *targets, double factor)
{
    double loss = 0;
    for (int64_t t = 0; t < p->a.s; t++) {
        double *z = p->logits + t * p->v, max = z[0], sum = 0;
        for (int64_t j = 0; j < p->v; j++)
            max = fmax(max, z[j]);
        for (int64_t j = 0; j < p->v; j++)
            sum += exp(z[j] - max);
        if (targets[t] >= 0)
            loss -= z[targets[t]] - max - log(sum);
        for (int64_t j = 0; j < p->v; j++)
            z[j] = targets[t] < 0 ? 0 : factor * (exp(z[j] - max) / sum - (j == targets[t]));
    }
    return loss;
}

/* d: the gradient of the block's output, which becomes that of its input. */
static void block_backward(struct pass *p, int l, double *d)
{
    struct block *b = &p->blocks[l];
    int64_t s = p->a.s, h = p->a.h;
    double *wide = s4d_malloc((size_t)(s * (p->f + p->a.row)) * sizeof *wide);
    double *narrow = s4d_malloc((size_t)(s * h) * sizeof *narrow), *dqkv = wide + s * p->f;
#define P(which) of_layer(p, l, which)
    affine_backward(b->active, d, s, P(DOWN_W), P(DOWN_B), wide);
    for (int64_t i = 0; i < s * p->f; i++)
        wide[i] *= gelu_derivative(b->up[i]);
    affine_backward(b->norm2, wide, s, P(UP_W), P(UP_B), narrow);
    layer_norm_backward(b->mid, narrow, s, p->r->model.norm_epsilon, P(NORM2_W), P(NORM2_B), d);
    affine_backward(b->attended, d, s, P(OUT_W), P(OUT_B), narrow);
    attend_backward(&p->a, b->qkv, b->weights, narrow, dqkv);
    affine_backward(b->norm1, dqkv, s, P(QKV_W), P(QKV_B), narrow);
    layer_norm_backward(b->x, narrow, s, p->r->model.norm_epsilon, P(NORM1_W), P(NORM1_B), d);
#undef P
    free(wide);
    free(narrow);
}

static void backward(struct pass *p, const int32_t *tokens)
{
    int64_t s = p->a.s, h = p->a.h;
    double *d_norm = s4d_calloc((size_t)(2 * s * h), sizeof *d_norm), *d = d_norm + s * h;
    struct s4d_reference_param *head = head_of(p);
    for (int64_t t = 0; t < s; t++)
        for (int64_t j = 0; j < p->v; j++)
            for (int64_t i = 0; i < h; i++) {
                d_norm[t * h + i] += p->logits[t * p->v + j] * head->w[j * h + i];
                head->g[j * h + i] += p->logits[t * p->v + j] * p->norm[t * h + i];
            }
    layer_norm_backward(p->last, d_norm, s, p->r->model.norm_epsilon, after_layers(p, 0),
                        after_layers(p, 1), d);
    for (int l = p->r->model.num_layers - 1; l >= 0; l--)
        block_backward(p, l, d);
    for (int64_t i = 0; i < s * h; i++) {
        p->r->params[POSITION].g[i] += d[i];
        if (tokens[i / h] >= 0)
            p->r->params[TOKEN].g[tokens[i / h] * h + i % h] += d[i];
    }
    free(d_norm);
}

double s4d_gpt_sequence(struct s4d_reference *r, const int32_t *inputs, const int32_t *targets,
                        double factor)
{
    struct pass p = pass_make(r);
    forward(&p, inputs);
    double loss = cross_entropy(&p, targets, factor);
    if (factor != 0)
        backward(&p, inputs);
    s4d_arena_free(&p.memory);
    return loss;
}
