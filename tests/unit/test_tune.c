/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates against numbers worked out by hand, the published model's terms, the ranking and what
 * it says where there is none. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/tune/estimate.h"
#include "sim/tune/tune.h"
#include "support/statistics.h"

#define LINE                                                                                       \
    "synthetic:topology=single-switch,nodes=64,devices_per_node=1,nic=50GB/s,latency=500ns,"       \
    "peak=1TFLOP/s"

#define MANY "synthetic:topology=single-switch,nodes=1048576,nic=50GB/s,latency=500ns,peak=1TFLOP/s"

struct case_ {
    struct s4d_machine machine;
    struct s4d_workload workload;
    struct s4d_space space;
};

static void set_up(struct case_ *c, const char *machine, const char *workload, int gpus, int batch)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(&c->machine, machine, NULL, 0, &err) ||
        s4d_workload_load(&c->workload, workload, &err))
        fail_msg("%s: %s", err.where, err.text);
    c->space = (struct s4d_space){.machine = &c->machine,
                                  .workload = &c->workload,
                                  .gpus = gpus,
                                  .order = s4d_grid_make(1, 1, 1, 1),
                                  .options = s4d_options_default(),
                                  .strategy = s4d_strategies};
    c->space.options.global_batch = batch;
}

static void tear_down(struct case_ *c)
{
    s4d_machine_free(&c->machine);
    s4d_workload_free(&c->workload);
}

static void near(double a, double b, double part)
{
    if (!(fabs(a - b) <= part * fabs(b)))
        fail_msg("%.12g is not %.12g", a, b);
}

/* published: the published model with beta from the links. */
static struct s4d_estimate estimate(const struct case_ *c, struct s4d_grid grid, int b,
                                    bool published)
{
    struct s4d_error err;
    struct s4d_options o = c->space.options;
    struct s4d_counts counts;
    struct s4d_batch_passes passes;
    struct s4d_estimator e = {.machine = &c->machine, .model = &c->workload.model};
    o.micro_batch = b;
    e.wires = s4d_wires_create(&c->machine, s4d_grid_ranks(&grid), &err);
    if (!e.wires || s4d_counts_create(&counts, &c->workload.model, &grid, &o, &err))
        fail_msg("%s: %s", err.where, err.text);
    s4d_passes_common(&passes, &e, &counts, &grid, &o);
    s4d_passes_complete(&passes, &e, &counts, &grid, &o);
    struct s4d_estimate r = published ? s4d_estimate_published(&e, &counts, &grid, &o, NULL)
                                      : s4d_estimate_make(&passes, &e, &grid, &o);
    s4d_counts_free(&counts);
    s4d_wires_free(e.wires);
    return r;
}

/* Nothing but computing at 1 TFLOP/s. gpt-tiny, batch 4, s = 32, l = 2, h = 64, V = 256, full
 * recompute: 96 * 4 * 32 * 2 * 64^2 * (1 + 32/384 + 256/2048) = 121634816 FLOP, of which
 * attention's squares are 4 * (4 b s^2 h l) = 8388608 (forward, again, twice backward). Executed is
 * the causal half of it, and of the backward 2.5 passes: (0.5 + 0.5 + 1.25) * 2097152 = 4718592. So
 * 121634816 - 8388608 + 4718592 = 117964800. */
static void test_computing(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 1, 4);
    near(estimate(&c, s4d_grid_make(1, 1, 1, 1), 4, false).total_s, 117964800e-12, 1e-9);
    near(estimate(&c, s4d_grid_make(1, 1, 1, 1), 1, false).total_s, 117964800e-12, 1e-9);
    tear_down(&c);
}

/* Two replicas: half the work. The sharded gradient, 12 h^2 l + V h = 114688 elements of 4 bytes,
 * over data at 50 GB/s and two latencies; over {z,data} the same of the replicated ones, 13 h l of
 * layers, s h positions, 2 h of the last norm: 3840 elements; and two scalars, denominator and
 * loss, of two latencies and 4 bytes each. */
static void test_replicas(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 2, 4);
    struct s4d_estimate r = estimate(&c, s4d_grid_make(1, 1, 1, 2), 2, false);
    near(r.term_s[S4D_TERM_GEMM] + r.term_s[S4D_TERM_KERNELS], 117964800e-12 / 2, 1e-9);
    near(r.term_s[S4D_TERM_REDUCE_DATA], 4 * 114688 / 50e9 + 1e-6, 1e-9);
    near(r.term_s[S4D_TERM_OTHER], (4 * 3840 + 2 * 4) / 50e9 + 3e-6, 1e-9);
    near(r.total_s, 58982400e-12 + 4 * (114688 + 3840 + 2) / 50e9 + 4e-6, 1e-9);
    tear_down(&c);
}

