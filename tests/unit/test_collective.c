/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives cost: latency and volume by NCCL's rule, choice of algorithm and protocol,
 * measured efficiency. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/collective/channels.h"
#include "sim/collective/efficiency.h"
#include "tests/lib/quad.h"

static void assert_relative(double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance * fabs(expected))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* Bus bandwidths of rings alone.
 * 2 devices of a node: one ring of 4 bricks: 80 GB/s. 3: two rings of 4: 160. 4: six of 2: 240.
 * 8 on two nodes: four channels, a NIC of 25 each: 100. One of each node: 25; two of each: 50. */
static void test_bus(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    const struct {
        int n, stride, channels, library_channels;
        double bus_Bps;
    } rows[] = {{2, 1, 1, 2, 80e9},  {3, 1, 2, 4, 160e9}, {4, 1, 6, 12, 240e9},
                {8, 1, 4, 4, 100e9}, {8, 4, 1, 1, 25e9},  {8, 2, 2, 2, 50e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct s4d_channels ch = quad_shape(&m, &s4d_ring, rows[i].n, rows[i].stride);
        assert_int_equal(ch.n, rows[i].channels);
        assert_int_equal(ch.library_channels, rows[i].library_channels);
        assert_relative(ch.bus_Bps, rows[i].bus_Bps, 1e-12);
    }
    s4d_machine_free(&m);
}

static void assert_cost(const struct s4d_machine *m, const struct s4d_algorithm *a,
                        const struct s4d_channels *ch, enum s4d_op_kind op, double bytes,
                        enum s4d_protocol protocol, double latency_s, double volume_B)
{
    struct s4d_cost cost = a->cost(m, ch, op, bytes);
    assert_int_equal(cost.protocol, protocol);
    assert_relative(cost.latency_s, latency_s, 1e-12);
    assert_relative(cost.volume_B, volume_B, 1e-12);
    assert_false(cost.extrapolated);
}

/* Large messages take Simple. All-reduce of n on p members in a node: 2(p-1) steps of two slices of
 * 3.4 us after a base of 8.4; volume 2(p-1)/p n. On two nodes of four: 14 steps, 2 of them of 14
 * us, and three posts of 2 us are shorter than two slices: 8.4 + 12 x 6.8 + 2 x 14 = 118 us.
 * All-gather: half of each. With one member a node the tree's network hop counts for the ring as
 * well (14 either way for Simple). On a network of its own, 37 us: 8.4 + 6 x 6.8 + 37 = 86.2 us. */
static void test_ring_simple(void **state)
{
    (void)state;
    struct s4d_machine m;
    double n = 1073741824;
    load_quad(&m, 64);
    struct s4d_channels two = quad_shape(&m, &s4d_ring, 2, 1),
                        four = quad_shape(&m, &s4d_ring, 4, 1),
                        eight = quad_shape(&m, &s4d_ring, 8, 1),
                        apart = quad_shape(&m, &s4d_ring, 8, 4);
    assert_cost(&m, &s4d_ring, &two, S4D_OP_ALL_REDUCE, n, S4D_SIMPLE, 22e-6, n);
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_SIMPLE, 49.2e-6, 1.5 * n);
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_REDUCE, n, S4D_SIMPLE, 118e-6, 1.75 * n);
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_GATHER, n, S4D_SIMPLE, 63.2e-6, .875 * n);
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_REDUCE_SCATTER, n, S4D_SIMPLE, 63.2e-6, .875 * n);
    assert_cost(&m, &s4d_ring, &apart, S4D_OP_ALL_GATHER, n, S4D_SIMPLE, 106.4e-6, .875 * n);
    m.library.net_simple_s.value = 37e-6;
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_GATHER, n, S4D_SIMPLE, 86.2e-6, .875 * n);
    s4d_machine_free(&m);
}

/* Four devices of a node, all-reduce by ring: LL takes 6.6 + 6 x 0.6 = 10.2 us and n / 58.467 GB/s
 * (min(87.7, 240/2) x 4/6); LL128 14 + 6 x 1.9 = 25.4 us and n / 147.2 (0.92 x 240 x 4/6); Simple
 * by NCCL's constants 28.8 us, in fact two slices a step, 49.2 us, and n / 160. LL128 passes LL
 * at 15.2 us / (1/58.467 - 1/147.2) = 1.4743 MB, Simple passes LL128 at 3.4 us / (1/147.2 - 1/160)
 * = 6.256 MB. */
