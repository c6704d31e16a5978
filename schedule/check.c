/* SPDX-License-Identifier: Apache-2.0 */
/* s4d_check: streams, batches and waits, and what follows from these alone: happens-before is found
 * here anew, so that a fault of schedule/order.c or schedule/plan.c cannot hide. */
#include "schedule/check.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/check_operands.h"
#include "schedule/check_state.h"
#include "support/memory.h"

static int check_positions(struct checking *c)
{
    const struct s4d_program *p = c->p;
    int length[S4D_STREAMS] = {0};
    for (int i = 0; i < c->n; i++) {
        const struct s4d_op *x = &p->ops[i];
        if ((int)x->kind < 0 || x->kind >= S4D_OP_KINDS || (int)x->stream < 0 ||
            x->stream >= S4D_STREAMS)
            return s4d_fail(c->err, S4D_EXIT_BUG, "program", "op %d: no such kind or stream", i);
        if (x->position != length[x->stream]++)
            return s4d_check_fail(p, i, c->err, "expected position %d in its stream",
                                  length[x->stream] - 1);
    }
    for (int s = 0; s < S4D_STREAMS; s++) {
        if (length[s] != p->stream_length[s])
            return s4d_fail(c->err, S4D_EXIT_BUG, "program", "stream %s has %d ops, not %d",
                            s4d_streams[s].name, length[s], p->stream_length[s]);
        c->at[s] = s4d_malloc((size_t)length[s] * sizeof(int));
    }
    for (int i = 0; i < c->n; i++)
        c->at[p->ops[i].stream][p->ops[i].position] = i;
    return 0;
}

/* Batches are runs of the list, and their numbers ascend, so that none comes twice. */
static int check_batches(struct checking *c)
{
    const struct s4d_op *ops = c->p->ops;
    for (int i = 0, newest = 0; i < c->n; i++) {
        const struct s4d_op *x = &ops[i], *before = i > 0 ? &ops[i - 1] : NULL;
        if (x->batch < 0)
            return s4d_check_fail(c->p, i, c->err, "batch %d", x->batch);
        if (x->batch == 0)
            continue;
        if (!s4d_communicates(x->kind))
            return s4d_check_fail(c->p, i, c->err, "in batch %d, and no communication", x->batch);
        bool follows = before && before->batch == x->batch;
        if (!follows && x->batch <= newest)
            return s4d_check_fail(c->p, i, c->err,
                                  "batch %d after batch %d: ops of a batch are neighbours, and "
                                  "their numbers ascend",
                                  x->batch, newest);
        if (follows && before->stream != x->stream)
            return s4d_check_fail(c->p, i, c->err, "batch %d has ops of stream %s, too", x->batch,
                                  s4d_streams[before->stream].name);
        newest = x->batch;
    }
    return 0;
}

static int check_waits(struct checking *c)
{
    for (int i = 0; i < c->n; i++)
        for (int w = 0; w < c->p->ops[i].n_waits; w++) {
            const struct s4d_wait *wait = &c->p->ops[i].waits[w];
            if ((wait->iteration != 0 && wait->iteration != -1) || (int)wait->stream < 0 ||
                wait->stream >= S4D_STREAMS || wait->position < 0 ||
                wait->position >= c->p->stream_length[wait->stream])
                return s4d_check_fail(c->p, i, c->err, "wait %d names no op", w);
            int before = c->at[wait->stream][wait->position];
            if (wait->iteration == 0 && before >= i)
                return s4d_check_fail(c->p, i, c->err,
                                      "deadlock: waits for %s[%d], op %d, which is issued later",
                                      s4d_streams[wait->stream].name, wait->position, before);
            if (wait->iteration == 0 && before >= s4d_batch_first(c->p, i))
                return s4d_check_fail(c->p, i, c->err,
                                      "waits for %s[%d], op %d of its own batch %d, which "
                                      "completes with it",
                                      s4d_streams[wait->stream].name, wait->position, before,
                                      c->p->ops[i].batch);
        }
    return 0;
}

/* What is done before `cause` starts is done, and cause itself with its batch. */
static void learn(const struct checking *c, int *mine, int cause)
{
    const int *theirs = &c->known[(size_t)cause * S4D_STREAMS];
    int stream = (int)c->p->ops[cause % c->n].stream;
    int last = s4d_batch_last(c->p, cause % c->n) + cause / c->n * c->n;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (theirs[s] > mine[s])
            mine[s] = theirs[s];
    if (last > mine[stream])
        mine[stream] = last;
}

/* After check_waits every cause of an op precedes it in the list, and its batch. */
static void find_known(struct checking *c)
{
    c->known = s4d_malloc(2 * (size_t)c->n * S4D_STREAMS * sizeof(int));
    int newest[S4D_STREAMS];
    memset(newest, -1, sizeof newest);
    for (int op = 0, last; op < 2 * c->n; op = last + 1) {
        int *mine = &c->known[(size_t)op * S4D_STREAMS];
        enum s4d_stream stream = c->p->ops[op % c->n].stream;
        last = s4d_batch_last(c->p, op % c->n) + op / c->n * c->n;
        memset(mine, -1, S4D_STREAMS * sizeof(int));
        if (newest[stream] >= 0)
            learn(c, mine, newest[stream]);
        for (int i = op; i <= last; i++) {
            const struct s4d_op *x = &c->p->ops[i % c->n];
            for (int w = 0; w < x->n_waits; w++)
                if (op / c->n + x->waits[w].iteration >= 0) /* else the first iteration meets it */
                    learn(c, mine,
                          c->at[x->waits[w].stream][x->waits[w].position] +
                              (op / c->n + x->waits[w].iteration) * c->n);
        }
        for (int i = op + 1; i <= last; i++)
            memcpy(&c->known[(size_t)i * S4D_STREAMS], mine, S4D_STREAMS * sizeof(int));
        newest[stream] = last;
    }
}

static int check_all(struct checking *c)
{
    if (c->p->stage < 0 || c->p->stage >= c->p->grid.size[S4D_PIPE])
        return s4d_fail(c->err, S4D_EXIT_BUG, "program", "stage %d of a pipe of %d", c->p->stage,
                        c->p->grid.size[S4D_PIPE]);
    if (check_positions(c) != 0 || check_batches(c) != 0)
        return -1;
    for (int i = 0; i < c->n; i++)
        if (s4d_check_operands(c->p, i, c->err) != 0)
            return -1;
    if (check_waits(c) != 0)
        return -1;
    find_known(c);
    return s4d_check_uses(c) || s4d_check_plan(c) ? -1 : 0;
}

int s4d_check(const struct s4d_program *program, struct s4d_error *err)
{
    struct checking c = {.p = program, .n = program->n_ops, .err = err};
    int rc = check_all(&c);
    for (int s = 0; s < S4D_STREAMS; s++)
        free(c.at[s]);
    s4d_uses_free(&c);
    free(c.known);
    return rc;
}
