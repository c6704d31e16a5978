/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/link_classes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/random.h" /* for: s4d_mix */

struct share {
    int flow, weight; /* a flow class, its total multiplicity on one link */
};

/* A class of links and what one of them carries: share[first] .., ascending flows. */
struct bundle {
    int representative, members, first, n;
    bool limits;
    uint64_t hash;
};

struct making {
    const struct s4d_full *f;
    const struct s4d_cluster *c;
    const int *class_of;
    int first_flow, first_link, n_flows;
    int *total; /* by flow class, zeroes between links */
    struct share *share;
    int n_shares, cap_shares;
    struct bundle *bundle;
    int n_bundles, cap_bundles;
    int *bundle_of; /* by link of f, spare ones too */
};

static int by_flow(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    return (x->flow > y->flow) - (x->flow < y->flow);
}

/* A crossing of the link that is being looked at. */
static void add(struct making *m, int flow_node, int weight)
{
    int flow = m->class_of[flow_node] - m->first_flow;
    S4D_ASSERT(m->total[flow] <= INT_MAX - weight, "flow class %d", flow);
    if (m->total[flow] == 0)
        s4d_push(m->share, m->n_shares, m->cap_shares, (struct share){flow, 0});
    m->total[flow] += weight;
}

/* The bundle of the link whose crossings have been added, from share `first` on. */
static struct bundle close_bundle(struct making *m, int first, int representative)
{
    struct bundle b = {representative, 1, first, m->n_shares - first, true, 0};
    for (int i = first; i < m->n_shares; i++) {
        m->share[i].weight = m->total[m->share[i].flow];
        m->total[m->share[i].flow] = 0;
    }
    qsort(m->share + first, (size_t)b.n, sizeof *m->share, by_flow);
    for (int i = first; i < m->n_shares; i++)
        b.hash =
            s4d_mix(b.hash ^ ((uint64_t)m->share[i].flow << 32 | (uint32_t)m->share[i].weight));
    return b;
}

/* One for each class of links in the partition, in order. */
static void bundle_classes(struct making *m, int n_links)
{
    const struct s4d_full *f = m->f;
    for (int i = 0; i < f->n_links; i++) {
        int node = s4d_full_link_node(f, i), class = m->class_of[node] - m->first_link;
        m->bundle_of[i] = class;
        if (class < m->n_bundles) {
            m->bundle[class].members++;
            continue;
        }
        int first = m->n_shares;
        for (int e = f->start[node]; e < f->start[node + 1]; e++)
            add(m, f->to[e], f->weight[e]);
        s4d_push(m->bundle, m->n_bundles, m->cap_bundles, close_bundle(m, first, f->links[i]));
    }
    S4D_ASSERT(m->n_bundles == n_links, "%d link classes of %d", m->n_bundles, n_links);
}

static bool same(const struct making *m, const struct bundle *a, const struct bundle *b)
{
    const struct s4d_link *x = &m->c->links[a->representative],
                          *y = &m->c->links[b->representative];
    return a->hash == b->hash && a->n == b->n && x->capacity_Bps == y->capacity_Bps &&
           strcmp(x->kind, y->kind) == 0 &&
           memcmp(m->share + a->first, m->share + b->first, (size_t)a->n * sizeof *m->share) == 0;
}

/* Spare links that carry the same share a class: a hash table of bundles. */
static void bundle_spare(struct making *m)
{
    const struct s4d_full *f = m->f;
    size_t size = 2;
    while (size < 2 * (size_t)f->n_spare)
        size *= 2;
    int *slot = s4d_malloc(size * sizeof *slot);
    memset(slot, -1, size * sizeof *slot);
    for (int i = 0; i < f->n_spare; i++) {
        int first = m->n_shares;
        for (int k = f->spare_start[i]; k < f->spare_start[i + 1]; k++)
            add(m, s4d_full_flow_node(f, f->spare[k].flow), f->spare[k].weight);
        struct bundle b = close_bundle(m, first, f->links[f->n_links + i]);
        b.limits = false;
        size_t at = b.hash & (size - 1);
        while (slot[at] >= 0 && !same(m, &m->bundle[slot[at]], &b))
            at = (at + 1) & (size - 1);
        if (slot[at] >= 0) {
            m->bundle[slot[at]].members++;
            m->n_shares = first;
        } else {
            slot[at] = m->n_bundles;
            s4d_push(m->bundle, m->n_bundles, m->cap_bundles, b);
        }
        m->bundle_of[f->n_links + i] = slot[at];
    }
    free(slot);
}

/* Whether b is loaded at least as much as a by all that loads a. */
static bool dominates(const struct making *m, const struct bundle *b, const struct bundle *a)
{
    double C_a = m->c->links[a->representative].capacity_Bps,
           C_b = m->c->links[b->representative].capacity_Bps;
    const struct share *x = m->share + a->first, *y = m->share + b->first, *y_end = y + b->n;
    if (b->n < a->n)
        return false;
    for (int i = 0; i < a->n; i++, y++) {
        while (y < y_end && y->flow < x[i].flow)
            y++;
        if (y == y_end || y->flow != x[i].flow || y->weight * C_a < x[i].weight * C_b)
            return false;
    }
    return true;
}

