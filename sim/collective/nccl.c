/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's tuning rule (NCCL 2.30.7, src/graph/tuning.cc), with the machine's constants.
 *
 * Bandwidth: the links' bus bandwidth (here from the channels' paths, in NCCL from its search),
 * less what a protocol takes away. Latency: a base, and a hop for each step inside and between
 * nodes. Left out: NIC latency that the network plugin reports, the loss of Volta's Simple ring,
 * NVLS, CollNet, PAT. */
#include "sim/collective/nccl.h"

#include <math.h>

#include "sim/collective/channels.h"
#include "support/error.h"

/* NCCL's correction of the tree's estimate for medium sizes: one factor for each power of two from
 * 64 B, by protocol (treeCorrectionFactor). */
enum { CORRECTIONS = 24 };
static const double tree_correction[S4D_PROTOCOLS][CORRECTIONS] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
};

static int floor_log2(double x)
{
    return ilogb(x);
}

/* Hops of the longest way in a balanced binary tree over n nodes. */
static int tree_depth(int nodes)
{
    int depth = 0;
    while ((1 << depth) < nodes)
        depth++;
    return depth;
}

static int steps(enum s4d_op_kind op, int members)
{
    return (op == S4D_OP_ALL_REDUCE ? 2 : 1) * (members - 1);
}

/* A block goes round the ring: steps hops, of which as many leave a node as there are nodes to
 * reach. */
static double ring_hops_s(const struct s4d_channels *ch, enum s4d_op_kind op, double inside_s,
                          double between_s)
{
    int between = ch->nodes > 1 ? steps(op, ch->nodes) : 0;
    return (steps(op, ch->members) - between) * inside_s + between * between_s;
}

/* Up the chain in the node and the tree of nodes, and down again. */
static double tree_hops_s(const struct s4d_channels *ch, int depth, double inside_s,
                          double between_s)
{
    double chain = (double)ch->members / ch->nodes - 1;
    return 2 * (chain * inside_s + depth * between_s);
}

/* NCCL's rings move a chunk of the Simple protocol in two slices, each with its own wait, fence and
 * post (ALLREDUCE_CHUNKSTEPS over ALLREDUCE_SLICESTEPS of src/include/collectives.h, and alike of
 * gather and scatter): a step takes two of the constant's hops. (arXiv 2507.04786 sec. III measures
 * about 6 us a hop.) */
enum { SIMPLE_SLICES = 2 };

/* What NCCL believes, by which it chooses; or in fact. */
static double latency_s(const struct s4d_machine *m, const struct s4d_channels *ch,
                        enum s4d_op_kind op, enum s4d_nccl_pattern pattern, enum s4d_protocol p,
                        bool in_fact)
{
    const struct s4d_library *l = &m->library;
    const struct s4d_nccl_latency *of = pattern == S4D_NCCL_RING ? &l->ring : &l->tree;
    /* NCCL takes the tree's network hop for every pattern when each node has one member. */
    double net_s = (ch->members == ch->nodes ? l->tree : *of).net_s[p].value;
    double inside_s = of->nvlink_s[p].value, base_s = of->base_s[p].value;
    if (in_fact && p == S4D_SIMPLE && isfinite(l->net_simple_s.value))
        net_s = l->net_simple_s.value;
    if (pattern == S4D_NCCL_RING) {
        if (in_fact && p == S4D_SIMPLE)
            inside_s *= SIMPLE_SLICES;
        /* Every step of a ring between nodes has its posts to the network, Simple three. */
        double post_s = l->net_post_s.value * (p == S4D_SIMPLE ? 3 : 1);
        if (ch->nodes > 1)
            inside_s = fmax(inside_s, post_s);
        return base_s + ring_hops_s(ch, op, inside_s, net_s);
    }
    return base_s + tree_hops_s(ch, floor_log2(ch->nodes), inside_s, net_s);
}

static double ring_bus_Bps(const struct s4d_library *l, const struct s4d_channels *ch,
                           enum s4d_protocol p, double ll_max_Bps)
{
    double channels = ch->library_channels;
    switch (p) {
    case S4D_LL: /* half of each line is flags */
        return fmin(ll_max_Bps, 0.5 * ch->bus_Bps);
    case S4D_LL128: /* 120 of 128 bytes are data */
        return fmin(0.92 * ch->bus_Bps, channels * l->ll128_channel_Bps.value);
    default:
        return ch->bus_Bps;
    }
}

