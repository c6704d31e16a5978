/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated executor: two iterations of a program on every class of ranks, in events.
 *
 * A class and stream have a counter of completed ops, over both iterations. The op at a stream's
 * head starts once every wait is a counter that is high enough; what communicates is posted, and
 * goes on in executor_collectives.c and executor_messages.c. Computing has work left and a rate,
 * which falls from the member's own arrival at a collective to that collective's end.
 *
 * Everything that happens at one instant is worked off a queue before timers are set, so no result
 * depends on the order in which simultaneous events arrive. */
#include "sim/executor.h"

#include <math.h>

#include "sim/executor_state.h"
#include "support/memory.h"

/* The value that the wait's counter must reach. */
static int needed(const struct rank *r, const struct s4d_wait *w, int iteration)
{
    int of = iteration + w->iteration;
    return of < 0 ? 0 : of * r->program->stream_length[w->stream] + w->position + 1;
}

static void mark_dirty(struct executor *x, int rank)
{
    if (x->ranks[rank].dirty)
        return;
    x->ranks[rank].dirty = true;
    s4d_push(x->dirty, x->n_dirty, x->cap_dirty, rank);
}

/* The newest completions of `stream`, from op `before` on, may be what the idle compute stream
 * waits for. */
static void note_met(struct executor *x, int rank, enum s4d_stream stream, int before, double now_s)
{
    struct rank *r = &x->ranks[rank];
    if (r->state[S4D_STREAM_COMPUTE] != WAITING ||
        r->done[S4D_STREAM_COMPUTE] == s4d_executor_total(x, rank, S4D_STREAM_COMPUTE))
        return;
    int iteration;
    const struct s4d_op *op = s4d_executor_head(x, rank, S4D_STREAM_COMPUTE, &iteration);
    for (int i = 0; i < op->n_waits; i++) {
        int need = needed(r, &op->waits[i], iteration);
        if (op->waits[i].stream == stream && before < need && need <= r->done[stream])
            s4d_account_met(&r->account, now_s, stream);
    }
}

/* The first iteration is over on every rank: from here on time is charged. */
static void open_window(struct executor *x, double now_s)
{
    if (x->observer->window)
        x->observer->window(x->observer->context, true, now_s);
    for (int i = 0; i < x->system->n_ranks; i++)
        s4d_account_open(&x->ranks[i].account, now_s);
}

static void count_end(struct executor *x, int rank, int iteration, enum s4d_stream stream,
                      double now_s)
{
    struct rank *r = &x->ranks[rank];
    if (--r->ends_left[iteration] > 0)
        return;
    r->end_s[iteration] = now_s;
    if (iteration == 1)
        s4d_account_close(&r->account, now_s, stream);
    if (--x->ranks_left[iteration] > 0)
        return;
    if (iteration == 0)
        open_window(x, now_s);
    else if (x->observer->window)
        x->observer->window(x->observer->context, false, now_s);
}

/* The op at the stream's head, or the batch. */
static void finish_post(struct executor *x, int rank, enum s4d_stream stream)
{
    struct rank *r = &x->ranks[rank];
    double now_s = s4d_engine_now_s(x->engine);
    int iteration, before = r->done[stream];
    int first = s4d_op_index(r, s4d_executor_head(x, rank, stream, &iteration));
    int last = s4d_batch_last(r->program, first);
    s4d_account_end(&r->account, now_s, stream);
    r->state[stream] = WAITING;
    r->done[stream] += last - first + 1;
    note_met(x, rank, stream, before, now_s);
    for (int i = first; i <= last; i++) {
        if (x->observer->ended)
            x->observer->ended(x->observer->context, rank, i, iteration, now_s);
        if (r->index->ends[i])
            count_end(x, rank, iteration, stream, now_s);
    }
    s4d_push(x->queue, x->n_queue, x->cap_queue, (struct item){rank, stream});
}

void s4d_executor_ended(struct executor *x, int rank, enum s4d_stream stream)
{
    if (--x->ranks[rank].left[stream] == 0)
        finish_post(x, rank, stream);
}

static void on_timer(void *context, int tag)
{
    struct executor *x = context;
    int rank = tag / S4D_STREAMS, stream = tag % S4D_STREAMS;
    struct rank *r = &x->ranks[rank];
    if (stream == S4D_STREAM_COMPUTE) {
        r->timer = NULL;
        r->computing = false;
    }
    finish_post(x, rank, (enum s4d_stream)stream);
    s4d_executor_work_off(x);
}

/* Sets the compute op's timer for its present rate. */
static void settle(struct executor *x, int rank)
{
    struct rank *r = &x->ranks[rank];
    r->dirty = false;
    if (!r->computing)
        return;
    double rate = 1, now_s = s4d_engine_now_s(x->engine);
    for (int i = 0; i < 2; i++)
        if (r->beside[i] > 0)
            rate = fmin(rate, x->rate_beside[i]);
    if (r->timer && rate == r->rate)
        return;
    if (r->timer) {
        s4d_engine_cancel(x->engine, r->timer);
        r->work_s = fmax(0, r->work_s - (now_s - r->since_s) * r->rate);
    }
    r->since_s = now_s;
    r->rate = rate;
    r->timer = s4d_engine_timer(x->engine, now_s + r->work_s / rate, on_timer, x,
                                rank * S4D_STREAMS + S4D_STREAM_COMPUTE);
}

void s4d_executor_beside(struct executor *x, int rank, bool across_nodes, int by)
{
    x->ranks[rank].beside[across_nodes] += by;
    mark_dirty(x, rank);
}

