/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and gradients computed by PyTorch in fp64 (tests/torch/golden.py, which also says what the
 * files are) against programs on several grids, run by the interpreter: weights are loaded from the
 * golden file, tokens read from the golden tokens, and the gradients compared are those of the file
 * that a save writes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "real/checkpoint.h"
#include "real/tokens.h"
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/interpreter.h"
#include "workloads/workload.h"

enum { BATCH = 4 };

/* The run of one program. */
struct run {
    const char *name;
    struct s4d_program p;
    struct s4d_interpreter *in;
    struct s4d_token_source tokens;
    struct s4d_checkpoint *weights;
};

static void must(int rc, const struct run *r, const struct s4d_error *err)
{
    const int *g = r->p.grid.size;
    if (rc)
        fail_msg("%s, grid %dx%dx%dx%d: %s: %s", r->name, g[S4D_X], g[S4D_Y], g[S4D_Z], g[S4D_DATA],
                 err->where, err->text);
}

/* "tests/torch/NAME.ENDING" of the source tree. */
static char *golden(const char *name, const char *ending)
{
    return s4d_asprintf("%s/tests/torch/%s%s", S4D_DATA_DIR, name, ending);
}

static void fill_tokens(void *context, int iteration, int64_t sequence, int32_t *tokens, int count)
{
    struct run *r = context;
    struct s4d_error err;
    assert_int_equal(count, r->p.model.seq_length + 1);
    must(r->tokens.sequence(r->tokens.self, iteration * BATCH + sequence, tokens, &err), r, &err);
}

static void load_weights(struct run *r)
{
    struct s4d_error err;
    int coordinate[S4D_AXES];
    for (int rank = 0; rank < s4d_grid_ranks(&r->p.grid); rank++)
        for (int i = 0; i < r->p.n_params; i++) {
            const struct s4d_param *q = &r->p.params[i];
            double *shard = s4d_malloc((size_t)q->shard_elements * sizeof *shard);
            s4d_grid_coordinates(&r->p.grid, rank, coordinate);
            must(s4d_checkpoint_read(r->weights, i, coordinate, S4D_DTYPE_F64, shard, &err), r,
                 &err);
            for (int64_t e = 0; e < q->shard_elements; e++) {
                s4d_interpreter_set(r->in, rank, q->master, e, shard[e]);
                s4d_interpreter_set(r->in, rank, q->working, e, shard[e]);
            }
            free(shard);
        }
}

static int gradient_of(void *context, int rank, int param, void *shard, struct s4d_error *err)
{
    const struct run *r = context;
    const struct s4d_param *q = &r->p.params[param];
    (void)err;
    for (int64_t e = 0; e < q->shard_elements; e++)
        ((double *)shard)[e] = s4d_interpreter_get(r->in, rank, q->gradient, e);
    return 0;
}

static void read_whole(const struct s4d_safetensors *st, const struct s4d_safetensor *t,
                       double **out)
{
    struct s4d_error err;
    int64_t cols = t->shape[t->dims - 1], rows = t->elements / cols;
    const struct s4d_safetensors_block all = {.rows = rows, .cols = cols, .stride = cols};
    *out = s4d_malloc((size_t)t->elements * sizeof **out);
    assert_int_equal(s4d_safetensors_read(st, t, &all, S4D_DTYPE_F64, *out, &err), 0);
}

/* ||a - b|| <= most ||b|| for every tensor b of the golden file; the same names on both sides. */
static void compare(const struct run *r, const char *file, const struct s4d_safetensors *expected,
                    double most)
{
    struct s4d_error err;
    struct s4d_safetensors *found;
    must(s4d_safetensors_open(file, &found, &err), r, &err);
    assert_int_equal(s4d_safetensors_count(found), s4d_safetensors_count(expected));
    for (int i = 0; i < s4d_safetensors_count(expected); i++) {
        const struct s4d_safetensor *e = s4d_safetensors_get(expected, i);
        const struct s4d_safetensor *f = s4d_safetensors_find(found, e->name);
        double *a, *b, apart = 0, size = 0;
        if (!f)
            fail_msg("%s: no gradient of %s", r->name, e->name);
        assert_memory_equal(f->shape, e->shape, sizeof e->shape);
        read_whole(found, f, &a);
        read_whole(expected, e, &b);
        for (int64_t k = 0; k < e->elements; k++) {
            apart += (a[k] - b[k]) * (a[k] - b[k]);
            size += b[k] * b[k];
        }
        if (!(apart <= most * most * size) || !(size > 0))
            fail_msg("%s: gradient of %s differs by %g of its norm", r->name, e->name,
                     sqrt(apart / size));
        free(a);
        free(b);
    }
    s4d_safetensors_close(found);
}

