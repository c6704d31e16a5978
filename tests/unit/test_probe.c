/* SPDX-License-Identifier: Apache-2.0 */
/* The probe on a device whose clock is known: what is a sample, what is too noisy, what is wrong.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "real/probe.h"

/* A device of one rank, whose ops take the time they are told to. Of a collective it plays rank 1
 * as well. */
struct fake {
    double now_s, cost_s, jitter_s;
    long ops, marks;
    void *memory, *pinned;
    void *first, *last; /* lowest and highest operand */
    int flips;          /* elements of a collective's result that are made wrong */
    bool found_inf;     /* an op was told to skip its work */
};

static int allocate(void *self, enum s4d_place place, int64_t bytes, void **memory,
                    struct s4d_error *err)
{
    struct fake *f = self;
    (void)err;
    *memory = calloc(1, (size_t)bytes);
    if (place == S4D_DEVICE)
        f->memory = *memory;
    else
        f->pinned = *memory;
    return 0;
}

static int upload(void *self, const struct s4d_buffer *to, const void *from, struct s4d_error *err)
{
    (void)self, (void)err;
    memcpy(to->data, from, (size_t)(to->cols * s4d_type_bytes[to->type]));
    return 0;
}

static int download(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err)
{
    (void)self, (void)err;
    memcpy(to, from->data, (size_t)(from->cols * s4d_type_bytes[from->type]));
    return 0;
}

static int run(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err)
{
    struct fake *f = self;
    (void)iteration, (void)err;
    for (int k = 0; k < S4D_OPERANDS; k++) {
        void *data = call->operand[k].data;
        if (data && (!f->first || data < f->first))
            f->first = data;
        if (data && data > f->last)
            f->last = data;
    }
    if (call->op->kind == S4D_OP_ADAMW && *(float *)call->operand[3].data != 0)
        f->found_inf = true;
    /* 0, 2, 0, 2 ... times the jitter more, by samples of one op. */
    f->now_s += f->cost_s + (f->ops++ % 2 ? 2 : 0) * f->jitter_s;
    return 0;
}

static int post(void *self, const struct s4d_call *call, int calls, int iteration,
                struct s4d_error *err)
{
    assert_int_equal(calls, 1);
    struct fake *f = self;
    const float *in = call->operand[0].data;
    float *out = call->operand[1].data;
    int64_t n = call->op->c.collective.count;
    for (int64_t i = 0; i < n; i++) {
        float other = (float)((7 + i % 13) % 16); /* rank 1's element i */
        if (call->op->kind == S4D_OP_ALL_GATHER) {
            out[i] = in[i];
            out[n + i] = other;
        } else {
            out[i] = in[i] + other;
        }
    }
    for (int i = 0; i < f->flips; i++)
        out[i] += 1;
    return run(self, call, iteration, err);
}

static int mark(void *self, enum s4d_stream stream, double *t_s, struct s4d_error *err)
{
    struct fake *f = self;
    (void)stream, (void)err;
    f->marks++;
    *t_s = f->now_s;
    return 0;
}

static int finish(void *self, struct s4d_error *err)
{
    (void)self, (void)err;
    return 0;
}

static double now_s(void *self)
{
    return ((struct fake *)self)->now_s;
}

static void meet(void *self)
{
    (void)self;
}

static void reduce(void *self, double *values, int n)
{
    (void)self, (void)values, (void)n;
}

static const struct s4d_peers alone = {
    .size = 1, .active = 1, .barrier = meet, .sum = reduce, .maximum = reduce};
static const struct s4d_probe_options options = {
    .samples = 9, .sample_s = 1e-3, .op_s = 0.1, .attempts = 2, .vocabulary = 10};

static struct s4d_device device_of(struct fake *f)
{
    return (struct s4d_device){.name = "fake",
                               .self = f,
                               .allocate = allocate,
                               .upload = upload,
                               .download = download,
                               .gemm = run,
                               .kernel = run,
                               .copy = run,
                               .post = post,
                               .mark = mark,
                               .finish = finish,
                               .now_s = now_s};
}

/* A copy of 1,024 numbers. */
static struct s4d_tensor tensors[2] = {
    {.type = S4D_F32, .dims = 1, .shape = {1024}, .stride = {1}},
    {.type = S4D_F32, .dims = 1, .shape = {1024}, .stride = {1}}};
static struct s4d_op copy = {
    .kind = S4D_OP_COPY, .operand = {{0, S4D_READ}, {1, S4D_WRITE}}, .label.name = "copy"};
static const struct s4d_program program = {.tensors = tensors, .n_tensors = 2};

static struct s4d_probed probe_copy(struct fake *f)
{
    struct s4d_device d = device_of(f);
    struct s4d_probe p;
    struct s4d_probed result;
    assert_int_equal(s4d_probe_open(&p, &d, &alone, &options, 1 << 20, NULL), 0);
    assert_int_equal(s4d_probe_op(&p, &program, &copy, &result, NULL), 0);
    s4d_probe_close(&p);
    free(f->memory);
    free(f->pinned);
    return result;
}

/* 10 us: a sample is 100 of them. 9 samples, after three single ones. */
static void short_ops_are_timed_in_rows(void **state)
{
    (void)state;
    struct fake f = {.cost_s = 10e-6};
    struct s4d_probed r = probe_copy(&f);
    assert_true(fabs(r.t.median - 10e-6) < 1e-12);
    assert_int_equal(r.t.n, 9);
    assert_false(r.noisy);
    assert_true(f.ops >= 3 + 9 * 100 && f.ops <= 3 + 9 * 101);
}

