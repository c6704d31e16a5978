/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between pairs, one flow each: all-to-all (every member sends 1/p of its data to each
 * other), and shift (every member sends to the next), as nccl-tests' alltoall and sendrecv do. All
 * messages are posted together. */
#include "sim/collective/channels.h"
#include "sim/collective/steps.h"

static bool all_to_all(enum s4d_op_kind op)
{
    return op == S4D_ALL_TO_ALL;
}

static bool send_recv(enum s4d_op_kind op)
{
    return op == S4D_SEND_RECV;
}

enum { MOST_FLOWS = 1 << 22 }; /* about 2,000 members: a flow has some ten links */

static int every_pair(const struct s4d_cluster *c, const int *devices, int n,
                      struct s4d_channels *out)
{
    struct s4d_layout layout;
    if ((long)n * (n - 1) > MOST_FLOWS)
        return -1;
    s4d_layout_create(&layout, c, devices, n);
    s4d_channels_init(out, &s4d_pairwise, &layout, n, n * (n - 1));
    for (int i = 0; i < out->n; i++) {
        int from = i / (n - 1), to = (from + 1 + i % (n - 1)) % n;
        s4d_channel_edge(&out->channel[i], c, devices[from], devices[to]);
        s4d_path_merge(&out->channel[i].path);
        out->channel[i].share = 1.0 / n;
    }
    s4d_layout_free(&layout);
    return 0;
}

static int to_the_next(const struct s4d_cluster *c, const int *devices, int n,
                       struct s4d_channels *out)
{
    struct s4d_layout layout;
    s4d_layout_create(&layout, c, devices, n);
    s4d_channels_init(out, &s4d_shift, &layout, n, n);
    for (int i = 0; i < n; i++) {
        s4d_channel_edge(&out->channel[i], c, devices[i], devices[(i + 1) % n]);
        s4d_path_merge(&out->channel[i].path);
        out->channel[i].share = 1;
    }
    s4d_layout_free(&layout);
    return 0;
}

/* One hop: between nodes where the group spans them. */
static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    (void)op;
    return s4d_steps_cost(m, ch->nodes == 1, ch->nodes > 1, bytes);
}

const struct s4d_algorithm s4d_pairwise = {
    .name = "pairwise",
    .summary = "one message from every member to every other, all at once",
    .source = "nccl-tests, alltoall",
    .supports = all_to_all,
    .order = S4D_AT_ONCE,
    .channels = every_pair,
    .cost = cost,
};

const struct s4d_algorithm s4d_shift = {
    .name = "shift",
    .summary = "one message from every member to the next, all at once",
    .source = "nccl-tests, sendrecv",
    .supports = send_recv,
    .order = S4D_AT_ONCE,
    .channels = to_the_next,
    .cost = cost,
};
