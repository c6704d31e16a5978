/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence at a time. s tokens, h hidden size, d head size, f inner width, v vocabulary. */
#include "tests/lib/llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

enum { NORM1, QKV, OUT, NORM2, UP, DOWN, PER_LAYER };

bool s4d_is_llama(const struct s4d_model *model)
{
    return strcmp(model->attention, "grouped-query") == 0;
}

struct sizes {
    int s, h, heads, kv, d, row, f, v, layers;
};

static struct sizes sizes_of(const struct s4d_model *m)
{
    int d = m->head_dim > 0 ? m->head_dim : m->hidden_size / m->num_attention_heads;
    return (struct sizes){.s = m->seq_length,
                          .h = m->hidden_size,
                          .heads = m->num_attention_heads,
                          .kv = m->num_key_value_heads,
                          .d = d,
                          .row = (m->num_attention_heads + 2 * m->num_key_value_heads) * d,
                          .f = m->ffn_hidden_size,
                          .v = m->vocab_size,
                          .layers = m->num_layers};
}

void s4d_llama_declare(struct s4d_reference *r)
{
    struct sizes z = sizes_of(&r->model);
    s4d_reference_add(r, "model.embed_tokens.weight", z.v, z.h, 1);
    for (int l = 0; l < z.layers; l++) {
        const struct {
            const char *name;
            int rows, cols;
        } of[PER_LAYER] = {{"input_layernorm", 1, z.h},
                           {"self_attn.qkv_proj", z.h, z.row},
                           {"self_attn.o_proj", z.heads * z.d, z.h},
                           {"post_attention_layernorm", 1, z.h},
                           {"mlp.gate_up_proj", z.h, 2 * z.f},
                           {"mlp.down_proj", z.f, z.h}};
        for (int i = 0; i < PER_LAYER; i++) {
            char name[64];
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", l, of[i].name);
            s4d_reference_add(r, name, of[i].rows, of[i].cols, of[i].rows > 1);
        }
    }
    s4d_reference_add(r, "model.norm.weight", 1, z.h, 0);
    if (!r->model.tie_word_embeddings)
        s4d_reference_add(r, "lm_head.weight", z.v, z.h, 1);
}

/* y = x w */
static void multiply(const double *x, const struct s4d_reference_param *w, int s, double *y)
{
    memset(y, 0, (size_t)(s * w->cols) * sizeof *y);
    for (int t = 0; t < s; t++)
        for (int64_t k = 0; k < w->rows; k++)
            for (int64_t n = 0; n < w->cols; n++)
                y[t * w->cols + n] += x[t * w->rows + k] * w->w[k * w->cols + n];
}

/* dx = dy w^T, dw += x^T dy */
static void multiply_backward(const double *x, struct s4d_reference_param *w, int s,
                              const double *dy, double *dx)
{
    memset(dx, 0, (size_t)(s * w->rows) * sizeof *dx);
    for (int t = 0; t < s; t++)
        for (int64_t k = 0; k < w->rows; k++)
            for (int64_t n = 0; n < w->cols; n++) {
                dx[t * w->rows + k] += dy[t * w->cols + n] * w->w[k * w->cols + n];
                w->g[k * w->cols + n] += x[t * w->rows + k] * dy[t * w->cols + n];
            }
}

static double root_mean_square(const double *x, int h, double epsilon)
{
    double square = 0;
    for (int i = 0; i < h; i++)
        square += x[i] * x[i] / h;
    return sqrt(square + epsilon);
}

static void rms_norm(const double *x, const struct s4d_reference_param *g, int s, double epsilon,
                     double *y)
{
    int h = (int)g->cols;
    for (int t = 0; t < s; t++)
        for (int i = 0; i < h; i++)
            y[t * h + i] = g->w[i] * (x[t * h + i] / root_mean_square(x + t * h, h, epsilon));
}

/* y_i = g_i x_i / m with m = sqrt(mean x^2 + epsilon), dm/dx_j = x_j / (h m): dx += the sum of
 * both. */