static double tree_bus_Bps(const struct s4d_library *l, const struct s4d_channels *ch,
                           double links_Bps, enum s4d_protocol p, double ll_max_Bps)
{
    double channels = ch->library_channels;
    double channel_Bps = ch->nodes == 1   ? l->tree_channel_in_node_Bps.value
                         : ch->nodes == 2 ? l->tree_channel_two_nodes_Bps.value
                                          : l->tree_channel_Bps.value;
    double bus_Bps = fmin(0.92 * links_Bps, channels * channel_Bps);
    if (p == S4D_LL)
        bus_Bps = fmin(bus_Bps / 3.8, ll_max_Bps);
    if (p == S4D_LL128)
        bus_Bps = fmin(bus_Bps * (ch->nodes == 1 ? 7.0 / 9 : 120.0 / 128),
                       channels * l->ll128_channel_Bps.value);
    /* With one member a node its NIC serves the parent and both children. */
    return ch->members == ch->nodes ? 0.85 * bus_Bps : bus_Bps;
}

/* Corrections of the estimate by size, for the choice alone. */
static double corrected_time_s(const struct s4d_nccl_estimate *e, const struct s4d_channels *ch,
                               enum s4d_op_kind op, enum s4d_nccl_pattern pattern,
                               enum s4d_protocol p, double bytes)
{
    double latency = e->latency_s; /* as believed */
    if (pattern == S4D_NCCL_RING) {
        double algorithm_Bps = e->bus_Bps / s4d_bus_factor(op, ch->members);
        if (p == S4D_SIMPLE && ch->nodes > 1 && op == S4D_OP_ALL_REDUCE &&
            bytes / ((double)ch->library_channels * ch->members) >= 64)
            latency *= 1.4; /* "plateau effect of ring", Ampere and later */
        return latency + bytes / algorithm_Bps;
    }
    double factor = 1;
    if (bytes >= 64 && floor_log2(bytes / 64) < CORRECTIONS)
        factor = tree_correction[p][floor_log2(bytes / 64)];
    return latency + bytes / (0.5 * e->bus_Bps * factor);
}

struct s4d_nccl_estimate s4d_nccl_estimate(const struct s4d_machine *m,
                                           const struct s4d_channels *ch, enum s4d_op_kind op,
                                           enum s4d_nccl_pattern pattern,
                                           enum s4d_protocol protocol, double bytes)
{
    const struct s4d_library *l = &m->library;
    double ll_max_Bps = ch->nodes == 1   ? l->ll_max_in_node_Bps.value
                        : ch->nodes == 2 ? l->ll_max_two_nodes_Bps.value
                                         : l->ll_max_Bps.value;
    struct s4d_nccl_estimate e = {.latency_s = latency_s(m, ch, op, pattern, protocol, true)};
    e.bus_Bps = pattern == S4D_NCCL_RING ? ring_bus_Bps(l, ch, protocol, ll_max_Bps)
                                         : tree_bus_Bps(l, ch, ch->bus_Bps, protocol, ll_max_Bps);
    if (protocol == S4D_LL128 && ch->nodes > l->ll128_nodes.value)
        e.bus_Bps = 0;
    struct s4d_nccl_estimate believed = e;
    believed.latency_s = latency_s(m, ch, op, pattern, protocol, false);
    /* Of a tree on two nodes NCCL takes the speed inside the nodes: each of its two trees crosses
     * the network once in each direction, so that an all-reduce may be faster than the ring's wire.
     */
    if (pattern == S4D_NCCL_TREE && ch->nodes == 2 && ch->members > 2)
        believed.bus_Bps = tree_bus_Bps(l, ch, ch->node_bus_Bps, protocol, ll_max_Bps);
    e.time_s =
        e.bus_Bps > 0 ? corrected_time_s(&believed, ch, op, pattern, protocol, bytes) : INFINITY;
    return e;
}

