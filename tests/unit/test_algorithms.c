/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of several phases, of pairs, and of a node's switch: each against numbers worked by
 * hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/collective/channels.h"
#include "sim/collective/measure.h"
#include "sim/collective/steps.h"
#include "sim/isolate.h"
#include "tests/lib/quad.h"

struct job {
    const struct s4d_measurement *m;
    double bytes;
};

static int work(void *context, int index, void *result, struct s4d_error *err)
{
    const struct job *job = context;
    struct s4d_measured_system system;
    (void)index;
    return s4d_measure_collective(job->m, &job->bytes, 1, result, &system, err);
}

static double measured_s(const struct s4d_measurement *m, double bytes)
{
    struct job job = {m, bytes};
    struct s4d_measured result = {0};
    struct s4d_error err = {0};
    if (s4d_isolated(work, &job, 1, 1, &result, sizeof result, &err, NULL))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    return result.time_s;
}

static double measured_lone_s(const struct s4d_machine *m, enum s4d_op_kind op, int p,
                              const struct s4d_algorithm *a, double bytes)
{
    struct s4d_measurement one = {m,    op, s4d_grid_make(1, 1, p, 1), S4D_STREAM_Z_GATHER, a, true,
                                  NULL, 0};
    return measured_s(&one, bytes);
}

static void assert_relative(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static const double B = 50e9, L = 1e-6, n = 1e9; /* of every machine here but the named ones */

static const char single[] = "synthetic:topology=single-switch,nodes=64,devices_per_node=1,"
                             "nic=50GB/s,latency=1us,peak=1TFLOP/s";
static const char paired[] = "synthetic:topology=single-switch,nodes=8,devices_per_node=2,"
                             "link=200GB/s,nic=50GB/s,latency=1us,peak=1TFLOP/s";

/* Four members: exchanges of n/2 and n/4, for an all-reduce and back again; a hop each. */
static void test_recursive(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    double half_s = 0.75 * n / B + 2 * L; /* 15.002 ms */
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 4, &s4d_recursive, n), 2 * half_s, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_GATHER, 4, &s4d_recursive, n), half_s, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_REDUCE_SCATTER, 4, &s4d_recursive, n), half_s, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 64, &s4d_recursive, n),
                    2 * 63.0 / 64 * n / B + 12 * L, 1e-9);
    s4d_machine_free(&m);
}

/* Two members on each of two nodes: half of the data over the node's link, then half of a half over
 * each NIC; an all-reduce twice. 1e9/2/200e9 + 1e9/4/50e9 + 2 us = 7.502 ms. */
static void test_hierarchical(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, paired);
    double half_s = n / 2 / 200e9 + n / 4 / B + 2 * L;
    assert_relative(half_s, 7.502e-3, 1e-12);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 4, &s4d_hierarchical, n), 2 * half_s,
                    1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_GATHER, 4, &s4d_hierarchical, n), half_s, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_REDUCE_SCATTER, 4, &s4d_hierarchical, n), half_s,
                    1e-9);
    s4d_machine_free(&m);
}

static void test_pairs(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    /* Each NIC sends a quarter to each of three. */
    assert_relative(measured_lone_s(&m, S4D_ALL_TO_ALL, 4, NULL, n), 0.75 * n / B + L, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_SEND_RECV, 4, NULL, n), n / B + L, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_BROADCAST, 4, NULL, n), n / B + 3 * L, 1e-9);
    s4d_machine_free(&m);
    /* Two a node: one message stays, two of a quarter leave over the own NIC. */
    load_machine(&m, paired);
    assert_relative(measured_lone_s(&m, S4D_ALL_TO_ALL, 4, NULL, n), 0.5 * n / B + L, 1e-9);
    s4d_machine_free(&m);
}

/* Steps of NCCL's Simple ring: 8.4 us, 3.4 a hop in the node and 14 between nodes, or what the
 * network's own hop takes. */
static void test_steps(void **state)
{
    (void)state;
    struct s4d_machine m;
    assert_int_equal(
        s4d_machine_load(&m,
                         "synthetic:topology=single-switch,nodes=4,devices_per_node=2,link=100GB/s,"
                         "nic=25GB/s,latency=2us,peak=1TFLOP/s,library=nccl",
                         NULL, 0, NULL),
        0);
    assert_true(fabs(s4d_steps_s(&m, 3, 2) - (8.4e-6 + 3 * 3.4e-6 + 2 * 14e-6)) < 1e-15);
    m.library.net_simple_s.value = 5e-6;
    assert_true(fabs(s4d_steps_s(&m, 3, 2) - (8.4e-6 + 3 * 3.4e-6 + 2 * 5e-6)) < 1e-15);
    s4d_machine_free(&m);
}