static void rms_norm_backward(const double *x, struct s4d_reference_param *g, int s, double epsilon,
                              const double *dy, double *dx)
{
    int h = (int)g->cols;
    for (int t = 0; t < s; t++, x += h, dy += h, dx += h) {
        double m = root_mean_square(x, h, epsilon), dm = 0;
        for (int i = 0; i < h; i++) {
            g->g[i] += dy[i] * x[i] / m;
            dm -= dy[i] * g->w[i] * x[i] / (m * m);
        }
        for (int i = 0; i < h; i++)
            dx[i] += dy[i] * g->w[i] / m + dm * x[i] / (h * m);
    }
}

/* LlamaRotaryEmbedding's inv_freq, with _compute_llama3_parameters where asked for. */
static double inverse_frequency(const struct s4d_model *m, int d, int pair)
{
    double f = 1 / pow(m->rope_theta, 2.0 * pair / d), wavelength = 2 * M_PI / f;
    if (m->rope_scaling_factor == 0)
        return f;
    double original = m->rope_original_max_position_embeddings;
    double low = original / m->rope_low_freq_factor, high = original / m->rope_high_freq_factor;
    if (wavelength < high)
        return f;
    if (wavelength > low)
        return f / m->rope_scaling_factor;
    double smooth = (original / wavelength - m->rope_low_freq_factor) /
                    (m->rope_high_freq_factor - m->rope_low_freq_factor);
    return (1 - smooth) * f / m->rope_scaling_factor + smooth * f;
}

/* apply_rotary_pos_emb on q and k: x cos + rotate_half(x) sin, rotate_half = (-second, first half);
 * transposed for gradients. */
static void rotate(const struct s4d_model *m, const struct sizes *z, double *qkv, bool transposed)
{
    double *old = s4d_malloc((size_t)z->d * sizeof *old);
    for (int t = 0; t < z->s; t++)
        for (int head = 0; head < z->heads + z->kv; head++) {
            double *x = qkv + t * z->row + head * z->d;
            memcpy(old, x, (size_t)z->d * sizeof *old);
            for (int j = 0; j < z->d; j++) {
                bool first = j < z->d / 2;
                int other = first ? j + z->d / 2 : j - z->d / 2;
                double angle = t * inverse_frequency(m, z->d, first ? j : other);
                double sign = first != transposed ? -1 : 1;
                x[j] = old[j] * cos(angle) + sign * old[other] * sin(angle);
            }
        }
    free(old);
}

/* Pointers to token t's q of a head, and to the k and v it shares. */
static int q_at(const struct sizes *z, int t, int head)
{
    return t * z->row + head * z->d;
}

static int k_at(const struct sizes *z, int t, int head)
{
    return t * z->row + (z->heads + head * z->kv / z->heads) * z->d;
}

static int v_at(const struct sizes *z, int t, int head)
{
    return k_at(z, t, head) + z->kv * z->d;
}

