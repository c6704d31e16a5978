/* SPDX-License-Identifier: Apache-2.0 */
/* The unfolded system. It has some ten thousand groups and a few hundred thousand crossings of
 * flows and links at 4,096 ranks: a few large arrays, nothing quadratic. */
#include "sim/full.h"

#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h" /* for: s4d_channel_edge */
#include "support/memory.h"

/* What the collectives of one set of axes ask the library for. */
struct request {
    int set;
    enum s4d_op_kind op;
    double bytes;
};

struct building {
    struct s4d_full *f;
    const struct s4d_cluster *c;
    const struct s4d_grid *grid;
    unsigned allowed;
    struct request *requests; /* distinct */
    int n_requests, cap_requests;
    int chosen_set, chosen_shape; /* what `chosen` was found for */
    unsigned chosen;              /* algorithms that the library would choose */
    int cap_groups, cap_flows;
    int *group_of;                  /* by set and rank */
    struct s4d_crossing *crossings; /* in the order of the flows */
    int n_crossings, cap_crossings;
    int cap_messages;
};

static bool is_collective(const struct s4d_op *op)
{
    return s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE;
}

/* Programs that differ: of every stage, or the one. */
static int programs(const struct s4d_program *p)
{
    return p->stages ? p->grid.size[S4D_PIPE] : 1;
}