/* Shards of two: a layer has 12 h^2 = 49152 elements of 2 bytes in four matrices; nothing
 * overlaps. Gathered in forward and recompute, scattered once; the embedding's 16384 are gathered
 * for the lookup and for the head, and scattered once: half of the bytes at 50 GB/s and a latency
 * each. */
static void test_shards(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 2, 4);
    assert_int_equal(s4d_overlap_parse("none", &c.space.options.overlap, NULL), 0);
    struct s4d_estimate r = estimate(&c, s4d_grid_make(1, 1, 2, 1), 2, false);
    double layers_s = 2 * (49152 / 50e9 + 4 * 0.5e-6), embedding_s = 16384 / 50e9 + 0.5e-6;
    near(r.term_s[S4D_TERM_GATHER_Z], 2 * layers_s + 2 * embedding_s, 1e-9);
    near(r.term_s[S4D_TERM_SCATTER_Z], layers_s + embedding_s, 1e-9);
    near(r.total_s, 58982400e-12 + 3 * layers_s + 3 * embedding_s + r.term_s[S4D_TERM_OTHER], 1e-9);
    tear_down(&c);
}

/* The published terms of gpt-tiny on 2x2x1x1, T = 4 * 32 tokens of 2 bytes. Over y, n/Gx of normal
 * and k/Gx of transposed layers: qkv 96, up 128, out 32, down 128 a layer, the head V/Gx = 128:
 * 128 * 2 * (2 * 384 + 128) = 229376 bytes in 9 calls. Over x, k/Gy and n/Gy: 32 each, 128 a layer,
 * the head's 32: 73728 bytes in 9. At 50 GB/s, 2 (G-1)/G = 1; each call pays 2 * 2 latencies. */
static void test_published_terms(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 4, 4);
    struct s4d_estimate r = estimate(&c, s4d_grid_make(2, 2, 1, 1), 2, true);
    near(r.term_s[S4D_TERM_REDUCE_Y], 229376 / 50e9 + 9 * 4 * 0.5e-6, 1e-9);
    near(r.term_s[S4D_TERM_REDUCE_X], 73728 / 50e9 + 9 * 4 * 0.5e-6, 1e-9);
    assert_true(r.term_s[S4D_TERM_GATHER_Z] == 0 && r.term_s[S4D_TERM_REDUCE_DATA] == 0);
    /* kn of all layers and the head: 12 h^2 l + V h = 114688; bytes 2 over z, 4 over data. */
    r = estimate(&c, s4d_grid_make(1, 1, 2, 2), 1, true);
    near(r.term_s[S4D_TERM_GATHER_Z], 114688 / 50e9 + 9 * 2 * 0.5e-6, 1e-9);
    near(r.term_s[S4D_TERM_SCATTER_Z], 114688 / 50e9 + 9 * 2 * 0.5e-6, 1e-9);
    near(r.term_s[S4D_TERM_REDUCE_DATA], 4 * 57344 / 50e9 + 4 * 0.5e-6, 1e-9);
    tear_down(&c);
}

/* A weight that is kept is gathered once: forward in the first micro-batch, and in full sight there
 * where nothing overlaps. With both layers kept, what an iteration saves is what the gathers' term
 * does. */
static void test_cached_layers(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 2, 8);
    c.space.options.overlap = (struct s4d_overlap){.oar = false};
    c.space.options.recompute = S4D_RECOMPUTE_NONE;
    for (int b = 1; b <= 4; b *= 2) { /* 4, 2 and 1 micro-batches */
        c.space.options.cached_layers = 0;
        struct s4d_estimate none = estimate(&c, s4d_grid_make(1, 1, 2, 1), b, false);
        c.space.options.cached_layers = 2;
        struct s4d_estimate all = estimate(&c, s4d_grid_make(1, 1, 2, 1), b, false);
        double saved_s = none.term_s[S4D_TERM_GATHER_Z] - all.term_s[S4D_TERM_GATHER_Z];
        assert_true(saved_s > 0);
        near(none.total_s - all.total_s, saved_s, 1e-9);
    }
    tear_down(&c);
}

