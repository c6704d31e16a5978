/* SPDX-License-Identifier: Apache-2.0 */
/* Full and folded systems of small machines: hand-worked classes, and the same max-min rates by a
 * solver that knows neither classes nor SimGrid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/system.h"
#include "support/memory.h"

static const char one_device[] = "synthetic:topology=single-switch,nodes=512,nic=50GB/s,"
                                 "latency=500ns,peak=312TFLOP/s,library=nccl";
static const char four_devices[] =
    "synthetic:topology=single-switch,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"
    "latency=2us,peak=312TFLOP/s,library=nccl";
static const char dragonfly[] =
    "synthetic:topology=dragonfly,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"
    "latency=2us,peak=312TFLOP/s,library=nccl,groups=16,nodes_per_group=8,switches_per_group=4,"
    "switches_per_node=2,local_links_per_switch=3,global_links_per_group=12,"
    "link_bandwidth_Bps=25GB/s";

/* Leaves are as wide as their NICs, the links above them half that. */
static const char leaves[] =
    "synthetic:topology=fat-tree,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,latency=2us,"
    "peak=312TFLOP/s,library=nccl,levels=3,nics_per_leaf=12,leaves_per_pod=4,oversubscription=2";

struct fixture {
    struct s4d_machine machine;
    struct s4d_cluster cluster;
    struct s4d_program program; /* all-reduces of 1 GiB and of 64 KiB on each stream asked for */
    struct s4d_op ops[2 * S4D_STREAMS];
};

static void create(struct fixture *x, const char *machine, const char *grid, unsigned streams)
{
    struct s4d_error err = {0};
    *x = (struct fixture){0};
    if (s4d_machine_load(&x->machine, machine, NULL, 0, &err) ||
        s4d_grid_parse(grid, &x->program.grid, &err))
        fail_msg("%s: %s", err.where, err.text);
    int devices = x->machine.node.devices, ranks = s4d_grid_ranks(&x->program.grid);
    if (s4d_cluster_create(&x->cluster, &x->machine, (ranks + devices - 1) / devices, &err))
        fail_msg("%s: %s", err.where, err.text);
    x->program.ops = x->ops;
    for (int i = 0; i < 2 * S4D_STREAMS; i++) {
        struct s4d_op op = {.kind = S4D_OP_ALL_REDUCE, .stream = (enum s4d_stream)(i / 2)};
        op.c.collective.axes = s4d_streams[op.stream].axes;
        op.c.collective.type = S4D_F32;
        op.c.collective.count = i % 2 ? 1 << 28 : 1 << 14;
        op.c.collective.members = s4d_group_size(&x->program.grid, op.c.collective.axes);
        if (streams >> op.stream & 1)
            x->ops[x->program.n_ops++] = op;
    }
}

static void destroy(struct fixture *x)
{
    s4d_cluster_destroy(&x->cluster);
    s4d_machine_free(&x->machine);
}

/* allowed: 1 the ring, 2 the double tree, 3 what the library chooses */
static struct s4d_system build(struct fixture *x, unsigned allowed, bool fold)
{
    struct s4d_system s;
    struct s4d_error err = {0};
    if (s4d_system_create(&s, &x->cluster, &x->program, allowed, fold, &err))
        fail_msg("%s: %s", err.where, err.text);
    return s;
}

/* 4 devices behind 4 NICs, one ring over all: 4 ranks, 1 group, 1 flow, 4 NICs out and 4 in; folded
 * one rank, and one NIC out and one in, each crossed once. */
