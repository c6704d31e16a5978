/* SPDX-License-Identifier: Apache-2.0 */
/* The system of a partition: from the full system and the class of each of its nodes. Unfolded is
 * the partition in which every node is a class. */
#include "sim/system.h"

#include <stdlib.h>
#include <string.h>

#include "sim/link_classes.h"
#include "support/memory.h"

struct quotient {
    struct s4d_system *s;
    const struct s4d_full *f;
    const int *class_of;                                /* by node, numbered by lowest member */
    int *lowest, *size;                                 /* by class */
    int first_group, first_flow, first_link, n_classes; /* classes of a kind lie side by side */
    int *stamp, stamp_now;                              /* by class: to take each once */
    struct s4d_link_classes links;
    int used; /* ints of the block */
};

static int class_at(const struct quotient *q, int node)
{
    return node < s4d_full_nodes(q->f) ? q->class_of[node] : q->n_classes;
}

static void find_classes(struct quotient *q)
{
    int n = s4d_full_nodes(q->f);
    for (int v = 0; v < n; v++)
        if (q->size[q->class_of[v]]++ == 0) {
            S4D_ASSERT(q->class_of[v] == q->n_classes, "class %d", q->class_of[v]);
            q->lowest[q->n_classes++] = v;
        }
    q->first_group = class_at(q, s4d_full_group_node(q->f, 0));
    q->first_flow = class_at(q, s4d_full_flow_node(q->f, 0));
    q->first_link = class_at(q, s4d_full_link_node(q->f, 0));
    q->s->n_ranks = q->first_group;
    q->s->n_flows = q->first_link - q->first_flow;
}

/* Flows with their loads, sorted by flow (they are sorted by link already). */
static void make_flows(struct quotient *q)
{
    struct s4d_system *s = q->s;
    const struct s4d_link_classes *l = &q->links;
    int *link = s->block + q->used, *weight = link + l->n_loads, at = 0;
    int *place = s4d_calloc((size_t)s->n_flows + 1, sizeof *place);
    for (int i = 0; i < l->n_loads; i++) {
        s->flows[l->load[i].flow].n++;
        s->flows[l->load[i].flow].n_limiting += l->load[i].link < l->n_limiting;
    }
    for (int i = 0; i < s->n_flows; i++) {
        int node = q->lowest[q->first_flow + i];
        s->flows[i].link = link + at;
        s->flows[i].weight = weight + at;
        s->flows[i].share = q->f->flows[node - s4d_full_flow_node(q->f, 0)].share;
        s->flows[i].phase = q->f->flows[node - s4d_full_flow_node(q->f, 0)].phase;
        s->flows[i].members = q->size[q->first_flow + i];
        place[i] = at;
        at += s->flows[i].n;
    }
    for (int i = 0; i < l->n_loads; i++) {
        at = place[l->load[i].flow]++;
        link[at] = l->load[i].link;
        weight[at] = l->load[i].weight;
    }
    q->used += 2 * l->n_loads;
    free(place);
}

/* Appends the classes of nodes to[from] .. to[end - 1], each once, counted from `base`. */
static const int *distinct(struct quotient *q, int from, int end, int base, int *n)
{
    int *list = q->s->block + q->used;
    *n = 0;
    q->stamp_now++;
    for (int e = from; e < end; e++) {
        int class = q->class_of[q->f->to[e]];
        if (q->stamp[class] == q->stamp_now)
            continue;
        q->stamp[class] = q->stamp_now;
        list[(*n)++] = class - base;
    }
    q->used += *n;
    return list;
}

static struct s4d_group_class make_group(struct quotient *q, int class)
{
    const struct s4d_full *f = q->f;
    int node = q->lowest[class], start = f->start[node];
    const struct s4d_full_group *g = &f->groups[node - s4d_full_group_node(f, 0)];
    struct s4d_group_class group = {.groups = q->size[class]};
    group.member = distinct(q, start, start + g->n_ranks, 0, &group.n_members);
    start += g->n_ranks;
    for (int a = 0; a < S4D_ALGORITHMS; a++) {
        if (g->shape[a] < 0)
            continue;
        struct s4d_group_flows *flows = &group.by_algorithm[a];
        flows->shape = f->shapes[g->shape[a]];
        if (!(g->used >> a & 1))
            continue;
        flows->algorithm = s4d_algorithms[a];
        flows->flow = distinct(q, start, start + flows->shape.n, q->first_flow, &flows->n);
        start += flows->shape.n;
    }
    return group;
}

/* Group classes stream by stream; streams over the same axes get copies. first[stream] is the place
 * of group class `first_group` of that stream. */
static void make_groups(struct quotient *q, const struct s4d_cluster *c, int first[S4D_STREAMS])
{
    const struct s4d_full *f = q->f;
    int n = q->first_flow - q->first_group, n_out = 0;
    struct s4d_group_class *made = s4d_malloc((size_t)n * sizeof *made + 1);
    int *set = s4d_malloc((size_t)n * sizeof *set + 1);
    for (int i = 0; i < n; i++) {
        made[i] = make_group(q, q->first_group + i);
        set[i] = f->groups[q->lowest[q->first_group + i] - s4d_full_group_node(f, 0)].set;
    }
    q->s->groups = s4d_malloc((size_t)n * S4D_STREAMS * sizeof *made + 1);
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        first[stream] = -1;
        for (int i = 0; i < n && f->set_of_stream[stream] >= 0; i++) {
            if (set[i] != f->set_of_stream[stream])
                continue;
            if (first[stream] < 0)
                first[stream] = n_out - i;
            q->s->groups[n_out] = made[i];
            q->s->groups[n_out].rate = c->rates.stream[stream];
            q->s->groups[n_out++].stream = (enum s4d_stream)stream;
        }
    }
    q->s->n_groups = n_out;
    free(made);
    free(set);
}

