/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule trains: the program of every grid and option, executed by the toy interpreter, has
 * the loss, gradients and weights of a serial GPT written independently.
 *
 * Tolerances are of ||a - b|| / ||b|| per tensor. f32 programs: 1e-5 (issue text); what is measured
 * is about 3e-7 for gradients. f64 programs: 1e-10. Every case runs in a random order of its own.
 * Under AddressSanitizer a part of the grids and options runs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/numbers.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/training.h"

static void describe(const struct s4d_case *c, char text[256])
{
    char overlap[96];
    const struct s4d_options *o = &c->options;
    s4d_overlap_format(&o->overlap, overlap, sizeof overlap);
    snprintf(text, 256,
             "grid %dx%dx%dx%d, order %d%d%d, batch %d, micro-batch %d, recompute %s, overlap %s, "
             "cached %d, %s, buckets %d, seed %llu, planned %d",
             c->grid.size[S4D_X], c->grid.size[S4D_Y], c->grid.size[S4D_Z], c->grid.size[S4D_DATA],
             (int)c->grid.order[0], (int)c->grid.order[1], (int)c->grid.order[2], o->global_batch,
             o->micro_batch, s4d_recompute_names[o->recompute], overlap, o->cached_layers,
             s4d_type_names[o->precision], (int)o->gradient_reduce,
             (unsigned long long)c->run.order_seed, c->run.planned);
}

static void train(const struct s4d_case *c, struct s4d_trained *out)
{
    char text[256];
    struct s4d_error err;
    describe(c, text);
    if (s4d_train(c, out, &err))
        fail_msg("%s: %s: %s", text, err.where, err.text);
}

struct tolerance {
    double gradient, weight, loss;
};
static const struct tolerance f32 = {1e-5, 1e-5, 1e-5}, f64 = {1e-10, 1e-10, 1e-12};

static void compare(const struct s4d_case *c, const struct s4d_trained *a,
                    const struct s4d_trained *b, struct tolerance most)
{
    char text[256];
    struct s4d_difference d = s4d_compare(c, a, b);
    describe(c, text);
    if (!(d.gradient <= most.gradient))
        fail_msg("%s: gradient of %s differs by %g", text, d.gradient_of, d.gradient);
    if (!(d.weight <= most.weight))
        fail_msg("%s: weight of %s differs by %g", text, d.weight_of, d.weight);
    if (!(d.loss <= most.loss))
        fail_msg("%s: loss differs by %g", text, d.loss);
    if (!(d.grad_norm <= most.gradient))
        fail_msg("%s: gradient norm differs by %g", text, d.grad_norm);
}

static void check_against(const struct s4d_case *c, const struct s4d_trained *expected,
                          struct tolerance most)
{
    struct s4d_trained t;
    train(c, &t);
    compare(c, &t, expected, most);
    s4d_trained_free(&t);
}

static void check(const struct s4d_case *c, struct tolerance most)
{
    struct s4d_trained expected;
    s4d_train_reference(c, &expected);
    check_against(c, &expected, most);
    s4d_trained_free(&expected);
}

struct expected {
    struct s4d_trained reference, one_rank;
};

static void check_grid(struct s4d_case *c, int i, struct expected *e)
{
    struct s4d_trained t;
    c->run.order_seed = (uint64_t)i;
    train(c, &t);
    compare(c, &t, &e->reference, f32);
    if (i == 0) {
        e->one_rank = t;
        return;
    }
    compare(c, &t, &e->one_rank, f32);
    s4d_trained_free(&t);
}

/* All 70 grids, if they divide; sanitized one in ten. Returns how many ran. */
static int check_all_grids(struct s4d_case *c)
{
    struct s4d_error err;
    struct expected e;
    int ran = 0;
    s4d_train_reference(c, &e.reference);
    for (int i = 0; s4d_case_grid(i, &c->grid); i += S4D_SANITIZED ? 10 : 1) {
        if (s4d_divides(&c->model, &c->grid, &c->options, &err))
            continue;
        check_grid(c, i, &e);
        ran++;
    }
    s4d_trained_free(&e.reference);
    s4d_trained_free(&e.one_rank);
    return ran;
}

