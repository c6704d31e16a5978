/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: a file is the same whatever grid wrote it, every grid reads it back, and files that
 * do not fit are named. */
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
#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/file.h"
#include "support/memory.h"
#include "tests/lib/models.h"

static char folder[] = "/tmp/scale4d-checkpoint-XXXXXX", file[64], other[64];

/* Shards of initial weights, as if each rank had sent its own. */
struct sender {
    const struct s4d_program *p;
    int calls, fail_at; /* -1: never */
};
static int send(void *context, int rank, int param, void *shard, struct s4d_error *err)
{
    struct sender *s = context;
    int coordinate[S4D_AXES];
    if (s->calls++ == s->fail_at)
        return s4d_fail(err, S4D_EXIT_DEVICE, "rank", "lost");
    s4d_grid_coordinates(&s->p->grid, rank, coordinate);
    s4d_shard_initial(s->p, &s->p->params[param], coordinate, 5, S4D_DTYPE_F32, shard);
    return 0;
}

static void save(const struct s4d_program *p, const char *to)
{
    struct s4d_error err;
    struct sender s = {p, 0, -1};
    if (s4d_checkpoint_save(p, to, S4D_DTYPE_F32, NULL, send, &s, &err))
        fail_msg("%s: %s", err.where, err.text);
}

/* Every shard of every grid is read from the file as it was made. */
static void read_back(const struct s4d_program *p)
{
    struct s4d_checkpoint *c;
    struct s4d_error err;
    int coordinate[S4D_AXES];
    if (s4d_checkpoint_open(p, file, &c, &err))
        fail_msg("%s: %s", err.where, err.text);
    for (int rank = 0; rank < s4d_grid_ranks(&p->grid); rank++)
        for (int i = 0; i < p->n_params; i++) {
            const struct s4d_param *q = &p->params[i];
            size_t n = (size_t)q->shard_elements * sizeof(float);
            float *made = s4d_malloc(n), *found = s4d_malloc(n);
            double *wide = s4d_malloc(2 * n);
            s4d_grid_coordinates(&p->grid, rank, coordinate);
            s4d_shard_initial(p, q, coordinate, 5, S4D_DTYPE_F32, made);
            assert_int_equal(s4d_checkpoint_read(c, i, coordinate, S4D_DTYPE_F32, found, &err), 0);
            assert_int_equal(s4d_checkpoint_read(c, i, coordinate, S4D_DTYPE_F64, wide, &err), 0);
            if (memcmp(made, found, n))
                fail_msg("%s of rank %d", q->name, rank);
            for (int64_t e = 0; e < q->shard_elements; e++)
                assert_true(wide[e] == found[e]);
            free(made);
            free(found);
            free(wide);
        }
    s4d_checkpoint_close(c);
}

static void test_every_grid_writes_the_same_file(void **state)
{
    (void)state;
    struct s4d_error err;
    for (int m = 0; m < S4D_TEST_MODELS; m++) {
        char *first, *bytes;
        size_t n_first, n;
        for (int g = 0; g < S4D_TEST_GRIDS; g++) {
            struct s4d_program p;
            s4d_test_program(&p, m, g);
            save(&p, g ? other : file);
            read_back(&p);
            assert_int_equal(
                s4d_file_read(g ? other : file, g ? &bytes : &first, g ? &n : &n_first, &err), 0);
            if (g) {
                assert_true(n == n_first && memcmp(bytes, first, n) == 0);
                free(bytes);
            }
            s4d_program_free(&p);
        }
        free(first);
    }
}

/* Element (i, j) of a stored tensor. */
static double stored(const struct s4d_safetensors *st, const char *name, int64_t i, int64_t j)
{
    struct s4d_error err;
    double value;
    struct s4d_safetensors_block b = {.row = i, .rows = 1, .col = j, .cols = 1};
    const struct s4d_safetensor *t = s4d_safetensors_find(st, name);
    if (!t)
        fail_msg("no %s", name);
    assert_int_equal(s4d_safetensors_read(st, t, &b, S4D_DTYPE_F64, &value, &err), 0);
    return value;
}

