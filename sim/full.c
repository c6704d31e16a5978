/* SPDX-License-Identifier: Apache-2.0 */
/* The unfolded system. It has some ten thousand groups and a few hundred thousand crossings of
 * flows and links at 4,096 ranks: a few large arrays, nothing quadratic. */
#include "sim/full.h"

#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

/* A flow crosses a link, in the order of the flows. */
struct crossing {
    int flow, link, weight;
};

struct building {
    struct s4d_full *f;
    const struct s4d_cluster *c;
    const struct s4d_grid *grid;
    unsigned algorithms;
    int cap_groups, cap_flows;
    int *group_of; /* by set and rank */
    struct crossing *crossings;
    int n_crossings, cap_crossings;
};

static void find_sets(struct s4d_full *f, const struct s4d_program *p)
{
    bool used[S4D_STREAMS] = {false};
    for (int i = 0; i < p->n_ops; i++)
        if (s4d_op_kinds[p->ops[i].kind].op_class == S4D_CLASS_COLLECTIVE)
            used[p->ops[i].stream] = true;
    for (int s = 0; s < S4D_STREAMS; s++) {
        f->set_of_stream[s] = -1;
        for (int k = 0; k < f->n_sets && used[s]; k++)
            if (f->set[k] == s4d_streams[s].axes)
                f->set_of_stream[s] = k;
        if (!used[s] || f->set_of_stream[s] >= 0)
            continue;
        f->set_of_stream[s] = f->n_sets;
        f->set[f->n_sets++] = s4d_streams[s].axes;
    }
}

/* The index of this shape among those seen. There are few: as many as the cost function tells
 * apart. */
static int shape_index(struct s4d_full *f, const struct s4d_channels *ch)
{
    for (int i = f->n_shapes - 1; i >= 0; i--) {
        const struct s4d_channels *s = &f->shapes[i];
        if (s->algorithm == ch->algorithm && s->n == ch->n && s->members == ch->members &&
            s->nodes == ch->nodes && s->members_per_node == ch->members_per_node &&
            s->bus_Bps == ch->bus_Bps && s->library_channels == ch->library_channels)
            return i;
    }
    s4d_push(f->shapes, f->n_shapes, f->cap_shapes, *ch);
    f->shapes[f->n_shapes - 1].channel = NULL;
    return f->n_shapes - 1;
}

static void add_channels(struct building *b, const struct s4d_channels *ch, int algorithm)
{
    struct s4d_full *f = b->f;
    for (int i = 0; i < ch->n; i++) {
        const struct s4d_path *path = &ch->channel[i].path;
        for (int j = 0; j < path->n; j++)
            s4d_push(b->crossings, b->n_crossings, b->cap_crossings,
                     (struct crossing){f->n_flows, path->link[j], path->weight[j]});
        s4d_push(f->flows, f->n_flows, b->cap_flows,
                 (struct s4d_full_flow){algorithm, ch->channel[i].share});
    }
}

/* The flows of the group of these ranks, for every algorithm that is asked for and possible. */
static int add_group(struct building *b, int set, const int *ranks, int n, int *devices,
                     struct s4d_error *err)
{
    struct s4d_full *f = b->f;
    struct s4d_full_group group = {.set = set, .n_ranks = n, .first_flow = f->n_flows};
    int possible = n == 1;
    for (int i = 0; i < n; i++) {
        b->group_of[(size_t)set * (size_t)f->n_ranks + (size_t)ranks[i]] = f->n_groups;
        devices[i] = s4d_device_of_rank(b->c, ranks[i]);
    }
    for (int a = 0; a < S4D_ALGORITHMS; a++)
        group.shape[a] = -1;
    for (int a = 0; a < S4D_ALGORITHMS && s4d_algorithms[a] && n > 1; a++) {
        struct s4d_channels ch = {0};
        if (!(b->algorithms >> a & 1) || s4d_algorithms[a]->channels(b->c, devices, n, &ch))
            continue;
        add_channels(b, &ch, a);
        group.shape[a] = shape_index(f, &ch);
        s4d_channels_free(&ch);
        possible++;
    }
    s4d_push(f->groups, f->n_groups, b->cap_groups, group);
    if (!possible)
        return s4d_fail(err, S4D_EXIT_DATA, b->c->machine->name,
                        "no collective algorithm has channels for the group of rank %d with %d "
                        "members",
                        ranks[0], n);
    return 0;
}

static int add_groups(struct building *b, struct s4d_error *err)
{
    struct s4d_full *f = b->f;
    size_t n = (size_t)f->n_ranks;
    int *ranks = s4d_malloc(n * sizeof *ranks), *devices = s4d_malloc(n * sizeof *devices), rc = 0;
    b->group_of = s4d_malloc(n * (size_t)f->n_sets * sizeof *b->group_of);
    memset(b->group_of, -1, n * (size_t)f->n_sets * sizeof *b->group_of);
    for (int set = 0; set < f->n_sets; set++)
        for (int rank = 0; rank < f->n_ranks && rc == 0; rank++) {
            if (b->group_of[(size_t)set * n + (size_t)rank] >= 0)
                continue;
            int size = s4d_group_members(b->grid, rank, f->set[set], ranks);
            rc = add_group(b, set, ranks, size, devices, err);
        }
    free(ranks);
    free(devices);
    return rc;
}

