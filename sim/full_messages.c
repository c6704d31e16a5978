/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: a rank sends each of its peers on the pipe over one flow, whatever it sends. */
#include <stdlib.h>

#include "sim/collective/channels.h" /* for: s4d_channel_edge */
#include "sim/full_building.h"
#include "support/memory.h"

/* The flow of what a rank sends the peer that is so many stages away. */
static void add_message(struct building *b, int rank, int peer)
{
    struct s4d_channel channel = {.share = 1};
    int c[S4D_AXES], per = b->c->machine->node.devices;
    s4d_grid_coordinates(&b->p->grid, rank, c);
    c[S4D_PIPE] += peer;
    int to = s4d_grid_rank(&b->p->grid, c);
    int out = s4d_device_of_rank(b->c, rank), in = s4d_device_of_rank(b->c, to);
    s4d_channel_edge(&channel, b->c, out, in);
    s4d_path_merge(&channel.path);
    s4d_full_add_flow(b, (struct s4d_full_flow){S4D_ALGORITHMS + (out / per != in / per), peer, 1},
                      &channel.path);
    s4d_push(b->f->messages, b->f->n_messages, b->cap_messages,
             (struct s4d_full_message){rank, to, peer});
    s4d_path_free(&channel.path);
    free(channel.edge);
}

static bool sends_to(const struct s4d_program *p, int peer)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == S4D_OP_SEND && p->ops[i].c.message.peer == peer)
            return true;
    return false;
}

int s4d_full_messages(struct building *b, struct s4d_error *err)
{
    const struct s4d_program *p = b->p;
    int pipe = p->grid.size[S4D_PIPE];
    bool *sends = s4d_calloc((size_t)pipe * (size_t)pipe, sizeof *sends); /* [stage][to] */
    for (int stage = 0; stage < s4d_full_programs(p); stage++)
        for (int to = 0; to < pipe; to++)
            sends[stage * pipe + to] =
                to != stage && sends_to(s4d_stage_program(p, stage), to - stage);
    for (int rank = 0; rank < b->f->n_ranks; rank++)
        for (int to = 0, from = b->f->stage[rank]; to < pipe; to++)
            if (sends[from * pipe + to])
                add_message(b, rank, to - from);
    free(sends);
    return s4d_cluster_check_ways(b->c, err);
}
