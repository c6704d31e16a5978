/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/build.h"
#include "schedule/check.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/numbers.h"
#include "tests/lib/reference.h"

struct s4d_case s4d_case_default(int heads, int x, int y, int z, int data)
{
    struct s4d_case c = {.model = {.name = "test",
                                   .num_layers = 2,
                                   .hidden_size = 4 * heads,
                                   .num_attention_heads = heads,
                                   .num_key_value_heads = heads,
                                   .ffn_hidden_size = 12 * heads,
                                   .vocab_size = 48,
                                   .seq_length = 8,
                                   .norm_epsilon = 1e-5,
                                   .init_std = 0.2,
                                   .tie_word_embeddings = true,
                                   .embedding = "vocabulary-parallel",
                                   .positions = "learned",
                                   .norm = "layernorm",
                                   .attention = "multi-head",
                                   .mlp = "gelu-mlp",
                                   .head = "cross-entropy"},
                         .grid = s4d_grid_make(x, y, z, data),
                         .options = s4d_options_default(),
                         .run = s4d_interpreter_options_default(),
                         .iterations = 1,
                         .dropped = 0.2};
    c.options.global_batch = 16;
    c.options.micro_batch = 1;
    c.options.precision = S4D_F32;
    c.options.clip_norm = 0.5;
    c.options.adam_epsilon = 1e-3;
    c.run.perturb = 0.1;
    c.run.planned = true;
    return c;
}

bool s4d_case_grid(int i, struct s4d_grid *grid)
{
    for (int x = 1; x <= 16; x *= 2)
        for (int y = 1; x * y <= 16; y *= 2)
            for (int z = 1; x * y * z <= 16; z *= 2)
                for (int data = 1; x * y * z * data <= 16; data *= 2)
                    if (i-- == 0) {
                        *grid = s4d_grid_make(x, y, z, data);
                        return true;
                    }
    return false;
}

static void tokens_of(void *context, int iteration, int64_t sequence, int32_t *tokens, int count)
{
    const struct s4d_case *c = context;
    if (c->fresh)
        sequence += (int64_t)iteration * c->options.global_batch;
    for (int i = 0; i < count; i++) {
        uint64_t index = (uint64_t)(sequence * count + i);
        tokens[i] = (int32_t)(s4d_uniform_at(11, index) * c->model.vocab_size);
        if (s4d_uniform_at(12, index) < c->dropped)
            tokens[i] = -1;
    }
}

struct s4d_interpreter_options s4d_case_run(const struct s4d_case *c)
{
    struct s4d_interpreter_options run = c->run;
    run.tokens = tokens_of;
    run.context = (void *)c;
    return run;
}

void s4d_trained_free(struct s4d_trained *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->params[i].gradient);
        free(t->params[i].weight);
    }
    free(t->params);
    memset(t, 0, sizeof *t);
}

static void add_param(struct s4d_trained *t, int i, const char *name, int64_t n)
{
    struct s4d_trained_param *p = &t->params[i];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->n = n;
    p->gradient = s4d_calloc((size_t)n, sizeof(double));
    p->weight = s4d_calloc((size_t)n, sizeof(double));
    t->n = i + 1;
}

/* Working weights are the masters rounded to their type. */
static int check_working(const struct s4d_interpreter *in, const struct s4d_program *p, int param,
                         const double *master, struct s4d_error *err)
{
    const struct s4d_param *q = &p->params[param];
    int64_t n = q->rows * s4d_param_cols(q);
    enum s4d_type type = p->tensors[q->working].type;
    double *working = s4d_malloc((size_t)n * sizeof *working);
    int rc = s4d_interpreter_whole(in, q, S4D_WHOLE_WORKING, working, err);
    for (int64_t i = 0; i < n && !rc; i++) {
        unsigned char bytes[8];
        s4d_number_store(type, bytes, master[i]);
        if (working[i] != s4d_number_load(type, bytes))
            rc =
                s4d_fail(err, S4D_EXIT_BUG, q->name, "working weight %lld is %.9g, the master %.9g",
                         (long long)i, working[i], master[i]);
    }
    free(working);
    return rc;
}

