/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: the ranks that differ in the axes of one stream, and the flows of the collectives that a
 * program has there. */
#include <stdlib.h>
#include <string.h>

#include "sim/full_building.h"
#include "support/memory.h"

/* What the collectives of one set of axes ask the library for. */
struct request {
    int set;
    enum s4d_op_kind op;
    double bytes;
};

struct grouping {
    struct building *b;
    struct request *requests; /* distinct */
    int n_requests, cap_requests;
    int chosen_set, chosen_shape; /* what `chosen` was found for */
    unsigned chosen;              /* algorithms that the library would choose */
    int cap_groups;
};

static bool is_collective(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
}

static void find_sets(struct s4d_full *f, const struct s4d_program *first)
{
    bool used[S4D_STREAMS] = {false};
    for (int stage = 0; stage < s4d_full_programs(first); stage++) {
        const struct s4d_program *p = s4d_stage_program(first, stage);
        for (int i = 0; i < p->n_ops; i++)
            if (is_collective(&p->ops[i]))
                used[p->ops[i].stream] = true;
    }
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

static void find_requests(struct grouping *g, const struct s4d_program *p)
{
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        if (!is_collective(op))
            continue;
        struct request r = {g->b->f->set_of_stream[op->stream], op->kind,
                            (double)s4d_collective_bytes(&op->c, op->kind)};
        int k = 0;
        while (k < g->n_requests && (g->requests[k].set != r.set || g->requests[k].op != r.op ||
                                     g->requests[k].bytes != r.bytes))
            k++;
        if (k == g->n_requests)
            s4d_push(g->requests, g->n_requests, g->cap_requests, r);
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
            s->bus_Bps == ch->bus_Bps && s->library_channels == ch->library_channels &&
            s->nvls_s_per_B == ch->nvls_s_per_B && s->alone_s_per_B == ch->alone_s_per_B &&
            s->node_bus_Bps == ch->node_bus_Bps)
            return i;
    }
    s4d_push(f->shapes, f->n_shapes, f->cap_shapes, *ch);
    f->shapes[f->n_shapes - 1].channel = NULL;
    return f->n_shapes - 1;
}

static void add_channels(struct building *b, const struct s4d_channels *ch, int algorithm)
{
    for (int i = 0; i < ch->n; i++)
        s4d_full_add_flow(
            b, (struct s4d_full_flow){algorithm, ch->channel[i].phase, ch->channel[i].share},
            &ch->channel[i].path);
}

/* The algorithms that the library would choose for the set's collectives in groups whose ring
 * has this shape. Groups of one set come one after the other, and most are alike. */
static unsigned chosen_algorithms(struct grouping *g, int set, int ring_shape)
{
    if (g->chosen_set == set && g->chosen_shape == ring_shape)
        return g->chosen;
    g->chosen_set = set;
    g->chosen_shape = ring_shape;
    g->chosen = 0;
    for (int i = 0; i < g->n_requests; i++) {
        if (g->requests[i].set != set)
            continue;
        const struct s4d_algorithm *chosen =
            s4d_choose_algorithm(g->b->c->machine, &g->b->f->shapes[ring_shape], g->requests[i].op,
                                 g->requests[i].bytes);
        for (int a = 0; a < S4D_ALGORITHMS && s4d_algorithms[a]; a++)
            g->chosen |= s4d_algorithms[a] == chosen ? 1u << a : 0;
    }
    return g->chosen;
}

/* Channels of one group by algorithm, found when first asked for. */
struct offers {
    struct s4d_channels channels[S4D_ALGORITHMS];
    unsigned asked, possible;
};

static bool is_possible(struct building *b, struct offers *o, int a, const int *devices, int n)
{
    unsigned bit = 1u << a;
    if (!(o->asked & bit) && s4d_algorithms[a]->channels(b->c, devices, n, &o->channels[a]) == 0)
        o->possible |= bit;
    o->asked |= bit;
    return o->possible & bit;
}

/* The algorithms that the library would choose; where one of these is not allowed or not
 * possible, the first that is. 0: none is. */
