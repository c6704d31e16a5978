/* SPDX-License-Identifier: Apache-2.0 */
/* The layer kinds of Llama and the goldfish loss, executed by the toy interpreter: gradients
 * against central differences of the program's own loss on one rank, and every grid and option
 * against that rank. All in f64. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/training.h"

/* 8 heads on `kv_heads`, heads wider than hidden size / heads if `wide`, two layers. */
static struct s4d_case llama(int kv_heads, bool wide, bool tied, bool goldfish)
{
    struct s4d_case c = s4d_case_default(8, 1, 1, 1, 1);
    struct s4d_model *m = &c.model;
    m->hidden_size = wide ? 24 : 32;
    m->head_dim = wide ? 6 : 0;
    m->num_key_value_heads = kv_heads;
    m->ffn_hidden_size = 36;
    m->vocab_size = 31;
    m->tie_word_embeddings = tied;
    m->rope_theta = 100;
    snprintf(m->norm, sizeof m->norm, "rmsnorm");
    snprintf(m->attention, sizeof m->attention, "grouped-query");
    snprintf(m->positions, sizeof m->positions, "rotary");
    snprintf(m->mlp, sizeof m->mlp, "swiglu-mlp");
    if (goldfish) {
        snprintf(m->head, sizeof m->head, "goldfish-cross-entropy");
        m->goldfish_k = 3;
        m->goldfish_h = 2;
        m->rope_scaling_factor = 4;
        m->rope_low_freq_factor = 1;
        m->rope_high_freq_factor = 4;
        m->rope_original_max_position_embeddings = 16;
    }
    c.options.precision = c.options.gradient_type = S4D_F64;
    c.options.global_batch = 12;
    c.options.learning_rate = 0.01;
    c.dropped = 0; /* the goldfish loss hashes tokens */
    return c;
}

static void check_differences(struct s4d_case *c)
{
    struct s4d_program p;
    struct s4d_trained t;
    struct s4d_error err;
    const double e = 1e-5;
    assert_int_equal(s4d_build(&p, &c->model, &c->grid, &c->options, &err), 0);
    s4d_plan(&p);
    assert_int_equal(s4d_train_program(&p, c, &t, &err), 0);
    for (int q = 0; q < p.n_params; q += S4D_SANITIZED ? 5 : 1) {
        double size, slope = s4d_case_slope(&t, q, &size);
        double found =
            (s4d_case_moved_loss(&p, c, q, e) - s4d_case_moved_loss(&p, c, q, -e)) / (2 * e);
        if (!(fabs(found - slope) <= 1e-6 * (fabs(slope) + size)) || size == 0)
            fail_msg("%s: slope %g, gradient %g", p.params[q].name, found, slope);
    }
    s4d_trained_free(&t);
    s4d_program_free(&p);
}

static void check_grids(struct s4d_case *c)
{
    static const int grids[][4] = {{2, 1, 1, 1}, {1, 3, 1, 2}, {4, 2, 1, 1}, {1, 1, 4, 3},
                                   {2, 2, 2, 2}, {4, 1, 3, 1}, {1, 4, 2, 1}, {2, 1, 1, 6}};
    struct s4d_trained one, t;
    struct s4d_error err;
    c->iterations = 2;
    if (s4d_train(c, &one, &err))
        fail_msg("%s: %s", err.where, err.text);
    for (int i = 0, ran = 0; i < 8; i++) {
        c->grid = s4d_grid_make(grids[i][0], grids[i][1], grids[i][2], grids[i][3]);
        c->options.recompute = (enum s4d_recompute)(i % 3);
        c->options.overlap = (struct s4d_overlap){i & 1, i & 2, (enum s4d_prefetch)(i % 3),
                                                  (enum s4d_prefetch)(i / 3)};
        c->options.cached_layers = i / 2 % 3;
        c->options.gradient_reduce = i & 4 ? S4D_REDUCE_BUCKETS : S4D_REDUCE_AT_END;
        c->run.order_seed = (uint64_t)i;
        if (s4d_divides(&c->model, &c->grid, &c->options, &err) || (S4D_SANITIZED && ran++ > 0))
            continue;
        if (s4d_train(c, &t, &err))
            fail_msg("grid %d: %s: %s", i, err.where, err.text);
        struct s4d_difference d = s4d_compare(c, &t, &one);
        if (!(d.gradient <= 1e-10 && d.weight <= 1e-10 && d.loss <= 1e-12))
            fail_msg("grid %d: gradient of %s differs by %g, weight of %s by %g, loss by %g", i,
                     d.gradient_of, d.gradient, d.weight_of, d.weight, d.loss);
        s4d_trained_free(&t);
    }
    s4d_trained_free(&one);
}

static void test_llama(void **state)
{
    (void)state;
    for (int variant = 0; variant < 4; variant++) {
        struct s4d_case c = llama(variant % 2 ? 8 : 4, variant == 1, variant / 2, variant == 2);
        check_differences(&c);
        check_grids(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_llama)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
