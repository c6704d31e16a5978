/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: the file's tensors against the program's parameters, then shards. */
#include "real/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/checkpoint_tensor.h"
#include "support/memory.h"

struct s4d_checkpoint {
    const struct s4d_program *p;
    char *file;
    struct s4d_safetensors *st;
    const struct s4d_safetensor *(*tensors)[S4D_PARTS]; /* of each parameter and its parts */
};

int s4d_checkpoint_tensor(const struct s4d_param *q, int part, struct s4d_safetensor *t)
{
    bool separate = q->hf_part_name[0] != NULL;
    if (part >= (separate ? q->parts : 1))
        return 0;
    int64_t cols = separate ? q->part_cols[part] : s4d_param_cols(q);
    *t = (struct s4d_safetensor){.name = separate ? q->hf_part_name[part] : q->hf_name,
                                 .dims = 2,
                                 .shape = {q->rows, cols},
                                 .elements = q->rows * cols};
    if (q->rows == 1 && !q->sharded_z && !q->decay) { /* a bias or gain, not one position */
        t->dims = 1;
        t->shape[0] = cols;
    } else if (q->hf_transposed) {
        t->shape[0] = cols;
        t->shape[1] = q->rows;
    }
    return 1;
}

/* By the name, or the one it has as part of a larger or smaller model's file. */
static const struct s4d_safetensor *find(const struct s4d_safetensors *st, const char *name)
{
    const struct s4d_safetensor *t = s4d_safetensors_find(st, name);
    if (!t && strncmp(name, "model.", 6) == 0)
        return s4d_safetensors_find(st, name + 6);
    if (t)
        return t;
    char *longer = s4d_asprintf("transformer.%s", name);
    t = s4d_safetensors_find(st, longer);
    free(longer);
    return t;
}

/* A list of names for a message: how many, and the first few. */
struct names {
    int n;
    char text[300];
};
static void add_name(struct names *v, const char *name)
{
    enum { SHOWN = 4 };
    size_t at = strlen(v->text);
    if (v->n < SHOWN)
        snprintf(v->text + at, sizeof v->text - at, "%s%.60s", v->n ? ", " : "", name);
    else if (v->n == SHOWN)
        snprintf(v->text + at, sizeof v->text - at, ", ...");
    v->n++;
}

static int check_shape(const struct s4d_checkpoint *c, const struct s4d_safetensor *expected,
                       const struct s4d_safetensor *found, struct s4d_error *err)
{
    char where[512], e[128], f[128];
    snprintf(where, sizeof where, "%.255s: %.250s", c->file, found->name);
    bool same = expected->dims == found->dims;
    for (int d = 0; d < expected->dims && same; d++)
        same = expected->shape[d] == found->shape[d];
    if (!same)
        return s4d_fail(err, S4D_EXIT_DATA, where, "expected shape %s, found %s",
                        s4d_safetensor_shape(expected, e, sizeof e),
                        s4d_safetensor_shape(found, f, sizeof f));
    if (found->dtype > S4D_DTYPE_BF16)
        return s4d_fail(err, S4D_EXIT_DATA, where, "expected F64, F32, F16 or BF16, found %s",
                        s4d_dtype_names[found->dtype]);
    return 0;
}

/* Fills c->tensors; missing ones are collected. */
static int match(struct s4d_checkpoint *c, struct names *missing, struct s4d_error *err)
{
    c->tensors = s4d_calloc((size_t)c->p->n_params, sizeof *c->tensors);
    for (int i = 0; i < c->p->n_params; i++) {
        struct s4d_safetensor expected;
        for (int part = 0;
             part < S4D_PARTS && s4d_checkpoint_tensor(&c->p->params[i], part, &expected); part++) {
            const struct s4d_safetensor *found = find(c->st, expected.name);
            if (!found)
                add_name(missing, expected.name);
            else if (check_shape(c, &expected, found, err))
                return -1;
            c->tensors[i][part] = found;
        }
    }
    return 0;
}

