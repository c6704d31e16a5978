/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as loops over the members of a group: all load, then all store; messages. */
#include <math.h>
#include <stdlib.h>

#include "support/memory.h"
#include "tests/lib/interpreter_internal.h"

/* The members' inputs summed, or their maximum, in group order. */
static void reduce(struct s4d_turn *members, int n, double **in, int64_t elements, double *out)
{
    enum s4d_reduction reduction = s4d_turn_constants(members)->collective.reduction;
    for (int64_t i = 0; i < elements; i++) {
        out[i] = in[0][i];
        for (int m = 1; m < n; m++)
            out[i] = reduction == S4D_MAX ? fmax(out[i], in[m][i]) : out[i] + in[m][i];
    }
}

/* Operand sizes by kind, and the wire type of both: false with a fault if they disagree. */
static bool shapes_agree(struct s4d_turn *t, int n)
{
    const struct s4d_program *p = s4d_rank_program(t->in, t->rank);
    const struct s4d_op *op = &p->ops[t->op];
    const union s4d_constants *c = &op->c;
    if (c->collective.members != n)
        s4d_fault(t->in, t->rank, t->op, "%d members, the group has %d", c->collective.members, n);
    for (int k = 0; k < 2; k++)
        if (p->tensors[op->operand[k].tensor].type != c->collective.type)
            s4d_fault(t->in, t->rank, t->op, "operand %d is not of the type on the wire", k);
    int64_t count = c->collective.count;
    return s4d_turn_expect(t, 0, op->kind == S4D_OP_REDUCE_SCATTER ? n * count : count) &&
           s4d_turn_expect(t, 1, op->kind == S4D_OP_ALL_GATHER ? n * count : count) &&
           c->collective.members == n;
}

void s4d_collective_run(struct s4d_turn *members, int n)
{
    const struct s4d_op *op = s4d_rank_op(members[0].in, members[0].rank, members[0].op);
    int64_t count = op->c.collective.count, elements = s4d_turn_elements(members, 0);
    if (!shapes_agree(members, n))
        return;
    double **in = s4d_malloc((size_t)n * sizeof *in);
    double *all = s4d_malloc((size_t)(n * elements) * sizeof *all);
    for (int m = 0; m < n; m++)
        in[m] = s4d_turn_load(&members[m], 0);
    if (op->kind == S4D_OP_ALL_GATHER)
        for (int64_t i = 0; i < n * count; i++)
            all[i] = in[i / count][i % count];
    else
        reduce(members, n, in, elements, all);
    for (int m = 0; m < n; m++) {
        s4d_turn_store(&members[m], 1, op->kind == S4D_OP_REDUCE_SCATTER ? all + m * count : all);
        s4d_turn_end(&members[m]);
    }
    free(all);
    free(in);
}

void s4d_message_run(struct s4d_turn *peers)
{
    struct s4d_turn *from = &peers[0], *to = &peers[1];
    const union s4d_constants *s = s4d_turn_constants(from), *r = s4d_turn_constants(to);
    if (s->message.channel != r->message.channel || s->message.type != r->message.type ||
        s->message.count != r->message.count) {
        s4d_fault(to->in, to->rank, to->op, "%lld %s on channel %s meet %lld %s on channel %s",
                  (long long)r->message.count, s4d_type_names[r->message.type],
                  s4d_channel_names[r->message.channel], (long long)s->message.count,
                  s4d_type_names[s->message.type], s4d_channel_names[s->message.channel]);
        return;
    }
    if (s4d_turn_expect(from, 0, s->message.count) && s4d_turn_expect(to, 0, s->message.count))
        s4d_turn_store(to, 0, s4d_turn_load(from, 0));
    s4d_turn_end(from);
}
