/* SPDX-License-Identifier: Apache-2.0 */
/* Saving: whole parameters from the ranks' shards, one after the other. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "real/checkpoint.h"
#include "real/checkpoint_tensor.h"
#include "support/memory.h"

/* One parameter's elements of a shard to where its tensors, back to back, have them. Returns how
 * many. */
static int64_t place(const struct s4d_program *p, const struct s4d_param *q,
                     const int coordinate[S4D_AXES], int bytes, const char *shard, char *whole)
{
    struct s4d_rectangle v[S4D_RECTANGLES];
    int n = s4d_shard_rectangles(p, q, coordinate, v);
    int64_t all = s4d_param_cols(q), placed = 0;
    for (int k = 0; k < n; k++) {
        const struct s4d_rectangle *r = &v[k];
        bool separate = q->hf_part_name[0] != NULL;
        int64_t before = 0, cols = separate ? q->part_cols[r->part] : all;
        for (int part = 0; part < r->part; part++)
            before += q->part_cols[part];
        int64_t base = separate ? before * q->rows : 0, col = r->col + (separate ? 0 : before);
        for (int64_t i = 0; i < r->rows; i++) {
            const char *from = shard + (r->local + i * r->local_stride) * bytes;
            if (!q->hf_transposed) {
                memcpy(whole + (base + (r->row + i) * cols + col) * bytes, from,
                       (size_t)(r->cols * bytes));
                continue;
            }
            for (int64_t j = 0; j < r->cols; j++)
                memcpy(whole + (base + (col + j) * q->rows + r->row + i) * bytes, from + j * bytes,
                       (size_t)bytes);
        }
        placed += r->rows * r->cols;
    }
    return placed;
}

static int start(const struct s4d_program *p, const char *file, enum s4d_dtype as,
                 const char *const *metadata, struct s4d_safetensors_writer **w,
                 struct s4d_error *err)
{
    struct s4d_safetensor *v = s4d_calloc((size_t)(p->n_params * S4D_PARTS + 1), sizeof *v);
    int n = 0, pairs = 0;
    for (int i = 0; i < p->n_params; i++)
        for (int part = 0; part < S4D_PARTS && s4d_checkpoint_tensor(&p->params[i], part, &v[n]);
             part++)
            v[n++].dtype = as;
    while (metadata && metadata[pairs])
        pairs += 2;
    const char **texts = s4d_calloc((size_t)pairs + 3, sizeof *texts);
    texts[0] = "format"; /* Hugging Face's loader wants to be told */
    texts[1] = "pt";
    if (pairs)
        memcpy(texts + 2, metadata, (size_t)pairs * sizeof *texts);
    int rc = s4d_safetensors_create(file, v, n, texts, w, err);
    free(texts);
    free(v);
    return rc;
}

/* Gathers one parameter. -1: fetch failed. */
static int gather(const struct s4d_program *p, int param, int bytes, s4d_shard_fetch *fetch,
                  void *context, char *shard, char *whole, struct s4d_error *err)
{
    const struct s4d_param *q = &p->params[param];
    int64_t placed = 0;
    int coordinate[S4D_AXES];
    for (int rank = 0; rank < s4d_grid_ranks(&p->grid); rank++) {
        if (!s4d_shard_is_saved(p, q, rank))
            continue;
        if (fetch(context, rank, param, shard, err))
            return -1;
        s4d_grid_coordinates(&p->grid, rank, coordinate);
        placed += place(p, q, coordinate, bytes, shard, whole);
    }
    S4D_ASSERT(placed == q->rows * s4d_param_cols(q), "%s: %" PRId64 " elements", q->name, placed);
    return 0;
}

int s4d_checkpoint_save(const struct s4d_program *p, const char *file, enum s4d_dtype as,
                        const char *const *metadata, s4d_shard_fetch *fetch, void *context,
                        struct s4d_error *err)
{
    struct s4d_safetensors_writer *w = NULL;
    int bytes = s4d_dtype_bytes[as], written = start(p, file, as, metadata, &w, err), rc = 0;
    for (int i = 0; i < p->n_params && !rc; i++) {
        const struct s4d_param *q = &p->params[i];
        size_t n = (size_t)(q->rows * s4d_param_cols(q) * bytes);
        char *shard = s4d_malloc((size_t)(q->shard_elements * bytes)), *whole = s4d_malloc(n);
        rc = gather(p, i, bytes, fetch, context, shard, whole, written ? NULL : err);
        if (!rc && !written)
            written = s4d_safetensors_write(w, whole, n, err);
        free(shard);
        free(whole);
    }
    if (!rc && !written)
        return s4d_safetensors_finish(w, err);
    s4d_safetensors_abandon(w);
    return -1;
}