/* Collectives over z that all hide behind computing slow it while they run: at 3/4 of its rate they
 * take a quarter of their time from it. */
static void test_computing_beside(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE, "gpt-tiny", 2, 1024);
    struct s4d_estimate alone = estimate(&c, s4d_grid_make(1, 1, 2, 1), 512, false);
    c.machine.device.rate_beside_across_nodes.value = 0.75;
    struct s4d_estimate beside = estimate(&c, s4d_grid_make(1, 1, 2, 1), 512, false);
    near(beside.total_s - alone.total_s,
         0.25 * (alone.term_s[S4D_TERM_GATHER_Z] + alone.term_s[S4D_TERM_SCATTER_Z]), 1e-6);
    tear_down(&c);
}

/* 1 GiB gathered over 8: 7/8 of 1024 MiB at 59.52 MiB/ms and 8 * 0.009 ms; with two inner ranks the
 * network is shared by two; four in a node at 225; groups that straddle nodes have no bandwidth. */
static void test_published_tables(void **state)
{
    (void)state;
    const struct s4d_published_machine *m = s4d_published_machine_find("perlmutter");
    const double GiB = 1024.0 * 1048576;
    struct s4d_grid g = s4d_grid_make(1, 1, 8, 1);
    assert_non_null(m);
    assert_null(s4d_published_machine_find("nowhere"));
    near(s4d_published_time_s(m, &g, S4D_Z, S4D_OP_ALL_GATHER, GiB, 1),
         1e-3 * (896 / 59.52 + 0.072), 1e-12);
    g = s4d_grid_make(1, 2, 8, 1);
    near(s4d_published_time_s(m, &g, S4D_Z, S4D_OP_ALL_GATHER, GiB, 1),
         1e-3 * (896 * 2 / 59.52 + 0.072), 1e-12);
    g = s4d_grid_make(1, 4, 1, 1);
    near(s4d_published_time_s(m, &g, S4D_Y, S4D_OP_ALL_REDUCE, GiB, 1),
         1e-3 * 2 * (768 / 225.0 + 0.036), 1e-12);
    const struct s4d_published_machine *frontier = s4d_published_machine_find("frontier");
    g = s4d_grid_make(1, 1, 16, 1); /* two nodes, nothing inside */
    near(s4d_published_time_s(frontier, &g, S4D_Z, S4D_OP_ALL_GATHER, GiB, 1),
         1e-3 * (960 / 109.98 + 16 * 0.039), 1e-12);
    near(s4d_published_time_s(frontier, &g, S4D_Z, S4D_OP_REDUCE_SCATTER, GiB, 1),
         1e-3 * (960 / 127.79 + 16 * 0.0298), 1e-12);
    static const double in_node[][3] = {{1, 2, 129}, {1, 4, 52}, {1, 8, 135},
                                        {2, 2, 50},  {2, 4, 72}, {4, 2, 36}};
    for (int i = 0; i < 6; i++) {
        g = s4d_grid_make(1, (int)in_node[i][0], (int)in_node[i][1], 1);
        near(s4d_published_time_s(frontier, &g, S4D_Z, S4D_OP_ALL_GATHER, GiB, 1),
             1e-3 * (1024 * (1 - 1 / in_node[i][1]) / in_node[i][2] + in_node[i][1] * 0.039),
             1e-12);
    }
    g = s4d_grid_make(1, 3, 2, 1);
    assert_true(isnan(s4d_published_time_s(m, &g, S4D_Z, S4D_OP_ALL_GATHER, GiB, 1)));
    assert_true(s4d_published_time_s(m, &g, S4D_X, S4D_OP_ALL_REDUCE, GiB, 1) == 0);
}

static bool alike(const struct s4d_choice *a, const struct s4d_choice *b)
{
    return memcmp(a->grid.size, b->grid.size, sizeof a->grid.size) == 0 &&
           a->micro_batch == b->micro_batch && a->recompute == b->recompute &&
           a->cached_layers == b->cached_layers;
}

/* 2^4 over four axes: 35 ways; gpt-tiny has 4 heads: those with x = 8 (3 ways) and 16 (1) are out.
 */