static void on_advance(void *context, int tag)
{
    struct executor *x = context;
    (void)tag;
    if (x->rates_due)
        x->observer->rates(x->observer->context, x->engine);
    x->rates_due = false;
}

static void tell_started(const struct executor *x, int rank, int op, int iteration, double now_s)
{
    if (x->observer->started)
        x->observer->started(x->observer->context, rank, op, iteration, now_s);
}

void s4d_executor_started(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    struct rank *r = &x->ranks[rank];
    double now_s = s4d_engine_now_s(x->engine);
    if (!r->told[op->stream])
        s4d_account_start(&r->account, now_s, op->stream, false);
    r->told[op->stream] = true;
    tell_started(x, rank, s4d_op_index(r, op), iteration, now_s);
}

/* What communicates, by itself or in a batch. */
static void post(struct executor *x, int rank, int first, int last, int iteration)
{
    struct rank *r = &x->ranks[rank];
    enum s4d_stream stream = r->program->ops[first].stream;
    r->left[stream] = last - first + 1;
    r->told[stream] = false;
    for (int i = first; i <= last; i++) {
        const struct s4d_op *op = &r->program->ops[i];
        if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_MESSAGE)
            s4d_executor_message(x, rank, op, iteration);
        else
            s4d_executor_collective(x, rank, op, iteration);
    }
}

static void start_op(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    struct rank *r = &x->ranks[rank];
    double now_s = s4d_engine_now_s(x->engine), time_s = r->index->kernel_s[s4d_op_index(r, op)];
    s4d_account_start(&r->account, now_s, op->stream, op->kind == S4D_OP_GEMM);
    tell_started(x, rank, s4d_op_index(r, op), iteration, now_s);
    if (time_s <= 0) {
        finish_post(x, rank, op->stream);
    } else if (op->stream == S4D_STREAM_COMPUTE) {
        r->work_s = time_s / x->system->ranks[rank].speed;
        r->computing = true;
        mark_dirty(x, rank);
    } else {
        s4d_engine_timer(x->engine, now_s + time_s, on_timer, x,
                         rank * S4D_STREAMS + (int)op->stream);
    }
}

/* Whether every wait of an op is met; else the stream is blocked by the first that is not. */
static bool may_start(struct rank *r, const struct s4d_op *op, int iteration)
{
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int need = needed(r, w, iteration);
        if (r->done[w->stream] < need) {
            r->blocked_by[op->stream] = (int)w->stream;
            r->needed[op->stream] = need;
            return false;
        }
    }
    return true;
}

/* Starts the head of the stream, or its batch, if it can; else notes the counter it is blocked by.
 */
static void try_start(struct executor *x, int rank, int stream)
{
    struct rank *r = &x->ranks[rank];
    if (r->state[stream] != WAITING || r->done[stream] == s4d_executor_total(x, rank, stream))
        return;
    int iteration;
    const struct s4d_op *op = s4d_executor_head(x, rank, stream, &iteration);
    int first = s4d_op_index(r, op), last = s4d_batch_last(r->program, first);
    for (int i = first; i <= last; i++)
        if (!may_start(r, &r->program->ops[i], iteration))
            return;
    r->state[stream] = RUNNING;
    if (s4d_communicates(op->kind))
        post(x, rank, first, last, iteration);
    else
        start_op(x, rank, op, iteration);
}

/* Everything that the completions of this instant make possible; timers last. */
void s4d_executor_work_off(struct executor *x)
{
    for (int i = 0; i < x->n_queue; i++) {
        struct item item = x->queue[i];
        const struct rank *r = &x->ranks[item.rank];
        try_start(x, item.rank, item.stream);
        for (int s = 0; s < S4D_STREAMS; s++)
            if (s != (int)item.stream && r->state[s] == WAITING &&
                r->blocked_by[s] == (int)item.stream && r->done[item.stream] >= r->needed[s])
                try_start(x, item.rank, s);
    }
    x->n_queue = 0;
    for (int i = 0; i < x->n_dirty; i++)
        settle(x, x->dirty[i]);
    x->n_dirty = 0;
}

int s4d_executor_run(struct executor *x, const struct s4d_kernels *kernels, struct s4d_error *err)
{
    static const struct s4d_observer nobody = {.context = NULL};
    const struct s4d_system *system = x->system;
    if (!x->observer)
        x->observer = &nobody;
    *x->run = (struct s4d_run){0};
    if (s4d_executor_check(x, err))
        return -1;
    for (int i = 0; i < 2; i++)
        x->rate_beside[i] = s4d_kernel_rate_beside(kernels, i == 1);
    s4d_executor_set_up(x, kernels);
    x->engine = x->mover ? x->mover->engine(x->mover->self)
                         : s4d_system_engine(system, x->observer->rates != NULL);
    if (x->observer->rates)
        s4d_engine_watch(x->engine, on_advance, x);
    for (int i = 0; i < system->n_ranks; i++)
        for (int s = 0; s < S4D_STREAMS; s++)
            try_start(x, i, s);
    s4d_executor_work_off(x);
    s4d_engine_run(x->engine);
    int rc = 0;
    for (int i = 0; i < system->n_ranks && rc == 0; i++)
        for (int s = 0; s < S4D_STREAMS && rc == 0; s++)
            if (x->ranks[i].done[s] < s4d_executor_total(x, i, s))
                rc = s4d_executor_deadlock(x, err);
    if (rc == 0)
        s4d_executor_results(x);
    s4d_executor_tear_down(x);
    return rc;
}