/* Names, shapes and where an element is, by hand. Llama: hidden 32, 8 heads of 4, 4 key-value
 * heads, so the fused matrix is 32 x (32 + 16 + 16) and its element (3, 32 + 16 + 5) is v_proj's
 * (5, 3): torch's Linear is (out, in). GPT-2's Conv1D is (in, out), fused: 16 x 48. */
static void test_names_and_shapes(void **state)
{
    (void)state;
    static const struct {
        int model;
        const char *name;
        int dims;
        int64_t shape[2];
    } expected[] = {
        {0, "wte.weight", 2, {45, 16}},
        {0, "wpe.weight", 2, {8, 16}},
        {0, "h.1.attn.c_attn.weight", 2, {16, 48}},
        {0, "h.1.attn.c_attn.bias", 1, {48}},
        {0, "h.0.mlp.c_proj.weight", 2, {48, 16}},
        {0, "ln_f.bias", 1, {16}},
        {1, "model.embed_tokens.weight", 2, {45, 32}},
        {1, "model.layers.1.self_attn.q_proj.weight", 2, {32, 32}},
        {1, "model.layers.1.self_attn.v_proj.weight", 2, {16, 32}},
        {1, "model.layers.0.mlp.up_proj.weight", 2, {48, 32}},
        {1, "model.layers.0.mlp.down_proj.weight", 2, {32, 48}},
        {1, "model.norm.weight", 1, {32}},
        {1, "lm_head.weight", 2, {45, 32}},
    };
    struct s4d_interpreter_options options = s4d_interpreter_options_default();
    options.weight_seed = 5;
    for (int m = 0; m < S4D_TEST_MODELS; m++) {
        struct s4d_program p;
        struct s4d_safetensors *st;
        struct s4d_error err;
        s4d_test_program(&p, m, 1);
        save(&p, file);
        assert_int_equal(s4d_safetensors_open(file, &st, &err), 0);
        assert_string_equal(s4d_safetensors_metadata(st, "format"), "pt");
        /* 2 + 2 layers of 12 + 2; or 1 + 2 layers of 9 + 2. */
        assert_int_equal(s4d_safetensors_count(st), m ? 21 : 28);
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
            if (expected[i].model != m)
                continue;
            const struct s4d_safetensor *t = s4d_safetensors_find(st, expected[i].name);
            if (!t)
                fail_msg("no %s", expected[i].name);
            assert_int_equal(t->dims, expected[i].dims);
            assert_memory_equal(t->shape, expected[i].shape, sizeof expected[i].shape);
        }
        for (int i = 0; i < p.n_params; i++) {
            const struct s4d_param *q = &p.params[i];
            if (strcmp(q->name, "layers.1.attention.qkv.weight"))
                continue;
            int64_t width = m ? 64 : 48;
            float value = (float)s4d_interpreter_initial(q, &options, 3 * width + width - 11);
            assert_true(value != 0);
            assert_true(m ? stored(st, "model.layers.1.self_attn.v_proj.weight", 5, 3) == value
                          : stored(st, "h.1.attn.c_attn.weight", 3, 37) == value);
        }
        s4d_safetensors_close(st);
        s4d_program_free(&p);
    }
}

/* Copies file to `other`: tensors whose name is `drop` left out, `rename` renamed to `to` (NULL:
 * none), `type` another dtype of `retype`; and `extra` (a copy of the first tensor plus `change`).
 */
struct edit {
    const char *drop, *rename, *to, *retype, *extra, *prefix;
    int64_t reshape[2]; /* of rename */
    float change;
};

