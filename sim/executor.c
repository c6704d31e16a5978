/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated executor: two iterations of a program on every class of ranks, in events.
 *
 * A class and stream have a counter of completed ops, over both iterations. The op at a stream's
 * head starts once every wait is a counter that is high enough. A collective is there when it heads
 * the stream of every member class, pays its latency, then starts one flow per channel, and ends
 * for all members with the last flow. Computing has work left and a rate, which falls from the
 * member's own arrival at a collective to that collective's end.
 *
 * Everything that happens at one instant is worked off a queue before timers are set, so no result
 * depends on the order in which simultaneous events arrive. */
#include "sim/executor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/account.h"
#include "sim/engine.h"
#include "sim/program_index.h"
#include "support/memory.h"

enum { ITERATIONS = 2 };
enum state { WAITING, RUNNING };

/* One class of ranks. */
struct rank {
    int done[S4D_STREAMS];
    enum state state[S4D_STREAMS];
    int blocked_by[S4D_STREAMS]; /* the stream whose counter must reach needed */
    int needed[S4D_STREAMS];
    struct s4d_timer *timer; /* of the running compute op; NULL while it is not set */
    double work_s, since_s, rate;
    bool computing, dirty; /* dirty: rate or timer to be settled at the end of this instant */
    int beside[2];         /* collectives it has arrived at: inside a node, across nodes */
    int ends_left[ITERATIONS];
    double end_s[ITERATIONS];
    struct s4d_account account;
};

/* What a group class pays for one size of one collective. */
struct price {
    bool known;
    struct s4d_cost cost;
    const struct s4d_group_flows *flows;
};

struct group {
    int arrived, flows_left;
    int price; /* of the running collective */
    bool across_nodes;
    struct price *prices; /* by the stream's sizes */
};

struct item {
    int rank;
    enum s4d_stream stream;
};

struct executor {
    const struct s4d_system *system;
    const struct s4d_program *program;
    struct s4d_engine *engine;
    struct s4d_program_index index;
    double rate_beside[2];
    struct rank *ranks;
    struct group *groups;
    struct item *queue;
    int n_queue, cap_queue;
    int *dirty, n_dirty, cap_dirty;
    int ranks_left[ITERATIONS]; /* classes that have not ended it */
    struct s4d_run *run;
    const struct s4d_observer *observer;
};

static int total(const struct executor *x, int stream)
{
    return ITERATIONS * x->program->stream_length[stream];
}

static const struct s4d_op *head(const struct executor *x, int rank, int stream, int *iteration)
{
    int length = x->program->stream_length[stream], done = x->ranks[rank].done[stream];
    *iteration = done / length;
    return x->index.order[stream][done % length];
}

/* The value that the wait's counter must reach. */
static int needed(const struct executor *x, const struct s4d_wait *w, int iteration)
{
    int of = iteration + w->iteration;
    return of < 0 ? 0 : of * x->program->stream_length[w->stream] + w->position + 1;
}

static int op_index(const struct executor *x, const struct s4d_op *op)
{
    return (int)(op - x->program->ops);
}

static void mark_dirty(struct executor *x, int rank)
{
    if (x->ranks[rank].dirty)
        return;
    x->ranks[rank].dirty = true;
    s4d_push(x->dirty, x->n_dirty, x->cap_dirty, rank);
}

/* The newest completion of `stream` may be what the idle compute stream waits for. */
static void note_met(struct executor *x, int rank, enum s4d_stream stream, double now_s)
{
    struct rank *r = &x->ranks[rank];
    if (r->state[S4D_STREAM_COMPUTE] != WAITING ||
        r->done[S4D_STREAM_COMPUTE] == total(x, S4D_STREAM_COMPUTE))
        return;
    int iteration;
    const struct s4d_op *op = head(x, rank, S4D_STREAM_COMPUTE, &iteration);
    for (int i = 0; i < op->n_waits; i++)
        if (op->waits[i].stream == stream && needed(x, &op->waits[i], iteration) == r->done[stream])
            s4d_account_met(&r->account, now_s, stream);
}

/* The first iteration is over on every rank: from here on time is charged. */
static void open_window(struct executor *x, double now_s)
{
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
    if (--x->ranks_left[iteration] == 0 && iteration == 0)
        open_window(x, now_s);
}