/* A way that no algorithm has: three members are no power of two, one member a node is no
 * hierarchy. */
static void test_refused(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    struct s4d_channels ch;
    load_machine(&m, single);
    assert_int_equal(s4d_cluster_create(&c, &m, 4, &err), 0);
    assert_int_equal(s4d_recursive.channels(&c, (int[]){0, 1, 2}, 3, &ch), -1);
    assert_int_equal(s4d_hierarchical.channels(&c, (int[]){0, 1, 2}, 3, &ch), -1);
    assert_int_equal(s4d_nvls.channels(&c, (int[]){0, 1, 2}, 3, &ch), -1);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

static void test_fold(void **state)
{
    (void)state;
    struct s4d_machine m;
    const struct s4d_algorithm *const algorithms[] = {&s4d_hierarchical, &s4d_recursive};
    load_machine(&m, "frontier");
    for (int i = 0; i < 2; i++) {
        struct s4d_measurement one = {&m,
                                      S4D_OP_ALL_REDUCE,
                                      s4d_grid_make(1, 4, 16, 2),
                                      S4D_STREAM_Z_GATHER,
                                      algorithms[i],
                                      true,
                                      NULL,
                                      0};
        double folded = measured_s(&one, 1e8);
        one.fold = false;
        assert_relative(folded, measured_s(&one, 1e8), 1e-9);
    }
    s4d_machine_free(&m);
}

/* RCCL: an all-reduce is a reduce-scatter and an all-gather. */
static void test_halves(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, "frontier");
    for (double bytes = 1e6; bytes < 1e10; bytes *= 10)
        assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 128, NULL, bytes),
                        measured_lone_s(&m, S4D_OP_REDUCE_SCATTER, 128, NULL, bytes) +
                            measured_lone_s(&m, S4D_OP_ALL_GATHER, 128, NULL, bytes),
                        1e-9);
    s4d_machine_free(&m);
}

/* Sums of the switch on a node of eight H100: 25 us, and 1 + 1/8 of the data over 18 links of 20.6
 * GB/s at 0.85: 3.5694 ps a byte. Of 4 MiB every one of 16 channels moves chunks of 16 KiB to each
 * of 8 heads, 2 MiB at once: two stages of 7.486 us come before: 25 + 14.971 + 14.971 = 54.943 us
 * (54.2 were measured). Of 1 GiB 128 KiB, 16 MiB at once: 25 + 119.77 + 3832.6 us. */
static void test_nvls_chunks(void **state)
{
    (void)state;
    struct s4d_machine m;
    double s_per_B = 1.125 / (18 * 20.6e9) / 0.85, MiB = 1048576;
    load_machine(&m, "dgx-h100");
    assert_relative(s_per_B, 3.5694e-12, 1e-4);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, &s4d_nvls, 4 * MiB),
                    25e-6 + (4 + 2 * 2) * MiB * s_per_B, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, &s4d_nvls, 64 * MiB),
                    25e-6 + (64 + 2 * 8) * MiB * s_per_B, 1e-9);
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, &s4d_nvls, 1024 * MiB),
                    25e-6 + (1024 + 2 * 16) * MiB * s_per_B, 1e-9);
    s4d_machine_free(&m);
}

/* Frontier's node. Rings of single xGMI links (36 GB/s): a pair of one module has four links, one
 * ring of 144; all eight GCDs four rings, 144; the four of two modules, bound 4 5 2 3, have no ring
 * of links, and go over the pair of links between 4 and 2. Across nodes each NIC serves two GCDs:
 * 4 x 25 GB/s, with one GCD of each module as with both. */
