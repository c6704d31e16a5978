/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of an iteration's time is put down to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/track/attribution.h"
#include "cli/track/replay.h"
#include "support/memory.h"

static void near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g to %.3g", got, expected, tolerance);
}

/* JSON with ' for ". */
static json_t *loads(const char *text)
{
    char *copy = s4d_strdup(text);
    for (char *c = copy; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *v = json_loads(copy, 0, NULL);
    assert_non_null(v);
    free(copy);
    return v;
}

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
        near(part_s[i], expected[i], 1e-12);
        sum += part_s[i];
    }
    near(sum, time_s[n - 1] - time_s[0], 1e-12);
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
    json_t *record = loads(text);
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
    near(r[0].slowest.part, 80.0 / 101, 1e-12);
    near(r[0].gemm_flops_per_s, 101, 1e-12);
    assert_true(r[0].slowest.rank == 6 && !r[0].slowest.is_rank && r[0].ranks_per_node == 4);
    near(r[0].busbw_Bps[S4D_STREAM_Z_GATHER], 9, 0);
    assert_true(isnan(r[0].busbw_Bps[S4D_STREAM_Y]) && isnan(r[0].attention_s));
    r[1] = r[2] = r[0];
    r[1].busbw_Bps[S4D_STREAM_X] = 8;
    r[1].slowest.part = 0.9;
    snprintf(r[1].slowest.host, sizeof r[1].slowest.host, "c");
    struct s4d_night_rates m = s4d_night_rates_median(r, 3);
    assert_string_equal(m.slowest.host, "b");
    assert_int_equal(m.slowest.records, 2);
    near(m.slowest.part, 80.0 / 101, 1e-12);
    near(m.busbw_Bps[S4D_STREAM_X], 7, 0);
    /* 7, 8, 7: the middle half is 0.5 wide, / 1.349 / 7. */
    near(m.noise.busbw[S4D_STREAM_X], 0.5 / 1.349 / 7, 1e-12);
    assert_true(m.noise.gemm == 0 && r[0].noise.gemm == 0);
    /* One node: its slowest rank; ranks that share a processor say nothing. */
    struct s4d_night_rates one =
        rates_of("{'gemm_flops_per_s': 90, 'nodes': [{'host': 'n017', 'ranks': 5}],"
                 "'gemm_flops_per_s_of_ranks': [100, null, 90, 104, 102]}");
    assert_true(one.slowest.is_rank && one.slowest.rank == 2);
    near(one.slowest.part, 90.0 / 102, 1e-12);
    near(one.gemm_flops_per_s, 102, 0);
    /* Nothing of it is a number that can be. */
    struct s4d_night_rates bad =
        rates_of("{'gemm_flops_per_s': -1, 'gemm_s': 'long', 'busbw_Bps': [1], 'nodes': [1, null],"
                 "'gemm_flops_per_s_of_ranks': {}}");
    assert_true(isnan(bad.gemm_flops_per_s) && isnan(bad.gemm_s) && bad.slowest.host[0] == '\0');
    bad = rates_of("{'nodes': {'a': 1}}");
    assert_true(bad.nodes == 0 && bad.slowest.part == 1);
}

/* --- changes made by simulation --------------------------------------------------------------- */

#define INPUTS                                                                                     \
    "'rank_order': 'y,x,z,pipe,data', 'recompute': 'full', 'cache_layers': 0, "                    \
    "'precision': 'bf16', 'gradient_type': 'f32', 'gradient_reduce': 'at-end', "                   \
    "'loss_scaling': false, 'clip_norm': 1.0"
#define RECORD(workload, gpus, grid, batch, overlap)                                               \
    "{'kind': 'train', 'backend': 'cuda', 'workload': {'name': '" workload "'}, 'gpus': " gpus     \
    ", 'grid': '" grid "', 'global_batch': " batch ", 'micro_batch': 1, 'overlap': '" overlap      \
    "', " INPUTS "}"

/* A night of the replay's machine at these rates, as a suite measures it, and its iteration. */
struct night {
    double gemm, z, x, unseen; /* parts of what they were; unseen: of all, that no rate shows */
    int slow_rank;
    double slow;
};