static void finish_op(struct executor *x, int rank, enum s4d_stream stream)
{
    struct rank *r = &x->ranks[rank];
    double now_s = s4d_engine_now_s(x->engine);
    int iteration;
    const struct s4d_op *op = head(x, rank, stream, &iteration);
    s4d_account_end(&r->account, now_s, stream);
    r->state[stream] = WAITING;
    r->done[stream]++;
    note_met(x, rank, stream, now_s);
    if (x->observer)
        x->observer->ended(x->observer->context, rank, op_index(x, op), iteration, now_s);
    if (x->index.ends[op_index(x, op)])
        count_end(x, rank, iteration, stream, now_s);
    s4d_push(x->queue, x->n_queue, x->cap_queue, (struct item){rank, stream});
}

static void work_off(struct executor *x);

static void on_timer(void *context, int tag)
{
    struct executor *x = context;
    int rank = tag / S4D_STREAMS, stream = tag % S4D_STREAMS;
    struct rank *r = &x->ranks[rank];
    if (stream == S4D_STREAM_COMPUTE) {
        r->timer = NULL;
        r->computing = false;
    }
    finish_op(x, rank, (enum s4d_stream)stream);
    work_off(x);
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

static void end_collective(struct executor *x, int group)
{
    const struct s4d_group_class *g = &x->system->groups[group];
    struct group *state = &x->groups[group];
    for (int i = 0; i < g->n_members; i++) {
        x->ranks[g->member[i]].beside[state->across_nodes]--;
        mark_dirty(x, g->member[i]);
        finish_op(x, g->member[i], g->stream);
    }
}

static void on_flow(void *context, int group)
{
    struct executor *x = context;
    if (--x->groups[group].flows_left > 0)
        return;
    end_collective(x, group);
    work_off(x);
}

static void start_flows(struct executor *x, int group)
{
    struct group *state = &x->groups[group];
    const struct price *price = &state->prices[state->price];
    state->flows_left = price->flows->n;
    for (int i = 0; i < price->flows->n; i++) {
        int flow = price->flows->flow[i];
        s4d_engine_start(x->engine, flow, price->cost.volume_B * x->system->flows[flow].share,
                         on_flow, x, group);
    }
}

static void on_latency(void *context, int group)
{
    start_flows(context, group);
}

/* The algorithm the library would choose for this group and size, and its cost. */
static void find_price(struct executor *x, int group, const struct s4d_op *op, struct price *price)
{
    const struct s4d_group_class *g = &x->system->groups[group];
    const struct s4d_machine *m = x->system->cluster->machine;
    double bytes = (double)s4d_collective_bytes(&op->c, op->kind);
    price->known = true;
    price->flows = &g->by_algorithm[0];
    if (price->flows->shape.members < 2)
        return;
    price->flows = s4d_group_choice(m, g, op->kind, bytes);
    price->cost = price->flows->algorithm->cost(m, &price->flows->shape, op->kind, bytes);
}

static void start_collective(struct executor *x, int group, const struct s4d_op *op, int iteration)
{
    const struct s4d_group_class *g = &x->system->groups[group];
    struct group *state = &x->groups[group];
    double now_s = s4d_engine_now_s(x->engine);
    state->arrived = 0;
    state->price = x->index.size[op_index(x, op)];
    struct price *price = &state->prices[state->price];
    if (!price->known)
        find_price(x, group, op, price);
    if (iteration == 1) {
        x->run->collectives += g->groups;
        x->run->extrapolated += price->cost.extrapolated ? g->groups : 0;
    }
    for (int i = 0; i < g->n_members; i++)
        s4d_account_start(&x->ranks[g->member[i]].account, now_s, g->stream, false);
    if (price->flows->n == 0 || price->cost.volume_B <= 0)
        end_collective(x, group);
    else if (price->cost.latency_s > 0)
        s4d_engine_timer(x->engine, now_s + price->cost.latency_s, on_latency, x, group);
    else
        start_flows(x, group);
}

static void arrive(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    int group = x->system->ranks[rank].group[op->stream];
    S4D_ASSERT(group >= 0, "a collective on a stream without a group");
    x->ranks[rank].beside[x->groups[group].across_nodes]++;
    mark_dirty(x, rank);
    if (++x->groups[group].arrived == x->system->groups[group].n_members)
        start_collective(x, group, op, iteration);
}

static void start_op(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    struct rank *r = &x->ranks[rank];
    double now_s = s4d_engine_now_s(x->engine), time_s = x->index.kernel_s[op_index(x, op)];
    r->state[op->stream] = RUNNING;
    if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE) {
        arrive(x, rank, op, iteration);
        return;
    }
    s4d_account_start(&r->account, now_s, op->stream, op->kind == S4D_OP_GEMM);
    if (time_s <= 0) {
        finish_op(x, rank, op->stream);
    } else if (op->stream == S4D_STREAM_COMPUTE) {
        r->work_s = time_s / x->system->ranks[rank].speed;
        r->computing = true;
        mark_dirty(x, rank);
    } else {
        s4d_engine_timer(x->engine, now_s + time_s, on_timer, x,
                         rank * S4D_STREAMS + (int)op->stream);
    }
}

