/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast along the ring's channels, each without the edge that closes it: every edge carries the
 * channel's part of the data once, pipelined (NCCL broadcasts in this way). The rings are turned so
 * that each begins at the first member. */
#include <stdlib.h>

#include "sim/collective/channels.h"
#include "sim/collective/steps.h"

static bool supports(enum s4d_op_kind op)
{
    return op == S4D_BROADCAST;
}

static int channels(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out)
{
    struct s4d_layout layout;
    int n_channels;
    s4d_layout_create(&layout, c, devices, n);
    int *order = s4d_ring_orders(c, &layout, n, &n_channels);
    s4d_channels_init(out, &s4d_chain, &layout, n, n_channels);
    for (int i = 0; i < n_channels; i++) {
        const int *visit = order + (size_t)i * (size_t)n;
        int root = 0;
        while (visit[root] != devices[0])
            root++;
        for (int k = 0; k + 1 < n; k++)
            s4d_channel_edge(&out->channel[i], c, visit[(root + k) % n], visit[(root + k + 1) % n]);
        s4d_path_merge(&out->channel[i].path);
    }
    free(order);
    s4d_layout_free(&layout);
    return 0;
}

/* NCCL counts a step for each member; of them as many leave a node as there are other nodes. */
static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    (void)op;
    return s4d_steps_cost(m, ch->members - ch->nodes, ch->nodes - 1, bytes);
}

const struct s4d_algorithm s4d_chain = {
    .name = "chain",
    .summary = "along the ring's channels from the first member, pipelined",
    .source = "NCCL's ring broadcast (src/device/broadcast.h)",
    .supports = supports,
    .order = S4D_ALONG,
    .channels = channels,
    .cost = cost,
};
