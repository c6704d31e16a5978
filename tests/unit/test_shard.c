/* SPDX-License-Identifier: Apache-2.0 */
/* The rectangles of a shard are the elements that s4d_param_global_index says, and its initial
 * weights are the oracle's, on every grid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "real/shard.h"
#include "support/memory.h"
#include "tests/lib/models.h"

/* Calls f with every shard of every grid and model. */
static void each_shard(void (*f)(const struct s4d_program *p, const struct s4d_param *q,
                                 const int coordinate[S4D_AXES]))
{
    int coordinate[S4D_AXES];
    for (int m = 0; m < S4D_TEST_MODELS; m++)
        for (int g = 0; g < S4D_TEST_GRIDS; g++) {
            struct s4d_program p;
            s4d_test_program(&p, m, g);
            for (int rank = 0; rank < s4d_grid_ranks(&p.grid); rank++) {
                s4d_grid_coordinates(&p.grid, rank, coordinate);
                for (int q = 0; q < p.n_params; q++)
                    f(&p, &p.params[q], coordinate);
            }
            s4d_program_free(&p);
        }
}

static void check_rectangles(const struct s4d_program *p, const struct s4d_param *q,
                             const int coordinate[S4D_AXES])
{
    struct s4d_rectangle v[S4D_RECTANGLES];
    int n = s4d_shard_rectangles(p, q, coordinate, v);
    int64_t cols = s4d_param_cols(q);
    int64_t *at = s4d_malloc((size_t)q->shard_elements * sizeof *at);
    for (int64_t i = 0; i < q->shard_elements; i++)
        at[i] = -1;
    for (int k = 0; k < n; k++) {
        int64_t first = 0;
        assert_true(v[k].rows > 0 && v[k].cols > 0);
        for (int part = 0; part < v[k].part; part++)
            first += q->part_cols[part];
        for (int64_t i = 0; i < v[k].rows; i++)
            for (int64_t j = 0; j < v[k].cols; j++) {
                int64_t local = v[k].local + i * v[k].local_stride + j;
                assert_in_range(local, 0, q->shard_elements - 1);
                assert_int_equal(at[local], -1); /* no element twice */
                at[local] = (v[k].row + i) * cols + first + v[k].col + j;
            }
    }
    for (int64_t i = 0; i < q->shard_elements; i++)
        if (at[i] != s4d_param_global_index(p, q, coordinate, i))
            fail_msg("%s, z %d, element %lld: %lld", q->name, coordinate[S4D_Z], (long long)i,
                     (long long)at[i]);
    free(at);
}

static void test_rectangles(void **state)
{
    (void)state;
    each_shard(check_rectangles);
}

/* The oracle's initial weights, also the padding; and another seed gives others. */
static void check_initial(const struct s4d_program *p, const struct s4d_param *q,
                          const int coordinate[S4D_AXES])
{
    struct s4d_interpreter_options options = s4d_interpreter_options_default();
    options.weight_seed = 12;
    double *v = s4d_malloc((size_t)q->shard_elements * sizeof *v);
    float *f = s4d_malloc((size_t)q->shard_elements * sizeof *f);
    s4d_shard_initial(p, q, coordinate, 12, S4D_DTYPE_F64, v);
    s4d_shard_initial(p, q, coordinate, 13, S4D_DTYPE_F32, f);
    int64_t held = 0, equal = 0;
    for (int64_t i = 0; i < q->shard_elements; i++) {
        int64_t g = s4d_param_global_index(p, q, coordinate, i);
        assert_true(v[i] == (g < 0 ? 0 : s4d_interpreter_initial(q, &options, g)));
        assert_true(g >= 0 || f[i] == 0);
        held += g >= 0;
        equal += g >= 0 && f[i] == (float)v[i];
    }
    assert_int_equal(equal, q->init == S4D_INIT_NORMAL ? 0 : held);
    free(v);
    free(f);
}

static void test_initial(void **state)
{
    (void)state;
    each_shard(check_initial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rectangles),
        cmocka_unit_test(test_initial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
