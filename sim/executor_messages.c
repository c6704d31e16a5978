/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives: whoever comes first waits for the other; then the message pays its latency
 * and moves as one flow, and ends for both. Ranks are classes: each member of one sends to a member
 * of the other, all at the same time. */
#include "sim/collective/steps.h"
#include "sim/executor_state.h"
#include "support/memory.h"

/* A group has one collective at a time, and stepwise no message is known. */
static int check(const struct executor *x, const struct s4d_program *p, struct s4d_error *err)
{
    int collectives = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        if (i == 0 || op->batch == 0 || op->batch != p->ops[i - 1].batch)
            collectives = 0;
        collectives += s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
        if (collectives > 1)
            return s4d_fail(err, S4D_EXIT_DATA, op->label.name,
                            "op %d, batch %d: a batch of more than one collective cannot be "
                            "simulated",
                            i, op->batch);
        if (x->mover && s4d_op_kinds[op->kind].op_class == S4D_CLASS_MESSAGE)
            return s4d_fail(err, S4D_EXIT_DATA, op->label.name,
                            "op %d: a %s cannot be simulated stepwise", i,
                            s4d_op_kinds[op->kind].name);
    }
    return 0;
}

int s4d_executor_check(const struct executor *x, struct s4d_error *err)
{
    int stages = x->program->stages ? x->program->grid.size[S4D_PIPE] : 1, rc = 0;
    for (int stage = 0; stage < stages && rc == 0; stage++)
        rc = check(x, s4d_stage_program(x->program, stage), err);
    return rc;
}

/* The class of the ranks that a class' message goes to, or comes from. */
static int peer_of(const struct executor *x, int rank, const struct s4d_op *op)
{
    const struct s4d_grid *grid = &x->program->grid;
    int c[S4D_AXES];
    s4d_grid_coordinates(grid, x->system->ranks[rank].representative, c);
    c[S4D_PIPE] += op->c.message.peer;
    return x->system->class_of_rank[s4d_grid_rank(grid, c)];
}

static const struct s4d_message_class *class_of(const struct executor *x, int from, int to)
{
    const struct s4d_message_class *v = x->system->messages;
    int low = 0, high = x->system->n_messages;
    while (low < high) {
        int middle = (low + high) / 2;
        if (v[middle].from < from)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < x->system->n_messages && v[low].from == from && v[low].to != to)
        low++;
    S4D_ASSERT(low < x->system->n_messages && v[low].from == from, "no message from %d to %d", from,
               to);
    return &v[low];
}

static int take_entry(struct executor *x)
{
    int i = x->free_message;
    if (i >= 0) {
        x->free_message = x->messages[i].next;
        return i;
    }
    s4d_push(x->messages, x->n_messages, x->cap_messages, (struct message){.next = -1});
    return x->n_messages - 1;
}

static void wait_for_peer(struct executor *x, const struct message *m)
{
    int i = take_entry(x), *at = &x->ranks[m->rank].first_post[m->stream];
    x->messages[i] = *m;
    while (*at >= 0)
        at = &x->messages[*at].next;
    *at = i;
}

/* The first that the peer waits with for this rank, taken off its list; -1: it does not. */
static int take_posted(struct executor *x, int peer, int rank, bool sends, enum s4d_stream stream)
{
    for (int *at = &x->ranks[peer].first_post[stream]; *at >= 0; at = &x->messages[*at].next) {
        int i = *at;
        if (x->messages[i].peer != rank || x->messages[i].sends != sends)
            continue;
        *at = x->messages[i].next;
        return i;
    }
    return -1;
}

static void on_flow(void *context, int i)
{
    struct executor *x = context;
    const struct message m = x->messages[i];
    const int ranks[2] = {m.class->from, m.class->to};
    x->messages[i].next = x->free_message;
    x->free_message = i;
    x->rates_due = true;
    for (int k = 0; k < 2; k++) {
        s4d_executor_beside(x, ranks[k], m.class->across_nodes, -1);
        s4d_executor_ended(x, ranks[k], m.stream);
    }
    s4d_executor_work_off(x);
}

static void on_latency(void *context, int i)
{
    struct executor *x = context;
    x->rates_due = true;
    s4d_engine_start(x->engine, x->messages[i].class->flow, x->messages[i].bytes, on_flow, x, i);
}

/* Both are there. One hop, as nccl-tests' sendrecv has it, at the rate of the stream. */
static void start(struct executor *x, int i)
{
    struct message *m = &x->messages[i];
    bool across = m->class->across_nodes;
    double rate = x->system->cluster->rates.stream[m->stream];
    struct s4d_cost cost = s4d_steps_cost(x->system->cluster->machine, !across, across, m->bytes);
    m->bytes = cost.volume_B / rate;
    if (cost.latency_s > 0)
        s4d_engine_timer(x->engine, s4d_engine_now_s(x->engine) + cost.latency_s / rate, on_latency,
                         x, i);
    else
        on_latency(x, i);
}

void s4d_executor_message(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    struct message m = {.rank = rank,
                        .peer = peer_of(x, rank, op),
                        .op = s4d_op_index(&x->ranks[rank], op),
                        .iteration = iteration,
                        .sends = op->kind == S4D_OP_SEND,
                        .next = -1,
                        .stream = op->stream,
                        .bytes = (double)s4d_collective_bytes(&op->c, op->kind)};
    m.class = m.sends ? class_of(x, rank, m.peer) : class_of(x, m.peer, rank);
    s4d_executor_beside(x, rank, m.class->across_nodes, 1);
    int i = take_posted(x, m.peer, rank, !m.sends, op->stream);
    if (i < 0) {
        wait_for_peer(x, &m);
        return;
    }
    int peer = m.peer, of = x->messages[i].op;
    s4d_executor_started(x, peer, &x->ranks[peer].program->ops[of], x->messages[i].iteration);
    s4d_executor_started(x, rank, op, iteration);
    start(x, i);
}