static bool is_used(const struct s4d_checkpoint *c, const struct s4d_safetensor *t)
{
    for (int i = 0; i < c->p->n_params; i++)
        for (int part = 0; part < S4D_PARTS; part++)
            if (c->tensors[i][part] == t)
                return true;
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Constants that some versions of the Hugging Face models saved with the weights. */
static bool is_constant(const char *name)
{
    return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias") ||
           ends_with(name, ".rotary_emb.inv_freq");
}

/* The head of a tied model is its embedding; a file that has both must agree. */
static int check_tied(const struct s4d_checkpoint *c, const struct s4d_safetensor *head,
                      struct s4d_error *err)
{
    enum { RUN = 1 << 16 };
    const struct s4d_safetensor *embedding = NULL;
    for (int i = 0; i < c->p->n_params; i++)
        if (c->p->params[i].layer < 0 && c->p->params[i].rows == c->p->model.vocab_size)
            embedding = c->tensors[i][0];
    bool same = embedding && embedding->dtype == head->dtype && embedding->dims == head->dims &&
                memcmp(embedding->shape, head->shape, sizeof head->shape) == 0;
    unsigned char *bytes = s4d_malloc(2 * RUN * 8);
    int rc = 0;
    for (int64_t i = 0; same && !rc && i < head->elements; i += RUN) {
        int64_t n = head->elements - i < RUN ? head->elements - i : RUN;
        rc = s4d_safetensors_bytes(c->st, head, i, n, bytes, err) ||
             s4d_safetensors_bytes(c->st, embedding, i, n, bytes + RUN * 8, err);
        same =
            rc || memcmp(bytes, bytes + RUN * 8, (size_t)(n * s4d_dtype_bytes[head->dtype])) == 0;
    }
    free(bytes);
    if (rc)
        return -1;
    if (!same)
        return s4d_fail(err, S4D_EXIT_DATA, c->file,
                        "%s differs from the embedding, but the model's are tied", head->name);
    return 0;
}

static int check_names(const struct s4d_checkpoint *c, const struct names *missing,
                       struct s4d_error *err)
{
    struct names unknown = {0};
    const struct s4d_safetensor *head = NULL;
    for (int i = 0; i < s4d_safetensors_count(c->st); i++) {
        const struct s4d_safetensor *t = s4d_safetensors_get(c->st, i);
        if (is_used(c, t) || is_constant(t->name))
            continue;
        if (c->p->model.tie_word_embeddings && strcmp(t->name, "lm_head.weight") == 0)
            head = t;
        else
            add_name(&unknown, t->name);
    }
    if (missing->n || unknown.n) {
        char text[800] = "";
        size_t at = 0;
        if (missing->n)
            at = (size_t)snprintf(text, sizeof text, "missing: %s (%d of the model's tensors)%s",
                                  missing->text, missing->n, unknown.n ? "; " : "");
        if (unknown.n)
            snprintf(text + at, sizeof text - at, "unknown to the model: %s (%d tensors)",
                     unknown.text, unknown.n);
        s4d_fail(err, S4D_EXIT_DATA, c->file, "%s", text);
        return s4d_hint(err, "is it a file of %s?", c->p->model.name);
    }
    return head ? check_tied(c, head, err) : 0;
}

int s4d_checkpoint_open(const struct s4d_program *p, const char *file, struct s4d_checkpoint **out,
                        struct s4d_error *err)
{
    struct s4d_checkpoint *c = s4d_calloc(1, sizeof *c);
    struct names missing = {0};
    *out = NULL;
    c->p = p;
    c->file = s4d_strdup(file);
    if (s4d_safetensors_open(file, &c->st, err) || match(c, &missing, err) ||
        check_names(c, &missing, err)) {
        s4d_checkpoint_close(c);
        return -1;
    }
    *out = c;
    return 0;
}

void s4d_checkpoint_close(struct s4d_checkpoint *c)
{
    if (!c)
        return;
    s4d_safetensors_close(c->st);
    free(c->tensors);
    free(c->file);
    free(c);
}

int s4d_checkpoint_read(const struct s4d_checkpoint *c, int param, const int coordinate[S4D_AXES],
                        enum s4d_dtype as, void *shard, struct s4d_error *err)
{
    const struct s4d_param *q = &c->p->params[param];
    struct s4d_rectangle v[S4D_RECTANGLES];
    int n = s4d_shard_rectangles(c->p, q, coordinate, v);
    memset(shard, 0, (size_t)(q->shard_elements * s4d_dtype_bytes[as]));
    for (int i = 0; i < n; i++) {
        int64_t col = v[i].col;
        bool separate = q->hf_part_name[0] != NULL;
        for (int part = 0; part < v[i].part && !separate; part++)
            col += q->part_cols[part];
        struct s4d_safetensors_block b = {v[i].row,  v[i].rows,         col,
                                          v[i].cols, v[i].local_stride, q->hf_transposed};
        if (q->hf_transposed)
            b = (struct s4d_safetensors_block){col,       v[i].cols,         v[i].row,
                                               v[i].rows, v[i].local_stride, true};
        if (s4d_safetensors_read(c->st, c->tensors[param][separate ? v[i].part : 0], &b, as,
                                 (char *)shard + v[i].local * s4d_dtype_bytes[as], err))
            return -1;
    }
    return 0;
}