static void check(const char *name, const char *weights, const int g[4], enum s4d_type type)
{
    struct run r = {.name = name};
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_safetensors *gradients;
    char out[] = "/tmp/scale4d-golden-XXXXXX", *yaml = golden(name, ".yaml");
    char *loaded = golden(weights, ".weights.safetensors"), *line = golden(weights, ".tokens");
    char *expected = golden(name, ".gradients.safetensors");
    must(s4d_workload_load(&w, yaml, &err), &r, &err);
    struct s4d_grid grid = s4d_grid_make(g[0], g[1], g[2], g[3]);
    struct s4d_options options = s4d_options_default();
    options.global_batch = BATCH;
    options.micro_batch = 1;
    options.precision = options.gradient_type = type;
    must(s4d_build(&r.p, &w.model, &grid, &options, &err), &r, &err);
    s4d_plan(&r.p);
    struct s4d_interpreter_options how = s4d_interpreter_options_default();
    how.planned = true;
    how.order_seed = 3;
    how.tokens = fill_tokens;
    how.context = &r;
    r.in = s4d_interpreter_create(&r.p, &how);
    must(s4d_tokens_file(&r.tokens, line, S4D_TOKENS_BY_VOCABULARY, w.model.vocab_size,
                         w.model.seq_length, &err),
         &r, &err);
    must(s4d_checkpoint_open(&r.p, loaded, &r.weights, &err), &r, &err);
    load_weights(&r);
    must(s4d_interpreter_run(r.in, 1, &err), &r, &err);
    close(mkstemp(out));
    must(s4d_checkpoint_save(&r.p, out, S4D_DTYPE_F64, NULL, gradient_of, &r, &err), &r, &err);

    must(s4d_safetensors_open(expected, &gradients, &err), &r, &err);
    double loss = strtod(s4d_safetensors_metadata(gradients, "loss"), NULL);
    double found = s4d_interpreter_loss(r.in, 0);
    /* fp64 agrees to fp64's rounding in the loss, and to that of the golden's F32 in gradients. */
    if (!(fabs(found - loss) <= (type == S4D_F64 ? 1e-12 : 1e-6) * loss))
        fail_msg("%s: loss %.15g, not %.15g", name, found, loss);
    compare(&r, out, gradients, type == S4D_F64 ? 1e-7 : 1e-5);

    unlink(out);
    s4d_safetensors_close(gradients);
    s4d_checkpoint_close(r.weights);
    s4d_tokens_close(&r.tokens);
    s4d_interpreter_free(r.in);
    s4d_program_free(&r.p);
    s4d_workload_free(&w);
    free(yaml);
    free(loaded);
    free(line);
    free(expected);
}

static void check_grids(const char *name, const char *weights)
{
    static const int grids[][4] = {{1, 1, 1, 1}, {2, 2, 1, 1}, {1, 1, 2, 2}, {2, 1, 2, 1},
                                   {1, 4, 1, 1}, {2, 2, 2, 2}, {1, 1, 4, 1}};
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        check(name, weights, grids[i], S4D_F32);
        check(name, weights, grids[i], S4D_F64);
    }
}

static void test_gpt(void **state)
{
    (void)state;
    check_grids("gpt", "gpt");
}

static void test_llama(void **state)
{
    (void)state;
    check_grids("llama", "llama");
}

static void test_llama_3(void **state)
{
    (void)state;
    check_grids("llama-3", "llama");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_llama_3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
