/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of an iteration's time is put down to: shares, records of rates, words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/track/attribution.h"
#include "support/memory.h"
#include "tests/lib/night_record.h"

/* --- the split ------------------------------------------------------------------------------- */

/* Computing (10, then 12 s) beside communication (9, then 13 s), which sum to the longer of the
 * two: 10, then 13 s. Computing first: +2, then communication +1; communication first: +3, then
 * computing +0. So computing makes (2 + 0) / 2 = 1 s of it, communication (1 + 3) / 2 = 2 s. A
 * third, which adds 5 s to either, makes 5 s. */
static double beside(unsigned mask)
{
    double compute_s = mask & 1u << S4D_SPLIT_COMPUTE ? 12 : 10,
           z_s = mask & 1u << S4D_SPLIT_Z ? 13 : 9, x_s = mask & 1u << S4D_SPLIT_X ? 6 : 1;
    return fmax(compute_s, z_s) + x_s;
}

static void splits(unsigned differ, int expected_n, const double *expected)
{
    unsigned masks[S4D_SPLIT_MASKS];
    double time_s[S4D_SPLIT_MASKS], part_s[S4D_SPLIT_CAUSES], sum = 0;
    int n = s4d_split_masks(differ, masks);
    assert_int_equal(n, expected_n);
    assert_true(masks[0] == 0 && masks[n - 1] == differ);
    for (int i = 0; i < n; i++)
        time_s[i] = beside(masks[i]);
    s4d_split(differ, time_s, part_s);
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++) {
        night_near(part_s[i], expected[i], 1e-12);
        sum += part_s[i];
    }
    night_near(sum, time_s[n - 1] - time_s[0], 1e-12);
}

static void test_split(void **state)
{
    (void)state;
    const unsigned compute = 1u << S4D_SPLIT_COMPUTE, z = 1u << S4D_SPLIT_Z, x = 1u << S4D_SPLIT_X;
    splits(0, 1, (double[S4D_SPLIT_CAUSES]){0});
    splits(z, 2, (double[S4D_SPLIT_CAUSES]){[S4D_SPLIT_Z] = 3});
    splits(compute | z, 4, (double[S4D_SPLIT_CAUSES]){[S4D_SPLIT_COMPUTE] = 1, [S4D_SPLIT_Z] = 2});
    splits(
        compute | z | x, 6,
        (double[S4D_SPLIT_CAUSES]){[S4D_SPLIT_COMPUTE] = 1, [S4D_SPLIT_Z] = 2, [S4D_SPLIT_X] = 5});
}

/* --- records of rates ------------------------------------------------------------------------ */

static struct s4d_night_rates rates_of(const char *text)
{
    json_t *record = night_json(text);
    struct s4d_night_rates r = s4d_night_rates_of(record);
    json_decref(record);
    return r;
}

static void test_rates(void **state)
{
    (void)state;
    struct s4d_night_rates r[3] = {
        rates_of("{'gemm_flops_per_s': 80, 'gemm_s': 2, 'busbw_Bps': {'x': 7, 'z-gather': 9},"
                 "'nodes': [{'host': 'a', 'ranks': 4, 'gemm_flops_per_s': 100, 'slowest_rank': 1},"
                 "{'host': 'b', 'ranks': 4, 'gemm_flops_per_s': 80, 'slowest_rank': 6},"
                 "{'host': 'c', 'ranks': 4, 'gemm_flops_per_s': 102, 'slowest_rank': 9}]}"),
    };
    /* b: 80 of the median of 100 and 102. */
    assert_string_equal(r[0].slowest.host, "b");
    night_near(r[0].slowest.part, 80.0 / 101, 1e-12);
    night_near(r[0].gemm_flops_per_s, 101, 1e-12);
    assert_true(r[0].slowest.rank == 6 && !r[0].slowest.is_rank && r[0].ranks_per_node == 4);
    night_near(r[0].busbw_Bps[S4D_STREAM_Z_GATHER], 9, 0);
    assert_true(isnan(r[0].busbw_Bps[S4D_STREAM_Y]) && isnan(r[0].attention_s));
    r[1] = r[2] = r[0];
    r[1].busbw_Bps[S4D_STREAM_X] = 8;
    r[1].slowest.part = 0.9;
    snprintf(r[1].slowest.host, sizeof r[1].slowest.host, "c");
    struct s4d_night_rates m = s4d_night_rates_median(r, 3);
    assert_string_equal(m.slowest.host, "b");
    assert_int_equal(m.slowest.records, 2);
    night_near(m.slowest.part, 80.0 / 101, 1e-12);
    night_near(m.busbw_Bps[S4D_STREAM_X], 7, 0);
    /* 7, 8, 7: the middle half is 0.5 wide, / 1.349 / 7. */
    night_near(m.noise.busbw[S4D_STREAM_X], 0.5 / 1.349 / 7, 1e-12);
    assert_true(m.noise.gemm == 0 && r[0].noise.gemm == 0);
    /* One node: its slowest rank; ranks that share a processor say nothing. */
    struct s4d_night_rates one =
        rates_of("{'gemm_flops_per_s': 90, 'nodes': [{'host': 'n017', 'ranks': 5}],"
                 "'gemm_flops_per_s_of_ranks': [100, null, 90, 104, 102]}");
    assert_true(one.slowest.is_rank && one.slowest.rank == 2);
    night_near(one.slowest.part, 90.0 / 102, 1e-12);
    night_near(one.gemm_flops_per_s, 102, 0);
    /* Nothing of it is a number that can be. */
    struct s4d_night_rates bad =
        rates_of("{'gemm_flops_per_s': -1, 'gemm_s': 'long', 'busbw_Bps': [1], 'nodes': [1, null],"
                 "'gemm_flops_per_s_of_ranks': {}}");
    assert_true(isnan(bad.gemm_flops_per_s) && isnan(bad.gemm_s) && bad.slowest.host[0] == '\0');
    bad = rates_of("{'nodes': {'a': 1}}");
    assert_true(bad.nodes == 0 && bad.slowest.part == 1);
}