static void one_ring(void **state)
{
    (void)state;
    struct fixture x;
    create(&x, one_device, "1x1x1x4", 1u << S4D_STREAM_DATA);
    struct s4d_system s = build(&x, 1, false);
    assert_int_equal(s.n_ranks, 4);
    assert_int_equal(s.n_groups, 1);
    assert_int_equal(s.groups[0].n_members, 4);
    const struct s4d_group_flows *ring = &s.groups[0].by_algorithm[0];
    assert_int_equal(ring->n, 1);
    assert_int_equal(s.flows[ring->flow[0]].n, 8);
    s4d_system_free(&s);

    s = build(&x, 1, true);
    assert_int_equal(s.n_ranks, 1);
    assert_int_equal(s.ranks[0].members, 4);
    assert_int_equal(s.ranks[0].group[S4D_STREAM_DATA], 0);
    assert_int_equal(s.ranks[0].group[S4D_STREAM_X], -1);
    assert_int_equal(s.n_groups, 1);
    assert_int_equal(s.groups[0].n_members, 1);
    ring = &s.groups[0].by_algorithm[0];
    assert_int_equal(ring->shape.members, 4);
    assert_null(ring->shape.channel);
    const struct s4d_flow_class *flow = &s.flows[ring->flow[0]];
    assert_int_equal(flow->n, 2);
    assert_int_equal(s.n_links, 2);
    assert_int_equal(s.n_limiting, 1); /* both are full at the same time: one will do */
    assert_int_equal(flow->n_limiting, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(flow->weight[i], 1);
        assert_int_equal(s.links[flow->link[i]].members, 4);
        assert_true(s.links[flow->link[i]].capacity_Bps == 50e9);
    }
    s4d_system_free(&s);
    destroy(&x);
}

/* 64 devices on 2 dragonfly groups of 8 nodes. The z groups have 16 members, one on each node: 4
 * groups, one ring channel each, all of which leave a dragonfly group once. A node's NICs 0, 2 and
 * 1, 3 share a switch, which serves 4 nodes in a row, so each of its two flows leaves it once. One
 * flow class, then, that crosses a global link (12 links of 25 GB/s) 4 times and a switch's (3
 * links) 2 times. */
static void weights_are_divided(void **state)
{
    (void)state;
    struct fixture x;
    create(&x, dragonfly, "2x2x16x1", 1u << S4D_STREAM_Z_GATHER);
    struct s4d_system s = build(&x, 1, true);
    assert_int_equal(s.n_flows, 1);
    assert_int_equal(s.flows[0].members, 4);
    int global = 0, local = 0;
    for (int i = 0; i < s.flows[0].n; i++) {
        const struct s4d_link_class *link = &s.links[s.flows[0].link[i]];
        const char *kind = x.cluster.links[link->representative].kind;
        assert_int_equal(s.flows[0].weight[i], 1); /* the only flow of the link */
        if (strcmp(kind, "group-out") == 0 || strcmp(kind, "group-in") == 0) {
            assert_int_equal(link->divisor, 4);
            assert_int_equal(link->members, 2);
            assert_true(link->capacity_Bps == 300e9 / 4);
            global++;
        } else if (strcmp(kind, "switch-out") == 0 || strcmp(kind, "switch-in") == 0) {
            assert_int_equal(link->divisor, 2);
            assert_true(link->capacity_Bps == 75e9 / 2);
            local++;
        }
    }
    assert_int_equal(global, 2);
    assert_int_equal(local, 2);
    s4d_system_free(&s);
    destroy(&x);
}

/* No link carries more than it can, those included that the engine is not given. */
static void check_loads(const struct s4d_system *s, const bool *active, const double *rate)
{
    double *load = s4d_calloc((size_t)s->n_links, sizeof *load);
    for (int f = 0; f < s->n_flows; f++)
        for (int i = 0; i < s->flows[f].n && active[f]; i++)
            load[s->flows[f].link[i]] += s->flows[f].weight[i] * rate[f];
    for (int l = 0; l < s->n_links; l++)
        assert_true(load[l] <= s->links[l].capacity_Bps * (1 + 1e-12));
    free(load);
}

/* Max-min rates of all flows, every unit of weight drawing on the capacity: fill up together, stop
 * at each link that is full. Of the links the engine is given; unfolded, these are all. */
