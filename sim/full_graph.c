/* SPDX-License-Identifier: Apache-2.0 */
/* The links that flows cross, and the graph between ranks, groups, flows and links. */
#include <stdlib.h>
#include <string.h>

#include "sim/full_building.h"
#include "support/memory.h"

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

void s4d_full_links(struct building *b, bool fold)
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

void s4d_full_graph(struct building *b)
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
