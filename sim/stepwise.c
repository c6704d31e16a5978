/* SPDX-License-Identifier: Apache-2.0 */
/* Edges of all groups are found once; ends that several have in common share a flow of the engine.
 * What an operation's messages need of each other is worked out when a group first does it. */
#include "sim/stepwise.h"

#include <stdlib.h>

#include "sim/collective/channels.h"
#include "support/memory.h"

enum { MOST_MESSAGES = 1 << 22 };

/* One operation of a group with one algorithm. */
struct plan {
    int algorithm;
    enum s4d_op_kind op;
    struct s4d_messages messages;
};
struct group {
    struct s4d_channels channels[S4D_ALGORITHMS]; /* algorithm NULL: not used here */
    struct plan *plan;
    int n_plans, cap_plans;
    struct s4d_sending sending;
};
struct pair {
    int from, to; /* devices and switches */
};
struct s4d_stepwise {
    const struct s4d_system *system;
    int passes;
    struct group *groups;
    struct pair *pairs; /* ascending, each once: the engine's flows */
    int n_pairs, cap_pairs;
};

static int by_pair(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->from != y->from)
        return (x->from > y->from) - (x->from < y->from);
    return (x->to > y->to) - (x->to < y->to);
}

static struct pair pair_of(int from, int to)
{
    return (struct pair){s4d_end_device(from), s4d_end_device(to)};
}

static void add_pairs(struct s4d_stepwise *w, const struct s4d_channels *ch)
{
    for (int i = 0; i < ch->n; i++)
        for (int k = 0; k < ch->channel[i].n_edges; k++)
            s4d_push(w->pairs, w->n_pairs, w->cap_pairs,
                     pair_of(ch->channel[i].edge[k].from, ch->channel[i].edge[k].to));
}

static void keep_distinct(struct s4d_stepwise *w)
{
    int n = 0;
    if (w->n_pairs > 0)
        qsort(w->pairs, (size_t)w->n_pairs, sizeof *w->pairs, by_pair);
    for (int i = 0; i < w->n_pairs; i++)
        if (i == 0 || by_pair(&w->pairs[i], &w->pairs[n - 1]) != 0)
            w->pairs[n++] = w->pairs[i];
    w->n_pairs = n;
}

/* The channels of every algorithm that the group has flows for, found as the system found them. */
static void find_channels(struct s4d_stepwise *w, int group, const struct s4d_grid *grid, int *list)
{
    const struct s4d_system *s = w->system;
    const struct s4d_group_class *g = &s->groups[group];
    S4D_ASSERT(g->groups == 1, "a folded system");
    int n = s4d_group_members(grid, s->ranks[g->member[0]].representative,
                              s4d_streams[g->stream].axes, list);
    for (int i = 0; i < n; i++)
        list[i] = s4d_device_of_rank(s->cluster, list[i]);
    for (int a = 0; a < S4D_ALGORITHMS; a++) {
        struct s4d_channels *ch = &w->groups[group].channels[a];
        if (!g->by_algorithm[a].algorithm)
            continue;
        int rc = s4d_algorithms[a]->channels(s->cluster, list, n, ch);
        S4D_ASSERT(rc == 0, "%s has lost its channels", s4d_algorithms[a]->name);
        for (int i = 0; i < ch->n; i++)
            s4d_path_free(&ch->channel[i].path);
        add_pairs(w, ch);
    }
}

struct s4d_stepwise *s4d_stepwise_create(const struct s4d_system *system,
                                         const struct s4d_grid *grid, int passes)
{
    struct s4d_stepwise *w = s4d_calloc(1, sizeof *w);
    *w = (struct s4d_stepwise){.system = system, .passes = passes};
    w->groups = s4d_calloc((size_t)system->n_groups + 1, sizeof *w->groups);
    int *list = s4d_malloc((size_t)s4d_grid_ranks(grid) * sizeof *list);
    for (int i = 0; i < system->n_groups; i++)
        find_channels(w, i, grid, list);
    free(list);
    keep_distinct(w);
    return w;
}

void s4d_stepwise_free(struct s4d_stepwise *w)
{
    for (int i = 0; w && i < w->system->n_groups; i++) {
        struct group *g = &w->groups[i];
        for (int a = 0; a < S4D_ALGORITHMS; a++)
            s4d_channels_free(&g->channels[a]);
        for (int k = 0; k < g->n_plans; k++)
            s4d_messages_free(&g->plan[k].messages);
        free(g->plan);
        s4d_sending_free(&g->sending);
    }
    if (w) {
        free(w->groups);
        free(w->pairs);
    }
    free(w);
}