static unsigned usable(struct building *b, struct offers *o, unsigned chosen, const int *devices,
                       int n)
{
    unsigned used = 0;
    for (int a = 0; a < S4D_ALGORITHMS && s4d_algorithms[a]; a++)
        if (chosen & b->allowed & 1u << a && is_possible(b, o, a, devices, n))
            used |= 1u << a;
    for (int a = 0; a < S4D_ALGORITHMS && s4d_algorithms[a] && used != chosen; a++)
        if (b->allowed & 1u << a && is_possible(b, o, a, devices, n))
            return used | 1u << a;
    return used;
}

/* The flows of a group of two or more, and its shapes. 0, or -1: no algorithm. */
static int add_flows(struct grouping *g, struct s4d_full_group *group, const int *devices)
{
    struct offers o = {.asked = 0};
    int n = group->n_ranks;
    if (is_possible(g->b, &o, 0, devices, n)) {
        group->shape[0] = shape_index(g->b->f, &o.channels[0]);
        group->used =
            usable(g->b, &o, chosen_algorithms(g, group->set, group->shape[0]), devices, n);
    }
    for (int a = 0; a < S4D_ALGORITHMS; a++) {
        if (group->used >> a & 1) {
            group->shape[a] = shape_index(g->b->f, &o.channels[a]);
            add_channels(g->b, &o.channels[a], a);
        }
        if (o.possible >> a & 1)
            s4d_channels_free(&o.channels[a]);
    }
    return group->used ? 0 : -1;
}

static int add_group(struct grouping *g, int set, const int *ranks, int n, int *devices,
                     struct s4d_error *err)
{
    struct building *b = g->b;
    struct s4d_full *f = b->f;
    struct s4d_full_group group = {.set = set, .n_ranks = n, .first_flow = f->n_flows};
    for (int i = 0; i < n; i++) {
        b->group_of[(size_t)set * (size_t)f->n_ranks + (size_t)ranks[i]] = f->n_groups;
        devices[i] = s4d_device_of_rank(b->c, ranks[i]);
    }
    for (int a = 0; a < S4D_ALGORITHMS; a++)
        group.shape[a] = -1;
    int rc = n > 1 ? add_flows(g, &group, devices) : 0;
    if (s4d_cluster_check_ways(b->c, err))
        return -1;
    s4d_push(f->groups, f->n_groups, g->cap_groups, group);
    if (rc == 0)
        return 0;
    return s4d_fail(err, S4D_EXIT_DATA, b->c->machine->name,
                    "no collective algorithm has channels for the group of rank %d with %d members",
                    ranks[0], n);
}

static int add_groups(struct grouping *g, struct s4d_error *err)
{
    struct building *b = g->b;
    struct s4d_full *f = b->f;
    size_t n = (size_t)f->n_ranks;
    int *ranks = s4d_malloc(n * sizeof *ranks), *devices = s4d_malloc(n * sizeof *devices), rc = 0;
    b->group_of = s4d_malloc(n * (size_t)f->n_sets * sizeof *b->group_of);
    memset(b->group_of, -1, n * (size_t)f->n_sets * sizeof *b->group_of);
    for (int set = 0; set < f->n_sets; set++)
        for (int rank = 0; rank < f->n_ranks && rc == 0; rank++) {
            if (b->group_of[(size_t)set * n + (size_t)rank] >= 0)
                continue;
            int size = s4d_group_members(&b->p->grid, rank, f->set[set], ranks);
            rc = add_group(g, set, ranks, size, devices, err);
        }
    free(ranks);
    free(devices);
    return rc;
}

int s4d_full_groups(struct building *b, struct s4d_error *err)
{
    struct grouping g = {.b = b, .chosen_set = -1, .chosen_shape = -1};
    find_sets(b->f, b->p);
    for (int stage = 0; stage < s4d_full_programs(b->p); stage++)
        find_requests(&g, s4d_stage_program(b->p, stage));
    int rc = add_groups(&g, err);
    free(g.requests);
    return rc;
}