/* Numbers the links that are crossed 0, 1, ... and puts these numbers into the crossings. */
static void number_links(struct building *b)
{
    struct s4d_full *f = b->f;
    int *number = s4d_malloc((size_t)b->c->n_links * sizeof *number);
    memset(number, -1, (size_t)b->c->n_links * sizeof *number);
    for (int i = 0; i < b->n_crossings; i++) {
        S4D_ASSERT(b->crossings[i].weight > 0, "flow %d, link %d", b->crossings[i].flow,
                   b->crossings[i].link);
        number[b->crossings[i].link] = 0;
    }
    f->links = s4d_malloc(((size_t)b->c->n_links + 1) * sizeof *f->links);
    for (int link = 0; link < b->c->n_links; link++)
        if (number[link] == 0) {
            f->links[f->n_links] = link;
            number[link] = f->n_links++;
        }
    for (int i = 0; i < b->n_crossings; i++)
        b->crossings[i].link = number[b->crossings[i].link];
    free(number);
}

/* Calls visit for each edge, from both ends. The edges of any one node come in the order that
 * sim/full.h states, because groups, flows and crossings are visited in theirs. */
static void each_edge(struct building *b,
                      void (*visit)(struct s4d_full *f, int from, int to, int weight))
{
    struct s4d_full *f = b->f;
    for (int set = 0; set < f->n_sets; set++)
        for (int rank = 0; rank < f->n_ranks; rank++) {
            int group = b->group_of[(size_t)set * (size_t)f->n_ranks + (size_t)rank];
            visit(f, rank, s4d_full_group_node(f, group), 1);
            visit(f, s4d_full_group_node(f, group), rank, 1);
        }
    for (int group = 0; group < f->n_groups; group++) {
        int end = group + 1 < f->n_groups ? f->groups[group + 1].first_flow : f->n_flows;
        for (int flow = f->groups[group].first_flow; flow < end; flow++) {
            visit(f, s4d_full_group_node(f, group), s4d_full_flow_node(f, flow), 1);
            visit(f, s4d_full_flow_node(f, flow), s4d_full_group_node(f, group), 1);
        }
    }
    for (int i = 0; i < b->n_crossings; i++) {
        const struct crossing *x = &b->crossings[i];
        visit(f, s4d_full_flow_node(f, x->flow), s4d_full_link_node(f, x->link), x->weight);
        visit(f, s4d_full_link_node(f, x->link), s4d_full_flow_node(f, x->flow), x->weight);
    }
}

static void count_edge(struct s4d_full *f, int from, int to, int weight)
{
    (void)to;
    (void)weight;
    f->start[from + 1]++;
}

static void place_edge(struct s4d_full *f, int from, int to, int weight)
{
    int at = f->start[from]++;
    f->to[at] = to;
    f->weight[at] = weight;
}

static void make_graph(struct building *b)
{
    struct s4d_full *f = b->f;
    int n = s4d_full_nodes(f);
    f->start = s4d_calloc((size_t)n + 1, sizeof *f->start);
    each_edge(b, count_edge);
    for (int v = 0; v < n; v++)
        f->start[v + 1] += f->start[v];
    f->to = s4d_malloc((size_t)f->start[n] * sizeof *f->to + 1);
    f->weight = s4d_malloc((size_t)f->start[n] * sizeof *f->weight + 1);
    each_edge(b, place_edge);
    memmove(f->start + 1, f->start, (size_t)n * sizeof *f->start);
    f->start[0] = 0;
}

int s4d_full_create(struct s4d_full *f, const struct s4d_cluster *c, const struct s4d_program *p,
                    unsigned algorithms, struct s4d_error *err)
{
    *f = (struct s4d_full){.n_ranks = s4d_grid_ranks(&p->grid)};
    if (f->n_ranks > c->n_devices)
        return s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                        "the grid has %d ranks, the cluster %d devices", f->n_ranks, c->n_devices);
    struct building b = {.f = f, .c = c, .grid = &p->grid, .algorithms = algorithms};
    find_sets(f, p);
    int rc = add_groups(&b, err);
    if (rc == 0) {
        number_links(&b);
        make_graph(&b);
    }
    free(b.group_of);
    free(b.crossings);
    return rc;
}

void s4d_full_free(struct s4d_full *f)
{
    free(f->groups);
    free(f->flows);
    free(f->shapes);
    free(f->links);
    free(f->start);
    free(f->to);
    free(f->weight);
    *f = (struct s4d_full){0};
}