static void fill(const struct s4d_system *s, const bool *active, double *rate)
{
    bool *growing = s4d_malloc((size_t)s->n_flows * sizeof *growing);
    double *load = s4d_malloc((size_t)s->n_links * sizeof *load);
    double *slope = s4d_malloc((size_t)s->n_links * sizeof *slope), level = 0;
    memcpy(growing, active, (size_t)s->n_flows * sizeof *growing);
    for (int left = 1; left > 0;) {
        memset(load, 0, (size_t)s->n_links * sizeof *load);
        memset(slope, 0, (size_t)s->n_links * sizeof *slope);
        for (int f = 0; f < s->n_flows; f++)
            for (int i = 0; i < s->flows[f].n_limiting && active[f]; i++) {
                double *sum = growing[f] ? slope : load;
                sum[s->flows[f].link[i]] += s->flows[f].weight[i] * (growing[f] ? 1 : rate[f]);
            }
        double next = INFINITY;
        for (int l = 0; l < s->n_limiting; l++)
            if (slope[l] > 0)
                next = fmin(next, (s->links[l].capacity_Bps - load[l]) / slope[l]);
        level = fmax(level, next);
        left = 0;
        for (int f = 0; f < s->n_flows; f++) {
            if (!growing[f])
                continue;
            rate[f] = level;
            for (int i = 0; i < s->flows[f].n_limiting; i++) {
                int l = s->flows[f].link[i];
                if ((s->links[l].capacity_Bps - load[l]) / slope[l] <= level * (1 + 1e-12))
                    growing[f] = false;
            }
            left += growing[f];
        }
    }
    free(growing);
    free(load);
    free(slope);
    check_loads(s, active, rate);
}

/* The slowest channel of a collective of one byte in rank's group. */
static double time_s(const struct s4d_system *s, const double *rate, int rank, int stream, int a)
{
    int group = s->ranks[s->class_of_rank[rank]].group[stream];
    const struct s4d_group_flows *g = &s->groups[group].by_algorithm[a];
    double t = 0;
    for (int i = 0; i < g->n; i++)
        t = fmax(t, s->flows[g->flow[i]].share / rate[g->flow[i]]);
    return t;
}

/* Runs every group's ring (or tree) of one set of streams at once in both systems. */
static void same_rates(const struct s4d_system *full, const struct s4d_system *folded, int ranks,
                       unsigned streams, int algorithm)
{
    const struct s4d_system *both[2] = {full, folded};
    double *rate[2];
    for (int k = 0; k < 2; k++) {
        const struct s4d_system *s = both[k];
        bool *active = s4d_calloc((size_t)s->n_flows, sizeof *active);
        rate[k] = s4d_calloc((size_t)s->n_flows + 1, sizeof **rate);
        for (int g = 0; g < s->n_groups; g++)
            for (int i = 0; i < s->groups[g].by_algorithm[algorithm].n; i++)
                if (streams >> s->groups[g].stream & 1)
                    active[s->groups[g].by_algorithm[algorithm].flow[i]] = true;
        fill(s, active, rate[k]);
        free(active);
    }
    for (int r = 0; r < ranks; r++)
        for (int stream = 0; stream < S4D_STREAMS; stream++) {
            if (!(streams >> stream & 1))
                continue;
            double a = time_s(full, rate[0], r, stream, algorithm);
            double b = time_s(folded, rate[1], r, stream, algorithm);
            assert_true(fabs(a - b) <= 1e-12 * a);
        }
    free(rate[0]);
    free(rate[1]);
}

/* Returns how many classes of ranks there are. */
static int check_rates(const char *machine, const char *grid, int slow_link, int slow_device)
{
    struct fixture x;
    unsigned all = 1u << S4D_STREAM_X | 1u << S4D_STREAM_Y | 1u << S4D_STREAM_Z_GATHER |
                   1u << S4D_STREAM_DATA | 1u << S4D_STREAM_Z_DATA;
    create(&x, machine, grid, all);
    if (slow_link >= 0)
        x.cluster.links[slow_link].capacity_Bps *= 0.6;
    if (slow_device >= 0)
        x.cluster.device_speed[slow_device] = 0.5;
    struct s4d_system full = build(&x, 3, false), folded = build(&x, 3, true);
    int ranks = s4d_grid_ranks(&x.program.grid), members = 0;
    assert_int_equal(full.n_ranks, ranks);
    assert_int_equal(full.n_limiting, full.n_links);
    for (int i = 0; i < folded.n_ranks; i++)
        members += folded.ranks[i].members;
    assert_int_equal(members, ranks);
    for (int r = 0; r < ranks; r++)
        assert_true(folded.ranks[folded.class_of_rank[r]].speed ==
                    full.ranks[full.class_of_rank[r]].speed);
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (all >> stream & 1)
            same_rates(&full, &folded, ranks, 1u << stream, 0);
    same_rates(&full, &folded, ranks, all, 0);
    same_rates(&full, &folded, ranks, all, 1);
    int classes = folded.n_ranks;
    s4d_system_free(&full);
    s4d_system_free(&folded);
    destroy(&x);
    return classes;
}

