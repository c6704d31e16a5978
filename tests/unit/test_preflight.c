/* SPDX-License-Identifier: Apache-2.0 */
/* Who is slow, from rates made up here; measured ones are in tests/real/preflight.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "real/preflight.h"

static void set(struct s4d_preflight *p, enum s4d_preflight_kind kind, const double *rate, int n)
{
    p->check[kind].size = 1;
    for (int r = 0; r < n; r++)
        p->check[kind].rate[r] = rate[r];
}

/* The median of 100, 100, 96, 94.9 and 80 is 96; 5 % below it is 91.2: only the last is slower. */
static void test_peers(void **state)
{
    const struct s4d_preflight_options options = {.slower = 0.05};
    struct s4d_preflight p;
    struct s4d_preflight_finding *f;
    (void)state;
    s4d_preflight_init(&p, 5, 0, S4D_BF16, &options);
    set(&p, S4D_PREFLIGHT_GEMM, (double[]){100, 94.9, 96, 100, 80}, 5);
    assert_int_equal(s4d_preflight_judge(&p, &f), 1);
    assert_int_equal(f[0].kind, S4D_PREFLIGHT_GEMM);
    assert_int_equal(f[0].rank, 4);
    assert_true(f[0].median == 96 && f[0].expected == 0 && f[0].rate == 80);
    free(f);
    s4d_preflight_free(&p);
}

/* A file says 100 with a tolerance of 10 %: 90 is not below, 89.9 is; of a check that it does not
 * know, and of one that was not made, nobody is slow. */
static void test_file(void **state)
{
    struct s4d_preflight_options options = {.slower = 1};
    struct s4d_preflight p;
    struct s4d_preflight_finding *f;
    (void)state;
    options.tolerance[S4D_PREFLIGHT_MEMORY] = 0.1;
    s4d_preflight_init(&p, 3, 0, S4D_BF16, &options);
    set(&p, S4D_PREFLIGHT_MEMORY, (double[]){90, 89.9, 120}, 3);
    set(&p, S4D_PREFLIGHT_TO_DEVICE, (double[]){1, 2, 3}, 3);
    p.check[S4D_PREFLIGHT_MEMORY].expected = 100;
    p.check[S4D_PREFLIGHT_FROM_DEVICE].expected = 100;
    assert_int_equal(s4d_preflight_judge(&p, &f), 1);
    assert_int_equal(f[0].kind, S4D_PREFLIGHT_MEMORY);
    assert_int_equal(f[0].rank, 1);
    assert_true(f[0].median == 0 && f[0].expected == 100);
    free(f);
    s4d_preflight_free(&p);
}

/* Four nodes of two ranks. The second node's group is as slow as its slower member, and named once,
 * by its first rank, 2; the median of 50 50 99 99 100 100 100 100 is 99.5. Rails are the even and
 * the odd ranks. Wrong values are those of a rank. */
static void test_groups(void **state)
{
    const struct s4d_preflight_options options = {.slower = 0.05};
    struct s4d_preflight p;
    struct s4d_preflight_finding *f;
    (void)state;
    s4d_preflight_init(&p, 8, 2, S4D_BF16, &options);
    assert_int_equal(p.program.n_ops, 3);
    assert_int_equal(p.check[S4D_PREFLIGHT_NODE].members, 2);
    assert_int_equal(p.check[S4D_PREFLIGHT_RAIL].members, 4);
    assert_int_equal(p.check[S4D_PREFLIGHT_WORLD].members, 8);
    set(&p, S4D_PREFLIGHT_NODE, (double[]){100, 101, 100, 50, 99, 100, 100, 100}, 8);
    set(&p, S4D_PREFLIGHT_RAIL, (double[]){10, 4, 10, 4, 10, 4, 10, 4}, 8);
    p.check[S4D_PREFLIGHT_NODE].wrong[7] = 3;
    assert_int_equal(s4d_preflight_judge(&p, &f), 3);
    assert_int_equal(f[0].rank, 2);
    assert_true(f[0].rate == 50 && f[0].median == 99.5 && f[0].wrong == 0);
    assert_int_equal(f[1].rank, 7);
    assert_true(f[1].median == 0 && f[1].wrong == 3);
    assert_int_equal(f[2].kind, S4D_PREFLIGHT_RAIL);
    assert_int_equal(f[2].rank, 1); /* the median is 7, between the two rails */
    assert_true(f[2].rate == 4 && f[2].median == 7);
    free(f);
    s4d_preflight_free(&p);
}

/* One node is the world; one rank a node has rails alone, which are it too; one rank sums nothing.
 */
static void test_shapes(void **state)
{
    const struct s4d_preflight_options options = {.slower = 0.05};
    const int shape[3][3] = {{4, 4, 1}, {4, 1, 1}, {1, 1, 0}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct s4d_preflight p;
        s4d_preflight_init(&p, shape[i][0], shape[i][1], S4D_BF16, &options);
        assert_int_equal(p.program.n_ops, shape[i][2]);
        if (shape[i][2])
            assert_int_equal(p.program.stream_length[S4D_STREAM_X_Y_Z], 1);
        s4d_preflight_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