/* 16 heads and batch 16: all 70 grids divide. */
static void test_all_grids(void **state)
{
    (void)state;
    struct s4d_case c = s4d_case_default(16, 1, 1, 1, 1);
    assert_int_equal(check_all_grids(&c), S4D_SANITIZED ? 7 : 70);
}

/* 4 heads: 65 of the 70 grids have Gx <= 4 (Gx = 8 leaves 4 grids, Gx = 16 one). No recompute, no
 * overlap, no clipping. */
static void test_four_heads(void **state)
{
    (void)state;
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    c.model.ffn_hidden_size = 4 * c.model.hidden_size;
    c.options.overlap = (struct s4d_overlap){0};
    c.options.recompute = S4D_RECOMPUTE_NONE;
    c.options.clip_norm = 0;
    int ran = check_all_grids(&c);
    assert_true(S4D_SANITIZED || ran == 65);
}

/* Every recompute, overlap and number of cached layers, with the other options in turn. */
static void test_options(void **state)
{
    (void)state;
    static const char *const overlaps[] = {"all",
                                           "none",
                                           "oar",
                                           "ors",
                                           "oag",
                                           "axonn-sc24",
                                           "oag-forward=across-layers",
                                           "oag-backward=within-layer",
                                           "oag-forward=within-layer,oag-backward=across-layers"};
    static const int grids[][4] = {{2, 2, 2, 2}, {1, 2, 4, 1}, {4, 1, 2, 2}, {1, 1, 4, 1},
                                   {2, 4, 1, 1}, {1, 1, 2, 2}, {2, 1, 2, 1}};
    struct s4d_error err;
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    struct s4d_trained expected;
    c.model.num_layers = 3;
    s4d_train_reference(&c, &expected);
    int n = 0;
    for (int recompute = 0; recompute < 3; recompute++)
        for (size_t o = 0; o < sizeof overlaps / sizeof overlaps[0]; o++)
            for (int cached = 0; cached < 4; cached += 1 + cached, n++) {
                const int *g = grids[n % 7];
                c.grid = s4d_grid_make(g[0], g[1], g[2], g[3]);
                c.options.recompute = (enum s4d_recompute)recompute;
                assert_int_equal(s4d_overlap_parse(overlaps[o], &c.options.overlap, &err), 0);
                c.options.cached_layers = cached;
                c.options.micro_batch = 1 << n % 3;
                c.options.gradient_reduce = n / 2 % 2 ? S4D_REDUCE_BUCKETS : S4D_REDUCE_AT_END;
                c.run.order_seed = (uint64_t)(100 + n);
                c.run.planned = n % 4 != 3;
                if (!S4D_SANITIZED || n % 10 == 0)
                    check_against(&c, &expected, f32);
            }
    assert_int_equal(n, 81);
    s4d_trained_free(&expected);
}

/* One program in many orders, by the list and at random; bit for bit the same. */
static void test_orders(void **state)
{
    (void)state;
    struct s4d_case c = s4d_case_default(4, 2, 2, 2, 2);
    struct s4d_trained first, t;
    c.iterations = 2;
    c.options.micro_batch = 2;
    train(&c, &first);
    for (uint64_t seed = 1; seed <= (S4D_SANITIZED ? 2 : 20); seed++) {
        c.run.order_seed = seed;
        c.run.planned = seed % 3 != 0;
        train(&c, &t);
        compare(&c, &t, &first, (struct tolerance){0, 0, 0});
        s4d_trained_free(&t);
    }
    s4d_trained_free(&first);
}

static void test_rank_orders(void **state)
{
    (void)state;
    static const char *const orders[] = {"x,y,z,pipe,data", "data,pipe,z,x,y", "z,data,y,pipe,x"};
    struct s4d_error err;
    struct s4d_case c = s4d_case_default(4, 2, 4, 2, 1);
    struct s4d_trained expected;
    s4d_train_reference(&c, &expected);
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        assert_int_equal(s4d_rank_order_parse(orders[i], &c.grid, &err), 0);
        c.run.order_seed = 40 + i;
        check_against(&c, &expected, f32);
    }
    s4d_trained_free(&expected);
}