static void make_ranks(struct quotient *q, const struct s4d_cluster *c,
                       const int first[S4D_STREAMS])
{
    const struct s4d_full *f = q->f;
    for (int i = 0; i < q->s->n_ranks; i++) {
        int rank = q->lowest[i];
        struct s4d_rank_class *r = &q->s->ranks[i];
        *r = (struct s4d_rank_class){.representative = rank,
                                     .members = q->size[i],
                                     .speed = c->device_speed[s4d_device_of_rank(c, rank)]};
        for (int stream = 0; stream < S4D_STREAMS; stream++) {
            int set = f->set_of_stream[stream];
            int node = set < 0 ? -1 : f->to[f->start[rank] + set];
            r->group[stream] = set < 0 ? -1 : first[stream] + q->class_of[node] - q->first_group;
        }
    }
    q->s->class_of_rank = s4d_malloc((size_t)f->n_ranks * sizeof *q->s->class_of_rank);
    memcpy(q->s->class_of_rank, q->class_of, (size_t)f->n_ranks * sizeof *q->s->class_of_rank);
}

/* Of every class of senders what its lowest rank sends. */
static void make_messages(struct quotient *q)
{
    const struct s4d_full *f = q->f;
    q->s->messages = s4d_malloc((size_t)f->n_messages * sizeof *q->s->messages + 1);
    for (int i = 0; i < f->n_messages; i++) {
        const struct s4d_full_message *m = &f->messages[i];
        int flow = f->n_flows - f->n_messages + i;
        if (q->lowest[q->class_of[m->from]] == m->from)
            q->s->messages[q->s->n_messages++] =
                (struct s4d_message_class){q->class_of[m->from], q->class_of[m->to],
                                           q->class_of[s4d_full_flow_node(f, flow)] - q->first_flow,
                                           f->flows[flow].algorithm > S4D_ALGORITHMS};
    }
}

static void make_system(struct s4d_system *s, const struct s4d_full *f, const struct s4d_cluster *c,
                        const int *class_of, bool fold)
{
    size_t n = (size_t)s4d_full_nodes(f);
    struct quotient q = {.s = s,
                         .f = f,
                         .class_of = class_of,
                         .lowest = s4d_malloc(n * sizeof(int)),
                         .size = s4d_calloc(n, sizeof(int)),
                         .stamp = s4d_calloc(n, sizeof(int))};
    int first[S4D_STREAMS];
    *s = (struct s4d_system){.cluster = c};
    find_classes(&q);
    s->ranks = s4d_calloc((size_t)s->n_ranks, sizeof *s->ranks);
    s->flows = s4d_calloc((size_t)s->n_flows + 1, sizeof *s->flows);
    s4d_link_classes_make(&q.links, f, c, class_of, q.first_flow, q.first_link, q.n_classes, fold);
    s->links = q.links.link;
    s->n_links = q.links.n;
    s->n_limiting = q.links.n_limiting;
    s->class_of_link = q.links.class_of_link;
    /* A group's members and flows are at most its edges. */
    size_t ints = 2 * (size_t)q.links.n_loads + 1;
    for (int class = q.first_group; class < q.first_flow; class ++)
        ints += (size_t)(f->start[q.lowest[class] + 1] - f->start[q.lowest[class]]);
    s->block = s4d_malloc(ints * sizeof *s->block);
    make_flows(&q);
    make_groups(&q, c, first);
    make_ranks(&q, c, first);
    make_messages(&q);
    free(q.lowest);
    free(q.size);
    free(q.stamp);
    free(q.links.load);
}

int s4d_system_create(struct s4d_system *s, const struct s4d_cluster *c,
                      const struct s4d_program *p, unsigned allowed, bool fold,
                      struct s4d_error *err)
{
    struct s4d_full full;
    int rc = s4d_full_create(&full, c, p, allowed, fold, err), *class_of = NULL;
    *s = (struct s4d_system){0};
    if (rc == 0) {
        int n = s4d_full_nodes(&full);
        class_of = s4d_malloc((size_t)n * sizeof *class_of);
        for (int v = 0; v < n; v++)
            class_of[v] = v;
        if (fold && s4d_fold(&full, c, class_of, err) < 0)
            rc = -1;
    }
    if (rc == 0)
        make_system(s, &full, c, class_of, fold);
    free(class_of);
    s4d_full_free(&full);
    return rc;
}

void s4d_system_free(struct s4d_system *s)
{
    free(s->ranks);
    free(s->groups);
    free(s->flows);
    free(s->messages);
    free(s->links);
    free(s->class_of_rank);
    free(s->class_of_link);
    free(s->block);
    *s = (struct s4d_system){0};
}