/* Starts the head of the stream if it can; else notes the counter it is blocked by. */
static void try_start(struct executor *x, int rank, int stream)
{
    struct rank *r = &x->ranks[rank];
    if (r->state[stream] != WAITING || r->done[stream] == total(x, stream))
        return;
    int iteration;
    const struct s4d_op *op = head(x, rank, stream, &iteration);
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int need = needed(x, w, iteration);
        if (r->done[w->stream] < need) {
            r->blocked_by[stream] = (int)w->stream;
            r->needed[stream] = need;
            return;
        }
    }
    start_op(x, rank, op, iteration);
}

/* Everything that the completions of this instant make possible; timers last. */
static void work_off(struct executor *x)
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

static void set_up_engine(struct executor *x)
{
    const struct s4d_system *s = x->system;
    x->engine = s4d_engine_create();
    for (int i = 0; i < s->n_links; i++)
        s4d_engine_link(x->engine, s->links[i].capacity_Bps);
    for (int i = 0; i < s->n_flows; i++)
        s4d_engine_flow(x->engine, s->flows[i].link, s->flows[i].weight, s->flows[i].n);
    s4d_engine_seal(x->engine);
}

static void set_up_state(struct executor *x)
{
    const struct s4d_system *s = x->system;
    x->ranks = s4d_calloc((size_t)s->n_ranks, sizeof *x->ranks);
    x->groups = s4d_calloc((size_t)s->n_groups, sizeof *x->groups);
    for (int i = 0; i < s->n_ranks; i++) {
        s4d_account_init(&x->ranks[i].account);
        for (int k = 0; k < ITERATIONS; k++)
            x->ranks[i].ends_left[k] = x->index.n_ends;
    }
    for (int k = 0; k < ITERATIONS; k++)
        x->ranks_left[k] = s->n_ranks;
    for (int i = 0; i < s->n_groups; i++) {
        x->groups[i].across_nodes = s->groups[i].by_algorithm[0].shape.nodes > 1;
        x->groups[i].prices = s4d_calloc((size_t)x->index.n_sizes, sizeof *x->groups[i].prices);
    }
}

static void describe(const struct s4d_op *op, char *text, size_t size)
{
    char layer[32] = "", micro_batch[32] = "";
    if (op->label.layer >= 0)
        snprintf(layer, sizeof layer, " layer %d", op->label.layer);
    if (op->label.micro_batch >= 0)
        snprintf(micro_batch, sizeof micro_batch, " micro-batch %d", op->label.micro_batch);
    snprintf(text, size, "%s %s (%s%s%s), op %d of stream %s", s4d_op_kinds[op->kind].name,
             op->label.name ? op->label.name : "", s4d_phase_names[op->label.phase], layer,
             micro_batch, op->position, s4d_streams[op->stream].name);
}

/* The engine has run dry with ops left: names the first of them whose wait is not met, or, if there
 * is none, the first collective that a member has not come to. */
