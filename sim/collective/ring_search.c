/* SPDX-License-Identifier: Apache-2.0 */
/* The search for rings inside a node.
 *
 * NCCL builds its rings by a search on the node's links at decreasing speeds (src/graph/search.cc).
 * Here the same question is put directly: with c bricks (individual links) an edge, a link of b
 * bricks has floor(b / c) copies; how many directed Hamiltonian cycles can be packed so that each
 * copy is in at most one of them? Links of a pair are one pooled link in the cluster, so a ring may
 * use what others leave of it. */
#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h"
#include "support/memory.h"

/* Bounds of the search, so that a large node costs milliseconds: candidate rings, and steps of the
 * walks that find them and of the packing. For up to eight members they are all found: at most
 * 5,040 rings, in 13,699 steps. */
enum { CANDIDATES = 5040, STEPS = 200000 };

struct search {
    int n;
    int *copies; /* of the directed edge from i to j that are left: copies[i * n + j] */
    int *cycle;  /* candidates, n positions each, all starting at position 0 */
    int n_cycles, cap_cycles;
    int *chosen, n_chosen; /* candidates, ascending, repeats allowed */
    int *best, n_best, bound;
    long steps; /* left, of the walks or of the packing */
};

static void add_cycle(struct search *s, const int *order)
{
    size_t n = (size_t)s->n;
    if (s->n_cycles == s->cap_cycles) {
        s->cap_cycles = s->cap_cycles ? 2 * s->cap_cycles : 16;
        s->cycle = s4d_realloc(s->cycle, (size_t)s->cap_cycles * n * sizeof(int));
    }
    memcpy(s->cycle + (size_t)s->n_cycles++ * n, order, n * sizeof(int));
}

static int common_divisor(int a, int b)
{
    return b ? common_divisor(b, a % b) : a;
}

/* Cycles that always go `step` positions on: no two share an edge. In a large node they come first,
 * since the walks that fit into the candidates all begin alike. */
static void add_regular_cycles(struct search *s, int *order)
{
    for (int step = 1; step < s->n; step++) {
        bool whole = common_divisor(step, s->n) == 1;
        for (int i = 0; i < s->n; i++) {
            order[i] = (int)((long)i * step % s->n);
            whole = whole && s->copies[order[i] * s->n + (order[i] + step) % s->n] > 0;
        }
        if (whole)
            add_cycle(s, order);
    }
}

/* Extends the walk in `order`, of which `at` positions are set, to cycles over existing edges. */
static void find_cycles(struct search *s, int *order, bool *used, int at)
{
    if (s->n_cycles == CANDIDATES || s->steps-- <= 0)
        return;
    int n = s->n, last = order[at - 1];
    if (at == n) {
        if (s->copies[last * n] > 0)
            add_cycle(s, order);
        return;
    }
    for (int next = 1; next < n; next++) {
        if (used[next] || s->copies[last * n + next] == 0)
            continue;
        used[next] = true;
        order[at] = next;
        find_cycles(s, order, used, at + 1);
        used[next] = false;
    }
}

/* No more rings than the copies that leave, or enter, the poorest member. */
static int room(const struct search *s)
{
    int least = INT32_MAX;
    for (int i = 0; i < s->n; i++) {
        int out = 0, in = 0;
        for (int j = 0; j < s->n; j++) {
            out += s->copies[i * s->n + j];
            in += s->copies[j * s->n + i];
        }
        least = out < least ? out : least;
        least = in < least ? in : least;
    }
    return least;
}

static bool fits(const struct search *s, int k)
{
    const int *order = s->cycle + (size_t)k * (size_t)s->n;
    for (int i = 0; i < s->n; i++)
        if (s->copies[order[i] * s->n + order[(i + 1) % s->n]] == 0)
            return false;
    return true;
}

static void take(struct search *s, int k, int copies)
{
    const int *order = s->cycle + (size_t)k * (size_t)s->n;
    for (int i = 0; i < s->n; i++)
        s->copies[order[i] * s->n + order[(i + 1) % s->n]] -= copies;
}

static void pack(struct search *s, int from)
{
    if (s->n_chosen > s->n_best) {
        s->n_best = s->n_chosen;
        memcpy(s->best, s->chosen, (size_t)s->n_chosen * sizeof *s->best);
    }
    if (s->n_best == s->bound || s->n_chosen + room(s) <= s->n_best)
        return;
    for (int k = from; k < s->n_cycles && s->n_best < s->bound && s->steps > 0; k++) {
        s->steps--;
        if (!fits(s, k))
            continue;
        take(s, k, 1);
        s->chosen[s->n_chosen++] = k;
        pack(s, k);
        s->n_chosen--;
        take(s, k, -1);
    }
}