static double dot(const double *a, const double *b, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* p (heads, s, s), out (s, heads d) */
static void attend(const struct sizes *z, const double *qkv, double *p, double *out)
{
    memset(out, 0, (size_t)(z->s * z->heads * z->d) * sizeof *out);
    for (int head = 0; head < z->heads; head++)
        for (int i = 0; i < z->s; i++) {
            double *w = p + (head * z->s + i) * z->s, sum = 0;
            for (int j = 0; j <= i; j++)
                sum += w[j] =
                    exp(dot(qkv + q_at(z, i, head), qkv + k_at(z, j, head), z->d) / sqrt(z->d));
            for (int j = 0; j <= i; j++) {
                w[j] /= sum;
                for (int c = 0; c < z->d; c++)
                    out[(i * z->heads + head) * z->d + c] += w[j] * qkv[v_at(z, j, head) + c];
            }
        }
}

static void attend_backward(const struct sizes *z, const double *qkv, const double *p,
                            const double *d_out, double *d)
{
    memset(d, 0, (size_t)(z->s * z->row) * sizeof *d);
    for (int head = 0; head < z->heads; head++)
        for (int i = 0; i < z->s; i++) {
            const double *w = p + (head * z->s + i) * z->s;
            const double *d_o = d_out + (i * z->heads + head) * z->d;
            double mean = 0;
            for (int j = 0; j <= i; j++)
                mean += w[j] * dot(d_o, qkv + v_at(z, j, head), z->d);
            for (int j = 0; j <= i; j++) {
                double score = w[j] * (dot(d_o, qkv + v_at(z, j, head), z->d) - mean) / sqrt(z->d);
                for (int c = 0; c < z->d; c++) {
                    d[q_at(z, i, head) + c] += score * qkv[k_at(z, j, head) + c];
                    d[k_at(z, j, head) + c] += score * qkv[q_at(z, i, head) + c];
                    d[v_at(z, j, head) + c] += w[j] * d_o[c];
                }
            }
        }
}

/* What a layer keeps. x: its input; mid: after the attention's residual. */
struct layer {
    double *x, *norm1, *qkv, *p, *attended, *mid, *norm2, *up, *active;
};

struct pass {
    struct s4d_reference *r;
    struct sizes z;
    struct layer *layers;
    double *last, *norm;
    struct s4d_arena memory;
};

static double *take(struct pass *p, int n)
{
    return s4d_arena_alloc(&p->memory, (size_t)n * sizeof(double));
}

static struct s4d_reference_param *of_layer(const struct pass *p, int layer, int which)
{
    return &p->r->params[1 + layer * PER_LAYER + which];
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void layer_forward(struct pass *p, int l, double *out)
{
    struct layer *a = &p->layers[l];
    const struct sizes *z = &p->z;
    int sh = z->s * z->h;
    double epsilon = p->r->model.norm_epsilon;
    a->norm1 = take(p, sh);
    a->qkv = take(p, z->s * z->row);
    a->p = take(p, z->heads * z->s * z->s);
    a->attended = take(p, z->s * z->heads * z->d);
    a->mid = take(p, sh);
    a->norm2 = take(p, sh);
    a->up = take(p, z->s * 2 * z->f);
    a->active = take(p, z->s * z->f);
    rms_norm(a->x, of_layer(p, l, NORM1), z->s, epsilon, a->norm1);
    multiply(a->norm1, of_layer(p, l, QKV), z->s, a->qkv);
    rotate(&p->r->model, z, a->qkv, false);
    attend(z, a->qkv, a->p, a->attended);
    multiply(a->attended, of_layer(p, l, OUT), z->s, a->mid);
    for (int i = 0; i < sh; i++)
        a->mid[i] += a->x[i];
    rms_norm(a->mid, of_layer(p, l, NORM2), z->s, epsilon, a->norm2);
    multiply(a->norm2, of_layer(p, l, UP), z->s, a->up);
    for (int t = 0; t < z->s; t++)
        for (int i = 0; i < z->f; i++)
            a->active[t * z->f + i] =
                silu(a->up[t * 2 * z->f + i]) * a->up[t * 2 * z->f + z->f + i];
    multiply(a->active, of_layer(p, l, DOWN), z->s, out);
    for (int i = 0; i < sh; i++)
        out[i] += a->mid[i];
}

/* d: the gradient of the layer's output, which becomes that of its input. */
static void layer_backward(struct pass *p, int l, double *d)
{
    struct layer *a = &p->layers[l];
    const struct sizes *z = &p->z;
    double epsilon = p->r->model.norm_epsilon;
    double *d_active = take(p, z->s * z->f), *d_up = take(p, z->s * 2 * z->f);
    double *narrow = take(p, z->s * z->h), *d_qkv = take(p, z->s * z->row);
    double *d_attended = take(p, z->s * z->heads * z->d);
    multiply_backward(a->active, of_layer(p, l, DOWN), z->s, d, d_active);
    for (int t = 0; t < z->s; t++)
        for (int i = 0; i < z->f; i++) {
            double gate = a->up[t * 2 * z->f + i], up = a->up[t * 2 * z->f + z->f + i];
            double e = exp(-gate), slope = (1 + e + gate * e) / ((1 + e) * (1 + e));
            d_up[t * 2 * z->f + i] = d_active[t * z->f + i] * up * slope;
            d_up[t * 2 * z->f + z->f + i] = d_active[t * z->f + i] * silu(gate);
        }
    multiply_backward(a->norm2, of_layer(p, l, UP), z->s, d_up, narrow);
    rms_norm_backward(a->mid, of_layer(p, l, NORM2), z->s, epsilon, narrow, d);
    multiply_backward(a->attended, of_layer(p, l, OUT), z->s, d, d_attended);
    attend_backward(z, a->qkv, a->p, d_attended, d_qkv);
    rotate(&p->r->model, z, d_qkv, true);
    multiply_backward(a->norm1, of_layer(p, l, QKV), z->s, d_qkv, narrow);
    rms_norm_backward(a->x, of_layer(p, l, NORM1), z->s, epsilon, narrow, d);
}

static void forward(struct pass *p, const int32_t *inputs)
{
    const struct sizes *z = &p->z;
    double *x = take(p, z->s * z->h);
    for (int i = 0; i < z->s * z->h; i++) {
        int token = inputs[i / z->h];
        x[i] = token < 0 ? 0 : p->r->params[0].w[token * z->h + i % z->h];
    }
    for (int l = 0; l < z->layers; l++) {
        p->layers[l].x = x;
        x = take(p, z->s * z->h);
        layer_forward(p, l, x);
    }
    p->last = x;
    p->norm = take(p, z->s * z->h);
    rms_norm(x, of_layer(p, z->layers, 0), z->s, p->r->model.norm_epsilon, p->norm);
}

/* The loss; d_norm: its gradient times factor, the head's own added to the head. */
static double head(struct pass *p, const int32_t *targets, double factor, double *d_norm)
{
    const struct sizes *z = &p->z;
    struct s4d_reference_param *w =
        p->r->model.tie_word_embeddings ? &p->r->params[0] : of_layer(p, z->layers, 1);
    double loss = 0, *y = take(p, z->v);
    for (int t = 0; t < z->s; t++) {
        double sum = 0;
        const double *x = p->norm + t * z->h;
        for (int j = 0; j < z->v; j++)
            sum += y[j] = exp(dot(x, w->w + j * z->h, z->h));
        if (targets[t] < 0)
            continue;
        loss -= log(y[targets[t]] / sum);
        for (int j = 0; j < z->v && factor != 0; j++)
            for (int i = 0; i < z->h; i++) {
                double d = factor * (y[j] / sum - (j == targets[t]));
                d_norm[t * z->h + i] += d * w->w[j * z->h + i];
                w->g[j * z->h + i] += d * x[i];
            }
    }
    return loss;
}

double s4d_llama_sequence(struct s4d_reference *r, const int32_t *inputs, const int32_t *targets,
                          double factor)
{
    struct pass p = {.r = r, .z = sizes_of(&r->model)};
    int sh = p.z.s * p.z.h;
    p.layers = s4d_arena_alloc(&p.memory, (size_t)p.z.layers * sizeof *p.layers);
    forward(&p, inputs);
    double *d_norm = take(&p, sh), *d = take(&p, sh);
    memset(d_norm, 0, (size_t)sh * sizeof *d_norm);
    memset(d, 0, (size_t)sh * sizeof *d);
    double loss = head(&p, targets, factor, d_norm);
    if (factor != 0) {
        rms_norm_backward(p.last, of_layer(&p, p.z.layers, 0), p.z.s, r->model.norm_epsilon, d_norm,
                          d);
        for (int l = p.z.layers - 1; l >= 0; l--)
            layer_backward(&p, l, d);
        for (int i = 0; i < sh; i++)
            if (inputs[i / p.z.h] >= 0)
                r->params[0].g[inputs[i / p.z.h] * p.z.h + i % p.z.h] += d[i];
    }
    s4d_arena_free(&p.memory);
    return loss;
}
