/* SPDX-License-Identifier: Apache-2.0 */
/* The ring (all-gather, reduce-scatter, all-reduce): p - 1 steps, or twice that, in each of which
 * every member sends 1/p of the data to the next (Patarasuk and Yuan, J. Parallel Distrib. Comput.
 * 69, 2009). */
#include <stdlib.h>

#include "sim/collective/channels.h"
#include "sim/collective/efficiency.h"
#include "sim/collective/nccl.h"
#include "sim/collective/nvls.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE || op == S4D_OP_ALL_GATHER || op == S4D_OP_REDUCE_SCATTER;
}

/* NCCL's channels of a group behind a hub: as many as a device has links to it (12 NVLinks of an
 * A100, 18 of an H100). Its search finds channels of two, and makes each of them two. */
static int hub_channels(const struct s4d_cluster *c, const struct s4d_layout *layout)
{
    const struct s4d_node *node = &c->machine->node;
    int local = layout->member[0] % node->devices, bricks = 0;
    for (int i = 0; i < node->n_links; i++)
        if ((node->link[i].a == local && node->link[i].b >= node->devices) ||
            (node->link[i].b == local && node->link[i].a >= node->devices))
            bricks += node->link[i].bricks;
    return bricks;
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out);

/* Only NCCL's choice on two nodes asks for it. */
static double node_bus_Bps(const struct s4d_cluster *c, const struct s4d_layout *layout,
                           const struct s4d_channels *ring)
{
    struct s4d_channels node;
    int m = s4d_layout_count(layout, 0);
    if (layout->nodes != 2 || m < 2)
        return ring->bus_Bps;
    channels(c, layout->member, m, &node);
    double bus_Bps = node.bus_Bps;
    s4d_channels_free(&node);
    return bus_Bps;
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    struct s4d_layout layout;
    int n_channels;
    s4d_layout_create(&layout, c, devices, n);
    int *order = s4d_ring_orders(c, &layout, n, &n_channels);
    s4d_channels_init(out, &s4d_ring, &layout, n, n_channels);
    for (int i = 0; i < n_channels; i++) {
        const int *visit = order + (size_t)i * (size_t)n;
        for (int k = 0; k < n; k++)
            s4d_channel_edge(&out->channel[i], c, visit[k], visit[(k + 1) % n]);
        s4d_path_merge(&out->channel[i].path);
    }
    free(order);
    s4d_nccl_shape(c, out);
    out->node_bus_Bps = node_bus_Bps(c, &layout, out);
    if (layout.nodes == 1 && n_channels == 1 && hub_channels(c, &layout) > 0)
        out->library_channels = hub_channels(c, &layout);
    out->nvls_s_per_B = s4d_nvls_s_per_B(c, devices, n);
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
    .order = S4D_AROUND,
    .channels = channels,
    .cost = cost,
};
