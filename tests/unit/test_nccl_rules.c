/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by which NCCL counts channels, cuts chunks and chooses between ring, tree and switch, at
 * the places where they turn. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/collective/nccl.h"
#include "sim/collective/nvls.h"
#include "tests/lib/quad.h"

static void assert_relative(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* NCCL doubles a channel of more than 25 GB/s: two nodes with one member each have the NIC alone.
 */
static void test_doubled_channels(void **state)
{
    (void)state;
    static const double nic_GBps[] = {24.9, 25, 25.1, 50};
    static const int library_channels[] = {1, 1, 2, 2};
    for (int i = 0; i < 4; i++) {
        struct s4d_machine m;
        load_quad(&m, 64);
        m.node.nic_bandwidth_Bps.value = nic_GBps[i] * 1e9;
        struct s4d_channels ch = quad_shape(&m, &s4d_ring, 2, 4);
        assert_relative(ch.bus_Bps, nic_GBps[i] * 1e9, 1e-12);
        assert_int_equal(ch.library_channels, library_channels[i]);
        s4d_machine_free(&m);
    }
}

static double tree_estimate_s(const struct s4d_machine *m, const struct s4d_channels *ch,
                              double bytes)
{
    return s4d_nccl_estimate(m, ch, S4D_OP_ALL_REDUCE, S4D_NCCL_TREE, S4D_SIMPLE, bytes).time_s;
}

/* What NCCL estimates of trees, by a ring's shape of 12 channels with 100 GB/s between the nodes
 * and 240 in them; 4 GiB, for which it corrects nothing. Four members on each of
 *   2 nodes: 8.4 + 2 (3 x 4 + 14) = 60.4 us, and by the speed in the nodes, of which it takes 0.92
 *            (220.8, less than 12 x 23.6): n / 110.4 GB/s. It gets 92 of the wire all the same.
 *   4 nodes: 8.4 + 2 (3 x 4 + 2 x 14) = 88.4 us, by the wire: n / 46 GB/s.
 * One on each of 2 nodes: 8.4 + 2 x 14 = 36.4 us, by the wire, and 0.85 of that: n / 39.1 GB/s. */
static void test_tree_on_two_nodes(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    const double n = 4294967296;
    struct s4d_channels ch = {.members = 8,
                              .nodes = 2,
                              .members_per_node = 4,
                              .bus_Bps = 100e9,
                              .node_bus_Bps = 240e9,
                              .library_channels = 12};
    assert_relative(tree_estimate_s(&m, &ch, n), 60.4e-6 + n / 110.4e9, 1e-12);
    assert_relative(
        s4d_nccl_estimate(&m, &ch, S4D_OP_ALL_REDUCE, S4D_NCCL_TREE, S4D_SIMPLE, n).bus_Bps, 92e9,
        1e-12);
    ch.members = 16;
    ch.nodes = 4;
    assert_relative(tree_estimate_s(&m, &ch, n), 88.4e-6 + n / 46e9, 1e-12);
    ch.members = ch.nodes = 2;
    assert_relative(tree_estimate_s(&m, &ch, n), 36.4e-6 + n / 39.1e9, 1e-12);
    s4d_machine_free(&m);
}

/* The switch must be faster than the ring and than the tree. With the Simple protocol alone, the
 * switch at 30.6 us in the node and 320 GB/s:
 *
 * four in a node, 8 bytes: ring 8.4 + 6 x 3.4 = 28.8, switch 30.6, tree 8.4 + 2 x 3 x 4 = 32.4 us:
 * the ring. It moves a byte in 1 / 160 GB/s (240 / 1.5), the switch in half of that, so the switch
 * passes it at 1.8 us x 320 GB/s = 576 kB, where the tree is behind both.
 *
 * One on each of 64 nodes, 8 bytes: ring 8.4 + 126 x 14 = 1772 us, tree 8.4 + 2 x 6 x 14 = 176.4,
 * switch 30.6 + 2 x 6 x its hop: 175.8 with 12.1 us, 177.0 with 12.2. */
static void test_choice_of_switch(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 64);
    m.library.ll_max_in_node_Bps.value = m.library.ll_max_Bps.value = 0;
    m.library.ll128_channel_Bps.value = 0;
    m.library.nvls.present = true;
    m.library.nvls.efficiency.value = 1;
    m.library.nvls.hop_s.value = 30.6e-6;
    struct s4d_channels four = quad_shape(&m, &s4d_ring, 4, 1),
                        apart = quad_shape(&m, &s4d_ring, 64, 4);
    four.nvls_s_per_B = apart.nvls_s_per_B = 1 / 320e9;
    assert_ptr_equal(s4d_choose_algorithm(&m, &four, S4D_OP_ALL_REDUCE, 8), &s4d_ring);
    assert_ptr_equal(s4d_choose_algorithm(&m, &four, S4D_OP_ALL_REDUCE, 570e3), &s4d_ring);
    assert_ptr_equal(s4d_choose_algorithm(&m, &four, S4D_OP_ALL_REDUCE, 580e3), &s4d_nvls);
    four.nvls_s_per_B = 0; /* not possible */
    assert_ptr_equal(s4d_choose_algorithm(&m, &four, S4D_OP_ALL_REDUCE, 580e3), &s4d_ring);
    m.library.nvls.net_s.value = 12.1e-6;
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 8), &s4d_nvls);
    m.library.nvls.net_s.value = 12.2e-6;
    assert_ptr_equal(s4d_choose_algorithm(&m, &apart, S4D_OP_ALL_REDUCE, 8), &s4d_tree);
    s4d_machine_free(&m);
}

/* NVLS chunks by what a channel moves for a head. In a node 128 KiB, less of what would be fewer
 * than 64 of them: 64 KiB below 8 MiB, 32 below eight of those (512 KiB), 16 below two of those (64
 * KiB). NVLSTree: 64 KiB below four (512 KiB), 32 below one of those; from four nodes on it begins
 * with 64. */
static void test_nvls_chunk_rule(void **state)
{
    (void)state;
    const double KiB = 1024;
    const struct {
        int nodes;
        double channel_B, chunk_B;
    } rows[] = {
        {1, 8192 * KiB, 128},
        {1, 8192 * KiB - 1, 64},
        {1, 512 * KiB, 64},
        {1, 512 * KiB - 1, 32},
        {1, 64 * KiB, 32},
        {1, 64 * KiB - 1, 16},
        {1, 1, 16},
        {2, 512 * KiB, 128},
        {2, 512 * KiB - 1, 64},
        {2, 64 * KiB, 64},
        {2, 64 * KiB - 1, 32},
        {3, 512 * KiB, 128},
        {4, 512 * KiB, 64},
        {4, 64 * KiB, 64},
        {4, 64 * KiB - 1, 32},
        {2, 1, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct s4d_channels ch = {.nodes = rows[i].nodes};
        assert_relative(s4d_nvls_chunk_B(&ch, rows[i].channel_B), rows[i].chunk_B * KiB, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubled_channels),
        cmocka_unit_test(test_tree_on_two_nodes),
        cmocka_unit_test(test_choice_of_switch),
        cmocka_unit_test(test_nvls_chunk_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
