/* SPDX-License-Identifier: Apache-2.0 */
/* Change points: a hand-worked statistic, and what must hold of any series. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plots/track/change_points.h"
#include "support/random.h"

enum { MAX = 60 };

static void assert_close(double found, double expected, double part)
{
    if (!(fabs(found - expected) <= part * fabs(expected)))
        fail_msg("expected %.17g, found %.17g", expected, found);
}

/* 1 2 4 6, between the second and the third: the four distances across are 3, 5, 2 and 4, mean 3.5;
 * within, one pair each, 1 and 2. Q = 2 * 2 / 4 * (2 * 3.5 - 1 - 2) = 4. Two nights on either side
 * leave no other split. */
static void four_nights(void **state)
{
    (void)state;
    int at = -1;
    assert_close(s4d_best_split((const double[]){1, 2, 4, 6}, 4, &at), 4, 1e-15);
    assert_int_equal(at, 2);
}

/* 1 1 1 5 5. After three: across 4, within 0: Q = 3 * 2 / 5 * 8 = 9.6. After two: across the mean
 * of 0 4 4, 8 / 3, within 0 and the mean of 4 4 0, 8 / 3: Q = 2 * 3 / 5 * (16 / 3 - 8 / 3) = 3.2.
 */
static void five_nights(void **state)
{
    (void)state;
    int at = -1;
    assert_close(s4d_best_split((const double[]){1, 1, 1, 5, 5}, 5, &at), 9.6, 1e-15);
    assert_int_equal(at, 3);
}

/* Straight from the definition, in n^3 steps, beside the one that goes through n^2 / 2. */
static double plain_best(const double *v, int n, int *at)
{
    double best = -INFINITY;
    for (int k = 2; k <= n - 2; k++) {
        double across = 0, before = 0, after = 0, m = k, o = n - k;
        for (int i = 0; i < n; i++)
            for (int j = i + 1; j < n; j++)
                *(j < k ? &before : i < k ? &across : &after) += fabs(v[i] - v[j]);
        double q = m * o / n *
                   (2 * across / (m * o) - before / (m * (m - 1) / 2) - after / (o * (o - 1) / 2));
        if (q > best) {
            best = q;
            *at = k;
        }
    }
    return best;
}

static void as_defined(void **state)
{
    (void)state;
    for (int n = 4; n <= MAX; n++) {
        double v[MAX];
        int at = -1, plain_at = -1;
        for (int i = 0; i < n; i++)
            v[i] = s4d_normal_at((uint64_t)n, (uint64_t)i) + (i > n / 3);
        double q = s4d_best_split(v, n, &at);
        assert_close(q, plain_best(v, n, &plain_at), 1e-9);
        assert_int_equal(at, plain_at);
    }
}

/* n nights with 1 % of noise about `level`, less `loss` of it from the night `at` on. */
static int series(struct s4d_level *nights, int n, uint64_t seed, double level, int at, double loss)
{
    for (int i = 0; i < n; i++)
        nights[i] = (struct s4d_level){.value = level * (i < at ? 1 : 1 - loss) *
                                                (1 + 0.005 * s4d_normal_at(seed, (uint64_t)i)),
                                       .error = 0.004 * level};
    return n;
}

static int changes(const struct s4d_level *nights, int n, uint64_t seed, struct s4d_change *v)
{
    struct s4d_change_options options = s4d_change_defaults();
    struct s4d_error err;
    options.seed = seed;
    int found = s4d_change_points(nights, n, &options, v, &err);
    assert_true(found >= 0);
    return found;
}