static void rates_are_equal(void **state)
{
    (void)state;
    const char *machines[] = {one_device, four_devices, dragonfly, leaves};
    const char *grids[] = {"2x2x2x2",  "1x4x2x8",  "2x1x16x4", "4x4x1x16",
                           "1x2x8x24", "1x2x3x20", "3x2x5x4",  "1x1x6x10"};
    for (size_t m = 0; m < 4; m++)
        for (size_t g = 0; g < 8; g++) {
            int classes = check_rates(machines[m], grids[g], -1, -1);
            if (g < 4 && m < 3) /* the others fit neither node nor switch nor group: there may be */
                assert_in_range(classes, 1, 32);       /* nothing to fold */
            check_rates(machines[m], grids[g], 3, -1); /* node 1's NIC, or a link of node 0 */
            check_rates(machines[m], grids[g], -1, 5);
        }
}

/* On 64 devices NCCL's constants prefer the tree for 64 KiB and the ring for 1 GiB. What is not
 * allowed is not built, and what is left is taken; a sum of the small size alone needs no ring. */
static void algorithms_are_the_library_s(void **state)
{
    (void)state;
    struct fixture x;
    const double small = 65536, large = 1 << 30;
    create(&x, one_device, "1x1x1x64", 1u << S4D_STREAM_DATA);
    for (unsigned allowed = 1; allowed <= 3; allowed++) {
        struct s4d_system s = build(&x, allowed, true);
        const struct s4d_group_class *g = &s.groups[0];
        assert_int_equal(g->by_algorithm[0].n, allowed & 1 ? 1 : 0);
        assert_int_equal(g->by_algorithm[1].algorithm == &s4d_tree, allowed >> 1 & 1);
        assert_int_equal(g->by_algorithm[0].shape.members, 64);
        assert_ptr_equal(s4d_group_choice(&x.machine, g, S4D_OP_ALL_REDUCE, small),
                         &g->by_algorithm[allowed & 2 ? 1 : 0]);
        assert_ptr_equal(s4d_group_choice(&x.machine, g, S4D_OP_ALL_REDUCE, large),
                         &g->by_algorithm[allowed & 1 ? 0 : 1]);
        s4d_system_free(&s);
    }
    x.program.n_ops = 1;
    struct s4d_system s = build(&x, ~0u, true);
    assert_null(s.groups[0].by_algorithm[0].algorithm);
    assert_ptr_equal(s4d_group_choice(&x.machine, &s.groups[0], S4D_OP_ALL_REDUCE, small),
                     &s.groups[0].by_algorithm[1]);
    s4d_system_free(&s);
    destroy(&x);
}

/* Two dragonfly groups of 3 nodes with one device; the first two nodes share a switch, the third
 * has its own, and a switch has one link of 25 GB/s to the others. The z groups pair node i with
 * node 3 + i: each ring crosses the same kinds of links once in each direction, but two share their
 * switches and get 12.5 GB/s, the third gets 25. */
static void links_differ_by_totals(void **state)
{
    (void)state;
    struct fixture x;
    create(&x,
           "synthetic:topology=dragonfly,nodes=6,nic=25GB/s,latency=2us,peak=312TFLOP/s,groups=2,"
           "nodes_per_group=3,switches_per_group=2,switches_per_node=1,local_links_per_switch=1,"
           "global_links_per_group=12,link_bandwidth_Bps=25GB/s",
           "1x3x2x1", 1u << S4D_STREAM_Z_GATHER);
    struct s4d_system s = build(&x, 1, true), full = build(&x, 1, false);
    assert_int_equal(s.n_ranks, 2);
    assert_memory_equal(s.class_of_rank, ((int[]){0, 0, 1, 0, 0, 1}), 6 * sizeof(int));
    assert_int_equal(s.n_flows, 2);
    double rate[2];
    fill(&s, (bool[]){true, true}, rate);
    assert_true(rate[0] == 12.5e9 && rate[1] == 25e9);
    same_rates(&full, &s, 6, 1u << S4D_STREAM_Z_GATHER, 0);
    s4d_system_free(&s);
    s4d_system_free(&full);
    destroy(&x);
}

/* A slow device makes classes by what it shares groups with: on one switch with one device a node
 * and grid 1x2x4x8, all ranks are alike; one slow device leaves itself, the others of its y, z and
 * data group, and those that share a group with these. Coordinates (y, z, data) equal to the slow
 * one's or not: 2 x 2 x 2 classes. */