static void test_protocols(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    struct s4d_channels four = quad_shape(&m, &s4d_ring, 4, 1);
    double n = 1.474e6;
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, 8, S4D_LL, 10.2e-6, 12 * 240 / 87.7);
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_LL, 10.2e-6, 1.5 * n * 240 / 87.7);
    n = 1.475e6;
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_LL128, 25.4e-6, 1.5 * n / .92);
    n = 6.25e6;
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_LL128, 25.4e-6, 1.5 * n / .92);
    n = 6.26e6;
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_SIMPLE, 49.2e-6, 1.5 * n);
    /* Two nodes: LL128 8 MB in 14 + 12 x 2 + 2 x 4 = 46 us and at min(92, 4 x 20) = 80 GB/s; not
     * where the library has it in nodes alone. */
    struct s4d_channels eight = quad_shape(&m, &s4d_ring, 8, 1);
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_REDUCE, 8e6, S4D_LL128, 46e-6, 14e6 / .8);
    m.library.ll128_nodes.value = 1;
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_REDUCE, 8e6, S4D_SIMPLE, 118e-6, 14e6);
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, 2e6, S4D_LL128, 25.4e-6, 3e6 / .92);
    /* A cap of 0 takes a protocol out. */
    m.library.ll_max_in_node_Bps.value = 0;
    n = 1000;
    assert_cost(&m, &s4d_ring, &four, S4D_OP_ALL_REDUCE, n, S4D_LL128, 25.4e-6, 1.5 * n / .92);
    s4d_machine_free(&m);
}

/* 64 nodes with one member each, bus bandwidth 25 GB/s. Small: the ring has 126 network hops (LL:
 * 6.6 + 126 x 5 = 636.6 us), the tree 6.8 + 2 x 6 x 5 = 66.8 us. 4 GiB: ring Simple at 25 x 64/126
 * = 12.7 GB/s, tree at 0.85 x min(0.92 x 25, 17.8) / 2 = 7.6 GB/s, so the ring. In a node of two a
 * ring is as short as a tree and faster. Gathering has no tree.
 *
 * The tree's own cost: 8.4 + 2 x 6 x 14 = 176.4 us by its hops, and of 4 GiB each of two channels
 * moves chunks of 512 KiB over 12 edges, one of which is the volume's own; an edge takes as long as
 * the NICs, which send everything twice (3 + 1 halves), take for 1 MiB: 11 x 83.886 us. */
static void test_choice(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    struct s4d_channels apart = quad_shape(&m, &s4d_ring, 64, 4),
                        two = quad_shape(&m, &s4d_ring, 2, 1);
    double large = 4294967296;
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 1024), &s4d_tree);
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, large), &s4d_ring);
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_GATHER, 1024), &s4d_ring);
    assert_ptr_equal(s4d_choose_algorithm(&m, &two, S4D_OP_ALL_REDUCE, 1024), &s4d_ring);
    struct s4d_channels tree = quad_shape(&m, &s4d_tree, 64, 4);
    assert_int_equal(tree.n, 2);
    assert_relative(tree.bus_Bps, apart.bus_Bps, 0);
    assert_cost(&m, &s4d_tree, &tree, S4D_OP_ALL_REDUCE, 1024, S4D_LL, 66.8e-6,
                1024 * 25 / (.85 * 17.8 / 3.8));
    assert_cost(&m, &s4d_tree, &tree, S4D_OP_ALL_REDUCE, large, S4D_SIMPLE,
                176.4e-6 + 11 * 1048576 * 2 / 25e9, large * 25 / (.85 * 17.8));
    strcpy(m.library.name, "ideal");
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 1024), &s4d_ring);
    s4d_machine_free(&m);
}

/* Measured with four members a node. 16 ranks: 0.1 at 1 MB, 0.5 at 16 MB; 64 ranks: 0.2 at 4 MB,
 * 0.4 at 16 MB. */
static struct s4d_efficiency_row rows[] = {
    {64, 4, 16e6, .4}, {16, 4, 1e6, .1}, {64, 4, 4e6, .2}, {16, 4, 16e6, .5}};
static struct s4d_efficiency_table table = {.op = "all-gather", .row = rows, .n = 4};