static void edit(const struct edit *e)
{
    struct s4d_safetensors *st;
    struct s4d_safetensors_writer *w;
    struct s4d_error err;
    assert_int_equal(s4d_safetensors_open(file, &st, &err), 0);
    int n = s4d_safetensors_count(st), kept = 0;
    struct s4d_safetensor *v = s4d_calloc((size_t)n + 1, sizeof *v);
    for (int i = 0; i < n; i++) {
        struct s4d_safetensor t = *s4d_safetensors_get(st, i);
        if (e->drop && strcmp(t.name, e->drop) == 0)
            continue;
        v[kept] = t;
        bool renamed = e->rename && strcmp(t.name, e->rename) == 0;
        v[kept].name =
            s4d_asprintf("%s%s", e->prefix ? e->prefix : "", renamed && e->to ? e->to : t.name);
        if (renamed && e->reshape[0])
            memcpy(v[kept].shape, e->reshape, sizeof e->reshape);
        if (e->retype && strcmp(t.name, e->retype) == 0)
            v[kept].dtype = S4D_DTYPE_I32;
        kept++;
    }
    struct s4d_safetensor first = *s4d_safetensors_get(st, 0);
    if (e->extra) {
        v[kept] = first;
        v[kept++].name = s4d_strdup(e->extra);
    }
    assert_int_equal(s4d_safetensors_create(other, v, kept, NULL, &w, &err), 0);
    for (int i = 0; i < kept; i++) {
        bool extra = e->extra && i == kept - 1;
        const struct s4d_safetensor *from = &v[i];
        float *bytes = s4d_malloc((size_t)from->bytes);
        struct s4d_safetensor at = extra ? first : *from;
        assert_int_equal(s4d_safetensors_bytes(st, &at, 0, at.elements, bytes, &err), 0);
        bytes[0] += extra ? e->change : 0;
        assert_int_equal(s4d_safetensors_write(w, bytes, (size_t)at.bytes, &err), 0);
        free(bytes);
    }
    assert_int_equal(s4d_safetensors_finish(w, &err), 0);
    for (int i = 0; i < kept; i++)
        free((char *)v[i].name);
    free(v);
    s4d_safetensors_close(st);
}

static void edited(const struct s4d_program *p, const struct edit *e, const char *where,
                   const char *text)
{
    struct s4d_checkpoint *c;
    struct s4d_error err;
    edit(e);
    int rc = s4d_checkpoint_open(p, other, &c, &err);
    if (!text) {
        if (rc)
            fail_msg("%s: %s", err.where, err.text);
        s4d_checkpoint_close(c);
        return;
    }
    assert_int_equal(rc, -1);
    assert_null(c);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (!strstr(err.where, other) || !strstr(err.where, where) || !strstr(err.text, text))
        fail_msg("expected \"%s: %s\", found \"%s: %s\"", where, text, err.where, err.text);
}

static void test_files_that_do_not_fit(void **state)
{
    (void)state;
    struct s4d_program p, l;
    s4d_test_program(&p, S4D_TEST_GPT, 1);
    s4d_test_program(&l, S4D_TEST_LLAMA, 1);
    save(&p, file);
    edited(&p, &(struct edit){0}, "", NULL);
    edited(&p, &(struct edit){.drop = "ln_f.bias"}, "", "missing: ln_f.bias (1 of the model's");
    edited(&p, &(struct edit){.rename = "ln_f.bias", .to = "ln_g.bias"}, "",
           "missing: ln_f.bias (1 of the model's tensors); unknown to the model: ln_g.bias (1 ");
    edited(&p, &(struct edit){.extra = "h.2.ln_1.weight"}, "",
           "unknown to the model: h.2.ln_1.weight (1 tensors)");
    edited(&p, &(struct edit){.rename = "wte.weight", .reshape = {15, 48}}, "wte.weight",
           "expected shape [45, 16], found [15, 48]");
    edited(&p, &(struct edit){.retype = "wte.weight"}, "wte.weight", "found I32");
    edited(&p, &(struct edit){.prefix = "transformer."}, "", NULL);
    edited(&p, &(struct edit){.prefix = "model."}, "", "wte.weight, wpe.weight");
    edited(&p, &(struct edit){.extra = "h.0.attn.bias"}, "", NULL);
    edited(&p, &(struct edit){.extra = "lm_head.weight"}, "", NULL);
    edited(&p, &(struct edit){.extra = "lm_head.weight", .change = 1}, "",
           "lm_head.weight differs from the embedding");
    edited(&l, &(struct edit){0}, "", "(21 of the model's tensors); unknown to the model: ");
    save(&l, file);
    edited(&l, &(struct edit){.drop = "model.layers.0.mlp.up_proj.weight"}, "",
           "missing: model.layers.0.mlp.up_proj.weight");
    edited(&l, &(struct edit){.extra = "model.layers.0.self_attn.rotary_emb.inv_freq"}, "", NULL);
    s4d_program_free(&p);
    s4d_program_free(&l);
}