static int collect(const struct s4d_interpreter *in, const struct s4d_program *p, double scale,
                   struct s4d_trained *out, struct s4d_error *err)
{
    for (int i = 0; i < p->n_params; i++) {
        const struct s4d_param *q = &p->params[i];
        add_param(out, i, q->hf_name, q->rows * s4d_param_cols(q));
        struct s4d_trained_param *t = &out->params[i];
        if (s4d_interpreter_whole(in, q, S4D_WHOLE_GRADIENT, t->gradient, err) ||
            s4d_interpreter_whole(in, q, S4D_WHOLE_MASTER, t->weight, err) ||
            check_working(in, p, i, t->weight, err))
            return -1;
        for (int64_t e = 0; e < t->n; e++)
            t->gradient[e] /= scale;
    }
    return 0;
}

int s4d_train_program(const struct s4d_program *p, const struct s4d_case *c,
                      struct s4d_trained *out, struct s4d_error *err)
{
    struct s4d_interpreter_options run = s4d_case_run(c);
    memset(out, 0, sizeof *out);
    struct s4d_interpreter *in = s4d_interpreter_create(p, &run);
    out->params = s4d_calloc((size_t)p->n_params, sizeof *out->params);
    int rc = s4d_interpreter_run(in, c->iterations, err);
    for (int i = 0; i < c->iterations; i++) {
        out->loss[i] = s4d_interpreter_loss(in, i);
        out->grad_norm[i] = s4d_interpreter_grad_norm(in, i);
    }
    if (!rc)
        rc = collect(in, p, p->loss_scale >= 0 ? run.loss_scale : 1, out, err);
    s4d_interpreter_free(in);
    if (rc)
        s4d_trained_free(out);
    return rc;
}

int s4d_train(const struct s4d_case *c, struct s4d_trained *out, struct s4d_error *err)
{
    struct s4d_program p;
    if (s4d_build(&p, &c->model, &c->grid, &c->options, err))
        return -1;
    if (c->run.planned)
        s4d_plan(&p);
    int rc = s4d_check(&p, err);
    if (!rc)
        rc = s4d_train_program(&p, c, out, err);
    s4d_program_free(&p);
    return rc;
}

/* The initial weights as the masters hold them. */
static void initialise(struct s4d_reference *r, const struct s4d_case *c)
{
    struct s4d_program p;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    struct s4d_error err;
    S4D_ASSERT(s4d_build(&p, &c->model, &one, &c->options, &err) == 0, "%s", err.text);
    S4D_ASSERT(p.n_params == r->n_params, "%d parameters, the reference has %d", p.n_params,
               r->n_params);
    for (int i = 0; i < p.n_params; i++) {
        struct s4d_reference_param *to = s4d_reference_find(r, p.params[i].hf_name);
        S4D_ASSERT(to && to->rows == p.params[i].rows && to->cols == s4d_param_cols(&p.params[i]),
                   "%s: not the reference's", p.params[i].hf_name);
        for (int64_t e = 0; e < to->n; e++) {
            double w = s4d_interpreter_initial(&p.params[i], &c->run, e);
            to->w[e] = c->options.precision == S4D_F64 ? w : (double)(float)w;
        }
    }
    s4d_program_free(&p);
}