/* Sizes that need padding: a vocabulary that x does not divide (also one where whole ranks hold
 * padding only), z shards that do not divide and axes that are no powers of two. */
static void test_odd_sizes(void **state)
{
    (void)state;
    static const int grids[][5] = {{2, 1, 2, 1, 253}, {4, 2, 2, 1, 253}, {4, 1, 1, 4, 9},
                                   {3, 2, 1, 1, 47},  {1, 3, 3, 1, 47},  {3, 1, 3, 1, 48},
                                   {6, 1, 1, 2, 9},   {1, 1, 3, 3, 11}};
    for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i += 1 + 2 * S4D_SANITIZED) {
        const int *g = grids[i];
        struct s4d_case c = s4d_case_default(12, g[0], g[1], g[2], g[3]);
        c.model.hidden_size = 24;
        c.model.ffn_hidden_size = 36;
        c.model.vocab_size = g[4];
        c.model.seq_length = 5;
        c.options.global_batch = 36 / (g[3] == 4 ? 3 : 1) / (g[0] == 2 ? 2 : 1);
        c.options.micro_batch = 1;
        c.run.order_seed = i;
        check(&c, f32);
    }
}

/* AdamW, clipping and weight decay over four iterations: losses fall, and agree with the reference
 * on every grid. f64, where AdamW's division by sqrt(v) amplifies no rounding. */
static void test_iterations(void **state)
{
    (void)state;
    static const int grids[][4] = {
        {1, 1, 1, 1}, {2, 2, 2, 2}, {4, 1, 2, 1}, {1, 2, 1, 4}, {1, 1, 4, 2}};
    struct s4d_trained expected;
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    c.iterations = 4;
    c.options.precision = S4D_F64;
    c.options.gradient_type = S4D_F64;
    c.options.adam_epsilon = 1e-8;
    c.options.learning_rate = 0.01;
    for (int clip = 0; clip < 3; clip++) {
        c.options.clip_norm = (const double[]){0, 0.5, 1000}[clip];
        s4d_train_reference(&c, &expected);
        for (int i = 1; i < c.iterations; i++)
            assert_true(expected.loss[i] < expected.loss[i - 1] - 0.05);
        for (size_t i = 0; i < sizeof grids / sizeof grids[0]; i++) {
            const int *g = grids[i];
            if (S4D_SANITIZED && (i + (size_t)clip) % 4 != 1)
                continue;
            c.grid = s4d_grid_make(g[0], g[1], g[2], g[3]);
            c.options.micro_batch = clip == 1 ? 2 : 1;
            c.run.order_seed = 60 + i;
            check_against(&c, &expected, f64);
        }
        s4d_trained_free(&expected);
    }
}

/* The same in f32. */
static void test_iterations_f32(void **state)
{
    (void)state;
    struct s4d_trained expected;
    struct s4d_case c = s4d_case_default(4, 2, 2, 2, 2);
    c.iterations = 3;
    c.options.learning_rate = 0.01;
    s4d_train_reference(&c, &expected);
    for (c.run.order_seed = 0; c.run.order_seed < (S4D_SANITIZED ? 1 : 4); c.run.order_seed++) {
        check_against(&c, &expected, f32);
        c.options.gradient_reduce = S4D_REDUCE_BUCKETS;
    }
    s4d_trained_free(&expected);
}

/* The program's gradients against its own losses, no reference: in a random direction d, g . d is
 * (loss(w + e d) - loss(w - e d)) / 2e to e^2. */
static void test_central_differences(void **state)
{
    (void)state;
    const double e = 1e-5;
    struct s4d_program p;
    struct s4d_trained t;
    struct s4d_error err;
    struct s4d_case c = s4d_case_default(4, 2, 2, 2, 1);
    c.options.precision = S4D_F64;
    c.options.gradient_type = S4D_F64;
    c.options.global_batch = 4;
    assert_int_equal(s4d_build(&p, &c.model, &c.grid, &c.options, &err), 0);
    s4d_plan(&p);
    assert_int_equal(s4d_train_program(&p, &c, &t, &err), 0);
    for (int q = 0; q < p.n_params; q += S4D_SANITIZED ? 9 : 1) {
        double size, slope = s4d_case_slope(&t, q, &size);
        double found =
            (s4d_case_moved_loss(&p, &c, q, e) - s4d_case_moved_loss(&p, &c, q, -e)) / (2 * e);
        if (!(fabs(found - slope) <= 1e-6 * (fabs(slope) + size)) || size == 0)
            fail_msg("%s: slope %g, gradient %g", t.params[q].name, found, slope);
    }
    s4d_trained_free(&t);
    s4d_program_free(&p);
}