/* A tree moves chunks of a buffer's eighth, 512 KiB of the Simple protocol. The last chunk leaves
 * its first edge when all before it have, and has the others still to go: up and down the chain in
 * the node, where one block of threads copies no faster than the library's cap of a channel, and
 * the tree between nodes. NCCL makes every channel of its search two. */
static double tree_fill_s(const struct s4d_machine *m, const struct s4d_channels *ch, double bytes)
{
    const struct s4d_library *l = &m->library;
    double channels = 2 * ch->library_channels, chunk = fmin(524288, bytes / channels);
    double channel_Bps = ch->nodes == 1   ? l->tree_channel_in_node_Bps.value
                         : ch->nodes == 2 ? l->tree_channel_two_nodes_Bps.value
                                          : l->tree_channel_Bps.value;
    double inside = 2 * ((double)ch->members / ch->nodes - 1), between = 2 * floor_log2(ch->nodes);
    /* One edge's time is the volume's own. */
    if (ch->nodes > 1)
        between -= 1;
    else
        inside -= 1;
    return inside * chunk / channel_Bps + between * chunk * channels * ch->alone_s_per_B;
}

struct s4d_cost s4d_nccl_cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                              enum s4d_op_kind op, enum s4d_nccl_pattern pattern, double bytes,
                              double volume_B)
{
    if (s4d_library_is_ideal(m)) {
        double inside_s = m->node.latency_s.value, between_s = m->fabric.latency_s.value;
        double latency = pattern == S4D_NCCL_RING
                             ? ring_hops_s(ch, op, inside_s, between_s)
                             : tree_hops_s(ch, tree_depth(ch->nodes), inside_s, between_s);
        return (struct s4d_cost){
            .latency_s = latency, .volume_B = volume_B, .efficiency = 1, .protocol = S4D_PROTOCOLS};
    }
    struct s4d_cost cost = {0};
    double best_s = INFINITY;
    for (int p = 0; p < S4D_PROTOCOLS; p++) {
        struct s4d_nccl_estimate e = s4d_nccl_estimate(m, ch, op, pattern, p, bytes);
        if (e.time_s >= best_s)
            continue;
        best_s = e.time_s;
        /* The protocol's cap as a larger volume: exact alone, and under contention the flow still
         * occupies the links with what the protocol adds. */
        double efficiency = e.bus_Bps / ch->bus_Bps;
        cost = (struct s4d_cost){.latency_s = e.latency_s,
                                 .volume_B = volume_B / efficiency,
                                 .efficiency = efficiency,
                                 .protocol = (enum s4d_protocol)p};
    }
    if (pattern == S4D_NCCL_TREE && cost.protocol == S4D_SIMPLE)
        cost.fill_s = tree_fill_s(m, ch, bytes);
    cost.latency_s += cost.fill_s;
    S4D_ASSERT(best_s < INFINITY, "the library %s has no protocol", m->library.name);
    return cost;
}

double s4d_nccl_least_latency_s(const struct s4d_machine *m, const struct s4d_channels *ch,
                                enum s4d_op_kind op)
{
    if (s4d_library_is_ideal(m))
        return s4d_nccl_cost(m, ch, op, S4D_NCCL_RING, 0, 0).latency_s;
    double least = INFINITY;
    int patterns = op == S4D_OP_ALL_REDUCE ? 2 : 1;
    for (int pattern = 0; pattern < patterns; pattern++)
        for (int p = 0; p < S4D_PROTOCOLS; p++) {
            struct s4d_nccl_estimate e = s4d_nccl_estimate(m, ch, op, pattern, p, 0);
            if (e.bus_Bps > 0)
                least = fmin(least, e.latency_s);
        }
    return least;
}

void s4d_nccl_shape(const struct s4d_cluster *c, struct s4d_channels *ring)
{
    ring->bus_Bps = 1 / s4d_channels_s_per_B(ring, c);
    /* Channels faster than 25 GB/s are made two of half the speed (NCCL src/graph/search.cc,
     * ncclTopoDupChannels; of NCCL's list of speeds 24 is the next below). */
    ring->library_channels = ring->n * (ring->bus_Bps / ring->n > 25e9 ? 2 : 1);
}