void s4d_train_reference(const struct s4d_case *c, struct s4d_trained *out)
{
    struct s4d_reference *r = s4d_reference_create(&c->model);
    const struct s4d_options *o = &c->options;
    struct s4d_reference_adamw adamw = {o->learning_rate, o->beta1,        o->beta2,
                                        o->adam_epsilon,  o->weight_decay, o->clip_norm};
    int row = c->model.seq_length + 1;
    int32_t *tokens = s4d_malloc((size_t)(o->global_batch * row) * sizeof *tokens);
    initialise(r, c);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < c->iterations; i++) {
        for (int b = 0; b < o->global_batch; b++)
            tokens_of((void *)c, i, b, tokens + b * row, row);
        out->loss[i] = s4d_reference_gradient(r, tokens, o->global_batch);
        out->grad_norm[i] = s4d_reference_update(r, &adamw);
    }
    out->params = s4d_calloc((size_t)r->n_params, sizeof *out->params);
    for (int i = 0; i < r->n_params; i++) {
        add_param(out, i, r->params[i].name, r->params[i].n);
        memcpy(out->params[i].gradient, r->params[i].g, (size_t)r->params[i].n * sizeof(double));
        memcpy(out->params[i].weight, r->params[i].w, (size_t)r->params[i].n * sizeof(double));
    }
    free(tokens);
    s4d_reference_free(r);
}

static double relative(const double *a, const double *b, int64_t n)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        apart += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return apart == 0 ? 0 : sqrt(apart / size);
}

static const struct s4d_trained_param *find(const struct s4d_trained *t, const char *name)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->params[i].name, name) == 0)
            return &t->params[i];
    s4d_bug(__FILE__, __LINE__, "find", "no parameter %s", name);
}

/* NaN counts as the largest of all. */
static void largest(double *most, const char **of, double value, const char *name)
{
    if (value <= *most)
        return;
    *most = isnan(value) ? INFINITY : value;
    *of = name;
}

struct s4d_difference s4d_compare(const struct s4d_case *c, const struct s4d_trained *a,
                                  const struct s4d_trained *b)
{
    struct s4d_difference d = {.gradient_of = "", .weight_of = ""};
    const char *unused;
    for (int i = 0; i < b->n; i++) {
        const struct s4d_trained_param *y = &b->params[i], *x = find(a, y->name);
        largest(&d.gradient, &d.gradient_of, relative(x->gradient, y->gradient, y->n), y->name);
        largest(&d.weight, &d.weight_of, relative(x->weight, y->weight, y->n), y->name);
    }
    for (int i = 0; i < c->iterations; i++) {
        largest(&d.loss, &unused, relative(&a->loss[i], &b->loss[i], 1), "");
        if (c->options.clip_norm > 0)
            largest(&d.grad_norm, &unused, relative(&a->grad_norm[i], &b->grad_norm[i], 1), "");
    }
    return d;
}

enum { DIRECTION = 77 };

double s4d_case_moved_loss(const struct s4d_program *p, const struct s4d_case *c, int param,
                           double e)
{
    struct s4d_interpreter_options run = s4d_case_run(c);
    struct s4d_interpreter *in = s4d_interpreter_create(p, &run);
    const struct s4d_param *q = &p->params[param];
    int coordinate[S4D_AXES];
    for (int rank = 0; rank < s4d_grid_ranks(&p->grid); rank++)
        for (int64_t i = 0; i < q->shard_elements; i++) {
            s4d_grid_coordinates(&p->grid, rank, coordinate);
            int64_t g = s4d_param_global_index(p, q, coordinate, i);
            if (g < 0)
                continue;
            double w = s4d_interpreter_get(in, rank, q->master, i);
            w += e * s4d_normal_at(DIRECTION, (uint64_t)g);
            s4d_interpreter_set(in, rank, q->master, i, w);
            s4d_interpreter_set(in, rank, q->working, i, w);
        }
    double loss = s4d_interpreter_run(in, 1, NULL) ? NAN : s4d_interpreter_loss(in, 0);
    s4d_interpreter_free(in);
    return loss;
}

double s4d_case_slope(const struct s4d_trained *t, int param, double *size)
{
    double slope = 0, square = 0;
    for (int64_t i = 0; i < t->params[param].n; i++) {
        double part = t->params[param].gradient[i] * s4d_normal_at(DIRECTION, (uint64_t)i);
        slope += part;
        square += part * part;
    }
    *size = sqrt(square);
    return slope;
}
