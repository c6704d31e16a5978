/* SPDX-License-Identifier: Apache-2.0 */
#include "real/position.h"

#include <stdbool.h>
#include <stdio.h>

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

/* "with ranks 0, 2" of a collective's group of at most eight. */
static void describe_group(const struct s4d_position *p, const struct s4d_op *op, char *text,
                           int size)
{
    int members[8], n, at;
    text[0] = '\0';
    if (s4d_op_kinds[op->kind].op_class != S4D_CLASS_COLLECTIVE || op->c.collective.members > 8)
        return;
    n = s4d_group_members(&p->program->grid, p->rank, op->c.collective.axes, members);
    at = snprintf(text, (size_t)size, " with rank%s", n > 2 ? "s" : "");
    for (int i = 0; i < n; i++)
        if (members[i] != p->rank)
            at += snprintf(text + at, (size_t)(size - at), " %d", members[i]);
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
    const struct s4d_op *op = &p->program->ops[best_index];
    char group[128];
    describe_group(p, op, group, sizeof group);
    snprintf(text, (size_t)size, "%s %s (op %d, stream %s), iteration %d%s",
             s4d_op_kinds[op->kind].name, op->label.name, best_index, s4d_streams[op->stream].name,
             best_iteration, group);
}