/* The bundles that limit, by flow class: those of flow f are list[start[f]] .. */
static void list_by_flow(const struct making *m, int *start, int *list)
{
    for (int k = 0; k < m->n_bundles; k++)
        for (int i = 0; i < m->bundle[k].n && m->bundle[k].limits; i++)
            start[m->share[m->bundle[k].first + i].flow + 1]++;
    for (int i = 0; i < m->n_flows; i++)
        start[i + 1] += start[i];
    for (int k = 0; k < m->n_bundles; k++)
        for (int i = 0; i < m->bundle[k].n && m->bundle[k].limits; i++)
            list[start[m->share[m->bundle[k].first + i].flow]++] = k;
    memmove(start + 1, start, (size_t)m->n_flows * sizeof *start);
    start[0] = 0;
}

/* What dominates a bundle crosses the rarest of its flows. Of two that are loaded alike the first
 * stays. */
static void drop_dominated(struct making *m)
{
    int *start = s4d_calloc((size_t)m->n_flows + 1, sizeof *start);
    int *list = s4d_malloc((size_t)m->n_shares * sizeof *list + 1);
    list_by_flow(m, start, list);
    for (int k = 0; k < m->n_bundles; k++) {
        struct bundle *a = &m->bundle[k];
        if (!a->limits)
            continue;
        int rarest = m->share[a->first].flow;
        for (int i = 1; i < a->n; i++) {
            int flow = m->share[a->first + i].flow;
            if (start[flow + 1] - start[flow] < start[rarest + 1] - start[rarest])
                rarest = flow;
        }
        for (int i = start[rarest]; i < start[rarest + 1] && a->limits; i++) {
            const struct bundle *b = &m->bundle[list[i]];
            if (b != a && b->limits && dominates(m, b, a))
                a->limits = b > a && dominates(m, a, b);
        }
    }
    free(start);
    free(list);
}

static int gcd(int a, int b)
{
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Weights and capacity are divided by the weights' gcd: SimGrid's time grows with weights. */
static void emit(const struct making *m, struct s4d_link_classes *l, const struct bundle *b)
{
    int divisor = 0;
    for (int i = 0; i < b->n; i++)
        divisor = gcd(m->share[b->first + i].weight, divisor);
    for (int i = 0; i < b->n; i++) {
        const struct share *s = &m->share[b->first + i];
        l->load[l->n_loads++] = (struct s4d_load){s->flow, l->n, s->weight / divisor};
    }
    l->link[l->n++] = (struct s4d_link_class){m->c->links[b->representative].capacity_Bps / divisor,
                                              divisor, b->representative, b->members};
}

static void emit_all(const struct making *m, struct s4d_link_classes *l)
{
    int *number = s4d_malloc((size_t)m->n_bundles * sizeof *number + 1);
    *l = (struct s4d_link_classes){
        .link = s4d_malloc((size_t)m->n_bundles * sizeof *l->link + 1),
        .load = s4d_malloc((size_t)m->n_shares * sizeof *l->load + 1),
        .class_of_link = s4d_malloc((size_t)m->c->n_links * sizeof *l->class_of_link + 1)};
    for (int limits = 1; limits >= 0; limits--) {
        for (int k = 0; k < m->n_bundles; k++)
            if (m->bundle[k].limits == limits) {
                number[k] = l->n;
                emit(m, l, &m->bundle[k]);
            }
        l->n_limiting = limits ? l->n : l->n_limiting;
    }
    for (int link = 0; link < m->c->n_links; link++)
        l->class_of_link[link] = -1;
    for (int i = 0; i < m->f->n_links + m->f->n_spare; i++)
        l->class_of_link[m->f->links[i]] = number[m->bundle_of[i]];
    free(number);
}

void s4d_link_classes_make(struct s4d_link_classes *l, const struct s4d_full *f,
                           const struct s4d_cluster *c, const int *class_of, int first_flow,
                           int first_link, int n_classes, bool drop)
{
    struct making m = {.f = f,
                       .c = c,
                       .class_of = class_of,
                       .first_flow = first_flow,
                       .first_link = first_link,
                       .n_flows = first_link - first_flow};
    m.total = s4d_calloc((size_t)m.n_flows + 1, sizeof *m.total);
    m.bundle_of = s4d_malloc((size_t)(f->n_links + f->n_spare) * sizeof *m.bundle_of + 1);
    bundle_classes(&m, n_classes - first_link);
    bundle_spare(&m);
    if (drop)
        drop_dominated(&m);
    emit_all(&m, l);
    free(m.total);
    free(m.share);
    free(m.bundle);
    free(m.bundle_of);
}
