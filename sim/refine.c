/* SPDX-License-Identifier: Apache-2.0 */
/* Rounds over a work list. A node's signature is a hash of its neighbours' classes; in each round
 * the nodes with a neighbour that has changed class get a new signature, and classes whose members
 * now differ are split. The largest part, or the part that was not looked at, keeps its number, so
 * few nodes change and the work dies out. */
#include "sim/refine.h"

#include <stdlib.h>
#include <string.h>

#include "support/memory.h" /* for: s4d_malloc */
#include "support/random.h"

/* A bijection of which every bit depends on all. */
static uint64_t mix(uint64_t x)
{
    return s4d_random_next(&x);
}

/* A map from 64-bit keys to totals, emptied in constant time. */
struct bag {
    uint64_t *key;
    int64_t *total;
    unsigned *filled; /* the entry is in use if this is the current epoch */
    unsigned epoch;
    uint32_t mask; /* of the part of the table in use: twice the entries expected */
    int distinct;
};

static void bag_create(struct bag *bag, int entries)
{
    size_t size = 2;
    while (size < 2 * (size_t)entries)
        size *= 2;
    *bag = (struct bag){.key = s4d_malloc(size * sizeof *bag->key),
                        .total = s4d_malloc(size * sizeof *bag->total),
                        .filled = s4d_calloc(size, sizeof *bag->filled)};
}

static void bag_free(struct bag *bag)
{
    free(bag->key);
    free(bag->total);
    free(bag->filled);
}

static void bag_empty(struct bag *bag, int entries)
{
    uint32_t size = 2;
    while (size < 2 * (uint32_t)entries)
        size *= 2;
    bag->mask = size - 1;
    bag->epoch++;
    bag->distinct = 0;
}

/* The total of a key, 0 when it is new. */
static int64_t *bag_at(struct bag *bag, uint64_t key)
{
    uint32_t i = (uint32_t)mix(key) & bag->mask;
    while (bag->filled[i] == bag->epoch && bag->key[i] != key)
        i = (i + 1) & bag->mask;
    if (bag->filled[i] != bag->epoch) {
        bag->filled[i] = bag->epoch;
        bag->key[i] = key;
        bag->total[i] = 0;
        bag->distinct++;
    }
    return &bag->total[i];
}

static uint64_t neighbour(const struct s4d_graph *g, const int *class_of, int v, int edge)
{
    uint64_t class = (uint32_t)class_of[g->to[edge]];
    return g->totals[v] ? class : class << 32 | (uint32_t)g->weight[edge];
}

/* The neighbours of v as the partition sees them. */
static void bag_fill(struct bag *bag, const struct s4d_graph *g, const int *class_of, int v)
{
    bag_empty(bag, g->start[v + 1] - g->start[v]);
    for (int e = g->start[v]; e < g->start[v + 1]; e++) {
        int64_t *total = bag_at(bag, neighbour(g, class_of, v, e));
        *total = g->totals[v] ? *total + g->weight[e] : 1;
    }
}

static int max_degree(const struct s4d_graph *g)
{
    int most = 1;
    for (int v = 0; v < g->n; v++)
        if (g->start[v + 1] - g->start[v] > most)
            most = g->start[v + 1] - g->start[v];
    return most;
}

/* Nodes of one class that were looked at in this round and have the same signature. */
struct part {
    int class, count, next; /* next part of the class, -1: last */
    uint64_t signature;
};

struct refinement {
    const struct s4d_graph *g;
    struct bag bag;
    int *class_of, n_classes;
    int *size, *first_part; /* by class; first_part is -1 between rounds */
    uint64_t *signature;    /* by class: of its members */
    int *dirty, n_dirty;    /* nodes to look at */
    int *part_of;           /* by place in dirty */
    bool *marked;           /* by node: already in dirty */
    struct part *parts;
    int n_parts;
    int *slots; /* hash table of parts, -1: empty */
    uint32_t slot_mask;
};

static uint64_t signature_of(struct refinement *r, int v)
{
    const struct s4d_graph *g = r->g;
    uint64_t sum = 0;
    if (g->totals[v]) {
        for (int e = g->start[v]; e < g->start[v + 1]; e++)
            sum += (uint64_t)g->weight[e] * mix((uint32_t)r->class_of[g->to[e]]);
        return sum;
    }
    bag_empty(&r->bag, g->start[v + 1] - g->start[v]);
    for (int e = g->start[v]; e < g->start[v + 1]; e++) {
        uint64_t key = neighbour(g, r->class_of, v, e);
        int64_t *seen = bag_at(&r->bag, key);
        sum += *seen ? 0 : mix(key);
        *seen = 1;
    }
    return sum;
}