/* --- where there is no simulating ------------------------------------------------------------ */

static const char plain[] = NIGHT_RECORD("gpt-5b", "64", "1x2x8x4", "32", "none");

static struct s4d_attribution attributed(const char *text, const char *on, bool rates)
{
    struct s4d_night_rates some = rates_of("{'gemm_flops_per_s': 1e12, 'gemm_s': 1}");
    struct s4d_attribution a = {
        .ratio = 1.1,
        .exposed = {{3, {0.6, 0, 0.1, 0.2, 0.1, 0}, 1}, {3, {0.61, 0, 0.1, 0.28, 0.1, 0}, 1.09}}};
    if (rates)
        a.before = a.after = some;
    json_t *record = night_json(text);
    s4d_attribute(&a, record, &(struct s4d_replay_options){.machine = (char *)on, .workers = 1});
    json_decref(record);
    return a;
}

/* Of 10 % more, 1 computing, 8 waiting for z, 1 nowhere. */
static void falls_back(const char *text, const char *on, bool rates, const char *why)
{
    struct s4d_attribution a = attributed(text, on, rates);
    if (!strstr(a.note, why))
        fail_msg("'%s', expected '%s'", a.note, why);
    assert_int_equal(a.by, S4D_BY_EXPOSED);
    night_near(a.part[S4D_SPLIT_COMPUTE], 0.01, 1e-12);
    night_near(a.part[S4D_SPLIT_Z], 0.08, 1e-12);
    night_near(a.part[S4D_SPLIT_UNEXPLAINED], 0.01, 1e-12);
}

static void test_without(void **state)
{
    (void)state;
    falls_back(plain, NULL, false, "no rates were measured in these nights");
    falls_back(NIGHT_RECORD("gpt-unknown", "64", "1x2x8x4", "32", "none"), NULL, true,
               "gpt-unknown");
    falls_back(plain, "no-machine", true, "no-machine");
    falls_back(NIGHT_RECORD("gpt-5b", "64", "1x2x8x4", "33", "none"), NULL, true, "not simulated");
    falls_back(NIGHT_RECORD("gpt-5b", "63", "1x2x8x4", "32", "none"), NULL, true, "not simulated");
    falls_back(NIGHT_RECORD("gpt-5b", "64", "1x2x8x4", "32", "some"), NULL, true, "not simulated");
    falls_back("{'kind': 'train'}", NULL, true, "not simulated");
    falls_back("[]", NULL, true, "not simulated");
    falls_back("{'kind': 'train', 'workload': {'name': 'gpt-5b', 'hash': '0'}, 'gpus': 8, 'grid': "
               "'1x1x8x1', 'global_batch': 8, 'micro_batch': 1}",
               NULL, true, "another one now");
    falls_back("{'kind': 'simulate'}", NULL, true, "");
    struct s4d_attribution nothing = {.ratio = NAN};
    s4d_attribute(&nothing, NULL, &(struct s4d_replay_options){.workers = 1});
    assert_int_equal(nothing.by, S4D_BY_NOTHING);
}

