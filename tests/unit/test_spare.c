/* SPDX-License-Identifier: Apache-2.0 */
/* Links that never limit, worked out by hand. That rates do not depend on them is shown by
 * test_system, and that times do not by test_fold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/full.h"
#include "support/memory.h"

/* Dragonfly groups of 8 nodes with 4 devices and 4 NICs of 25 GB/s. Nodes 0 to 3 of a group hang on
 * its switches 0 and 1, nodes 4 to 7 on 2 and 3: NICs 0 and 2 on the first, 1 and 3 on the second.
 */
#define DRAGONFLY(local, global)                                                                   \
    "synthetic:topology=dragonfly,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"           \
    "latency=2us,peak=312TFLOP/s,library=nccl,groups=16,nodes_per_group=8,switches_per_group=4,"   \
    "switches_per_node=2,link_bandwidth_Bps=25GB/s,local_links_per_switch=" #local                 \
    ",global_links_per_group=" #global

struct fixture {
    struct s4d_machine machine;
    struct s4d_cluster cluster;
    struct s4d_program program; /* all-gathers over z */
    struct s4d_op op;
    struct s4d_full full;
};

static void open_cluster(struct fixture *x, const char *machine, const char *grid)
{
    struct s4d_error err = {0};
    *x = (struct fixture){0};
    if (s4d_machine_load(&x->machine, machine, NULL, 0, &err) ||
        s4d_grid_parse(grid, &x->program.grid, &err) ||
        s4d_cluster_create(&x->cluster, &x->machine, s4d_grid_ranks(&x->program.grid) / 4, &err))
        fail_msg("%s: %s", err.where, err.text);
    x->op = (struct s4d_op){.kind = S4D_OP_ALL_GATHER, .stream = S4D_STREAM_Z_GATHER};
    x->op.c.collective.axes = s4d_streams[x->op.stream].axes;
    x->op.c.collective.type = S4D_F32;
    x->op.c.collective.count = 1 << 28;
    x->op.c.collective.members = s4d_group_size(&x->program.grid, x->op.c.collective.axes);
    x->program.ops = &x->op;
    x->program.n_ops = 1;
}

static void make(struct fixture *x)
{
    struct s4d_error err = {0};
    if (s4d_full_create(&x->full, &x->cluster, &x->program, 1, true, &err))
        fail_msg("%s: %s", err.where, err.text);
}

static void destroy(struct fixture *x)
{
    s4d_full_free(&x->full);
    s4d_cluster_destroy(&x->cluster);
    s4d_machine_free(&x->machine);
}

/* How many spare links are of this kind. */
static int spare_of(const struct fixture *x, const char *kind)
{
    int n = 0;
    for (int i = 0; i < x->full.n_spare; i++)
        n += strcmp(x->cluster.links[x->full.links[x->full.n_links + i]].kind, kind) == 0;
    return n;
}

static void spare(const char *machine, int switches, int groups)
{
    struct fixture x;
    open_cluster(&x, machine, "2x2x16x1");
    make(&x);
    assert_int_equal(spare_of(&x, "switch-out"), switches);
    assert_int_equal(spare_of(&x, "switch-in"), switches);
    assert_int_equal(spare_of(&x, "group-out"), groups);
    assert_int_equal(spare_of(&x, "group-in"), groups);
    assert_int_equal(x.full.n_spare, 2 * (switches + groups));
    destroy(&x);
}

/* 16 nodes, 2 groups. Four z groups, one for each device of the nodes, go round nodes 0 to 15, each
 * through its own NIC. They leave a switch once: two NICs of node 3, 7, 11 or 15, 50 GB/s, come out
 * of it; and a group once: the four NICs of node 7 or 15, 100 GB/s. So 2 local links and 4 global
 * ones are just enough. */
static void enough_is_spare(void **state)
{
    (void)state;
    spare(DRAGONFLY(2, 4), 8, 2);
    spare(DRAGONFLY(1, 4), 0, 2);
    spare(DRAGONFLY(2, 3), 8, 0);
    spare(DRAGONFLY(1, 3), 0, 0);
}

/* What differences leave of a link counts, and what they leave of the NICs behind it: group 0 is
 * left from node 7 and entered from node 15. */
static void slow_links(void **state)
{
    (void)state;
    struct fixture x;
    open_cluster(&x, DRAGONFLY(2, 4), "2x2x16x1");
    for (int i = 0; i < x.cluster.n_links; i++) {
        char *name = s4d_link_name(&x.cluster, i);
        if (strcmp(name, "group0.out") == 0 || strcmp(name, "group0.in") == 0)
            x.cluster.links[i].capacity_Bps *= 0.9; /* 90 GB/s */
        if (strcmp(name, "n15.nic1.out") == 0)
            x.cluster.links[i].capacity_Bps *= 0.5; /* 87.5 GB/s with the other three */
        free(name);
    }
    make(&x);
    assert_int_equal(spare_of(&x, "group-out"), 1);
    assert_int_equal(spare_of(&x, "group-in"), 2);
    destroy(&x);
}

/* A node of n devices on one switch has no links beyond the NICs. */
static void nothing_but_nics(void **state)
{
    (void)state;
    struct fixture x;
    open_cluster(&x,
                 "synthetic:topology=single-switch,nodes=128,devices_per_node=4,link=100GB/s,"
                 "nic=25GB/s,latency=2us,peak=312TFLOP/s,library=nccl",
                 "2x2x16x1");
    make(&x);
    assert_int_equal(x.full.n_spare, 0);
    destroy(&x);
}

static int link_named(const struct s4d_cluster *c, const char *wanted)
{
    int found = -1;
    for (int i = 0; i < c->n_links && found < 0; i++) {
        char *name = s4d_link_name(c, i);
        found = strcmp(name, wanted) == 0 ? i : -1;
        free(name);
    }
    assert_true(found >= 0);
    return found;
}

/* A flow that crosses a link more often than the NICs that were noted is not covered by them,
 * whatever they can carry. */
static void covers_are_checked(void **state)
{
    (void)state;
    struct fixture x;
    open_cluster(&x, DRAGONFLY(2, 4), "2x2x16x1");
    const struct s4d_cluster *c = &x.cluster;
    int out = link_named(c, "n0.nic0.out"), in = link_named(c, "n8.nic0.in"),
        global = link_named(c, "group0.out");
    bool *is_spare = s4d_malloc((size_t)c->n_links * sizeof *is_spare);
    for (int weight = 1; weight <= 3; weight++) {
        const struct s4d_crossing crossings[] = {{0, out, 2}, {0, global, 2},      {0, in, 2},
                                                 {1, out, 2}, {1, global, weight}, {1, in, 1}};
        s4d_feeders_watch(c, true);
        s4d_feeders_note(c, out, in, &global, 1);
        assert_int_equal(s4d_spare_links(c, crossings, 6, 2, is_spare), weight <= 2);
        assert_true(is_spare[global] == (weight <= 2));
        assert_false(is_spare[out] || is_spare[in]);
    }
    s4d_feeders_watch(c, false);
    free(is_spare);
    destroy(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enough_is_spare),
        cmocka_unit_test(slow_links),
        cmocka_unit_test(nothing_but_nics),
        cmocka_unit_test(covers_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