static struct s4d_night_state state_of(const struct night *n)
{
    struct s4d_night_state s = {.slow = n->slow, .slow_rank = n->slow_rank};
    s4d_rates_plain(&s.rates);
    s4d_rates_apply(&s.rates, "gemm", n->gemm);
    s4d_rates_apply(&s.rates, "z", n->z);
    s4d_rates_apply(&s.rates, "x", n->x);
    return s;
}

static struct s4d_night_rates measured(const struct s4d_replay *r, const struct night *n)
{
    int per_node = r->machine.node.devices, nodes = r->simulation.gpus / per_node;
    double mean = (nodes - 1 + 1 / n->slow) / nodes, gemm_s = r->class_s[S4D_CLASS_GEMM] / n->gemm;
    struct s4d_night_state s = state_of(n);
    struct s4d_night_rates m = {.records = 1,
                                .gemm_flops_per_s = r->gemm_flops / gemm_s,
                                .gemm_s = gemm_s * mean,
                                .attention_s = r->class_s[S4D_CLASS_ATTENTION] * mean,
                                .kernels_s = r->class_s[S4D_CLASS_KERNEL] * mean,
                                .slowest = {"n017", n->slow_rank, false, n->slow, 1},
                                .nodes = nodes,
                                .ranks_per_node = per_node};
    for (int i = 0; i < S4D_STREAMS; i++)
        m.busbw_Bps[i] = r->busbw_Bps[i] > 0 ? r->busbw_Bps[i] * s.rates.stream[i] : NAN;
    return m;
}

struct change {
    struct s4d_attribution a;
    double compute, z, x, slow, ratio; /* what each alone makes of the iteration */
};

static const struct night well = {1, 1, 1, 1, 0, 1};

/* The change from a night where all is well, made on a machine that the attribution is told
 * (known), or has to make of the rates. */
