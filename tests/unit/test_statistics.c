/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of measured times, worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/statistics.h"

static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("expected %.17g, found %.17g", expected, found);
}

/* 1 2 3 4 5, in another order: median 3, quartiles 2 and 4: 2 / 1.349 / 3. */
static void odd_number(void **state)
{
    (void)state;
    const double samples[] = {4, 1, 5, 3, 2};
    struct s4d_statistics s = s4d_statistics(samples, 5);
    assert_int_equal(s.n, 5);
    assert_close(s.median, 3);
    assert_close(s.mean, 3);
    assert_close(s.least, 1);
    assert_close(s.p99, 5);
    assert_close(s.variation, 2 / 1.349 / 3);
    assert_true(samples[0] == 4); /* as they were */
}

/* 1 2 3 10: median 2.5; quartiles at 0.75 and 2.25 of the sorted: 1.75 and 4.75. */
static void even_number(void **state)
{
    (void)state;
    const double samples[] = {10, 1, 3, 2};
    struct s4d_statistics s = s4d_statistics(samples, 4);
    assert_close(s.median, 2.5);
    assert_close(s.variation, 3 / 1.349 / 2.5);
}

/* One sample a thousand times as long: mean and p99 show it, median and variation do not. */
static void one_interruption(void **state)
{
    (void)state;
    double samples[101];
    for (int i = 0; i < 101; i++)
        samples[i] = 1 + 1e-3 * i;
    struct s4d_statistics before = s4d_statistics(samples, 101);
    samples[100] = 1000;
    struct s4d_statistics after = s4d_statistics(samples, 101);
    assert_close(after.median, before.median);
    assert_close(after.variation, before.variation);
    assert_close(after.p99, 1.099); /* the 100th of 101: one of them may exceed it */
    assert_true(after.mean > 10);
    assert_close(s4d_statistics(samples + 1, 100).p99, 1.099); /* the 99th of 100 */
    assert_close(s4d_statistics(samples + 91, 10).p99, 1000);  /* of ten: the largest */
}

/* Of normally distributed samples the variation is standard deviation / mean. 4,001 quantiles of
 * the normal distribution with mean 10, standard deviation 0.5, by inverting erf with Newton. */
static void normal_samples(void **state)
{
    (void)state;
    enum { N = 4001 };
    double *samples = malloc(N * sizeof *samples);
    for (int i = 0; i < N; i++) {
        double p = (i + 0.5) / N, z = 0;
        for (int j = 0; j < 200; j++) {
            double step = (p - 0.5 * erfc(-z / sqrt(2))) / (exp(-z * z / 2) / sqrt(2 * acos(-1)));
            z += fmax(-0.5, fmin(0.5, step));
        }
        samples[i] = 10 + 0.5 * z;
    }
    assert_true(fabs(s4d_statistics(samples, N).variation - 0.05) < 2e-4);
    free(samples);
}

static void one_sample(void **state)
{
    (void)state;
    struct s4d_statistics s = s4d_statistics((double[]){7}, 1);
    assert_close(s.median, 7);
    assert_close(s.p99, 7);
    assert_true(s.variation == 0);
    s = s4d_statistics((double[]){0, 0, 0}, 3); /* a clock that does not move */
    assert_true(s.median == 0 && s.variation == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_number),       cmocka_unit_test(even_number),
        cmocka_unit_test(one_interruption), cmocka_unit_test(normal_samples),
        cmocka_unit_test(one_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
