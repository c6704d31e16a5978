/* SPDX-License-Identifier: Apache-2.0 */
/* The ring (all-gather, reduce-scatter, all-reduce): p - 1 steps, or twice that, in each of which
 * every member sends 1/p of the data to the next (Patarasuk and Yuan, J. Parallel Distrib. Comput.
 * 69, 2009).
 *
 * Inside a node one channel for each ring that the search finds. Across nodes as many channels as
 * the poorest node has members: channel c enters a node of m members at number (c + 1) mod m,
 * visits all in order and leaves at number c mod m through that member's NIC, so that every NIC
 * carries its share. Leaves out: NCCL's search for the order of visit inside a node of many. */
#include "sim/collective/channels.h"
#include "sim/collective/efficiency.h"
#include "sim/collective/nccl.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE || op == S4D_OP_ALL_GATHER || op == S4D_OP_REDUCE_SCATTER;
}

/* Members in group order, over whatever links the node has. */
static void plain_ring(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                       struct s4d_channels *out)
{
    s4d_channels_init(out, &s4d_ring, layout, members, 1);
    for (int i = 0; i < members; i++)
        s4d_channel_edge(&out->channel[0], c, layout->member[i], layout->member[(i + 1) % members]);
}

static void in_node(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                    struct s4d_channels *out)
{
    struct s4d_rings rings;
    s4d_layout_rings(&rings, c, layout);
    if (rings.n_rings == 0) {
        plain_ring(c, layout, members, out);
        return;
    }
    s4d_channels_init(out, &s4d_ring, layout, members, rings.n_rings);
    for (int r = 0; r < rings.n_rings; r++)
        for (int i = 0; i < members; i++)
            s4d_channel_edge(&out->channel[r], c, layout->member[rings.order[r * members + i]],
                             layout->member[rings.order[r * members + (i + 1) % members]]);
    s4d_rings_free(&rings);
}

static void across_nodes(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                         struct s4d_channels *out)
{
    int n = s4d_library_is_ideal(c->machine) ? 1 : layout->fewest;
    s4d_channels_init(out, &s4d_ring, layout, members, n);
    for (int channel = 0; channel < n; channel++)
        for (int k = 0; k < layout->nodes; k++) {
            struct s4d_channel *to = &out->channel[channel];
            int m = s4d_layout_count(layout, k), next = (k + 1) % layout->nodes;
            for (int i = 1; i < m; i++)
                s4d_channel_edge(to, c, s4d_layout_member(layout, k, channel + i),
                                 s4d_layout_member(layout, k, channel + i + 1));
            s4d_channel_edge(to, c, s4d_layout_member(layout, k, channel),
                             s4d_layout_member(layout, next, channel + 1));
        }
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    struct s4d_layout layout;
    s4d_layout_create(&layout, c, devices, n);
    if (layout.nodes == 1)
        in_node(c, &layout, n, out);
    else
        across_nodes(c, &layout, n, out);
    for (int i = 0; i < out->n; i++)
        s4d_path_merge(&out->channel[i].path);
    s4d_nccl_shape(c, out);
    s4d_layout_free(&layout);
    return 0;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    /* What each edge carries: every block but one, twice for an all-reduce. */
    double volume_B = s4d_bus_factor(op, ch->members) * bytes;
    struct s4d_cost measured;
    if (s4d_efficiency_cost(m, ch, op, bytes, volume_B, &measured))
        return measured;
    return s4d_nccl_cost(m, ch, op, S4D_NCCL_RING, bytes, volume_B);
}

const struct s4d_algorithm s4d_ring = {
    .name = "ring",
    .summary =
        "p - 1 steps around a ring (all-reduce: twice), as many rings as links and NICs allow",
    .source = "Patarasuk and Yuan 2009; channels and constants as NCCL's (src/graph)",
    .supports = supports,
    .channels = channels,
    .cost = cost,
};