static int report_deadlock(const struct executor *x, struct s4d_error *err)
{
    for (int members = 0; members < 2; members++)
        for (int i = 0; i < x->system->n_ranks; i++)
            for (int s = 0; s < S4D_STREAMS; s++) {
                const struct rank *r = &x->ranks[i];
                if (r->done[s] == total(x, s) || (r->state[s] == WAITING) == (members == 1))
                    continue;
                int iteration;
                char op[256], other[256];
                describe(head(x, i, s, &iteration), op, sizeof op);
                int rank = x->system->ranks[i].representative;
                if (members)
                    return s4d_fail(err, S4D_EXIT_BUG, "",
                                    "deadlock: rank %d, iteration %d: %s has not all its members",
                                    rank, iteration, op);
                int length = x->program->stream_length[r->blocked_by[s]], at = r->needed[s] - 1;
                describe(x->index.order[r->blocked_by[s]][at % length], other, sizeof other);
                return s4d_fail(err, S4D_EXIT_BUG, "",
                                "deadlock: rank %d, iteration %d: %s waits for %s of iteration %d",
                                rank, iteration, op, other, at / length);
            }
    return 0;
}

/* The figures of the rank that ends last; of ranks that end together, of the lowest. */
static void take_results(struct executor *x)
{
    struct s4d_run *run = x->run;
    double end_s[ITERATIONS] = {0};
    for (int i = 0; i < x->system->n_ranks; i++)
        for (int k = 0; k < ITERATIONS; k++)
            end_s[k] = fmax(end_s[k], x->ranks[i].end_s[k]);
    int slowest = -1;
    for (int i = 0; i < x->system->n_ranks; i++)
        if (x->ranks[i].end_s[1] >= end_s[1] * (1 - 1e-9) &&
            (slowest < 0 || x->system->ranks[i].representative < run->slowest_rank)) {
            slowest = i;
            run->slowest_rank = x->system->ranks[i].representative;
        }
    const struct s4d_account *a = &x->ranks[slowest].account;
    run->first_iteration_s = end_s[0];
    run->iteration_time_s = end_s[1] - end_s[0];
    run->gemm_time_s = a->gemm_s;
    run->exposed_other_s = run->iteration_time_s;
    for (int s = 0; s < S4D_STREAMS; s++) {
        run->busy_s[s] = a->busy_s[s];
        run->exposed_s[s] = a->exposed_s[s];
        run->exposed_other_s -= a->exposed_s[s];
    }
    if (fabs(run->exposed_other_s) <= 1e-9 * run->iteration_time_s)
        run->exposed_other_s = 0;
}

static void free_executor(struct executor *x)
{
    s4d_engine_destroy(x->engine);
    for (int i = 0; i < x->system->n_groups; i++)
        free(x->groups[i].prices);
    free(x->groups);
    free(x->ranks);
    free(x->queue);
    free(x->dirty);
    s4d_program_index_free(&x->index);
}

int s4d_execute(const struct s4d_system *system, const struct s4d_program *program,
                const struct s4d_kernels *kernels, struct s4d_run *run, struct s4d_error *err)
{
    return s4d_execute_observed(system, program, kernels, NULL, run, err);
}

int s4d_execute_observed(const struct s4d_system *system, const struct s4d_program *program,
                         const struct s4d_kernels *kernels, const struct s4d_observer *observer,
                         struct s4d_run *run, struct s4d_error *err)
{
    struct executor x = {.system = system, .program = program, .run = run, .observer = observer};
    *run = (struct s4d_run){0};
    x.index = s4d_program_index_make(program, kernels);
    run->gemm_flops = x.index.gemm_flops;
    for (int i = 0; i < 2; i++)
        x.rate_beside[i] = s4d_kernel_rate_beside(kernels, i == 1);
    set_up_state(&x);
    set_up_engine(&x);
    for (int i = 0; i < system->n_ranks; i++)
        for (int s = 0; s < S4D_STREAMS; s++)
            try_start(&x, i, s);
    work_off(&x);
    s4d_engine_run(x.engine);
    int rc = 0;
    for (int i = 0; i < system->n_ranks && rc == 0; i++)
        for (int s = 0; s < S4D_STREAMS && rc == 0; s++)
            if (x.ranks[i].done[s] < total(&x, s))
                rc = report_deadlock(&x, err);
    if (rc == 0)
        take_results(&x);
    free_executor(&x);
    return rc;
}
