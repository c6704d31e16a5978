/* SPDX-License-Identifier: Apache-2.0 */
/* What the serial models share: parameters, targets, the loss of a batch, AdamW. */
#include "tests/lib/reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/lib/gpt.h"
#include "tests/lib/llama.h"

void s4d_reference_add(struct s4d_reference *r, const char *name, int64_t rows, int64_t cols,
                       int decay)
{
    struct s4d_reference_param *p = &r->params[r->n_params++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->rows = rows;
    p->cols = cols;
    p->n = rows * cols;
    p->decay = decay;
    double **arrays[] = {&p->w, &p->g, &p->m, &p->v};
    for (int i = 0; i < 4; i++)
        *arrays[i] = s4d_calloc((size_t)p->n, sizeof(double));
}

struct s4d_reference *s4d_reference_create(const struct s4d_model *model)
{
    struct s4d_reference *r = s4d_calloc(1, sizeof *r);
    r->model = *model;
    r->params = s4d_calloc((size_t)(12 * model->num_layers + 5), sizeof *r->params);
    if (s4d_is_llama(model))
        s4d_llama_declare(r);
    else
        s4d_gpt_declare(r);
    return r;
}

void s4d_reference_free(struct s4d_reference *r)
{
    for (int i = 0; r && i < r->n_params; i++) {
        free(r->params[i].w);
        free(r->params[i].g);
        free(r->params[i].m);
        free(r->params[i].v);
    }
    if (r)
        free(r->params);
    free(r);
}

struct s4d_reference_param *s4d_reference_find(struct s4d_reference *r, const char *name)
{
    if (strncmp(name, "transformer.", 12) == 0)
        name += 12;
    for (int i = 0; i < r->n_params; i++)
        if (strcmp(r->params[i].name, name) == 0)
            return &r->params[i];
    return NULL;
}

/* 64-bit FNV-1a, a word at a time, and murmur3's finaliser: what schedule/op.h says of the op. */
static uint64_t hash_of(const int32_t *tokens, int n)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < n; i++) {
        h ^= (uint64_t)(uint32_t)tokens[i];
        h *= 1099511628211u;
    }
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

void s4d_reference_targets(const struct s4d_model *model, const int32_t *tokens, int32_t *targets)
{
    int h = model->goldfish_h, k = model->goldfish_k;
    for (int i = 1; i <= model->seq_length; i++) {
        bool drop = k > 0 && i >= h && hash_of(tokens + i - h, h) % (uint64_t)k == 0;
        targets[i - 1] = drop ? -1 : tokens[i];
    }
}

static double run(struct s4d_reference *r, const int32_t *tokens, int batch, int with_gradient)
{
    int s = r->model.seq_length;
    int32_t *targets = s4d_malloc((size_t)(batch * s) * sizeof *targets);
    double kept = 0, loss = 0;
    for (int b = 0; b < batch; b++)
        s4d_reference_targets(&r->model, tokens + b * (s + 1), targets + b * s);
    for (int i = 0; i < batch * s; i++)
        kept += targets[i] >= 0;
    for (int b = 0; b < batch; b++)
        loss += (s4d_is_llama(&r->model) ? s4d_llama_sequence : s4d_gpt_sequence)(
            r, tokens + b * (s + 1), targets + b * s, with_gradient ? 1 / kept : 0);
    free(targets);
    return loss / kept;
}

double s4d_reference_loss(struct s4d_reference *r, const int32_t *tokens, int batch)
{
    return run(r, tokens, batch, 0);
}

double s4d_reference_gradient(struct s4d_reference *r, const int32_t *tokens, int batch)
{
    for (int i = 0; i < r->n_params; i++)
        memset(r->params[i].g, 0, (size_t)r->params[i].n * sizeof(double));
    return run(r, tokens, batch, 1);
}

double s4d_reference_update(struct s4d_reference *r, const struct s4d_reference_adamw *o)
{
    double norm = 0, clip = 1;
    for (int q = 0; q < r->n_params; q++)
        for (int64_t i = 0; i < r->params[q].n; i++)
            norm += r->params[q].g[i] * r->params[q].g[i];
    norm = sqrt(norm);
    if (o->clip_norm > 0) /* as torch.nn.utils.clip_grad_norm_ */
        clip = fmin(1, o->clip_norm / (norm + 1e-6));
    double step = (double)++r->step;
    for (int q = 0; q < r->n_params; q++) {
        struct s4d_reference_param *p = &r->params[q];
        for (int64_t i = 0; i < p->n; i++) {
            double g = p->g[i] * clip;
            p->m[i] += (1 - o->beta1) * (g - p->m[i]);
            p->v[i] += (1 - o->beta2) * (g * g - p->v[i]);
            if (p->decay)
                p->w[i] *= 1 - o->learning_rate * o->weight_decay;
            p->w[i] -= o->learning_rate * p->m[i] / (1 - pow(o->beta1, step)) /
                       (sqrt(p->v[i] / (1 - pow(o->beta2, step))) + o->epsilon);
        }
    }
    return norm;
}
