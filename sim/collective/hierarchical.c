/* SPDX-License-Identifier: Apache-2.0 */
/* Hierarchical: a reduce-scatter in each node, one across nodes, an all-gather across nodes, one in
 * each node, each when the one before has ended (Cho et al., BlueConnect, MLSys 2019). With m
 * members a node and N nodes an edge of a node's ring carries (m-1)/m of the data in a phase, an
 * edge between the members of one number (N-1)/N of 1/m. All-reduce has all four phases, the other
 * operations their two. Only for groups with as many members on every node, two or more, on two or
 * more nodes. */
#include "sim/collective/channels.h"
#include "sim/collective/steps.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE || op == S4D_OP_ALL_GATHER || op == S4D_OP_REDUCE_SCATTER;
}

enum { IN_NODE_SCATTER, ACROSS_SCATTER, ACROSS_GATHER, IN_NODE_GATHER };

static bool possible(const struct s4d_layout *layout)
{
    bool even = true;
    for (int k = 0; k < layout->nodes; k++)
        even = even && s4d_layout_count(layout, k) == layout->fewest;
    return even && layout->nodes > 1 && layout->fewest > 1;
}

/* Ring r of every node, together one channel. */
static void in_nodes(const struct s4d_cluster *c, const struct s4d_layout *layout,
                     const struct s4d_rings *rings, int r, struct s4d_channel *to)
{
    int m = layout->fewest;
    for (int k = 0; k < layout->nodes; k++)
        for (int i = 0; i < m; i++) {
            int from = i, next = (i + 1) % m;
            if (rings) {
                from = rings->order[r * m + from];
                next = rings->order[r * m + next];
            }
            s4d_channel_edge(to, c, s4d_layout_member(layout, k, from),
                             s4d_layout_member(layout, k, next));
        }
}

static void across(const struct s4d_cluster *c, const struct s4d_layout *layout, int number,
                   struct s4d_channel *to)
{
    for (int k = 0; k < layout->nodes; k++)
        s4d_channel_edge(to, c, s4d_layout_member(layout, k, number),
                         s4d_layout_member(layout, (k + 1) % layout->nodes, number));
}

static void fill(const struct s4d_cluster *c, const struct s4d_layout *layout,
                 struct s4d_channels *out)
{
    const struct s4d_rings *rings = s4d_layout_rings(c, layout);
    int m = layout->fewest, n_rings = rings ? rings->n_rings : 1;
    s4d_channels_init(out, &s4d_hierarchical, layout, m * layout->nodes, 2 * (n_rings + m));
    for (int i = 0; i < out->n; i++) {
        struct s4d_channel *to = &out->channel[i];
        bool gather = i >= n_rings + m;
        int number = gather ? i - n_rings - m : i;
        if (number < n_rings) {
            in_nodes(c, layout, rings, number, to);
            to->phase = gather ? IN_NODE_GATHER : IN_NODE_SCATTER;
            to->share = (m - 1.0) / m / n_rings;
        } else {
            across(c, layout, number - n_rings, to);
            to->phase = gather ? ACROSS_GATHER : ACROSS_SCATTER;
            to->share = (layout->nodes - 1.0) / layout->nodes / m;
        }
        s4d_path_merge(&to->path);
    }
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    struct s4d_layout layout;
    s4d_layout_create(&layout, c, devices, n);
    bool can = possible(&layout);
    if (can)
        fill(c, &layout, out);
    s4d_layout_free(&layout);
    return can ? 0 : -1;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    double times = op == S4D_OP_ALL_REDUCE ? 2 : 1;
    struct s4d_cost cost =
        s4d_steps_cost(m, times * (ch->members_per_node - 1), times * (ch->nodes - 1), bytes);
    cost.first_phase = op == S4D_OP_ALL_GATHER ? ACROSS_GATHER : IN_NODE_SCATTER;
    cost.last_phase = op == S4D_OP_REDUCE_SCATTER ? ACROSS_SCATTER : IN_NODE_GATHER;
    return cost;
}

const struct s4d_algorithm s4d_hierarchical = {
    .name = "hierarchical",
    .summary = "rings in the nodes, then rings between members of one number, one after the other",
    .source = "Cho et al., BlueConnect, MLSys 2019",
    .supports = supports,
    .order = S4D_AROUND,
    .channels = channels,
    .cost = cost,
};
