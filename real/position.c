/* SPDX-License-Identifier: Apache-2.0 */
#include "real/position.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

void s4d_position_init(struct s4d_position *p, const struct s4d_program *program, int rank)
{
    p->program = program;
    p->rank = rank;
    for (int i = 0; i < S4D_STREAMS; i++) {
        atomic_init(&p->done[i], 0);
        atomic_init(&p->at[i], -1);
        atomic_init(&p->iteration[i], 0);
    }
}

void s4d_position_at(struct s4d_position *p, int stream, int index, int iteration)
{
    p->iteration[stream] = iteration;
    p->at[stream] = index;
}

int64_t s4d_position_completed(const struct s4d_position *p)
{
    int64_t n = 0;
    for (int i = 0; i < S4D_STREAMS; i++)
        n += atomic_load(&p->done[i]);
    return n;
}

void s4d_position_ranks(const struct s4d_grid *grid, int rank, s4d_axes axes, char *text, int size)
{
    enum { SHOWN = 8 };
    int n = s4d_group_size(grid, axes), shown = 0, at;
    int *members = s4d_malloc((size_t)n * sizeof *members);
    s4d_group_members(grid, rank, axes, members);
    at = snprintf(text, (size_t)size, "%s", n == 1 ? "no other rank" : n > 2 ? "ranks" : "rank");
    for (int i = 0; i < n && shown < SHOWN; i++)
        if (members[i] != rank)
            at += snprintf(text + at, (size_t)(size - at), "%s %d", shown++ ? "," : "", members[i]);
    if (n - 1 > shown)
        snprintf(text + at, (size_t)(size - at), " and %d more", n - 1 - shown);
    free(members);
}

/* " with rank 4, 12" of messages, all of a batch. */
static void describe_peers(const struct s4d_position *p, int op, char *text, int size)
{
    const struct s4d_program *program = p->program;
    int last = s4d_batch_last(program, op), n = 0, at = 0, own[S4D_AXES];
    bool told[2 * S4D_CHANNELS] = {false}; /* by channel and kind, which say the peer */
    s4d_grid_coordinates(&program->grid, p->rank, own);
    for (int i = op; i <= last && at < size - 1; i++) {
        const struct s4d_op *x = &program->ops[i];
        int peer[S4D_AXES];
        if (s4d_op_kinds[x->kind].op_class != S4D_CLASS_MESSAGE)
            continue;
        bool *known = &told[2 * x->c.message.channel + (x->kind == S4D_OP_SEND)];
        memcpy(peer, own, sizeof peer);
        peer[S4D_PIPE] += x->c.message.peer;
        if (!*known)
            at += snprintf(text + at, (size_t)(size - at), "%s %d", n++ ? "," : " with rank",
                           s4d_grid_rank(&program->grid, peer));
        *known = true;
    }
}

/* " with ranks 0, 2" of a collective's group. */
static void describe_group(const struct s4d_position *p, int index, char *text, int size)
{
    const struct s4d_op *op = &p->program->ops[index];
    char ranks[160];
    text[0] = '\0';
    describe_peers(p, index, text, size);
    if (s4d_op_kinds[op->kind].op_class != S4D_CLASS_COLLECTIVE || op->c.collective.members < 2)
        return;
    s4d_position_ranks(&p->program->grid, p->rank, op->c.collective.axes, ranks, sizeof ranks);
    snprintf(text, (size_t)size, " with %s", ranks);
}

void s4d_position_op(const struct s4d_program *program, const struct s4d_op *op, int index,
                     int iteration, char *text, int size)
{
    char layer[32] = "", micro[32] = "";
    if (op->label.layer >= 0)
        snprintf(layer, sizeof layer, ", layer %d", op->label.layer);
    if (op->label.micro_batch >= 0 && program->micro_batches > 1)
        snprintf(micro, sizeof micro, ", micro-batch %d", op->label.micro_batch);
    snprintf(text, (size_t)size, "%s %s (op %d, stream %s, %s%s%s), iteration %d",
             s4d_op_kinds[op->kind].name, op->label.name, index, s4d_streams[op->stream].name,
             s4d_phase_names[op->label.phase], layer, micro, iteration);
}

/* The first in the order of iterations and list: the others wait for it, or will. */
void s4d_position_describe(const struct s4d_position *p, char *text, int size)
{
    int best = -1, best_index = 0, best_iteration = 0;
    for (int i = 0; i < S4D_STREAMS; i++) {
        int index = atomic_load(&p->at[i]), iteration = atomic_load(&p->iteration[i]);
        bool before =
            iteration < best_iteration || (iteration == best_iteration && index < best_index);
        if (index >= 0 && (best < 0 || before)) {
            best = i;
            best_index = index;
            best_iteration = iteration;
        }
    }
    if (best < 0) {
        snprintf(text, (size_t)size, "between ops");
        return;
    }
    char group[192], op[256];
    const struct s4d_op *best_op = &p->program->ops[best_index];
    describe_group(p, best_index, group, sizeof group);
    s4d_position_op(p->program, best_op, best_index, best_iteration, op, sizeof op);
    snprintf(text, (size_t)size, "%s%s", op, group);
}
