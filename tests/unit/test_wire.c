/* SPDX-License-Identifier: Apache-2.0 */
/* The tuner's bandwidth of a group while all groups of its axis move: samples of a few nodes
 * against whole layouts by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sim/tune/wire.h"
#include "tests/lib/quad.h"

static void expect(struct s4d_wires *w, int inner, int members, double bus_Bps, int nodes)
{
    const struct s4d_wire *wire = s4d_wires_find(w, inner, members);
    if (!(fabs(wire->bus_Bps - bus_Bps) <= 1e-9 * bus_Bps))
        fail_msg("%d members, %d apart: %.10g B/s, expected %.10g", members, inner, wire->bus_Bps,
                 bus_Bps);
    assert_int_equal(wire->shape.members, members);
    assert_int_equal(wire->shape.nodes, nodes);
    assert_int_equal(wire->across_nodes, nodes > 1);
}

/* 24 nodes of four devices, 15 GB/s between each two and a NIC of 10 GB/s each; channel c of a
 * group enters a node at its member c + 1 there, visits all and leaves at member c.
 *
 *  1 apart, 24: four channels of a quarter. Each takes three of the ways i to i + 1, so such a
 *               link has three quarters: 15 / .75 = 20 GB/s, less than the NICs' 10 / .25.
 *  2 apart,  4, and 12: two channels of a half, the NICs' 10 / .5 = 20, less than the links' 15 /
 * .5 (0 to 2, and back). 4 apart, 24: one channel, the NIC's 10. */
static void test_nodes_of_four(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, "synthetic:topology=single-switch,nodes=24,devices_per_node=4,link=15GB/s,"
                     "nic=10GB/s,latency=1us,peak=1TFLOP/s,library=nccl");
    struct s4d_wires *w = s4d_wires_create(&m, 96, NULL);
    expect(w, 1, 24, 20e9, 6);
    expect(w, 2, 4, 20e9, 2);
    expect(w, 2, 12, 20e9, 6);
    expect(w, 4, 24, 10e9, 24);
    s4d_wires_free(w);
    s4d_machine_free(&m);
}

/* Eight devices a node, 100 GB/s between each two: sixteen members three apart, on six nodes, three
 * or two on each (0 3 6 | 9 12 15 | 18 21 | ...). Two channels of a half, no NIC has two: 20 GB/s.
 * The sample holds ten of them, on four nodes; nine would have one on the last, and one channel. */
static void test_uneven(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, "synthetic:topology=single-switch,nodes=6,devices_per_node=8,link=100GB/s,"
                     "nic=10GB/s,latency=1us,peak=1TFLOP/s,library=nccl");
    struct s4d_wires *w = s4d_wires_create(&m, 48, NULL);
    expect(w, 3, 16, 20e9, 8); /* nodes: of two members each, as on the least */
    s4d_wires_free(w);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_of_four),
        cmocka_unit_test(test_uneven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
