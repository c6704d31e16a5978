/* SPDX-License-Identifier: Apache-2.0 */
/* Single collectives through the engine, against closed forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/collective/measure.h"
#include "sim/isolate.h"
#include "tests/lib/quad.h"

enum { SIZES = 3 };
struct job {
    struct s4d_measurement m;
    double bytes[SIZES];
    int n;
};
struct answer {
    struct s4d_measured results[SIZES];
    struct s4d_measured_system system;
};

static int work(void *context, int index, void *result, struct s4d_error *err)
{
    struct job *job = context;
    struct answer *answer = result;
    (void)index;
    return s4d_measure_collective(&job->m, job->bytes, job->n, answer->results, &answer->system,
                                  err);
}

/* The engine wants a process of its own each time. */
static struct answer simulate(struct job *job)
{
    struct answer answer = {0};
    struct s4d_error err = {0};
    if (s4d_isolated(work, job, 1, 1, &answer, sizeof answer, &err, NULL))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    return answer;
}

static double time_s(const struct s4d_machine *m, enum s4d_op_kind op, struct s4d_grid grid,
                     enum s4d_stream stream, const struct s4d_algorithm *a, bool fold, double bytes)
{
    struct job job = {{m, op, grid, stream, a, fold, NULL, 0}, {bytes}, 1};
    return simulate(&job).results[0].time_s;
}

/* One group of p ranks. */
static double lone_s(const struct s4d_machine *m, enum s4d_op_kind op, int p,
                     const struct s4d_algorithm *a, double bytes)
{
    return time_s(m, op, s4d_grid_make(1, 1, p, 1), S4D_STREAM_Z_GATHER, a, true, bytes);
}

static void assert_relative(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static const char single[] = "synthetic:topology=single-switch,nodes=4096,devices_per_node=1,"
                             "nic=50GB/s,latency=500ns,peak=312TFLOP/s";

static void test_single_switch_ring(void **state)
{
    (void)state;
    struct s4d_machine m;
    double B = 50e9, L = 500e-9, n = 100e6;
    load_machine(&m, single);
    for (int p = 2; p <= 64; p++) {
        double part = (p - 1.0) / p * n / B + (p - 1) * L;
        assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, p, NULL, n), 2 * part, 1e-9);
        assert_relative(lone_s(&m, S4D_OP_ALL_GATHER, p, NULL, n), part, 1e-9);
        assert_relative(lone_s(&m, S4D_OP_REDUCE_SCATTER, p, NULL, n), part, 1e-9);
    }
    s4d_machine_free(&m);
}

/* At rates.z = 0.8 a call takes 1 / 0.8 of its time, latency included: an all-gather of 100 MB by
 * two nodes 1/2 x 100e6 / 50e9 + 500 ns = 1.0005 ms, that is 1.250625 ms; on x as it was. Message
 * by message, too. */
static void test_rates(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    load_machine(&m, single);
    assert_int_equal(s4d_differences_add(&scenario.differences, "rates.z=0.8", &err), 0);
    for (int i = 0; i < 2; i++) {
        struct job job = {{&m, S4D_OP_ALL_GATHER, s4d_grid_make(1, 1, 2, 1), S4D_STREAM_Z_GATHER,
                           &s4d_ring, i == 0, &scenario, i},
                          {100e6},
                          1};
        assert_relative(simulate(&job).results[0].time_s, 1.250625e-3, i ? 1e-3 : 1e-9);
    }
    struct job on_x = {
        {&m, S4D_OP_ALL_REDUCE, s4d_grid_make(2, 1, 1, 1), S4D_STREAM_X, NULL, true, &scenario, 0},
        {100e6},
        1};
    assert_relative(simulate(&on_x).results[0].time_s, 2.001e-3, 1e-9);
    s4d_scenario_free(&scenario);
    s4d_machine_free(&m);
}

/* 1 GiB: 2 x 4095/4096 x 2^30 / 50e9 + 2 x 4095 x 500 ns = 47.0342 ms. */
static void test_4096(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 4096, NULL, 1073741824), 47.0341872e-3, 1e-9);
    s4d_machine_free(&m);
}

/* Two nodes: every NIC sends half the data up or down in each tree, n / B; four and more (powers of
 * two): an inner node of one tree is a leaf of the other, 3 + 1 halves, 2 n / B. 2 log2 p steps. */
static void test_single_switch_tree(void **state)
{
    (void)state;
    struct s4d_machine m;
    double B = 50e9, L = 500e-9, n = 100e6;
    load_machine(&m, single);
    assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 2, &s4d_tree, n), n / B + 2 * L, 1e-9);
    for (int depth = 2; depth <= 6; depth++)
        assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 1 << depth, &s4d_tree, n),
                        2 * n / B + 2 * depth * L, 1e-9);
    s4d_machine_free(&m);
}

/* All-reduce of 1 GiB with NCCL's constants (latencies: test_collective.c).
 * 2 devices: one ring of 80 GB/s, volume n: 2^30 / 80e9 + 22 us = 13.4437728 ms.
 * 4: six rings of 40: 1.5 x 2^30 / 240e9 + 49.2 us = 6.7600864 ms.
 * 8 on two nodes: four rings of 25: 1.75 x 2^30 / 100e9 + 118 us = 18.90848192 ms. */
