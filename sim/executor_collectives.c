/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: one is there when it heads the stream of every member class, pays its latency, then
 * starts one flow per channel, phase by phase, and ends for all members with the last flow. */
#include <limits.h>

#include "sim/executor_state.h"

enum { FLOWS = 1 << 11 /* of a group, at most */ };

static void end_collective(struct executor *x, int group)
{
    const struct s4d_group_class *g = &x->system->groups[group];
    struct group *state = &x->groups[group];
    for (int i = 0; i < g->n_members; i++) {
        s4d_executor_beside(x, g->member[i], state->across_nodes, -1);
        s4d_executor_ended(x, g->member[i], g->stream);
    }
}

static void tell_flow(const struct executor *x, int group, int flow, bool begins)
{
    const struct group *g = &x->groups[group];
    if (x->observer->flow)
        x->observer->flow(x->observer->context,
                          &(struct s4d_flow_event){begins, group, flow, g->op, g->iteration,
                                                   &g->prices[g->price].cost,
                                                   s4d_engine_now_s(x->engine)});
}

static void on_flow(void *context, int tag);

/* The flows of the collective's current phase. */
static void start_phase(struct executor *x, int group)
{
    struct group *state = &x->groups[group];
    const struct price *price = &state->prices[state->price];
    state->flows_left = 0;
    S4D_ASSERT(price->flows->n <= FLOWS && group < INT_MAX / FLOWS, "group %d of %d flows", group,
               price->flows->n);
    for (int i = 0; i < price->flows->n; i++) {
        int flow = price->flows->flow[i];
        if (x->system->flows[flow].phase != state->phase)
            continue;
        state->flows_left++;
        tell_flow(x, group, flow, true);
        s4d_engine_start(x->engine, flow, price->cost.volume_B * x->system->flows[flow].share,
                         on_flow, x, group * FLOWS + i);
    }
    x->rates_due = true;
}

static void on_flow(void *context, int tag)
{
    struct executor *x = context;
    int group = tag / FLOWS;
    struct group *state = &x->groups[group];
    tell_flow(x, group, state->prices[state->price].flows->flow[tag % FLOWS], false);
    x->rates_due = true;
    if (--state->flows_left > 0)
        return;
    if (state->phase++ < state->prices[state->price].cost.last_phase) {
        start_phase(x, group);
        return;
    }
    end_collective(x, group);
    s4d_executor_work_off(x);
}

static void on_moved(void *context, int group)
{
    end_collective(context, group);
    s4d_executor_work_off(context);
}

static void on_latency(void *context, int group)
{
    tell_flow(context, group, -1, false);
    start_phase(context, group);
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
    price->cost = s4d_group_cost(m, g, price->flows, op->kind, bytes);
}

static void start_collective(struct executor *x, int group, const struct s4d_op *op, int iteration)
{
    const struct s4d_group_class *g = &x->system->groups[group];
    struct group *state = &x->groups[group];
    double now_s = s4d_engine_now_s(x->engine);
    state->arrived = 0;
    state->op = s4d_op_index(&x->ranks[g->member[0]], op);
    state->iteration = iteration;
    state->price = x->ranks[g->member[0]].index->size[state->op];
    struct price *price = &state->prices[state->price];
    if (!price->known)
        find_price(x, group, op, price);
    if (iteration == 1) {
        x->run->collectives += g->groups;
        x->run->extrapolated += price->cost.extrapolated ? g->groups : 0;
    }
    for (int i = 0; i < g->n_members; i++)
        s4d_executor_started(x, g->member[i], op, iteration);
    state->phase = price->cost.first_phase;
    if (price->flows->n == 0 || price->cost.volume_B <= 0) {
        end_collective(x, group);
    } else if (x->mover) {
        x->mover->start(x->mover->self, x->engine, group, price->flows, op->kind, &price->cost,
                        on_moved, x);
    } else if (price->cost.latency_s > 0) {
        tell_flow(x, group, -1, true);
        s4d_engine_timer(x->engine, now_s + price->cost.latency_s, on_latency, x, group);
    } else {
        start_phase(x, group);
    }
}

void s4d_executor_collective(struct executor *x, int rank, const struct s4d_op *op, int iteration)
{
    int group = x->system->ranks[rank].group[op->stream];
    S4D_ASSERT(group >= 0, "a collective on a stream without a group");
    s4d_executor_beside(x, rank, x->groups[group].across_nodes, 1);
    if (++x->groups[group].arrived == x->system->groups[group].n_members)
        start_collective(x, group, op, iteration);
}