/* 16-bit programs: near the reference within what 8 or 11 bits of mantissa leave; with and without
 * loss scaling, gradients reduced in fp32 or in the compute type. */
static void test_half_precision(void **state)
{
    (void)state;
    static const int grids[][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}, {1, 1, 4, 2}, {4, 2, 1, 1}};
    static const struct tolerance loose[2] = {{6e-2, 1e-3, 1e-2}, {1e-2, 1e-3, 1e-3}};
    struct s4d_trained expected;
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    s4d_train_reference(&c, &expected);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < (S4D_SANITIZED ? 2 : 8); i++) {
            const int *g = grids[i % 4];
            c.grid = s4d_grid_make(g[0], g[1], g[2], g[3]);
            c.options.precision = half ? S4D_F16 : S4D_BF16;
            c.options.gradient_type = i < 4 ? S4D_F32 : c.options.precision;
            c.options.loss_scaling = half || i % 2;
            c.options.micro_batch = 1 + i % 2;
            c.run.loss_scale = 1024;
            c.run.order_seed = (uint64_t)i;
            check_against(&c, &expected, loose[half]);
        }
    s4d_trained_free(&expected);
}

/* A loss scale that overflows f16: the scale is halved until it no longer does, and until then the
 * step is skipped on every rank: weights and step count stay. */
static void test_overflow(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_program p;
    struct s4d_case c = s4d_case_default(4, 2, 1, 2, 2);
    c.options.precision = S4D_F16;
    c.options.loss_scaling = true;
    c.run.loss_scale = 0x1p30;
    assert_int_equal(s4d_build(&p, &c.model, &c.grid, &c.options, &err), 0);
    s4d_plan(&p);
    struct s4d_interpreter_options run = s4d_case_run(&c);
    struct s4d_interpreter *in = s4d_interpreter_create(&p, &run);
    const struct s4d_param *q = &p.params[0];
    int64_t n = q->rows * s4d_param_cols(q);
    double *before = s4d_malloc((size_t)n * sizeof *before);
    double *after = s4d_malloc((size_t)n * sizeof *after), scale = c.run.loss_scale;
    assert_int_equal(s4d_interpreter_whole(in, q, S4D_WHOLE_MASTER, before, &err), 0);
    for (int i = 0;; i++) {
        if (s4d_interpreter_run(in, 1, &err))
            fail_msg("%s: %s", err.where, err.text);
        bool found = s4d_interpreter_get(in, 0, p.found_inf, 0) != 0;
        scale /= found ? 2 : 1;
        assert_int_equal(s4d_interpreter_whole(in, q, S4D_WHOLE_MASTER, after, &err), 0);
        for (int rank = 0; rank < 8; rank++) {
            assert_true(s4d_interpreter_get(in, rank, p.loss_scale, 0) == scale);
            assert_true(s4d_interpreter_get(in, rank, p.step, 0) == (found ? 0 : 1));
        }
        assert_int_equal(memcmp(before, after, (size_t)n * sizeof *before) != 0, !found);
        assert_true(found || i >= 2);
        assert_true(i < 30);
        if (!found)
            break;
    }
    free(before);
    free(after);
    s4d_interpreter_free(in);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_grids),
        cmocka_unit_test(test_four_heads),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_rank_orders),
        cmocka_unit_test(test_odd_sizes),
        cmocka_unit_test(test_iterations),
        cmocka_unit_test(test_iterations_f32),
        cmocka_unit_test(test_central_differences),
        cmocka_unit_test(test_half_precision),
        cmocka_unit_test(test_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