static void test_by_hand(void **state)
{
    (void)state;
    struct s4d_machine m;
    double n = 1073741824;
    load_quad(&m, 2);
    assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 2, NULL, n), 13.4437728e-3, 1e-9);
    assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 4, NULL, n), 6.7600864e-3, 1e-9);
    assert_relative(lone_s(&m, S4D_OP_ALL_REDUCE, 8, NULL, n), 18.90848192e-3, 1e-9);
    s4d_machine_free(&m);
}

/* Groups of eight across nodes of four devices, with `inner` ranks between members: all groups run
 * side by side and share the node's NICs, so each gets 100 GB/s / min(4, inner). */
static void test_shared_nics(void **state)
{
    (void)state;
    struct s4d_machine m;
    double n = 4e9;
    load_quad(&m, 64);
    for (int inner = 1; inner <= 8; inner *= 2) {
        double beta_Bps = 100e9 / (inner < 4 ? inner : 4), between = inner == 1   ? 1
                                                                     : inner == 2 ? 3
                                                                                  : 7;
        double latency = 8.4e-6 + (7 - between) * 6.8e-6 + between * 14e-6;
        struct s4d_grid grid = s4d_grid_make(1, inner, 8, 2);
        double t = time_s(&m, S4D_OP_ALL_GATHER, grid, S4D_STREAM_Z_GATHER, NULL, true, n);
        assert_relative(t, 7.0 / 8 * n / beta_Bps + latency, 1e-9);
    }
    s4d_machine_free(&m);
}

/* Two NICs for four devices: 0, and over its links 1 and 3, use the first (the lowest of equally
 * near ones), so three of the four groups with one member a node share it. */
static void test_shared_nic(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 8);
    m.node.n_nics = 2;
    m.node.nic[1].device = 2;
    struct s4d_grid grid = s4d_grid_make(1, 4, 8, 1);
    double t = time_s(&m, S4D_OP_ALL_GATHER, grid, S4D_STREAM_Z_GATHER, NULL, true, 4e9);
    assert_relative(t, 7.0 / 8 * 4e9 / (25e9 / 3) + 106.4e-6, 1e-9);
    s4d_machine_free(&m);
}

/* Folded = unfolded, ring and tree, on symmetric and on ragged groups. */
static void test_fold(void **state)
{
    (void)state;
    struct s4d_machine m;
    const struct s4d_grid grids[] = {s4d_grid_make(1, 3, 7, 1), s4d_grid_make(2, 2, 8, 2),
                                     s4d_grid_make(1, 1, 6, 3)};
    load_quad(&m, 64);
    for (int i = 0; i < 3; i++) {
        double folded =
            time_s(&m, S4D_OP_ALL_REDUCE, grids[i], S4D_STREAM_Z_GATHER, &s4d_ring, true, 1e8);
        double full =
            time_s(&m, S4D_OP_ALL_REDUCE, grids[i], S4D_STREAM_Z_GATHER, &s4d_ring, false, 1e8);
        assert_relative(folded, full, 1e-9);
        folded = time_s(&m, S4D_OP_ALL_REDUCE, grids[i], S4D_STREAM_Z_GATHER, &s4d_tree, true, 1e8);
        full = time_s(&m, S4D_OP_ALL_REDUCE, grids[i], S4D_STREAM_Z_GATHER, &s4d_tree, false, 1e8);
        assert_relative(folded, full, 1e-9);
    }
    s4d_machine_free(&m);
}

/* Sizes one after the other in one engine are what each is alone; the choice falls on both
 * algorithms. */
static void test_sizes(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    struct job job = {{&m, S4D_OP_ALL_REDUCE, s4d_grid_make(1, 4, 64, 1), S4D_STREAM_Z_GATHER, NULL,
                       true, NULL, 0},
                      {1e3, 1e6, 4e9},
                      SIZES};
    struct answer all = simulate(&job);
    assert_int_equal(all.system.groups, 4);
    assert_int_equal(all.system.members, 64);
    assert_int_equal(all.system.group_nodes, 64);
    assert_ptr_equal(s4d_algorithms[all.results[0].algorithm], &s4d_tree);
    assert_ptr_equal(s4d_algorithms[all.results[2].algorithm], &s4d_ring);
    for (int i = 0; i < SIZES; i++) {
        double alone =
            time_s(&m, S4D_OP_ALL_REDUCE, job.m.grid, job.m.stream, NULL, true, job.bytes[i]);
        assert_relative(all.results[i].time_s, alone, 1e-9);
    }
    s4d_machine_free(&m);
}

static void test_refused(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    struct s4d_measured result;
    struct s4d_measured_system system;
    double bytes = 1e6;
    load_quad(&m, 2);
    struct s4d_measurement tree = {&m,
                                   S4D_OP_ALL_GATHER,
                                   s4d_grid_make(1, 1, 8, 1),
                                   S4D_STREAM_Z_GATHER,
                                   &s4d_tree,
                                   true,
                                   NULL,
                                   0};
    assert_int_equal(s4d_measure_collective(&tree, &bytes, 1, &result, &system, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    struct s4d_measurement large = {
        &m, S4D_OP_ALL_GATHER, s4d_grid_make(1, 1, 9, 1), S4D_STREAM_Z_GATHER, NULL, true, NULL, 0};
    assert_int_equal(s4d_measure_collective(&large, &bytes, 1, &result, &system, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_switch_ring),
        cmocka_unit_test(test_4096),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_single_switch_tree),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_shared_nics),
        cmocka_unit_test(test_shared_nic),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
