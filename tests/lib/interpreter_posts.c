/* SPDX-License-Identifier: Apache-2.0 */
/* Who may go on: the heads of the streams, what they wait for, and who meets at an op. */
#include <string.h>

#include "tests/lib/interpreter_internal.h"

void s4d_head_find(struct s4d_interpreter *in, int rank, int stream)
{
    int64_t done = in->done[rank * S4D_STREAMS + stream];
    int length = s4d_rank_program(in, rank)->stream_length[stream];
    struct s4d_head *head = &in->heads[rank * S4D_STREAMS + stream];
    head->op = -1;
    if (length == 0 || done >= (int64_t)in->iterations * length)
        return;
    head->iteration = (int)(done / length);
    head->op = s4d_rank_stage(in, rank)->op_at[stream][done % length];
}

int s4d_head_of(const struct s4d_interpreter *in, int rank, int stream, int *iteration)
{
    const struct s4d_head *head = &in->heads[rank * S4D_STREAMS + stream];
    *iteration = head->iteration;
    return head->op;
}

/* The first wait of a stream's head, or of the others of its batch, that is not met; NULL if it may
 * start. */
static const struct s4d_wait *unmet(const struct s4d_interpreter *in, int rank, int head,
                                    int iteration)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    for (int i = head, end = s4d_post_end(p, head); i <= end; i++)
        for (int w = 0; w < p->ops[i].n_waits; w++) {
            const struct s4d_wait *wait = &p->ops[i].waits[w];
            int64_t at = iteration + wait->iteration;
            if (at >= 0 && in->done[rank * S4D_STREAMS + wait->stream] <=
                               at * p->stream_length[wait->stream] + wait->position)
                return wait;
        }
    return NULL;
}

/* The op, or its batch, heads the rank's stream and may start, and it has not happened yet. */
static bool is_there(const struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    int at, head = s4d_head_of(in, rank, (int)p->ops[op].stream, &at);
    return head >= 0 && head <= op && op <= s4d_post_end(p, head) && at == iteration &&
           !in->met[rank][op] && !unmet(in, rank, head, iteration);
}

static int peer_of(const struct s4d_interpreter *in, int rank, int op)
{
    int c[S4D_AXES];
    memcpy(c, in->coordinate[rank], sizeof c);
    c[S4D_PIPE] += s4d_rank_op(in, rank, op)->c.message.peer;
    return s4d_grid_rank(&in->p->grid, c);
}

/* Of the messages of this kind between a rank and its peer, in the post that heads the stream: the
 * first that has not happened yet; -1: there is none, or the post cannot start. */
static int first_message(const struct s4d_interpreter *in, int rank, enum s4d_op_kind kind,
                         enum s4d_stream stream, int peer)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    int iteration, head = s4d_head_of(in, rank, (int)stream, &iteration);
    if (head < 0 || unmet(in, rank, head, iteration))
        return -1;
    for (int i = head; i <= s4d_post_end(p, head); i++)
        if (p->ops[i].kind == kind && p->ops[i].c.message.peer == peer && !in->met[rank][i])
            return i;
    return -1;
}

/* Fills m with who meets at an op of a rank, which is there; returns the rank that is missing, or
 * -1: none is. */
static int gather(const struct s4d_interpreter *in, int rank, int op, int iteration,
                  struct s4d_meeting *m)
{
    const struct s4d_op *o = s4d_rank_op(in, rank, op);
    m->iteration = iteration;
    m->n = 1;
    m->rank[0] = rank;
    m->op[0] = op;
    if (s4d_is_collective(o)) {
        m->n = s4d_group_members(&in->p->grid, rank, o->c.collective.axes, m->rank);
        for (int i = 0; i < m->n; i++) {
            m->op[i] = op;
            if (!is_there(in, m->rank[i], op, iteration))
                return m->rank[i];
        }
    } else if (s4d_is_message(o)) {
        bool sends = o->kind == S4D_OP_SEND;
        int peer = peer_of(in, rank, op), to = -o->c.message.peer;
        int other = first_message(in, peer, sends ? S4D_OP_RECEIVE : S4D_OP_SEND, o->stream, to);
        m->n = 2;
        m->rank[sends] = peer;
        m->op[sends] = other;
        m->rank[!sends] = rank;
        m->op[!sends] = op;
        if (other < 0 || first_message(in, rank, o->kind, o->stream, -to) != op)
            return peer;
    }
    return -1;
}

/* Whether the rank takes the op, for others as well. */
static bool leads(const struct s4d_interpreter *in, int rank, const struct s4d_op *o)
{
    for (int axis = 0; axis < S4D_AXES && s4d_is_collective(o); axis++)
        if (o->c.collective.axes & S4D_AXIS(axis) && in->coordinate[rank][axis] > 0)
            return false;
    return o->kind != S4D_OP_RECEIVE;
}

bool s4d_runnable(const struct s4d_interpreter *in, int rank, int stream, struct s4d_meeting *m)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    int iteration, head = s4d_head_of(in, rank, stream, &iteration);
    if (head < 0 || unmet(in, rank, head, iteration))
        return false;
    int n = s4d_post_end(p, head) - head + 1;
    int from = (int)((uint64_t)in->priority[rank * S4D_STREAMS + stream] % (uint64_t)n);
    for (int i = 0; i < n; i++) {
        int op = head + (from + i) % n;
        if (!in->met[rank][op] && leads(in, rank, &p->ops[op]) &&
            gather(in, rank, op, iteration, m) < 0)
            return true;
    }
    return false;
}

/* The first rank that the post which heads a stream, and may start, waits for. */
static int missing(const struct s4d_interpreter *in, int rank, int head, int iteration, int *op,
                   struct s4d_meeting *m)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    for (*op = head; *op <= s4d_post_end(p, head); ++*op) {
        int absent = in->met[rank][*op] ? -1 : gather(in, rank, *op, iteration, m);
        if (absent >= 0)
            return absent;
    }
    s4d_bug(__FILE__, __LINE__, "interpreter", "stuck, and nobody is missing");
}

void s4d_stuck(struct s4d_interpreter *in, int rank, int stream, struct s4d_meeting *m)
{
    for (int hops = in->ranks * S4D_STREAMS;; hops--) {
        int iteration, op, head = s4d_head_of(in, rank, stream, &iteration);
        const struct s4d_wait *wait = unmet(in, rank, head, iteration);
        if (wait && (hops <= 0 || s4d_head_of(in, rank, (int)wait->stream, &(int){0}) < 0)) {
            s4d_fault(in, rank, head,
                      "stuck in iteration %d: waits for op %d of stream %s of iteration %d, which "
                      "cannot run",
                      iteration, wait->position, s4d_streams[wait->stream].name,
                      iteration + wait->iteration);
            return;
        }
        if (wait) {
            stream = (int)wait->stream;
            continue;
        }
        int absent = missing(in, rank, head, iteration, &op, m);
        int at = s4d_head_of(in, absent, stream, &(int){0});
        if (hops <= 0 || at < 0 || (s4d_is_collective(s4d_rank_op(in, rank, op)) && at != head)) {
            s4d_fault(in, rank, op, "stuck in iteration %d: rank %d does not come", iteration,
                      absent);
            return;
        }
        rank = absent;
    }
}