static void find_sets(struct s4d_full *f, const struct s4d_program *first)
{
    bool used[S4D_STREAMS] = {false};
    for (int stage = 0; stage < programs(first); stage++) {
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

static void find_requests(struct building *b, const struct s4d_program *p)
{
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        if (!is_collective(op))
            continue;
        struct request r = {b->f->set_of_stream[op->stream], op->kind,
                            (double)s4d_collective_bytes(&op->c, op->kind)};
        int k = 0;
        while (k < b->n_requests && (b->requests[k].set != r.set || b->requests[k].op != r.op ||
                                     b->requests[k].bytes != r.bytes))
            k++;
        if (k == b->n_requests)
            s4d_push(b->requests, b->n_requests, b->cap_requests, r);
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
    struct s4d_full *f = b->f;
    for (int i = 0; i < ch->n; i++) {
        const struct s4d_path *path = &ch->channel[i].path;
        for (int j = 0; j < path->n; j++)
            s4d_push(b->crossings, b->n_crossings, b->cap_crossings,
                     (struct s4d_crossing){f->n_flows, path->link[j], path->weight[j]});
        s4d_push(f->flows, f->n_flows, b->cap_flows,
                 (struct s4d_full_flow){algorithm, ch->channel[i].phase, ch->channel[i].share});
    }
}

/* The algorithms that the library would choose for the set's collectives in groups whose ring has
 * this shape. Groups of one set come one after the other, and most are alike. */
static unsigned chosen_algorithms(struct building *b, int set, int ring_shape)
{
    if (b->chosen_set == set && b->chosen_shape == ring_shape)
        return b->chosen;
    b->chosen_set = set;
    b->chosen_shape = ring_shape;
    b->chosen = 0;
    for (int i = 0; i < b->n_requests; i++) {
        if (b->requests[i].set != set)
            continue;
        const struct s4d_algorithm *chosen = s4d_choose_algorithm(
            b->c->machine, &b->f->shapes[ring_shape], b->requests[i].op, b->requests[i].bytes);
        for (int a = 0; a < S4D_ALGORITHMS && s4d_algorithms[a]; a++)
            b->chosen |= s4d_algorithms[a] == chosen ? 1u << a : 0;
    }
    return b->chosen;
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

/* The algorithms that the library would choose; where one of these is not allowed or not possible,
 * the first that is. 0: none is. */
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
static int add_flows(struct building *b, struct s4d_full_group *group, const int *devices)
{
    struct offers o = {.asked = 0};
    int n = group->n_ranks;
    if (is_possible(b, &o, 0, devices, n)) {
        group->shape[0] = shape_index(b->f, &o.channels[0]);
        group->used = usable(b, &o, chosen_algorithms(b, group->set, group->shape[0]), devices, n);
    }
    for (int a = 0; a < S4D_ALGORITHMS; a++) {
        if (group->used >> a & 1) {
            group->shape[a] = shape_index(b->f, &o.channels[a]);
            add_channels(b, &o.channels[a], a);
        }
        if (o.possible >> a & 1)
            s4d_channels_free(&o.channels[a]);
    }
    return group->used ? 0 : -1;
}

static int add_group(struct building *b, int set, const int *ranks, int n, int *devices,
                     struct s4d_error *err)
{
    struct s4d_full *f = b->f;
    struct s4d_full_group group = {.set = set, .n_ranks = n, .first_flow = f->n_flows};
    for (int i = 0; i < n; i++) {
        b->group_of[(size_t)set * (size_t)f->n_ranks + (size_t)ranks[i]] = f->n_groups;
        devices[i] = s4d_device_of_rank(b->c, ranks[i]);
    }
    for (int a = 0; a < S4D_ALGORITHMS; a++)
        group.shape[a] = -1;
    int rc = n > 1 ? add_flows(b, &group, devices) : 0;
    if (s4d_cluster_check_ways(b->c, err))
        return -1;
    s4d_push(f->groups, f->n_groups, b->cap_groups, group);
    if (rc == 0)
        return 0;
    return s4d_fail(err, S4D_EXIT_DATA, b->c->machine->name,
                    "no collective algorithm has channels for the group of rank %d with %d members",
                    ranks[0], n);
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

/* The flow of what a rank sends the peer that is so many stages away. */
static void add_message(struct building *b, int rank, int peer)
{
    struct s4d_full *f = b->f;
    struct s4d_channel channel = {.share = 1};
    int c[S4D_AXES], per = b->c->machine->node.devices;
    s4d_grid_coordinates(b->grid, rank, c);
    c[S4D_PIPE] += peer;
    int to = s4d_grid_rank(b->grid, c);
    int out = s4d_device_of_rank(b->c, rank), in = s4d_device_of_rank(b->c, to);
    s4d_channel_edge(&channel, b->c, out, in);
    s4d_path_merge(&channel.path);
    for (int i = 0; i < channel.path.n; i++)
        s4d_push(b->crossings, b->n_crossings, b->cap_crossings,
                 (struct s4d_crossing){f->n_flows, channel.path.link[i], channel.path.weight[i]});
    s4d_push(f->flows, f->n_flows, b->cap_flows,
             (struct s4d_full_flow){S4D_ALGORITHMS + (out / per != in / per), peer, 1});
    s4d_push(f->messages, f->n_messages, b->cap_messages,
             (struct s4d_full_message){rank, to, peer});
    s4d_path_free(&channel.path);
    free(channel.edge);
}

static bool sends_to(const struct s4d_program *p, int peer)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].kind == S4D_OP_SEND && p->ops[i].c.message.peer == peer)
            return true;
    return false;
}

static int add_messages(struct building *b, const struct s4d_program *p, struct s4d_error *err)
{
    int pipe = p->grid.size[S4D_PIPE];
    bool *sends = s4d_calloc((size_t)pipe * (size_t)pipe, sizeof *sends); /* [stage][to] */
    for (int stage = 0; stage < programs(p); stage++)
        for (int to = 0; to < pipe; to++)
            sends[stage * pipe + to] =
                to != stage && sends_to(s4d_stage_program(p, stage), to - stage);
    for (int rank = 0; rank < b->f->n_ranks; rank++)
        for (int to = 0, from = b->f->stage[rank]; to < pipe; to++)
            if (sends[from * pipe + to])
                add_message(b, rank, to - from);
    free(sends);
    return s4d_cluster_check_ways(b->c, err);
}

static void find_stages(struct s4d_full *f, const struct s4d_program *p)
{
    f->stage = s4d_calloc((size_t)f->n_ranks, sizeof *f->stage);
    for (int rank = 0; rank < f->n_ranks && p->stages; rank++) {
        int c[S4D_AXES];
        s4d_grid_coordinates(&p->grid, rank, c);
        f->stage[rank] = c[S4D_PIPE];
    }
}

/* Lists the links whose number is `marked`, and numbers them on. */
static int list_links(struct s4d_full *f, int *number, int n, int marked, int next)
{
    int first = next;
    for (int link = 0; link < n; link++)
        if (number[link] == marked) {
            f->links[next] = link;
            number[link] = next++;
        }
    return next - first;
}

/* Numbers the links that are crossed 0, 1, ..., spare ones last, and puts these numbers into the
 * crossings. */
static void number_links(struct building *b, const bool *spare)
{
    enum { LIMITS = -2, SPARE = -3 };
    struct s4d_full *f = b->f;
    int n = b->c->n_links;
    int *number = s4d_malloc((size_t)n * sizeof *number + 1);
    memset(number, -1, (size_t)n * sizeof *number);
    for (int i = 0; i < b->n_crossings; i++) {
        const struct s4d_crossing *x = &b->crossings[i];
        S4D_ASSERT(x->weight > 0, "flow %d, link %d", x->flow, x->link);
        number[x->link] = spare && spare[x->link] ? SPARE : LIMITS;
    }
    f->links = s4d_malloc(((size_t)n + 1) * sizeof *f->links);
    f->n_links = list_links(f, number, n, LIMITS, 0);
    f->n_spare = list_links(f, number, n, SPARE, f->n_links);
    for (int i = 0; i < b->n_crossings; i++)
        b->crossings[i].link = number[b->crossings[i].link];
    free(number);
}

/* The crossings of spare links, link by link. */
static void list_spare(struct building *b)
{
    struct s4d_full *f = b->f;
    f->spare_start = s4d_calloc((size_t)f->n_spare + 1, sizeof *f->spare_start);
    for (int i = 0; i < b->n_crossings; i++)
        if (b->crossings[i].link >= f->n_links)
            f->spare_start[b->crossings[i].link - f->n_links + 1]++;
    for (int i = 0; i < f->n_spare; i++)
        f->spare_start[i + 1] += f->spare_start[i];
    f->spare = s4d_malloc((size_t)f->spare_start[f->n_spare] * sizeof *f->spare + 1);
    for (int i = 0; i < b->n_crossings; i++)
        if (b->crossings[i].link >= f->n_links)
            f->spare[f->spare_start[b->crossings[i].link - f->n_links]++] = b->crossings[i];
    memmove(f->spare_start + 1, f->spare_start, (size_t)f->n_spare * sizeof *f->spare_start);
    f->spare_start[0] = 0;
}

static void settle_links(struct building *b, bool fold)
{
    bool *spare = NULL;
    if (fold) {
        spare = s4d_malloc((size_t)b->c->n_links * sizeof *spare + 1);
        s4d_spare_links(b->c, b->crossings, b->n_crossings, b->f->n_flows, spare);
    }
    number_links(b, spare);
    list_spare(b);
    free(spare);
}

/* Calls visit for each edge, from both ends. The edges of any one node come in the order that
 * sim/full.h states, because groups, flows and crossings are visited in theirs. */
static void each_edge(struct building *b,
                      void (*visit)(struct s4d_full *f, int from, int to, int weight))
{
    enum { SENDS = 1, RECEIVES = 2 };
    struct s4d_full *f = b->f;
    for (int set = 0; set < f->n_sets; set++)
        for (int rank = 0; rank < f->n_ranks; rank++) {
            int group = b->group_of[(size_t)set * (size_t)f->n_ranks + (size_t)rank];
            visit(f, rank, s4d_full_group_node(f, group), 1);
            visit(f, s4d_full_group_node(f, group), rank, 1);
        }
    int first_message = f->n_flows - f->n_messages;
    for (int i = 0; i < f->n_messages; i++) {
        int flow = s4d_full_flow_node(f, first_message + i);
        visit(f, f->messages[i].from, flow, SENDS);
        visit(f, flow, f->messages[i].from, SENDS);
        visit(f, f->messages[i].to, flow, RECEIVES);
        visit(f, flow, f->messages[i].to, RECEIVES);
    }
    for (int group = 0; group < f->n_groups; group++) {
        int end = group + 1 < f->n_groups ? f->groups[group + 1].first_flow : first_message;
        for (int flow = f->groups[group].first_flow; flow < end; flow++) {
            visit(f, s4d_full_group_node(f, group), s4d_full_flow_node(f, flow), 1);
            visit(f, s4d_full_flow_node(f, flow), s4d_full_group_node(f, group), 1);
        }
    }
    for (int i = 0; i < b->n_crossings; i++) {
        const struct s4d_crossing *x = &b->crossings[i];
        if (x->link >= f->n_links)
            continue;
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
                    unsigned allowed, bool fold, struct s4d_error *err)
{
    *f = (struct s4d_full){.n_ranks = s4d_grid_ranks(&p->grid)};
    if (f->n_ranks > c->n_devices)
        return s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                        "the grid has %d ranks, the cluster %d devices", f->n_ranks, c->n_devices);
    struct building b = {
        .f = f, .c = c, .grid = &p->grid, .allowed = allowed, .chosen_set = -1, .chosen_shape = -1};
    find_stages(f, p);
    find_sets(f, p);
    for (int stage = 0; stage < programs(p); stage++)
        find_requests(&b, s4d_stage_program(p, stage));
    s4d_feeders_watch(c, fold);
    int rc = add_groups(&b, err);
    if (rc == 0)
        rc = add_messages(&b, p, err);
    if (rc == 0) {
        settle_links(&b, fold);
        make_graph(&b);
    }
    s4d_feeders_watch(c, false);
    free(b.requests);
    free(b.group_of);
    free(b.crossings);
    return rc;
}

void s4d_full_free(struct s4d_full *f)
{
    free(f->groups);
    free(f->flows);
    free(f->messages);
    free(f->stage);
    free(f->shapes);
    free(f->links);
    free(f->spare_start);
    free(f->spare);
    free(f->start);
    free(f->to);
    free(f->weight);
    *f = (struct s4d_full){0};
}
