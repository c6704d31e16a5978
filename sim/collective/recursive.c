/* SPDX-License-Identifier: Apache-2.0 */
/* Recursive halving (reduce-scatter) and doubling (all-gather), both for an all-reduce
 * (Rabenseifner; Thakur, Rabenseifner, Gropp, Int. J. High Perform. Comput. Appl. 19, 2005): log2 p
 * steps, in step k of the halving every member exchanges 1/2^(k+1) of the data with the one 2^k
 * places away, the nearest first; doubling takes the steps backwards. A step is a phase: its
 * exchanges end together. Only for powers of two. */
#include <math.h>

#include "sim/collective/channels.h"
#include "sim/collective/steps.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE || op == S4D_OP_ALL_GATHER || op == S4D_OP_REDUCE_SCATTER;
}

static int log2_of(int n)
{
    return ilogb(n);
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    int steps = log2_of(n);
    if (n != 1 << steps)
        return -1;
    struct s4d_layout layout;
    s4d_layout_create(&layout, c, devices, n);
    s4d_channels_init(out, &s4d_recursive, &layout, n, 2 * steps);
    for (int phase = 0; phase < 2 * steps; phase++) {
        struct s4d_channel *to = &out->channel[phase];
        int step = phase < steps ? phase : 2 * steps - 1 - phase;
        for (int i = 0; i < n; i++)
            s4d_channel_edge(to, c, devices[i], devices[i ^ (1 << step)]);
        s4d_path_merge(&to->path);
        to->phase = phase;
        to->share = ldexp(1, -step - 1);
    }
    s4d_layout_free(&layout);
    return 0;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    int steps = ch->n / 2;
    double times = op == S4D_OP_ALL_REDUCE ? 2 : 1, in_node = 0;
    if (ch->nodes * ch->members_per_node == ch->members) /* node after node, as groups are */
        in_node = fmin(log2_of(ch->members_per_node), steps);
    struct s4d_cost cost = s4d_steps_cost(m, times * in_node, times * (steps - in_node), bytes);
    cost.first_phase = op == S4D_OP_ALL_GATHER ? steps : 0;
    cost.last_phase = op == S4D_OP_REDUCE_SCATTER ? steps - 1 : 2 * steps - 1;
    return cost;
}

const struct s4d_algorithm s4d_recursive = {
    .name = "recursive",
    .summary = "log2 p exchanges of halved, then doubled parts; powers of two",
    .source = "Thakur, Rabenseifner, Gropp 2005",
    .supports = supports,
    .order = S4D_AT_ONCE,
    .channels = channels,
    .cost = cost,
};