static void assert_efficiency(int ranks, int members_per_node, double bytes, double efficiency,
                              double latency_part, bool extrapolated)
{
    struct s4d_efficiency e = s4d_efficiency_lookup(&table, ranks, members_per_node, bytes);
    assert_relative(e.efficiency, efficiency, 1e-12);
    assert_float_equal(e.latency_part, latency_part, 1e-12);
    assert_int_equal(e.extrapolated, extrapolated);
}

static void test_efficiency(void **state)
{
    (void)state;
    assert_efficiency(16, 4, 1e6, .1, 0, false);
    assert_efficiency(16, 4, 4e6, .3, 0, false); /* half way in log2 bytes */
    assert_efficiency(64, 4, 8e6, .3, 0, false);
    /* 32 ranks: half way between 16 and 64 in log2: (0.3 + 0.2) / 2. */
    assert_efficiency(32, 4, 4e6, .25, 0, false);
    /* One member of four a node: a quarter of the bytes is the same block in each step. */
    assert_efficiency(32, 1, 1e6, .25, 0, false);
    assert_efficiency(32, 8, 8e6, .25, 0, false);
    /* Clamped. Below the smallest row a part of the latency is paid: 1 - 1/4 and, half way, half of
     * it. */
    assert_efficiency(16, 4, 64e6, .5, 0, true);
    /* Outside the measured rank counts: the nearest one at the same block a step. 128 ranks at 16
     * MB move the blocks of 64 at 8 MB; 8 at 4 MB those of 16 at 8 MB: 0.1 + 0.4 log2(8) /
     * log2(16). */
    assert_efficiency(128, 4, 16e6, .3, 0, true);
    assert_efficiency(8, 4, 4e6, .4, 0, true);
    assert_efficiency(64, 4, 1e6, .2, .75, true);
    assert_efficiency(32, 4, 1e6, .15, .375, true);
}

/* Rows of groups inside a node (ranks = ranks_per_node) serve those alone: two of them have 0.8,
 * two on two nodes what the other rows say. Four, inside: at 2 MB the blocks of two at 1 MB. */
static void test_efficiency_in_node(void **state)
{
    (void)state;
    struct s4d_efficiency_row mixed[] = {{2, 2, 1e6, .8}, {2, 2, 4e6, .9}, {2, 1, 1e6, .2}};
    struct s4d_efficiency_table t = {.op = "all-reduce", .row = mixed, .n = 3};
    struct s4d_machine m;
    load_quad(&m, 64);
    struct s4d_channels ch = quad_shape(&m, &s4d_ring, 2, 1);
    assert_relative(s4d_efficiency_lookup(&t, 2, 2, 1e6).efficiency, .8, 1e-12);
    assert_relative(s4d_efficiency_lookup(&t, 2, 1, 1e6).efficiency, .2, 1e-12);
    assert_relative(s4d_efficiency_lookup(&t, 4, 4, 4e6).efficiency, .85, 1e-12);
    m.library.table = &t;
    m.library.n_tables = 1;
    assert_ptr_equal(s4d_efficiency_find(&m, &ch, S4D_OP_ALL_REDUCE), &t);
    assert_null(s4d_efficiency_find(&m, &ch, S4D_OP_ALL_GATHER));
    t.n = 2;
    ch.nodes = 2;
    assert_null(s4d_efficiency_find(&m, &ch, S4D_OP_ALL_REDUCE)); /* no row across nodes */
    t.row = mixed + 2;
    t.n = 1;
    assert_non_null(s4d_efficiency_find(&m, &ch, S4D_OP_ALL_REDUCE));
    ch.nodes = 1;
    assert_null(s4d_efficiency_find(&m, &ch, S4D_OP_ALL_REDUCE)); /* none inside a node */
    m.library.table = NULL;
    m.library.n_tables = 0;
    s4d_machine_free(&m);
}

/* 16 ranks on four nodes, all-gather: where the table applies no latency is added and the wire
 * carries 15/16 n / efficiency. Of the latencies LL's is the least: 6.6 + 12 x 2 + 3 x 2.7 = 38.7
 * us; half of the smallest row's bytes pay half of it. */
