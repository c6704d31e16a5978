/* SPDX-License-Identifier: Apache-2.0 */
/* NVLS, NVLink SHARP (all-reduce): the node's switch adds and copies. Each member is the head of a
 * part of the data. A head reads its part through the switch, which fetches it from every member
 * and adds; later it writes the sum once, and the switch copies it to every member. So for a part
 * of n bytes every member sends n and receives n, and the head does both once more: with m heads (1
 * + 1/m) of the data in each direction of each link, where a ring takes 2 (m-1)/m.
 *
 * Across nodes (NCCL's NVLSTree) the heads of one number are joined by the double binary tree of
 * sim/collective/tree.c, over which the node's sums go up and the whole sum comes down.
 *
 * What the switch costs is the library's efficiency (library.nvls.efficiency, of what its links
 * give a ring). Left out: NCCL's cap of a channel of NVLSTree, SHARP in the network's switches. */
#include "sim/collective/nvls.h"

#include <math.h>

#include "sim/collective/channels.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE;
}

/* The hub that every device of a node has a link to; -1: none. */
static int common_hub(const struct s4d_node *node)
{
    for (int hub = node->devices; hub < node->devices + node->switches; hub++) {
        int linked = 0;
        for (int i = 0; i < node->n_links; i++)
            linked += (node->link[i].a == hub && node->link[i].b < node->devices) ||
                      (node->link[i].b == hub && node->link[i].a < node->devices);
        if (linked == node->devices)
            return hub;
    }
    return -1;
}

static bool possible(const struct s4d_cluster *c, const struct s4d_layout *layout)
{
    const struct s4d_machine *m = c->machine;
    if (!m->library.nvls.present || common_hub(&m->node) < 0)
        return false;
    return layout->fewest >= m->library.nvls.least_members.value;
}

/* Sum and copies in node k for one head: every member as a leaf below the switch, and the switch
 * below the head. */
static void in_node(struct s4d_channel *to, const struct s4d_cluster *c,
                    const struct s4d_layout *layout, int k, int head)
{
    int top = s4d_layout_member(layout, k, head), node = top / c->machine->node.devices;
    int hub = s4d_switch_end(c, node, common_hub(&c->machine->node));
    for (int i = 0; i < s4d_layout_count(layout, k); i++)
        s4d_channel_both_ways(to, c, S4D_LEAF(s4d_layout_member(layout, k, head + i)), hub);
    s4d_channel_both_ways(to, c, hub, top);
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    struct s4d_layout layout;
    s4d_layout_create(&layout, c, devices, n);
    if (!possible(c, &layout)) {
        s4d_layout_free(&layout);
        return -1;
    }
    int trees = layout.nodes > 1 ? 2 : 1;
    s4d_channels_init(out, &s4d_nvls, &layout, n, trees * layout.fewest);
    for (int channel = 0; channel < out->n; channel++) {
        struct s4d_channel *to = &out->channel[channel];
        int head = channel / trees, tree = channel % trees;
        for (int k = 0; k < layout.nodes; k++) {
            int up = s4d_tree_parent(k, layout.nodes);
            in_node(to, c, &layout, k, head);
            if (up >= 0)
                s4d_channel_both_ways(
                    to, c, s4d_layout_member(&layout, s4d_tree_name(k, layout.nodes, tree), head),
                    s4d_layout_member(&layout, s4d_tree_name(up, layout.nodes, tree), head));
        }
        s4d_path_merge(&to->path);
    }
    out->alone_s_per_B = s4d_channels_s_per_B(out, c);
    s4d_layout_free(&layout);
    return 0;
}

double s4d_nvls_s_per_B(const struct s4d_cluster *c, const int *devices, int n)
{
    struct s4d_channels ch;
    if (!c->machine->library.nvls.present || channels(c, devices, n, &ch))
        return 0;
    double s_per_B = ch.alone_s_per_B;
    s4d_channels_free(&ch);
    return s_per_B;
}

/* Up and down: NCCL counts one hop for a node, two for each level of the tree between nodes. */
static double latency_s(const struct s4d_machine *m, int nodes)
{
    const struct s4d_nvls *n = &m->library.nvls;
    return n->hop_s.value + 2 * floor(log2(nodes)) * n->net_s.value;
}

/* A chunk is copied to the buffer that the switch reads, added and spread, and copied from there,
 * by three sets of threads; between nodes it also goes up and down the tree. The volume's time
 * holds one of these stages, and the first chunk must pass the others. */
static double fill_s(const struct s4d_machine *m, const struct s4d_channels *ch, double bytes)
{
    double at_once = m->library.nvls.channels.value * ch->members_per_node;
    double stages = 2 + 2 * floor(log2(ch->nodes));
    double moved = fmin(at_once * s4d_nvls_chunk_B(ch, bytes / at_once), bytes);
    return stages * moved * ch->alone_s_per_B / m->library.nvls.efficiency.value;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    double efficiency = m->library.nvls.efficiency.value, fill = fill_s(m, ch, bytes);
    (void)op;
    return (struct s4d_cost){.latency_s = latency_s(m, ch->nodes) + fill,
                             .fill_s = fill,
                             .volume_B = bytes / efficiency,
                             .efficiency = efficiency,
                             .protocol = S4D_SIMPLE};
}

double s4d_nvls_estimate_s(const struct s4d_machine *m, const struct s4d_channels *ring,
                           double bytes)
{
    if (ring->nvls_s_per_B <= 0)
        return INFINITY;
    return latency_s(m, ring->nodes) +
           bytes * ring->nvls_s_per_B / m->library.nvls.efficiency.value;
}

const struct s4d_algorithm s4d_nvls = {
    .name = "nvls",
    .summary = "the node's switch adds and copies; a double binary tree between nodes",
    .source = "NVLS and NVLSTree of NCCL (src/graph/tuning.cc); volumes counted link by link",
    .supports = supports,
    .order = S4D_ALONG,
    .channels = channels,
    .cost = cost,
};