/* Whatever a record says in a key's place: no crash, and a reason, or an answer. */
static void test_mangled(void **state)
{
    (void)state;
    static const char good[] = NIGHT_RECORD("gpt-tiny", "4", "1x1x4x1", "8", "none"),
                      rates[] =
                          "{'gemm_flops_per_s': 1e12, 'gemm_s': 1, 'attention_s': 1, "
                          "'kernels_s': 1, 'busbw_Bps': {'z-gather': 1e9}, 'nodes': [{'host': "
                          "'a', 'ranks': 2, 'gemm_flops_per_s': 1e12, 'slowest_rank': 1}, "
                          "{'host': 'b', 'ranks': 2, 'gemm_flops_per_s': 9e11, "
                          "'slowest_rank': 2}]}",
                      *const junk[] = {"null", "-1", "1e308", "'x: [y'", "[{}]", "{'z': 1e-308}"};
    json_t *keys = night_json(good), *of_rates = night_json(rates), *v;
    const char *key;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        char *text = s4d_asprintf("[%s]", junk[i]);
        json_t *list = night_json(text), *bad = json_array_get(list, 0);
        json_object_foreach(of_rates, key, v)
        {
            json_t *copy = json_copy(of_rates), *record = night_json(good);
            json_object_set(copy, key, bad);
            struct s4d_attribution a = {.ratio = 1.1, .before = s4d_night_rates_of(of_rates)};
            a.after = s4d_night_rates_of(copy);
            s4d_attribute(&a, record, &(struct s4d_replay_options){.workers = 2});
            assert_true(a.by == S4D_BY_RATES || a.note[0]);
            json_t *said = s4d_attribution_record(&a, S4D_IS_TIME);
            assert_non_null(json_object_get(said, "text"));
            json_decref(said);
            json_decref(record);
            json_decref(copy);
        }
        json_object_foreach(keys, key, v)
        {
            json_t *copy = json_copy(keys);
            json_object_set(copy, key, bad);
            struct s4d_attribution a = {.ratio = 1.1};
            a.before = a.after = s4d_night_rates_of(of_rates);
            s4d_attribute(&a, copy, &(struct s4d_replay_options){.workers = 2});
            assert_true(a.by == S4D_BY_RATES || a.note[0]);
            json_decref(copy);
        }
        json_decref(list);
        free(text);
    }
    json_decref(keys);
    json_decref(of_rates);
}

/* What is said: of FLOP/s, which fall as time grows. 1 / 1.1 - 1 = -9.09 %, of which 8 / 10 are
 * z's. */
static void test_words(void **state)
{
    (void)state;
    struct s4d_attribution a = attributed(plain, "no-machine", true);
    a.after.busbw_Bps[S4D_STREAM_Z_GATHER] = 88;
    a.before.busbw_Bps[S4D_STREAM_Z_GATHER] = 100;
    a.after.slowest = (struct s4d_slowest){"n017", 20, false, 0.955, 3};
    json_t *record = s4d_attribution_record(&a, S4D_IS_RATE);
    const json_t *parts = json_object_get(record, "parts");
    const char *name;
    json_t *part;
    double sum = 0;
    json_object_foreach((json_t *)parts, name, part) sum += json_number_value(part);
    night_near(json_number_value(json_object_get(parts, "z")), -0.8 * (1 - 1 / 1.1), 1e-12);
    night_near(sum, 1 / 1.1 - 1, 1e-12);
    night_near(json_number_value(json_object_get(record, "change")), 1 / 1.1 - 1, 1e-12);
    const char *text = json_string_value(json_object_get(record, "text")),
               *start = "GEMM unchanged, all-gather on z down 12.0 %, node n017 slowest (4.5 % "
                        "below the others); by exposed_s, of -9.1 %: compute -0.9, z -7.3, "
                        "unexplained -0.9 (not simulated: ";
    if (strncmp(text, start, strlen(start)) != 0)
        fail_msg("'%s'", text);
    json_decref(record);
    /* Scatter of 20 %, in three records each: 12 % are not more than two of its errors, 1.2533 x 20
     * % x sqrt(2/3) = 20.5 %. */
    a.before.records = a.after.records = 3;
    a.before.noise.busbw[S4D_STREAM_Z_GATHER] = a.after.noise.busbw[S4D_STREAM_Z_GATHER] = 0.2;
    record = s4d_attribution_record(&a, S4D_IS_RATE);
    const json_t *rate = json_array_get(json_object_get(record, "rates"), 1);
    night_near(json_number_value(json_object_get(rate, "error")), 1.2533 * 0.2 * sqrt(2.0 / 3),
               1e-12);
    assert_null(strstr(json_string_value(json_object_get(record, "text")), "all-gather"));
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),   cmocka_unit_test(test_rates),
        cmocka_unit_test(test_without), cmocka_unit_test(test_mangled),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