static const struct s4d_messages *find_messages(struct s4d_stepwise *w, int group, int algorithm,
                                                enum s4d_op_kind op, const struct s4d_cost *cost)
{
    struct group *g = &w->groups[group];
    for (int i = 0; i < g->n_plans; i++)
        if (g->plan[i].algorithm == algorithm && g->plan[i].op == op)
            return &g->plan[i].messages;
    struct plan plan = {.algorithm = algorithm, .op = op};
    s4d_messages_create(&plan.messages, &g->channels[algorithm], op, cost);
    for (int e = 0; e < plan.messages.n; e++) {
        struct s4d_message_edge *edge = &plan.messages.edge[e];
        struct pair key = pair_of(edge->from, edge->to);
        const struct pair *at = bsearch(&key, w->pairs, (size_t)w->n_pairs, sizeof key, by_pair);
        edge->flow = (int)(at - w->pairs);
    }
    s4d_push(g->plan, g->n_plans, g->cap_plans, plan);
    return &g->plan[g->n_plans - 1].messages;
}

static struct s4d_passes passes_of(const struct s4d_stepwise *w,
                                   const struct s4d_group_flows *flows, const struct s4d_cost *cost)
{
    if (w->passes != S4D_STEPWISE_CHUNK)
        return (struct s4d_passes){.fixed = w->passes};
    return s4d_library_passes(w->system->cluster->machine, &flows->shape, cost);
}

static void count_call(struct s4d_stepwise *w, int group, const struct s4d_group_flows *flows,
                       enum s4d_op_kind op, double bytes, int times, struct s4d_message_count *sum)
{
    int algorithm = (int)(flows - w->system->groups[group].by_algorithm);
    struct s4d_cost cost =
        flows->algorithm->cost(w->system->cluster->machine, &flows->shape, op, bytes);
    const struct s4d_messages *m = find_messages(w, group, algorithm, op, &cost);
    struct s4d_passes passes = passes_of(w, flows, &cost);
    sum->messages += times * s4d_messages_count(m, &cost, &passes);
    for (int e = 0; e < m->n; e++) {
        int n = s4d_edge_passes(&m->edge[e], &cost, &passes);
        if (sum->least_passes == 0 || n < sum->least_passes)
            sum->least_passes = n;
        sum->most_passes = n > sum->most_passes ? n : sum->most_passes;
    }
}

void s4d_stepwise_count(struct s4d_stepwise *w, enum s4d_stream stream, enum s4d_op_kind op,
                        double bytes, const struct s4d_algorithm *algorithm, int times,
                        struct s4d_message_count *sum)
{
    for (int i = 0; i < w->system->n_groups; i++) {
        const struct s4d_group_class *g = &w->system->groups[i];
        const struct s4d_group_flows *flows = g->by_algorithm;
        if (g->stream != stream || flows->shape.members < 2)
            continue;
        if (!algorithm)
            flows = s4d_group_choice(w->system->cluster->machine, g, op, bytes);
        while (algorithm && flows->algorithm != algorithm)
            flows++;
        count_call(w, i, flows, op, bytes, times, sum);
    }
}

int s4d_stepwise_check(const struct s4d_message_count *sum, struct s4d_error *err)
{
    if (sum->messages <= MOST_MESSAGES)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, "--stepwise", "expected at most %d messages, found %.0f",
             MOST_MESSAGES, sum->messages);
    return s4d_hint(err, "fewer GPUs, smaller sizes, or fewer passes (here up to %d for a step)",
                    sum->most_passes);
}

struct s4d_engine *s4d_stepwise_engine(struct s4d_stepwise *w)
{
    const struct s4d_system *s = w->system;
    struct s4d_engine *e = s4d_engine_create();
    struct s4d_path path = {0};
    for (int i = 0; i < s->n_links; i++)
        s4d_engine_link(e, s->cluster->links[s->links[i].representative].capacity_Bps);
    for (int i = 0; i < w->n_pairs; i++) {
        path.n = 0;
        s4d_edge_path(s->cluster, w->pairs[i].from, w->pairs[i].to, &path);
        s4d_path_merge(&path);
        for (int k = 0; k < path.n; k++)
            path.link[k] = s->class_of_link[path.link[k]];
        s4d_engine_flow(e, path.link, path.weight, path.n);
    }
    s4d_path_free(&path);
    s4d_engine_seal(e);
    return e;
}

void s4d_stepwise_start(struct s4d_stepwise *w, struct s4d_engine *e, int group,
                        const struct s4d_group_flows *flows, enum s4d_op_kind op,
                        const struct s4d_cost *cost, s4d_callback ended, void *context)
{
    struct group *g = &w->groups[group];
    int algorithm = (int)(flows - w->system->groups[group].by_algorithm);
    struct s4d_passes passes = passes_of(w, flows, cost);
    s4d_sending_start(&g->sending, e, find_messages(w, group, algorithm, op, cost), cost, &passes,
                      ended, context, group);
}