static void test_frontier_rings(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    load_machine(&m, "frontier");
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), 0);
    static const struct {
        int n, device[16];
        double bus_Bps;
    } cases[] = {
        {2, {4, 5}, 144e9},
        {4, {4, 5, 2, 3}, 72e9},
        {8, {4, 5, 2, 3, 6, 7, 0, 1}, 144e9},
        {16, {4, 5, 2, 3, 6, 7, 0, 1, 12, 13, 10, 11, 14, 15, 8, 9}, 100e9},
        {8, {4, 2, 6, 0, 12, 10, 14, 8}, 100e9},
        {2, {4, 12}, 25e9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_channels ch;
        assert_int_equal(s4d_ring.channels(&c, cases[i].device, cases[i].n, &ch), 0);
        assert_relative(ch.bus_Bps, cases[i].bus_Bps, 1e-12);
        s4d_channels_free(&ch);
    }
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Sums by the switch of a DGX H100 (18 bricks of 20.6 GB/s a device to the switch, 370.8 GB/s; NICs
 * of 48.5; efficiency 0.85; 25 us in a node, 20.9 for each level of the tree, up and down).
 *
 * m members: every one sends and receives the whole data, and once more the 1/m whose head it is:
 * (1
 * + 1/m) n. Of 1 GiB on 8: 1.125 x 1073741824 / (0.85 x 370.8e9) + 25 us = 3857.60 us; on 6 7/6.
 * Two nodes: a NIC carries its eighth once in each direction, half of it in either tree: n / 8 /
 * 48.5e9 / 0.85 = 3255.7 us, less than the links' 3832.6, to which 66.8 us are added. Four nodes:
 * an inner node of a tree has three edges, and is a leaf of the other: 2 n / 8 over its NIC,
 * 6511.47 us, and 25 + 4 x 20.9 = 108.6 us.
 *
 * Before that the pipeline fills (test_nvls_chunks): two stages in a node, of 128 KiB on each of 16
 * channels for each head, 12 MiB of six and 16 of eight at once; two more for each level of the
 * tree, which from four nodes on has chunks of 64 KiB. */
static void test_nvls(void **state)
{
    (void)state;
    struct s4d_machine m;
    const double gib = 1073741824, mib = 1048576, link_Bps = 18 * 20.6e9, nic_Bps = 48.5e9,
                 part = 0.85;
    load_machine(&m, "dgx-h100");
    const struct {
        int members;
        double time_s, by_hand_s;
    } rows[] = {{6, 7.0 / 6 * (gib + 24 * mib) / link_Bps / part + 25e-6, 4092.70e-6},
                {8, 9.0 / 8 * (gib + 32 * mib) / link_Bps / part + 25e-6, 3977.37e-6},
                {16, 9.0 / 8 * (gib + 64 * mib) / link_Bps / part + 66.8e-6, 4138.94e-6},
                {32, 2.0 / 8 * (gib + 48 * mib) / nic_Bps / part + 108.6e-6, 6925.30e-6}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_relative(rows[i].time_s, rows[i].by_hand_s, 2e-6);
        assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, rows[i].members, &s4d_nvls, gib),
                        rows[i].time_s, 1e-9);
    }
    /* The library's choice, where it is the fastest. */
    assert_relative(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, NULL, gib), rows[1].time_s, 1e-9);
    assert_true(measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, NULL, 1024) <
                measured_lone_s(&m, S4D_OP_ALL_REDUCE, 8, &s4d_nvls, 1024));
    /* Two groups of two nodes each. */
    struct s4d_measurement two = {
        .machine = &m,
        .op = S4D_OP_ALL_REDUCE,
        .grid = s4d_grid_make(1, 1, 16, 2),
        .stream = S4D_STREAM_Z_GATHER,
        .algorithm = &s4d_nvls,
        .fold = true,
    };
    assert_relative(measured_s(&two, gib), rows[2].time_s, 1e-9);
    two.fold = false;
    assert_relative(measured_s(&two, gib), rows[2].time_s, 1e-9);
    s4d_machine_free(&m);
}

/* What NVLS cannot: fewer members on some node than the library asks for, a node without a switch,
 * a machine whose file does not have it, an operation that is no sum for all. */
static void test_nvls_refused(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    struct s4d_channels ch;
    const int devices[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    load_machine(&m, "dgx-h100");
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), 0);
    assert_int_equal(s4d_nvls.channels(&c, devices, 4, &ch), -1);
    assert_int_equal(s4d_nvls.channels(&c, devices, 12, &ch), -1); /* 8 and 4 */
    assert_int_equal(s4d_nvls.channels(&c, devices, 13, &ch), 0);
    assert_int_equal(ch.n, 2 * 5); /* two trees for each of the heads that every node has */
    s4d_channels_free(&ch);
    m.library.nvls.present = false;
    assert_int_equal(s4d_nvls.channels(&c, devices, 8, &ch), -1);
    assert_false(s4d_nvls.supports(S4D_OP_ALL_GATHER));
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recursive),   cmocka_unit_test(test_hierarchical),
        cmocka_unit_test(test_pairs),       cmocka_unit_test(test_steps),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_fold),
        cmocka_unit_test(test_halves),      cmocka_unit_test(test_frontier_rings),
        cmocka_unit_test(test_nvls),        cmocka_unit_test(test_nvls_refused),
        cmocka_unit_test(test_nvls_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
