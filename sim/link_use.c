/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/link_use.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

/* A flow class (-1: the latency) of a group class that is under way. */
struct s4d_running {
    int group, flow;
};

static int kind_number(struct s4d_link_uses *u, const char *kind)
{
    for (int i = 0; i < u->n_kinds; i++)
        if (strcmp(u->kind[i], kind) == 0)
            return i;
    S4D_ASSERT(u->n_kinds < S4D_LINK_KINDS, "more than %d kinds of links", S4D_LINK_KINDS);
    u->kind[u->n_kinds] = kind;
    return u->n_kinds++;
}

void s4d_link_uses_create(struct s4d_link_uses *u, const struct s4d_system *system,
                          const struct s4d_program *program)
{
    size_t n = (size_t)system->n_links + 1;
    *u = (struct s4d_link_uses){.system = system, .program = program};
    u->link = s4d_calloc(n, sizeof *u->link);
    u->use = s4d_calloc(n, sizeof *u->use);
    u->kind_of = s4d_calloc(n, sizeof *u->kind_of);
    for (int i = 0; i < system->n_links; i++)
        u->kind_of[i] =
            kind_number(u, system->cluster->links[system->links[i].representative].kind);
}

void s4d_link_uses_free(struct s4d_link_uses *u)
{
    free(u->link);
    free(u->use);
    free(u->kind_of);
    free(u->bound);
    free(u->running);
    *u = (struct s4d_link_uses){0};
}

/* The kinds of the full links on a flow's way. Shares come from a solver that stops at 1e-12. */
static uint32_t full_kinds(const struct s4d_link_uses *u, const struct s4d_flow_class *flow)
{
    uint32_t kinds = 0;
    for (int i = 0; i < flow->n; i++)
        if (u->link[flow->link[i]].now >= 1 - 1e-6)
            kinds |= UINT32_C(1) << u->kind_of[flow->link[i]];
    return kinds;
}

static void add_bound(struct s4d_link_uses *u, enum s4d_stream stream, uint32_t kinds,
                      double group_s)
{
    for (int i = 0; i < u->n_bounds; i++)
        if (u->bound[i].stream == stream && u->bound[i].kinds == kinds) {
            u->bound[i].group_s += group_s;
            return;
        }
    s4d_push(u->bound, u->n_bounds, u->cap_bounds, (struct s4d_bound){stream, kinds, group_s});
}

/* Flows of a group class share its groups' time by how many there are, so that a class of flows
 * counts as its members would. Flows of one group lie side by side. */
static void charge_bounds(struct s4d_link_uses *u, double span_s)
{
    const struct s4d_flow_class *flows = u->system->flows;
    for (int i = 0, end; i < u->n_running; i = end) {
        const struct s4d_group_class *g = &u->system->groups[u->running[i].group];
        double members = 0;
        for (end = i; end < u->n_running && u->running[end].group == u->running[i].group; end++)
            members += u->running[end].flow < 0 ? 1 : flows[u->running[end].flow].members;
        for (int k = i; k < end; k++) {
            int flow = u->running[k].flow;
            if (flow < 0)
                add_bound(u, g->stream, 0, span_s * g->groups);
            else
                add_bound(u, g->stream, full_kinds(u, &flows[flow]),
                          span_s * g->groups * flows[flow].members / members);
        }
    }
}

/* Counts what has been so since the last change. */
static void charge(struct s4d_link_uses *u, double now_s)
{
    double span_s = now_s - u->since_s;
    u->since_s = now_s;
    if (!u->open || u->closed || span_s <= 0)
        return;
    for (int i = 0; i < u->system->n_links; i++) {
        struct s4d_link_use *link = &u->link[i];
        if (link->now <= 0)
            continue;
        link->busy_s += span_s;
        link->occupied_s += span_s * link->now;
        link->peak = fmax(link->peak, fmin(1, link->now));
    }
    charge_bounds(u, span_s);
}

/* One link of a class carries the weights of all members of a flow class that cross it. */
static void add_bytes(struct s4d_link_uses *u, const struct s4d_flow_event *e)
{
    const struct s4d_flow_class *flow = &u->system->flows[e->flow];
    double bytes = e->cost->volume_B * e->cost->efficiency * flow->share;
    for (int i = 0; i < flow->n; i++)
        u->link[flow->link[i]].bytes +=
            bytes * flow->weight[i] * u->system->links[flow->link[i]].divisor;
}

static void begin(struct s4d_link_uses *u, const struct s4d_flow_event *e)
{
    int at = u->n_running;
    while (at > 0 && u->running[at - 1].group != e->group)
        at--;
    at = at > 0 ? at : u->n_running; /* behind the group's others, or at the end */
    s4d_push(u->running, u->n_running, u->cap_running, (struct s4d_running){0});
    memmove(u->running + at + 1, u->running + at,
            (size_t)(u->n_running - 1 - at) * sizeof *u->running);
    u->running[at] = (struct s4d_running){e->group, e->flow};
}

static void end(struct s4d_link_uses *u, const struct s4d_flow_event *e)
{
    int at = 0;
    while (at < u->n_running &&
           (u->running[at].group != e->group || u->running[at].flow != e->flow))
        at++;
    S4D_ASSERT(at < u->n_running, "flow %d of group %d ended twice", e->flow, e->group);
    u->n_running--;
    memmove(u->running + at, u->running + at + 1, (size_t)(u->n_running - at) * sizeof *u->running);
}

void s4d_link_uses_flow(void *uses, const struct s4d_flow_event *event)
{
    struct s4d_link_uses *u = uses;
    charge(u, event->now_s);
    if (!event->begins) {
        end(u, event);
        return;
    }
    begin(u, event);
    if (event->flow >= 0 && event->iteration == 1)
        add_bytes(u, event);
}

void s4d_link_uses_rates(void *uses, const struct s4d_engine *engine)
{
    struct s4d_link_uses *u = uses;
    s4d_system_use(u->system, engine, u->use);
    for (int i = 0; i < u->system->n_links; i++)
        u->link[i].now = u->use[i];
}

void s4d_link_uses_window(void *uses, bool open, double now_s)
{
    struct s4d_link_uses *u = uses;
    charge(u, now_s);
    *(open ? &u->open_s : &u->close_s) = now_s;
    *(open ? &u->open : &u->closed) = true;
}

void s4d_link_uses_write(const struct s4d_link_uses *u, FILE *out)
{
    const struct s4d_cluster *c = u->system->cluster;
    double window_s = u->close_s - u->open_s;
    fputs("link\tkind\tclass\tcapacity_Bps\tbytes\tbusy_s\tmean_use\tpeak_use\n", out);
    for (int i = 0; i < c->n_links; i++) {
        char *name = s4d_link_name(c, i);
        int class = u->system->class_of_link[i];
        fprintf(out, "%s\t%s\t", name, c->links[i].kind);
        free(name);
        if (class < 0) {
            fprintf(out, "-\t%.10g\t0\t0\t0\t0\n", c->links[i].capacity_Bps);
            continue;
        }
        const struct s4d_link_use *use = &u->link[class];
        fprintf(out, "%d\t%.10g\t%.12g\t%.9g\t%.9g\t%.9g\n", class, c->links[i].capacity_Bps,
                use->bytes, use->busy_s, use->occupied_s / window_s, use->peak);
    }
}