static void a_step_is_found(void **state)
{
    (void)state;
    struct s4d_level nights[MAX];
    struct s4d_change v[MAX];
    int n = series(nights, 40, 3, 2e14, 25, 0.05);
    assert_int_equal(changes(nights, n, 1, v), 1);
    assert_int_equal(v[0].at, 25);
    assert_int_equal(v[0].from, 0);
    assert_int_equal(v[0].to, 40);
    assert_true(v[0].confirmed);
    assert_close(v[0].part, -0.05, 0.1);
    assert_close(v[0].before, 2e14, 0.01);
    assert_true(v[0].p <= 0.002);
    assert_true(v[0].deviations > 10);
    /* Down and up again: two changes, and neither stands. */
    for (int i = 33; i < 40; i++)
        nights[i].value /= 0.95;
    assert_int_equal(changes(nights, n, 1, v), 2);
    struct s4d_change_options options = s4d_change_defaults();
    assert_int_equal(v[1].at, 33);
    assert_false(s4d_change_stands(nights, v, 2, 0, &options));
    assert_true(s4d_change_stands(nights, v, 2, 1, &options));
}

/* The first bad night stands out, and is no change; the second confirms it. */
static void the_second_night_confirms(void **state)
{
    (void)state;
    struct s4d_level nights[MAX];
    struct s4d_change v[MAX], last;
    struct s4d_change_options options = s4d_change_defaults();
    series(nights, 42, 11, 1, 40, 0.05);
    assert_int_equal(changes(nights, 40, 1, v), 0);
    assert_false(s4d_night_stands_out(nights, 0, 40, &options, &last));
    assert_int_equal(changes(nights, 41, 1, v), 0);
    assert_true(s4d_night_stands_out(nights, 0, 41, &options, &last));
    assert_close(last.part, -0.05, 0.3);
    assert_close(last.p, 1 / 41., 1e-12); /* none of the 41 as far */
    assert_false(last.confirmed);
    assert_int_equal(changes(nights, 42, 1, v), 1);
    assert_true(v[0].at == 40 && v[0].confirmed);
    /* One bad night and one good one. */
    nights[41].value = nights[39].value;
    int found = changes(nights, 42, 1, v);
    for (int i = 0; i < found; i++)
        assert_false(v[i].confirmed);
}

/* Places and p depend on neither the unit nor (with it the sizes do) where zero is. */
static void unit_and_zero(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct s4d_level a[MAX], b[MAX], c[MAX];
        struct s4d_change in_a[MAX], in_b[MAX], in_c[MAX];
        int n = series(a, 50, seed, 1, 31, 0.01 * (double)(seed % 5));
        for (int i = 0; i < n; i++) {
            b[i] = (struct s4d_level){.value = a[i].value * 1024, .error = a[i].error * 1024};
            c[i] = (struct s4d_level){.value = a[i].value + 64, .error = a[i].error};
        }
        int found = changes(a, n, 7, in_a);
        assert_int_equal(changes(b, n, 7, in_b), found);
        assert_int_equal(changes(c, n, 7, in_c), found);
        for (int i = 0; i < found; i++) {
            assert_true(in_a[i].at == in_b[i].at && in_a[i].at == in_c[i].at);
            assert_true(in_a[i].p == in_b[i].p && in_a[i].p == in_c[i].p);
            assert_close(in_b[i].part, in_a[i].part, 1e-12);
            assert_int_equal(in_a[i].confirmed, in_b[i].confirmed);
        }
    }
}

static void a_seed_is_the_same_again(void **state)
{
    (void)state;
    struct s4d_level nights[MAX];
    struct s4d_change a[MAX], b[MAX];
    int n = series(nights, 60, 5, 1, 40, 0.02), differ = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        int found = changes(nights, n, seed, a);
        assert_int_equal(changes(nights, n, seed, b), found);
        assert_memory_equal(a, b, (size_t)found * sizeof *a);
        series(nights, n, 5 + seed, 1, 40, 0.01);
        differ += changes(nights, n, seed + 1, b) != found || found == 0 || a[0].p != b[0].p;
    }
    assert_true(differ > 0);
}