static void test_measured_cost(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    m.library.table = &table;
    m.library.n_tables = 1;
    struct s4d_channels ch = quad_shape(&m, &s4d_ring, 16, 1),
                        in_node = quad_shape(&m, &s4d_ring, 4, 1);
    assert_cost(&m, &s4d_ring, &ch, S4D_OP_ALL_GATHER, 4e6, S4D_PROTOCOLS, 0, 3.75e6 / .3);
    struct s4d_cost small = s4d_ring.cost(&m, &ch, S4D_OP_ALL_GATHER, 5e5);
    assert_relative(small.latency_s, 19.35e-6, 1e-12);
    assert_relative(small.volume_B, 15.0 / 16 * 5e5 / .1, 1e-12);
    assert_true(small.extrapolated);
    /* Not for other operations, nor inside a node. */
    assert_cost(&m, &s4d_ring, &ch, S4D_OP_REDUCE_SCATTER, 1e9, S4D_SIMPLE, 132e-6, 15e9 / 16);
    assert_cost(&m, &s4d_ring, &in_node, S4D_OP_ALL_GATHER, 1e9, S4D_SIMPLE, 28.8e-6, .75e9);
    m.library.table = NULL;
    m.library.n_tables = 0;
    s4d_machine_free(&m);
}

/* An ideal library: every step is the machine's latency. Six nodes of one, ring: 10 steps; tree:
 * 2 x ceil(log2 6) = 6. Eight members on two nodes (100 ns inside, 1 us between): 12 steps inside,
 * 2 between. */
static void test_ideal(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    strcpy(m.library.name, "ideal");
    m.node.latency_s.value = 100e-9;
    struct s4d_channels ch = quad_shape(&m, &s4d_ring, 6, 4),
                        tree = quad_shape(&m, &s4d_tree, 6, 4),
                        eight = quad_shape(&m, &s4d_ring, 8, 1);
    assert_cost(&m, &s4d_ring, &ch, S4D_OP_ALL_REDUCE, 6e6, S4D_PROTOCOLS, 10e-6, 10e6);
    assert_cost(&m, &s4d_tree, &tree, S4D_OP_ALL_REDUCE, 6e6, S4D_PROTOCOLS, 6e-6, 6e6);
    assert_int_equal(eight.n, 1);
    assert_cost(&m, &s4d_ring, &eight, S4D_OP_ALL_REDUCE, 8e6, S4D_PROTOCOLS, 3.2e-6, 14e6);
    s4d_machine_free(&m);
}

/* Groups up to the largest that was measured are rings, as measured; of larger ones the library
 * chooses. 64 nodes, one member each (test_choice). */
static void test_beyond(void **state)
{
    (void)state;
    struct s4d_efficiency_row measured[] = {{16, 4, 1e6, .5}, {32, 4, 1e6, .5}};
    struct s4d_efficiency_table t = {.op = "all-reduce", .row = measured, .n = 2};
    struct s4d_machine m;
    load_quad(&m, 64);
    m.library.table = &t;
    m.library.n_tables = 1;
    struct s4d_channels apart = quad_shape(&m, &s4d_ring, 64, 4),
                        fewer = quad_shape(&m, &s4d_ring, 32, 4),
                        two = quad_shape(&m, &s4d_ring, 2, 1);
    assert_true(s4d_efficiency_beyond(&m, &apart, S4D_OP_ALL_REDUCE));
    assert_false(s4d_efficiency_beyond(&m, &fewer, S4D_OP_ALL_REDUCE));
    assert_false(s4d_efficiency_beyond(&m, &two, S4D_OP_ALL_REDUCE)); /* no rows inside a node */
    assert_false(s4d_efficiency_beyond(&m, &apart, S4D_OP_ALL_GATHER));
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 1024), &s4d_tree);
    assert_ptr_equal(s4d_choose_algorithm(&m, &fewer, S4D_OP_ALL_REDUCE, 1024), &s4d_ring);
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 4294967296), &s4d_ring);
    /* What the ring then costs is the table's. */
    assert_true(s4d_ring.cost(&m, &apart, S4D_OP_ALL_REDUCE, 4294967296).measured);
    m.library.table = NULL;
    m.library.n_tables = 0;
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bus),           cmocka_unit_test(test_ring_simple),
        cmocka_unit_test(test_protocols),     cmocka_unit_test(test_choice),
        cmocka_unit_test(test_efficiency),    cmocka_unit_test(test_efficiency_in_node),
        cmocka_unit_test(test_measured_cost), cmocka_unit_test(test_ideal),
        cmocka_unit_test(test_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
