/* SPDX-License-Identifier: Apache-2.0 */
/* The double binary tree (all-reduce): two trees over the nodes, each with half of the data, made
 * so that a node with children in one is a leaf (or the root) in the other (Sanders, Speck, Traeff,
 * Parallel Computing 35, 2009); a chain of the members inside each node. Data goes up, is summed on
 * the way, and comes down, pipelined: every edge carries it once in each direction.
 *
 * Across nodes two channels (one of each tree) for each ring the ring algorithm would have; the
 * trees of pair c connect member c of every node, through its NIC. Inside a node one chain for each
 * ring that the search finds, without one edge. */
#include "sim/collective/channels.h"
#include "sim/collective/nccl.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE;
}

/* Parent of node i of n in the first tree, -1 for the root 0: the lowest set bit of i moves up by
 * one place, or vanishes where that is no node. Odd nodes are leaves. */
int s4d_tree_parent(int i, int n)
{
    if (i == 0)
        return -1;
    int bit = i & -i, up = (i ^ bit) | (bit << 1);
    return up < n ? up : i ^ bit;
}

/* The second tree is the first with nodes renamed: mirrored for even n, shifted for odd n. */
int s4d_tree_name(int i, int n, int tree)
{
    if (tree == 0)
        return i;
    return n % 2 == 0 ? n - 1 - i : (i + 1) % n;
}

static void across_nodes(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                         struct s4d_channels *out)
{
    int pairs = s4d_library_is_ideal(c->machine) ? 1 : layout->fewest, nodes = layout->nodes;
    s4d_channels_init(out, &s4d_tree, layout, members, 2 * pairs);
    for (int channel = 0; channel < out->n; channel++) {
        struct s4d_channel *to = &out->channel[channel];
        int head = channel / 2, tree = channel % 2;
        for (int k = 0; k < nodes; k++) {
            for (int i = 1; i < s4d_layout_count(layout, k); i++)
                s4d_channel_both_ways(to, c, s4d_layout_member(layout, k, head + i),
                                      s4d_layout_member(layout, k, head + i - 1));
            if (s4d_tree_parent(k, nodes) >= 0)
                s4d_channel_both_ways(
                    to, c, s4d_layout_member(layout, s4d_tree_name(k, nodes, tree), head),
                    s4d_layout_member(layout, s4d_tree_name(s4d_tree_parent(k, nodes), nodes, tree),
                                      head));
        }
    }
}

static void in_node(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                    struct s4d_channels *out)
{
    const struct s4d_rings *rings = s4d_layout_rings(c, layout);
    s4d_channels_init(out, &s4d_tree, layout, members, rings ? rings->n_rings : 1);
    for (int r = 0; r < out->n; r++)
        for (int i = 1; i < members; i++) {
            /* Chains start at different members, so that their ends do. */
            int from = (r + i - 1) % members, to = (r + i) % members;
            if (rings) {
                from = rings->order[r * members + from];
                to = rings->order[r * members + to];
            }
            s4d_channel_both_ways(&out->channel[r], c, layout->member[to], layout->member[from]);
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
    s4d_layout_free(&layout);
    /* The library's bandwidth caps are parts of its rings' bus bandwidth. */
    struct s4d_channels ring;
    s4d_ring.channels(c, devices, n, &ring);
    out->bus_Bps = ring.bus_Bps;
    out->library_channels = ring.library_channels;
    out->node_bus_Bps = ring.node_bus_Bps;
    out->alone_s_per_B = s4d_channels_s_per_B(out, c);
    s4d_channels_free(&ring);
    return 0;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    return s4d_nccl_cost(m, ch, op, S4D_NCCL_TREE, bytes, bytes);
}

const struct s4d_algorithm s4d_tree = {
    .name = "tree",
    .summary = "up and down two complementary binary trees over the nodes, chains inside them",
    .source = "Sanders, Speck, Traeff 2009; channels and constants as NCCL's (src/graph)",
    .supports = supports,
    .order = S4D_ALONG,
    .channels = channels,
    .cost = cost,
};