/* All nights the same; the same but for two; every value twice. */
static void ties(void **state)
{
    (void)state;
    struct s4d_level nights[MAX];
    struct s4d_change v[MAX];
    for (int i = 0; i < MAX; i++)
        nights[i] = (struct s4d_level){.value = 0.1};
    assert_int_equal(changes(nights, MAX, 1, v), 0);
    nights[58].value = nights[59].value = 0.2;
    assert_int_equal(changes(nights, MAX, 1, v), 1);
    assert_true(v[0].at == 58 && v[0].confirmed);
    assert_close(v[0].part, 1, 1e-12);
    for (int i = 0; i < MAX; i++)
        nights[i].value = 1 + 0.01 * (i / 2 % 2);
    assert_int_equal(changes(nights, MAX, 1, v), 0);
    for (int i = 0; i < MAX; i++)
        nights[i].value = 0;
    assert_int_equal(changes(nights, MAX, 1, v), 0);
    for (int i = 30; i < MAX; i++)
        nights[i].value = 1;
    assert_int_equal(changes(nights, MAX, 1, v), 1);
    assert_true(isnan(v[0].part)); /* of nothing there is no part */
}

static void few_nights(void **state)
{
    (void)state;
    struct s4d_level nights[4] = {{1, 0}, {1, 0}, {2, 0}, {2, 0}};
    struct s4d_change v[4];
    for (int n = 0; n <= 4; n++)
        assert_int_equal(changes(nights, n, 1, v), 0);
    struct s4d_change_options options = s4d_change_defaults();
    options.p_max = 0.01;
    /* 2 / C(n, 2) <= 0.01: n (n - 1) >= 400, 21 nights; 2 / C(n, 3): n (n - 1) (n - 2) >= 1200. */
    assert_int_equal(s4d_change_least_nights(2, &options), 21);
    assert_int_equal(s4d_change_least_nights(3, &options), 12);
}

static void refused(void **state)
{
    (void)state;
    struct s4d_change_options options = s4d_change_defaults();
    struct s4d_level nights[S4D_NIGHTS_MAX + 1];
    struct s4d_change v[MAX];
    const double wrong[] = {NAN, INFINITY, -INFINITY, -1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct s4d_error err = {0};
        series(nights, 10, 1, 1, 10, 0);
        nights[3].value = wrong[i];
        assert_int_equal(s4d_change_points(nights, 10, &options, v, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_DATA);
        assert_non_null(strstr(err.text, "on night 3"));
    }
    struct s4d_error err = {0};
    assert_int_equal(s4d_change_points(nights, S4D_NIGHTS_MAX + 1, &options, v, &err), -1);
    assert_non_null(strstr(err.text, "at most 1000"));
}

/* 1 2 3 5 100: of the 15 means 1 1.5 2 2 2.5 3 3 3.5 4 5 50.5 51 51.5 52.5 100 the eighth, where a
 * mean is 22. The error is that of 2 3 5, mean 10/3: with the cut ones drawn in, 2 2 3 5 5, squares
 * 2 (16/9) + 1/9 + 2 (25/9) = 83/9, over 3 * 2. */
static void a_night_of_five(void **state)
{
    (void)state;
    double five[] = {5, 1, 2, 3, 100}, one[] = {7}, two[] = {1, 3}, three[] = {1, 30, 2};
    struct s4d_level night = s4d_level_of(five, 5);
    assert_close(night.value, 3.5, 1e-15);
    assert_close(night.error, sqrt(83 / 54.), 1e-12);
    assert_true(s4d_level_of(one, 1).value == 7 && s4d_level_of(one, 1).error == 0);
    assert_close(s4d_level_of(two, 2).value, 2, 1e-15);
    assert_close(s4d_level_of(two, 2).error, 1, 1e-15); /* standard deviation sqrt 2, over sqrt 2 */
    assert_close(s4d_level_of(three, 3).value, 2, 1e-15);
    double many[100];
    for (int i = 0; i < 100; i++)
        many[i] = i < 80 ? 1 + 0.01 * (i % 2) : 1000;
    assert_true(s4d_level_of(many, 100).value < 1.01); /* a fifth is cut at either end */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_nights),
        cmocka_unit_test(five_nights),
        cmocka_unit_test(as_defined),
        cmocka_unit_test(a_step_is_found),
        cmocka_unit_test(the_second_night_confirms),
        cmocka_unit_test(unit_and_zero),
        cmocka_unit_test(a_seed_is_the_same_again),
        cmocka_unit_test(ties),
        cmocka_unit_test(few_nights),
        cmocka_unit_test(refused),
        cmocka_unit_test(a_night_of_five),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