static void a_slow_device_makes_classes(void **state)
{
    (void)state;
    struct fixture x;
    create(&x, one_device, "1x2x4x8",
           1u << S4D_STREAM_Y | 1u << S4D_STREAM_Z_GATHER | 1u << S4D_STREAM_Z_SCATTER |
               1u << S4D_STREAM_DATA);
    struct s4d_system s = build(&x, 1, true);
    assert_int_equal(s.n_ranks, 1);
    assert_int_equal(s.n_groups, 4); /* one a stream */
    assert_int_equal(s.groups[1].by_algorithm[0].flow[0], s.groups[2].by_algorithm[0].flow[0]);
    s4d_system_free(&s);
    x.cluster.device_speed[21] = 0.9;
    s = build(&x, 1, true);
    assert_int_equal(s.n_ranks, 8);
    int slow = s.class_of_rank[21];
    assert_int_equal(s.ranks[slow].representative, 21);
    assert_int_equal(s.ranks[slow].members, 1);
    assert_true(s.ranks[slow].speed == 0.9);
    s4d_system_free(&s);
    destroy(&x);
}

static void same_numbers_every_time(void **state)
{
    (void)state;
    struct fixture x;
    create(&x, dragonfly, "2x2x4x8", 1u << S4D_STREAM_Y | 1u << S4D_STREAM_DATA);
    struct s4d_system a = build(&x, 1, true), b = build(&x, 1, true);
    assert_int_equal(a.n_ranks, b.n_ranks);
    assert_int_equal(a.n_flows, b.n_flows);
    assert_memory_equal(a.class_of_rank, b.class_of_rank, 128 * sizeof(int));
    for (int i = 0; i < a.n_ranks; i++) { /* numbered by lowest member */
        assert_int_equal(a.class_of_rank[a.ranks[i].representative], i);
        assert_true(i == 0 || a.ranks[i].representative > a.ranks[i - 1].representative);
    }
    for (int i = 0; i < a.n_flows; i++) {
        assert_int_equal(a.flows[i].n, b.flows[i].n);
        assert_memory_equal(a.flows[i].link, b.flows[i].link, (size_t)a.flows[i].n * sizeof(int));
        assert_memory_equal(a.flows[i].weight, b.flows[i].weight,
                            (size_t)a.flows[i].n * sizeof(int));
    }
    s4d_system_free(&a);
    s4d_system_free(&b);
    destroy(&x);
}

static void too_few_devices(void **state)
{
    (void)state;
    struct fixture x;
    create(&x, one_device, "1x1x1x4", 1u << S4D_STREAM_DATA);
    x.program.grid = s4d_grid_make(1, 1, 1, 8);
    struct s4d_system s;
    struct s4d_error err = {0};
    assert_int_equal(s4d_system_create(&s, &x.cluster, &x.program, 1, true, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "8 ranks"));
    s4d_system_free(&s);
    destroy(&x);
}

static struct s4d_cost some_cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                                 enum s4d_op_kind op, double bytes)
{
    (void)m, (void)ch, (void)op;
    return (struct s4d_cost){.latency_s = 4, .fill_s = 2, .volume_B = 3 * bytes, .efficiency = 0.8};
}

/* At half the rate of its stream a call alone takes twice as long, in all its parts. */
static void costs_follow_the_rate(void **state)
{
    (void)state;
    static const struct s4d_algorithm some = {.cost = some_cost};
    struct s4d_group_class g = {.rate = 0.5};
    g.by_algorithm[0].algorithm = &some;
    struct s4d_cost c = s4d_group_cost(NULL, &g, g.by_algorithm, S4D_OP_ALL_REDUCE, 10);
    assert_true(c.latency_s == 8 && c.fill_s == 4 && c.volume_B == 60 && c.efficiency == 0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ring),
        cmocka_unit_test(weights_are_divided),
        cmocka_unit_test(rates_are_equal),
        cmocka_unit_test(algorithms_are_the_library_s),
        cmocka_unit_test(links_differ_by_totals),
        cmocka_unit_test(a_slow_device_makes_classes),
        cmocka_unit_test(same_numbers_every_time),
        cmocka_unit_test(too_few_devices),
        cmocka_unit_test(costs_follow_the_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