static struct change change(const char *machine, const char *text, const struct night *bad,
                            bool known)
{
    struct change c = {.a = {.note = ""}};
    struct s4d_replay r;
    struct s4d_error err = {0};
    json_t *record = loads(text);
    const struct night alone[] = {well,
                                  {bad->gemm, 1, 1, 1, 0, 1},
                                  {1, bad->z, 1, 1, 0, 1},
                                  {1, 1, bad->x, 1, 0, 1},
                                  {1, 1, 1, 1, bad->slow_rank, bad->slow},
                                  *bad};
    enum { N = sizeof alone / sizeof *alone };
    struct s4d_night_state states[N];
    double time_s[N];
    if (s4d_replay_open(&r, record, machine, &c.a.before, 2, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    for (int i = 0; i < N; i++)
        states[i] = state_of(&alone[i]);
    if (s4d_replay_times(&r, states, N, time_s, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    c.compute = time_s[1] / time_s[0] - 1;
    c.z = time_s[2] / time_s[0] - 1;
    c.x = time_s[3] / time_s[0] - 1;
    c.slow = time_s[4] / time_s[0] - 1;
    c.ratio = c.a.ratio = time_s[N - 1] / time_s[0] / bad->unseen;
    c.a.before = measured(&r, &well);
    c.a.after = measured(&r, bad);
    s4d_replay_free(&r);
    s4d_attribute(&c.a, record, known ? machine : NULL, 2);
    json_decref(record);
    double sum = 0;
    for (int i = 0; i < S4D_SPLIT_PARTS; i++)
        sum += c.a.part[i];
    if (c.a.by != S4D_BY_RATES)
        fail_msg("%s", c.a.note);
    near(sum, c.ratio - 1, 1e-12);
    return c;
}

static const char plain[] = RECORD("gpt-5b", "64", "1x2x8x4", "32", "none"),
                  overlapping[] = RECORD("gpt-5b", "64", "2x1x8x4", "32",
                                         "oar,ors,oag-forward=across-layers,"
                                         "oag-backward=across-layers");
static const char machine[] = "dgx-a100";

/* Within half a point of the iteration, as the issue asks. */
static const double points = 0.005;

static void check(const struct change *c, double unseen)
{
    const double *part = c->a.part;
    print_message("%+.2f %%: compute %+.2f (%+.2f)  x %+.2f (%+.2f)  z %+.2f (%+.2f)  slow %+.2f "
                  "(%+.2f)  unexplained %+.2f (%+.2f)  %s\n",
                  100 * (c->ratio - 1), 100 * part[S4D_SPLIT_COMPUTE], 100 * c->compute,
                  100 * part[S4D_SPLIT_X], 100 * c->x, 100 * part[S4D_SPLIT_Z], 100 * c->z,
                  100 * part[S4D_SPLIT_SLOW_NODE], 100 * c->slow, 100 * part[S4D_SPLIT_UNEXPLAINED],
                  100 * unseen, c->a.machine);
    near(part[S4D_SPLIT_COMPUTE], c->compute, points);
    near(part[S4D_SPLIT_Z], c->z, points);
    near(part[S4D_SPLIT_X], c->x, points);
    near(part[S4D_SPLIT_SLOW_NODE], c->slow, points);
    near(part[S4D_SPLIT_UNEXPLAINED], unseen, points);
    near(part[S4D_SPLIT_Y], 0, points);
    near(part[S4D_SPLIT_DATA], 0, points);
    near(part[S4D_SPLIT_OTHER], 0, points);
}

/* The three of the issue on the machine that they were made on, where the parts are exact, and on
 * one made of the rates alone, without overlap and with all of it. */
static void test_three(void **state)
{
    (void)state;
    static const struct night nights[] = {
        {0.97, 1, 1, 1, 0, 1}, {1, 0.88, 1, 1, 0, 1}, {1, 1, 1, 1, 20, 0.9}};
    static const enum s4d_split_part is[] = {S4D_SPLIT_COMPUTE, S4D_SPLIT_Z, S4D_SPLIT_SLOW_NODE};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            struct change c = change(machine, k < 2 ? plain : overlapping, &nights[i], k % 2 == 0);
            check(&c, 0);
            assert_true(c.ratio > 1.005); /* worth the name of a change */
            if (k % 2 == 0)
                near(c.a.part[is[i]], c.ratio - 1, 1e-9);
        }
}

/* Several at once, and a night that nobody explains. */
static void test_combined(void **state)
{
    (void)state;
    struct change c = change(machine, plain, &(struct night){0.97, 0.88, 1, 1, 20, 0.95}, true);
    check(&c, 0);
    c = change(machine, overlapping, &(struct night){0.97, 0.88, 0.8, 1, 0, 1}, false);
    check(&c, 0);
    c = change(machine, overlapping, &(struct night){1, 1, 1, 0.96, 0, 1}, false);
    check(&c, 1 / 0.96 - 1);
    assert_true(c.a.part[S4D_SPLIT_Z] == 0 && c.a.part[S4D_SPLIT_COMPUTE] == 0);
    /* 4 % on top of z, of an iteration that is slower already. */
    c = change(machine, plain, &(struct night){1, 0.88, 1, 0.96, 0, 1}, false);
    check(&c, (1 + c.z) / 0.96 - 1 - c.z);
}

/* Where nothing runs beside anything x makes exactly what its all-reduces take, 1 / 0.88 - 1 =
 * 13.64 % longer, and products what they take, 1 / 0.97 - 1 = 3.09 % longer. On two nodes of 10
 * GB/s and 5 us: all-reduces of n bytes, 2 x 1/2 x n / 10e9 + 2 x 5 us each. */
static void test_by_hand(void **state)
{
    (void)state;
    static const char line[] = "synthetic:topology=single-switch,nodes=2,devices_per_node=1,"
                               "nic=10GB/s,latency=5us,peak=10TFLOP/s,memory_bandwidth=500GB/s",
                      text[] = RECORD("gpt-tiny", "2", "2x1x1x1", "1", "none");
    struct s4d_replay r;
    struct s4d_night_rates none = {.records = 0};
    struct s4d_error err = {0};
    struct s4d_result result;
    json_t *record = loads(text);
    if (s4d_replay_open(&r, record, line, &none, 1, &err) ||
        s4d_simulate(&r.simulation, &result, &err))
        fail_msg("%s: %s", err.where, err.text);
    double t_s = result.run.iteration_time_s, x_s = result.run.exposed_s[S4D_STREAM_X];
    near(result.bus_bytes[S4D_STREAM_X] / r.busbw_Bps[S4D_STREAM_X], x_s, 1e-12);
    struct change x = change(line, text, &(struct night){1, 1, 0.88, 1, 0, 1}, true),
                  gemm = change(line, text, &(struct night){0.97, 1, 1, 1, 0, 1}, true);
    near(x.a.part[S4D_SPLIT_X], x_s / t_s * (1 / 0.88 - 1), 1e-9);
    near(gemm.a.part[S4D_SPLIT_COMPUTE], r.class_s[S4D_CLASS_GEMM] / t_s * (1 / 0.97 - 1), 1e-9);
    assert_true(x.a.part[S4D_SPLIT_X] > 0.01 && gemm.a.part[S4D_SPLIT_COMPUTE] > 1e-4);
    s4d_replay_free(&r);
    json_decref(record);
}

/* --- where there is no simulating ------------------------------------------------------------ */

static struct s4d_attribution attributed(const char *text, const char *on, bool rates)
{
    struct s4d_night_rates some = rates_of("{'gemm_flops_per_s': 1e12, 'gemm_s': 1}");
    struct s4d_attribution a = {
        .ratio = 1.1,
        .exposed = {{3, {0.6, 0, 0.1, 0.2, 0.1, 0}, 1}, {3, {0.61, 0, 0.1, 0.28, 0.1, 0}, 1.09}}};
    if (rates)
        a.before = a.after = some;
    json_t *record = loads(text);
    s4d_attribute(&a, record, on, 1);
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
    near(a.part[S4D_SPLIT_COMPUTE], 0.01, 1e-12);
    near(a.part[S4D_SPLIT_Z], 0.08, 1e-12);
    near(a.part[S4D_SPLIT_UNEXPLAINED], 0.01, 1e-12);
}

static void test_without(void **state)
{
    (void)state;
    falls_back(plain, NULL, false, "no rates were measured in these nights");
    falls_back(RECORD("gpt-unknown", "64", "1x2x8x4", "32", "none"), NULL, true, "gpt-unknown");
    falls_back(plain, "no-machine", true, "no-machine");
    falls_back(RECORD("gpt-5b", "64", "1x2x8x4", "33", "none"), NULL, true, "not simulated");
    falls_back(RECORD("gpt-5b", "63", "1x2x8x4", "32", "none"), NULL, true, "not simulated");
    falls_back(RECORD("gpt-5b", "64", "1x2x8x4", "32", "some"), NULL, true, "not simulated");
    falls_back("{'kind': 'train'}", NULL, true, "not simulated");
    falls_back("[]", NULL, true, "not simulated");
    falls_back("{'kind': 'train', 'workload': {'name': 'gpt-5b', 'hash': '0'}, 'gpus': 8, 'grid': "
               "'1x1x8x1', 'global_batch': 8, 'micro_batch': 1}",
               NULL, true, "another one now");
    falls_back("{'kind': 'simulate'}", NULL, true, "");
    struct s4d_attribution nothing = {.ratio = NAN};
    s4d_attribute(&nothing, NULL, NULL, 1);
    assert_int_equal(nothing.by, S4D_BY_NOTHING);
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
    near(json_number_value(json_object_get(parts, "z")), -0.8 * (1 - 1 / 1.1), 1e-12);
    near(sum, 1 / 1.1 - 1, 1e-12);
    near(json_number_value(json_object_get(record, "change")), 1 / 1.1 - 1, 1e-12);
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
    near(json_number_value(json_object_get(rate, "error")), 1.2533 * 0.2 * sqrt(2.0 / 3), 1e-12);
    assert_null(strstr(json_string_value(json_object_get(record, "text")), "all-gather"));
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),   cmocka_unit_test(test_rates),
        cmocka_unit_test(test_three),   cmocka_unit_test(test_combined),
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_without),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