static void test_ranking(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_ranking r;
    struct s4d_error err;
    set_up(&c, LINE, "gpt-tiny", 16, 32);
    c.space.vary_recompute = c.space.vary_cache = true;
    assert_int_equal(s4d_space_rank(&c.space, &r, &err), 0);
    assert_int_equal(r.grids, 35);
    assert_int_equal(r.divide, 31);
    assert_true(r.configurations == r.n); /* unlimited memory */
    for (int i = 1; i < r.n; i++)
        assert_true(r.v[i - 1].estimate_s <= r.v[i].estimate_s && !alike(&r.v[i - 1], &r.v[i]));
    struct s4d_tuned *list;
    int n = s4d_tune_pick(&r, 20, 2, &list);
    assert_int_equal(n, 20);
    for (int i = 0; i < n; i++) {
        int same = 0;
        for (int j = 0; j < n; j++)
            same +=
                memcmp(&list[i].choice.grid, &list[j].choice.grid, sizeof list[j].choice.grid) == 0;
        assert_true(same <= 2);
    }
    free(list);
    s4d_ranking_free(&r);
    /* Sharding strategies: one grid; five of z and data; three of x (1, 2, 4). */
    static const int grids[] = {31, 1, 5, 3};
    for (int i = 0; s4d_strategies[i].name; i++) {
        c.space.strategy = &s4d_strategies[i];
        assert_int_equal(s4d_space_rank(&c.space, &r, &err), 0);
        assert_int_equal(r.divide, grids[i]);
        s4d_ranking_free(&r);
    }
    tear_down(&c);
}