/* The part for (class, signature), made if it is new. */
static int part_at(struct refinement *r, int class, uint64_t signature)
{
    uint32_t i = (uint32_t)mix(signature + mix((uint32_t) class)) & r->slot_mask;
    for (; r->slots[i] >= 0; i = (i + 1) & r->slot_mask) {
        const struct part *p = &r->parts[r->slots[i]];
        if (p->class == class && p->signature == signature)
            return r->slots[i];
    }
    r->slots[i] = r->n_parts;
    r->parts[r->n_parts] = (struct part){class, 0, r->first_part[class], signature};
    r->first_part[class] = r->n_parts;
    return r->n_parts++;
}

static void find_parts(struct refinement *r)
{
    uint32_t size = 2;
    while (size < 2 * (uint32_t)r->n_dirty)
        size *= 2;
    r->slot_mask = size - 1;
    memset(r->slots, -1, size * sizeof *r->slots);
    r->n_parts = 0;
    for (int i = 0; i < r->n_dirty; i++) {
        int v = r->dirty[i];
        r->part_of[i] = part_at(r, r->class_of[v], signature_of(r, v));
        r->parts[r->part_of[i]].count++;
    }
}

/* Gives every part of a class but one a new class; the parts' `class` is the new one afterwards. */
static void split(struct refinement *r, int class)
{
    int keeper = -1, looked_at = 0;
    for (int p = r->first_part[class]; p >= 0; p = r->parts[p].next)
        looked_at += r->parts[p].count;
    bool all = looked_at == r->size[class];
    for (int p = r->first_part[class]; p >= 0; p = r->parts[p].next)
        if (all ? keeper < 0 || r->parts[p].count > r->parts[keeper].count
                : r->parts[p].signature == r->signature[class])
            keeper = p;
    for (int p = r->first_part[class]; p >= 0; p = r->parts[p].next) {
        struct part *part = &r->parts[p];
        if (p == keeper) {
            r->signature[class] = part->signature;
            continue;
        }
        r->size[class] -= part->count;
        part->class = r->n_classes++;
        r->size[part->class] = part->count;
        r->signature[part->class] = part->signature;
        r->first_part[part->class] = -1;
    }
    r->first_part[class] = -1;
}

/* One round; afterwards dirty holds the neighbours of the nodes that have changed class. */
static void refine_round(struct refinement *r, int *changed)
{
    const struct s4d_graph *g = r->g;
    int n_changed = 0;
    find_parts(r);
    for (int p = 0; p < r->n_parts; p++)
        if (r->first_part[r->parts[p].class] >= 0)
            split(r, r->parts[p].class);
    for (int i = 0; i < r->n_dirty; i++) {
        int v = r->dirty[i], class = r->parts[r->part_of[i]].class;
        r->marked[v] = false;
        if (class == r->class_of[v])
            continue;
        r->class_of[v] = class;
        changed[n_changed++] = v;
    }
    r->n_dirty = 0;
    for (int i = 0; i < n_changed; i++)
        for (int e = g->start[changed[i]]; e < g->start[changed[i] + 1]; e++)
            if (!r->marked[g->to[e]]) {
                r->marked[g->to[e]] = true;
                r->dirty[r->n_dirty++] = g->to[e];
            }
}

static bool same_key(const struct s4d_graph *g, int a, int b)
{
    return g->totals[a] == g->totals[b] &&
           memcmp(g->key + (size_t)a * S4D_KEY_WORDS, g->key + (size_t)b * S4D_KEY_WORDS,
                  S4D_KEY_WORDS * sizeof *g->key) == 0;
}

/* Classes by key, exactly: a hash table of one node a class. */
static void colour_by_key(struct refinement *r)
{
    for (int v = 0; v < r->g->n; v++) {
        uint64_t hash = r->g->totals[v];
        for (int w = 0; w < S4D_KEY_WORDS; w++)
            hash = mix(hash ^ r->g->key[(size_t)v * S4D_KEY_WORDS + (size_t)w]);
        uint32_t i = (uint32_t)hash & r->slot_mask;
        while (r->slots[i] >= 0 && !same_key(r->g, r->slots[i], v))
            i = (i + 1) & r->slot_mask;
        if (r->slots[i] < 0) {
            r->slots[i] = v;
            r->first_part[r->n_classes] = -1;
            r->class_of[v] = r->n_classes++;
        } else {
            r->class_of[v] = r->class_of[r->slots[i]];
        }
        r->size[r->class_of[v]]++;
    }
}