/* Bricks between positions i and j; the matrix is n x n. */
static int *brick_matrix(const struct s4d_node *node, const int *local, int n, int *most)
{
    size_t ends = (size_t)(node->devices + node->switches);
    int *bricks = s4d_calloc((size_t)n * (size_t)n, sizeof *bricks);
    int *place = s4d_malloc(ends * sizeof *place); /* of a device among the members */
    memset(place, -1, ends * sizeof *place);
    for (int i = 0; i < n; i++)
        place[local[i]] = i;
    *most = 0;
    for (int l = 0; l < node->n_links; l++) {
        int i = place[node->link[l].a], j = place[node->link[l].b];
        if (i < 0 || j < 0)
            continue;
        bricks[j * n + i] = bricks[i * n + j] += node->link[l].bricks;
        *most = bricks[i * n + j] > *most ? bricks[i * n + j] : *most;
    }
    free(place);
    return bricks;
}

/* Packs rings of `width` bricks an edge and keeps them if they carry more than `rings` holds. */
static void try_width(struct s4d_rings *rings, const int *bricks, int n, int width)
{
    struct search s = {.n = n};
    s.copies = s4d_malloc((size_t)n * (size_t)n * sizeof(int));
    for (int i = 0; i < n * n; i++)
        s.copies[i] = bricks[i] / width;
    s.bound = room(&s);
    int *order = s4d_calloc((size_t)n, sizeof *order);
    bool *used = s4d_calloc((size_t)n, sizeof *used);
    s.chosen = s4d_malloc((size_t)(s.bound + 1) * sizeof(int));
    s.best = s4d_malloc((size_t)(s.bound + 1) * sizeof(int));
    if (s.bound * width > rings->n_rings * rings->width) {
        if (n > 8)
            add_regular_cycles(&s, order);
        s.steps = STEPS;
        find_cycles(&s, order, used, 1);
        s.steps = STEPS;
        pack(&s, 0);
    }
    if (s.n_best * width > rings->n_rings * rings->width) {
        rings->n_rings = s.n_best;
        rings->width = width;
        rings->order = s4d_realloc(rings->order, (size_t)(s.n_best * n) * sizeof(int));
        for (int r = 0; r < s.n_best; r++)
            for (int i = 0; i < n; i++)
                rings->order[r * n + i] = s.cycle[s.best[r] * n + i];
    }
    free(s.copies);
    free(s.cycle);
    free(s.chosen);
    free(s.best);
    free(order);
    free(used);
}

/* One brick less an edge leaves every pair the same copies: the same rings, only narrower. */
static bool same_copies(const int *bricks, int n, int width)
{
    for (int i = 0; i < n * n; i++)
        if (bricks[i] / width != bricks[i] / (width + 1))
            return false;
    return true;
}

void s4d_rings_search(struct s4d_rings *rings, const struct s4d_node *node, const int *local, int n)
{
    *rings = (struct s4d_rings){.n = n};
    int most;
    int *bricks = brick_matrix(node, local, n, &most);
    for (int width = most; width >= 1; width--)
        if (!same_copies(bricks, n, width))
            try_width(rings, bricks, n, width);
    free(bricks);
}

/* Few: as many as there are sets of local devices in groups, and nodes of their own kind. */
struct s4d_rings_cache {
    struct {
        const struct s4d_node *node;
        int *local;
        struct s4d_rings rings;
    } * entry;
    int n, cap;
};

struct s4d_rings_cache *s4d_rings_cache_create(void)
{
    return s4d_calloc(1, sizeof(struct s4d_rings_cache));
}

void s4d_rings_cache_free(struct s4d_rings_cache *cache)
{
    for (int i = 0; cache && i < cache->n; i++) {
        free(cache->entry[i].local);
        s4d_rings_free(&cache->entry[i].rings);
    }
    if (cache)
        free(cache->entry);
    free(cache);
}

const struct s4d_rings *s4d_rings_find(const struct s4d_cluster *c, const struct s4d_node *node,
                                       const int *local, int n)
{
    struct s4d_rings_cache *cache = c->rings;
    size_t size = (size_t)n * sizeof *local;
    for (int i = 0; i < cache->n; i++)
        if (cache->entry[i].node == node && cache->entry[i].rings.n == n &&
            memcmp(cache->entry[i].local, local, size) == 0)
            return &cache->entry[i].rings;
    if (cache->n == cache->cap)
        cache->entry = s4d_grow(cache->entry, &cache->cap, sizeof *cache->entry);
    int *copy = s4d_malloc(size);
    memcpy(copy, local, size);
    cache->entry[cache->n].node = node;
    cache->entry[cache->n].local = copy;
    s4d_rings_search(&cache->entry[cache->n].rings, node, local, n);
    return &cache->entry[cache->n++].rings;
}

void s4d_rings_free(struct s4d_rings *rings)
{
    free(rings->order);
    *rings = (struct s4d_rings){0};
}
