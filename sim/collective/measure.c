/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes run one after the other in one engine: each starts when all groups have ended the one
 * before, so nothing of it is left on the links. */
#include "sim/collective/measure.h"

#include <stdlib.h>

#include "sim/engine.h"
#include "sim/system.h"
#include "support/memory.h"

struct run {
    const struct s4d_measurement *m;
    const struct s4d_system *system;
    struct s4d_stepwise *stepwise; /* NULL: coupled flows */
    struct s4d_engine *engine;
    const double *bytes;
    int n, at; /* sizes, the one that runs */
    double start_s;
    int groups_left;
    struct group *group; /* by group class */
    struct s4d_measured *results;
};

struct group {
    struct run *run;
    const struct s4d_group_class *class;
    const struct s4d_group_flows *flows;
    int algorithm, phase, flows_left;
    struct s4d_cost cost;
};

static void start_size(struct run *r);

static void start_phase(struct group *g);

static void group_ended(struct group *g)
{
    struct run *r = g->run;
    struct s4d_measured *result = &r->results[r->at];
    /* The last to end is the slowest: what it writes stays. */
    result->time_s = s4d_engine_now_s(r->engine) - r->start_s;
    result->algorithm = g->algorithm;
    result->cost = g->cost;
    if (--r->groups_left == 0 && ++r->at < r->n)
        start_size(r);
}

static void flow_ended(void *context, int tag)
{
    struct group *g = context;
    (void)tag;
    if (--g->flows_left > 0)
        return;
    if (g->phase++ < g->cost.last_phase)
        start_phase(g);
    else
        group_ended(g);
}

static void messages_ended(void *context, int group)
{
    struct run *r = context;
    group_ended(&r->group[group]);
}

static void start_phase(struct group *g)
{
    struct run *r = g->run;
    g->flows_left = 0;
    for (int i = 0; i < g->flows->n; i++) {
        int flow = g->flows->flow[i];
        if (r->system->flows[flow].phase != g->phase)
            continue;
        g->flows_left++;
        s4d_engine_start(r->engine, flow, g->cost.volume_B * r->system->flows[flow].share,
                         flow_ended, g, i);
    }
}

static void latency_paid(void *context, int tag)
{
    (void)tag;
    start_phase(context);
}

static const struct s4d_group_flows *choice(const struct run *r, const struct s4d_group_class *g)
{
    if (!r->m->algorithm)
        return s4d_group_choice(r->m->machine, g, r->m->op, r->bytes[r->at]);
    const struct s4d_group_flows *flows = g->by_algorithm;
    while (flows->algorithm != r->m->algorithm)
        flows++;
    return flows;
}

static void start_size(struct run *r)
{
    r->start_s = s4d_engine_now_s(r->engine);
    r->groups_left = r->system->n_groups;
    for (int i = 0; i < r->system->n_groups; i++) {
        struct group *g = &r->group[i];
        g->flows = choice(r, g->class);
        g->algorithm = (int)(g->flows - g->class->by_algorithm);
        g->cost = s4d_group_cost(r->m->machine, g->class, g->flows, r->m->op, r->bytes[r->at]);
        g->phase = g->cost.first_phase;
        if (r->stepwise)
            s4d_stepwise_start(r->stepwise, r->engine, i, g->flows, r->m->op, &g->cost,
                               messages_ended, r);
        else
            s4d_engine_timer(r->engine, r->start_s + g->cost.latency_s, latency_paid, g, 0);
    }
}

/* A program of one op a size, from which the streams and algorithms of the system follow. Its
 * elements are bytes; blocks of a gathered size that does not divide are rounded. An operation that
 * no program has is an all-reduce here: one algorithm does it, and no other is allowed. */
static struct s4d_op *make_ops(const struct s4d_measurement *m, const double *bytes, int n)
{
    struct s4d_op *ops = s4d_calloc((size_t)n, sizeof *ops);
    s4d_axes axes = s4d_streams[m->stream].axes;
    int members = s4d_group_size(&m->grid, axes);
    S4D_ASSERT(members >= 2, "a group of one");
    for (int i = 0; i < n; i++) {
        ops[i] = (struct s4d_op){.stream = m->stream, .position = i};
        ops[i].kind = m->op < S4D_OP_KINDS ? m->op : S4D_OP_ALL_REDUCE;
        ops[i].c.collective.axes = axes;
        ops[i].c.collective.members = members;
        ops[i].c.collective.type = S4D_U8;
        ops[i].c.collective.count =
            (int64_t)(ops[i].kind == S4D_OP_ALL_REDUCE ? bytes[i] : bytes[i] / members);
    }
    return ops;
}