static void number_by_lowest(int *class_of, int n, int *number)
{
    int next = 0;
    memset(number, -1, (size_t)n * sizeof *number);
    for (int v = 0; v < n; v++) {
        if (number[class_of[v]] < 0)
            number[class_of[v]] = next++;
        class_of[v] = number[class_of[v]];
    }
}

int s4d_refine(const struct s4d_graph *g, int *class_of)
{
    size_t n = (size_t)g->n, ints = n * sizeof(int), slots = 2;
    while (slots < 2 * n)
        slots *= 2;
    struct refinement r = {.g = g,
                           .class_of = class_of,
                           .size = s4d_calloc(n, sizeof(int)),
                           .first_part = s4d_malloc(ints),
                           .signature = s4d_malloc(n * sizeof(uint64_t)),
                           .dirty = s4d_malloc(ints),
                           .n_dirty = g->n,
                           .part_of = s4d_malloc(ints),
                           .marked = s4d_calloc(n, sizeof(bool)),
                           .parts = s4d_malloc(n * sizeof(struct part)),
                           .slots = s4d_malloc(slots * sizeof(int)),
                           .slot_mask = (uint32_t)(slots - 1)};
    int *changed = s4d_malloc(ints);
    bag_create(&r.bag, max_degree(g));
    memset(r.slots, -1, slots * sizeof(int));
    colour_by_key(&r);
    for (int v = 0; v < g->n; v++)
        r.dirty[v] = v;
    while (r.n_dirty > 0)
        refine_round(&r, changed);
    number_by_lowest(class_of, g->n, changed);
    bag_free(&r.bag);
    free(r.size);
    free(r.first_part);
    free(r.signature);
    free(r.dirty);
    free(r.part_of);
    free(r.marked);
    free(r.parts);
    free(r.slots);
    free(changed);
    return r.n_classes;
}

static bool same_neighbours(const struct s4d_graph *g, const int *class_of, struct bag *first,
                            struct bag *other, int v)
{
    bag_fill(other, g, class_of, v);
    if (other->distinct != first->distinct)
        return false;
    for (int e = g->start[v]; e < g->start[v + 1]; e++) {
        uint64_t key = neighbour(g, class_of, v, e);
        if (*bag_at(first, key) != *bag_at(other, key))
            return false;
    }
    return true;
}

/* Members of each class side by side: those of class c are member[first[c]] .. */
static void members_by_class(const int *class_of, int n, int n_classes, int *first, int *member)
{
    memset(first, 0, ((size_t)n_classes + 1) * sizeof *first);
    for (int v = 0; v < n; v++)
        first[class_of[v] + 1]++;
    for (int c = 0; c < n_classes; c++)
        first[c + 1] += first[c];
    for (int v = 0; v < n; v++)
        member[first[class_of[v]]++] = v;
    memmove(first + 1, first, (size_t)n_classes * sizeof *first);
    first[0] = 0;
}

int s4d_equitable(const struct s4d_graph *g, const int *class_of, int n_classes,
                  struct s4d_error *err)
{
    int rc = 0;
    int *first = s4d_malloc(((size_t)n_classes + 1) * sizeof *first);
    int *member = s4d_malloc((size_t)g->n * sizeof *member);
    struct bag a, b;
    bag_create(&a, max_degree(g));
    bag_create(&b, max_degree(g));
    members_by_class(class_of, g->n, n_classes, first, member);
    for (int c = 0; c < n_classes && rc == 0; c++) {
        int v = member[first[c]];
        bag_fill(&a, g, class_of, v);
        for (int i = first[c] + 1; i < first[c + 1] && rc == 0; i++) {
            int w = member[i];
            if (same_key(g, v, w) && same_neighbours(g, class_of, &a, &b, w))
                continue;
            rc = s4d_fail(err, S4D_EXIT_BUG, "folding",
                          "the partition is not equitable: nodes %d and %d of class %d differ", v,
                          w, c);
            s4d_hint(err, "run with --no-fold");
        }
    }
    bag_free(&a);
    bag_free(&b);
    free(first);
    free(member);
    return rc;
}