/* Every estimate of the ranking is `times` what it is on the plain machine, in the same order. */
static void all_take(struct case_ *c, const struct s4d_ranking *plain, const char *const *set,
                     double times)
{
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    struct s4d_ranking r;
    struct s4d_error err = {0};
    for (; *set; set++)
        assert_int_equal(s4d_differences_add(&scenario.differences, *set, &err), 0);
    c->space.scenario = &scenario;
    if (s4d_space_rank(&c->space, &r, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_int_equal(r.n, plain->n);
    for (int i = 0; i < r.n; i++)
        near(r.v[i].estimate_s, times * plain->v[i].estimate_s, 1e-12);
    s4d_ranking_free(&r);
    s4d_scenario_free(&scenario);
}

/* An iteration is sums and maxima of computing and communicating: at half of all rates it takes
 * twice the time. Of devices the slowest of the job tells: one GPU alone, all computing, takes
 * 1 / 0.8 = 1.25 times; a slow device that it does not use is nothing. What is not alike on all
 * ranks is refused. */
static void test_scenario(void **state)
{
    static const char *const half[] = {"rates.compute=0.5", "rates.x=0.5",
                                       "rates.y=0.5",       "rates.z=0.5",
                                       "rates.data=0.5",    "rates.z-data=0.5",
                                       "rates.x-y-z=0.5",   NULL},
                             *const slow[] = {"devices.n0.gpu0=0.8", NULL},
                             *const other[] = {"devices.n7.gpu0=0.8", NULL};
    struct case_ c;
    struct s4d_ranking plain;
    struct s4d_error err = {0};
    (void)state;
    set_up(&c, LINE, "gpt-tiny", 8, 16);
    assert_int_equal(s4d_space_rank(&c.space, &plain, &err), 0);
    assert_true(plain.n > 10);
    all_take(&c, &plain, half, 2);
    s4d_ranking_free(&plain);
    c.space.gpus = 1;
    c.space.scenario = NULL;
    assert_int_equal(s4d_space_rank(&c.space, &plain, &err), 0);
    all_take(&c, &plain, slow, 1.25);
    all_take(&c, &plain, other, 1);
    s4d_ranking_free(&plain);
    struct s4d_scenario random = {.placement = {.kind = S4D_RANDOM, .seed = 1}};
    c.space.scenario = &random;
    assert_int_equal(s4d_space_rank(&c.space, &plain, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    s4d_ranking_free(&plain);
    tear_down(&c);
}

/* All of the largest batch in one micro-batch: sizes that 32 bits do not hold. Only where all is
 * unlimited: 2^30 sequences of 32 tokens are 2 TiB a bf16 activation of 64 columns. */
static void test_largest_batch(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_ranking r;
    struct s4d_error err;
    set_up(&c, LINE, "gpt-tiny", 1, 1 << 30);
    c.space.largest_micro_batch = true;
    if (s4d_space_rank(&c.space, &r, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.v[0].micro_batch, 1 << 30);
    assert_true(r.v[0].memory_bytes > 0x1p41);
    s4d_ranking_free(&r);
    tear_down(&c);
}

/* x divides 4 heads, y 64 columns, z times data 32 sequences: powers of two alone have grids. */
static void test_nothing(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_ranking r;
    struct s4d_error err;
    set_up(&c, LINE, "gpt-tiny", 31, 32);
    assert_int_equal(s4d_space_rank(&c.space, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_string_equal(err.where, "--gpus");
    assert_non_null(strstr(err.text, "31 GPUs"));
    assert_string_equal(err.hint, "nearest numbers of GPUs that have a grid: 16, 32");
    s4d_ranking_free(&r);
    tear_down(&c);
    /* 2^20 GPUs less 1: 7 sequences leave no number near it, which is known at once. */
    set_up(&c, MANY, "gpt-tiny", 1048575, 7);
    assert_int_equal(s4d_space_rank(&c.space, &r, &err), -1);
    assert_string_equal(err.hint, "no number of GPUs near it has a grid: change --global-batch");
    s4d_ranking_free(&r);
    tear_down(&c);
    set_up(&c, "perlmutter", "gpt-640b", 8, 32);
    assert_int_equal(s4d_space_rank(&c.space, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, "memory");
    assert_non_null(strstr(err.text, "the nearest, "));
    assert_non_null(strstr(err.text, " more than the "));
    s4d_ranking_free(&r);
    tear_down(&c);
}

static int times;
static void count(void *context, int index, const struct s4d_result *result)
{
    struct s4d_tuned *list = context;
    assert_int_equal(list[index].fault.exit, S4D_EXIT_OK);
    assert_true(result->run.iteration_time_s == list[index].time_s);
    times++;
}

/* Every feasible grid of GPT-5B on 16 GPUs of Perlmutter simulated: the fastest is among the best
 * twenty of the ranking, and the two orders agree. */
static void test_best_twenty(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_ranking r;
    struct s4d_error err;
    struct s4d_tuned *list;
    set_up(&c, "perlmutter", "gpt-5b", 16, 16);
    if (s4d_space_rank(&c.space, &r, &err))
        fail_msg("%s: %s", err.where, err.text);
    int n = s4d_tune_pick(&r, r.n, r.n, &list);
    assert_int_equal(n, r.n);
    assert_true(n > 40);
    struct s4d_tune_watch watch = {count, list};
    s4d_tune_simulate(&c.space, list, n, 2, &watch);
    assert_int_equal(times, n);
    int best = s4d_tune_order(list, n);
    double correlation = s4d_tune_correlation(list, n, S4D_TUNE_ESTIMATE);
    print_message("%d configurations; rank correlation %.4f; the fastest is %d in the ranking\n", n,
                  correlation, list[best].rank);
    assert_int_equal(list[best].simulated_rank, 1);
    assert_true(list[best].rank <= 20);
    assert_true(correlation > 0.95);
    for (int i = 0; i < n; i++) /* the closed form is no less than the plan */
        assert_true(list[i].memory_bytes <= list[i].choice.memory_bytes);
    free(list);
    s4d_ranking_free(&r);
    tear_down(&c);
}

/* Ranks 1 2 3 4 against 2 1 4 3: 1 - 6 * 4 / (4 * 15) = 0.6. Of ties, 1 2.5 2.5 4 against 1 2 3 4:
 * sums of products 4.5, of squares 4.5 and 5: 4.5 / sqrt(22.5). */
static void test_correlation(void **state)
{
    (void)state;
    const double x[] = {10, 20, 30, 40}, y[] = {2, 1, 4, 3}, ties[] = {1, 7, 7, 9};
    near(s4d_rank_correlation(x, y, 4), 0.6, 1e-12);
    near(s4d_rank_correlation(ties, x, 4), 4.5 / sqrt(22.5), 1e-12);
    assert_true(isnan(s4d_rank_correlation(x, y, 1)));
    const double same[] = {1, 1};
    assert_true(isnan(s4d_rank_correlation(same, x, 2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computing),        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_shards),           cmocka_unit_test(test_published_terms),
        cmocka_unit_test(test_cached_layers),    cmocka_unit_test(test_computing_beside),
        cmocka_unit_test(test_published_tables), cmocka_unit_test(test_ranking),
        cmocka_unit_test(test_largest_batch),    cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_scenario),         cmocka_unit_test(test_best_twenty),
        cmocka_unit_test(test_correlation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