/* What cannot be written is said, once all shards have been fetched; a peer that is lost ends it;
 * the old file stays. */
static void test_save_fails(void **state)
{
    (void)state;
    struct s4d_program p;
    struct s4d_error err;
    char *before, *after;
    size_t n, m;
    s4d_test_program(&p, S4D_TEST_GPT, 1);
    struct sender s = {&p, 0, -1};
    assert_int_equal(s4d_checkpoint_save(&p, file, S4D_DTYPE_F32, NULL, send, &s, &err), 0);
    int all = s.calls;
    assert_int_equal(s4d_file_read(file, &before, &n, &err), 0);
    s.calls = 0;
    assert_int_equal(s4d_checkpoint_save(&p, "/nowhere/f", S4D_DTYPE_F32, NULL, send, &s, &err),
                     -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_int_equal(s.calls, all);
    s = (struct sender){&p, 0, all / 2};
    assert_int_equal(s4d_checkpoint_save(&p, file, S4D_DTYPE_F32, NULL, send, &s, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DEVICE);
    assert_int_equal(s.calls, all / 2 + 1);
    assert_int_equal(s4d_file_read(file, &after, &m, &err), 0);
    assert_true(n == m && memcmp(before, after, n) == 0);
    free(before);
    free(after);
    s4d_program_free(&p);
}

/* Gradients of a grid, as the interpreter leaves them in the ranks' shards. */
static int send_gradient(void *context, int rank, int param, void *shard, struct s4d_error *err)
{
    struct {
        const struct s4d_program *p;
        const struct s4d_interpreter *in;
    } *s = context;
    (void)err;
    const struct s4d_param *q = &s->p->params[param];
    for (int64_t i = 0; i < q->shard_elements; i++)
        ((float *)shard)[i] = (float)s4d_interpreter_get(s->in, rank, q->gradient, i);
    return 0;
}

static void test_gradients_of_a_grid(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_program p;
    struct s4d_safetensors *st;
    struct s4d_case c = s4d_test_case(S4D_TEST_GPT, 2, 2, 2, 2);
    assert_int_equal(s4d_build(&p, &c.model, &c.grid, &c.options, &err), 0);
    s4d_plan(&p);
    struct s4d_interpreter_options run = s4d_case_run(&c);
    struct s4d_interpreter *in = s4d_interpreter_create(&p, &run);
    assert_int_equal(s4d_interpreter_run(in, 1, &err), 0);
    struct {
        const struct s4d_program *p;
        const struct s4d_interpreter *in;
    } context = {&p, in};
    static const char *const metadata[] = {"loss", "3.5", NULL};
    assert_int_equal(
        s4d_checkpoint_save(&p, file, S4D_DTYPE_F32, metadata, send_gradient, &context, &err), 0);
    assert_int_equal(s4d_safetensors_open(file, &st, &err), 0);
    assert_string_equal(s4d_safetensors_metadata(st, "loss"), "3.5");
    for (int i = 0; i < p.n_params; i++) {
        const struct s4d_param *q = &p.params[i];
        int64_t n = q->rows * s4d_param_cols(q);
        double *whole = s4d_malloc((size_t)n * sizeof *whole), size = 0;
        float *found = s4d_malloc((size_t)n * sizeof *found);
        assert_int_equal(s4d_interpreter_whole(in, q, S4D_WHOLE_GRADIENT, whole, &err), 0);
        assert_int_equal(
            s4d_safetensors_bytes(st, s4d_safetensors_find(st, q->hf_name), 0, n, found, &err), 0);
        for (int64_t e = 0; e < n; e++) {
            assert_true(found[e] == (float)whole[e]);
            size += whole[e] * whole[e];
        }
        assert_true(size > 0);
        free(whole);
        free(found);
    }
    s4d_safetensors_close(st);
    s4d_interpreter_free(in);
    s4d_program_free(&p);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/model", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(file);
    unlink(other);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_grid_writes_the_same_file),
        cmocka_unit_test(test_names_and_shapes),
        cmocka_unit_test(test_files_that_do_not_fit),
        cmocka_unit_test(test_save_fails),
        cmocka_unit_test(test_gradients_of_a_grid),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