/* 20 ms: one is a sample, and 0.1 s holds five. */
static void long_ops_are_sampled_less(void **state)
{
    (void)state;
    struct fake f = {.cost_s = 20e-3};
    struct s4d_probed r = probe_copy(&f);
    assert_true(fabs(r.t.median - 20e-3) < 1e-12);
    assert_int_equal(r.t.n, 5);
    assert_int_equal(f.ops, 3 + 5);
}

/* 5 ms and, every other time, 10 ms: two attempts, and it says so. */
static void noise_is_tried_again_and_told(void **state)
{
    (void)state;
    struct fake f = {.cost_s = 5e-3, .jitter_s = 2.5e-3};
    struct s4d_probed r = probe_copy(&f);
    assert_true(r.noisy);
    assert_true(r.t.variation > S4D_PROBE_NOISY);
    assert_int_equal(f.ops, 2 * (3 + 9));
}

/* Operands move through as much memory as the program's arena has, and come back. */
static void operands_move_through_the_arena(void **state)
{
    (void)state;
    struct fake f = {.cost_s = 10e-6};
    struct s4d_device d = device_of(&f);
    struct s4d_program planned = program;
    struct s4d_probe p;
    struct s4d_probed result;
    planned.arena_bytes[S4D_DEVICE] = 65536; /* eight pairs of 4 KiB */
    assert_int_equal(s4d_probe_open(&p, &d, &alone, &options, 1 << 20, NULL), 0);
    assert_int_equal(s4d_probe_op(&p, &planned, &copy, &result, NULL), 0);
    assert_int_equal((char *)f.last - (char *)f.first, 65536 - 4096);
    s4d_probe_close(&p);
    free(f.memory);
    free(f.pinned);
}

/* AdamW does nothing where found_inf is set: the probe must not set it, also after an op that
 * wrote a flag of that name. */
static void flags_do_not_spare_work(void **state)
{
    (void)state;
    struct fake f = {.cost_s = 1e-3};
    struct s4d_device d = device_of(&f);
    struct s4d_tensor one = {.type = S4D_F32, .dims = 1, .shape = {16}, .stride = {1}};
    struct s4d_program small = {.tensors = &one, .n_tensors = 1};
    struct s4d_op adamw = {.kind = S4D_OP_ADAMW};
    struct s4d_probe p;
    struct s4d_probed result;
    for (int k = 0; k < s4d_op_kinds[S4D_OP_ADAMW].n_operands; k++)
        adamw.operand[k] = (struct s4d_operand){0, S4D_READ};
    assert_string_equal(s4d_op_kinds[S4D_OP_ADAMW].operand[3].name, "found_inf");
    for (int k = 4; k < s4d_op_kinds[S4D_OP_ADAMW].n_operands; k++)
        adamw.operand[k].tensor = -1;
    adamw.operand[0].tensor = adamw.operand[1].tensor = adamw.operand[2].tensor = -1;
    assert_int_equal(s4d_probe_open(&p, &d, &alone, &options, 1 << 20, NULL), 0);
    assert_int_equal(s4d_probe_op(&p, &small, &adamw, &result, NULL), 0);
    assert_false(f.found_inf);
    s4d_probe_close(&p);
    free(f.memory);
    free(f.pinned);
}

static void wrong_values_are_counted(void **state)
{
    (void)state;
    static const enum s4d_op_kind kinds[] = {S4D_OP_ALL_REDUCE, S4D_OP_ALL_GATHER,
                                             S4D_OP_REDUCE_SCATTER};
    struct s4d_grid grid = s4d_grid_make(1, 2, 1, 1);
    struct s4d_peers two = alone;
    two.size = two.active = 2;
    for (int k = 0; k < 3; k++)
        for (int flips = 0; flips < 4; flips += 3) {
            struct fake f = {.cost_s = 1e-3, .flips = flips};
            struct s4d_device d = device_of(&f);
            struct s4d_probe p;
            struct s4d_probed r;
            assert_int_equal(s4d_probe_open(&p, &d, &two, &options, 1 << 20, NULL), 0);
            assert_int_equal(
                s4d_probe_collective(&p, &grid, kinds[k], S4D_STREAM_Y, 4096, &r, NULL), 0);
            assert_true(r.wrong == flips);
            assert_true(fabs(r.t.median - 1e-3) < 1e-12);
            s4d_probe_close(&p);
            free(f.memory);
            free(f.pinned);
        }
}

/* On this device nothing runs beside anything: the product keeps nothing (0.01, the least). */
static void what_a_product_keeps_beside_a_collective(void **state)
{
    (void)state;
    struct s4d_grid grid = s4d_grid_make(1, 2, 1, 1);
    struct fake f = {.cost_s = 1e-3};
    struct s4d_device d = device_of(&f);
    struct s4d_probe p;
    struct s4d_probed r;
    assert_int_equal(s4d_probe_open(&p, &d, &alone, &options, 1 << 20, NULL), 0);
    assert_int_equal(s4d_probe_beside(&p, &grid, S4D_STREAM_Y, 4096, &r, NULL), 0);
    assert_true(r.t.median == 0.01);
    s4d_probe_close(&p);
    free(f.memory);
    free(f.pinned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ops_are_timed_in_rows),
        cmocka_unit_test(long_ops_are_sampled_less),
        cmocka_unit_test(noise_is_tried_again_and_told),
        cmocka_unit_test(operands_move_through_the_arena),
        cmocka_unit_test(flags_do_not_spare_work),
        cmocka_unit_test(wrong_values_are_counted),
        cmocka_unit_test(what_a_product_keeps_beside_a_collective),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