static unsigned allowed(const struct s4d_measurement *m)
{
    unsigned bits = 0;
    for (int i = 0; s4d_algorithms[i]; i++)
        if (m->algorithm ? s4d_algorithms[i] == m->algorithm : s4d_algorithms[i]->supports(m->op))
            bits |= 1u << i;
    return bits;
}

static void simulate(struct run *r)
{
    const struct s4d_system *s = r->system;
    r->engine = r->stepwise ? s4d_stepwise_engine(r->stepwise) : s4d_system_engine(s, false);
    r->group = s4d_calloc((size_t)s->n_groups, sizeof *r->group);
    for (int i = 0; i < s->n_groups; i++)
        r->group[i] = (struct group){.run = r, .class = &s->groups[i]};
    start_size(r);
    s4d_engine_run(r->engine);
    S4D_ASSERT(r->at == r->n, "%d of %d sizes simulated", r->at, r->n);
    free(r->group);
    s4d_engine_destroy(r->engine);
}

static int simulate_stepwise(struct run *r, struct s4d_error *err)
{
    struct s4d_message_count sum = {0};
    r->stepwise = s4d_stepwise_create(r->system, &r->m->grid, r->m->stepwise);
    for (int i = 0; i < r->n; i++) {
        struct s4d_message_count *sent = &r->results[i].sent;
        s4d_stepwise_count(r->stepwise, r->m->stream, r->m->op, r->bytes[i], r->m->algorithm, 1,
                           sent);
        sum.messages += sent->messages;
        sum.most_passes = sent->most_passes > sum.most_passes ? sent->most_passes : sum.most_passes;
    }
    int rc = s4d_stepwise_check(&sum, err);
    if (rc == 0)
        simulate(r);
    s4d_stepwise_free(r->stepwise);
    return rc;
}

static void describe(const struct s4d_system *s, const struct s4d_measurement *m,
                     struct s4d_measured_system *out)
{
    s4d_axes axes = s4d_streams[m->stream].axes;
    const struct s4d_channels *ring = &s->groups[0].by_algorithm[0].shape;
    out->nodes = s->cluster->n_nodes;
    out->members = s4d_group_size(&m->grid, axes);
    out->groups = s4d_grid_ranks(&m->grid) / out->members;
    out->group_nodes = ring->nodes;
    out->group_members_per_node = ring->members_per_node;
    out->channels = ring->n;
    out->flow_classes = s->n_flows;
    out->link_classes = s->n_links;
}

int s4d_measure_collective(const struct s4d_measurement *m, const double *bytes, int n,
                           struct s4d_measured *results, struct s4d_measured_system *system,
                           struct s4d_error *err)
{
    if (m->algorithm && !m->algorithm->supports(m->op))
        return s4d_fail(err, S4D_EXIT_USAGE, "--algorithm", "%s does not do %s", m->algorithm->name,
                        s4d_collective_name(m->op));
    struct s4d_cluster cluster;
    if (s4d_scenario_cluster(&cluster, m->machine, s4d_grid_ranks(&m->grid), m->scenario, err))
        return -1;
    struct s4d_program program = {.grid = m->grid, .ops = make_ops(m, bytes, n), .n_ops = n};
    program.stream_length[m->stream] = n;
    struct s4d_system s;
    int rc = s4d_system_create(&s, &cluster, &program, allowed(m), m->fold && !m->stepwise, err);
    if (rc == 0) {
        struct run r = {.m = m, .system = &s, .bytes = bytes, .n = n, .results = results};
        describe(&s, m, system);
        for (int i = 0; i < n; i++)
            results[i] = (struct s4d_measured){0};
        if (m->stepwise)
            rc = simulate_stepwise(&r, err);
        else
            simulate(&r);
        s4d_system_free(&s);
    }
    free(program.ops);
    s4d_cluster_destroy(&cluster);
    return rc;
}
