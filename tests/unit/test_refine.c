/* SPDX-License-Identifier: Apache-2.0 */
/* Colour refinement against hand-worked partitions and against a slow reference without hashes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "sim/refine.h"

enum { N_MAX = 64, E_MAX = 4 * N_MAX };

/* A small graph with room to write it edge by edge. */
struct small {
    int n, n_edges, from[E_MAX], end[E_MAX], w[E_MAX];
    int start[N_MAX + 1], to[2 * E_MAX], weight[2 * E_MAX];
    bool totals[N_MAX];
    uint64_t key[N_MAX * S4D_KEY_WORDS];
};

static void edge(struct small *s, int a, int b, int weight)
{
    for (int e = 0; e < s->n_edges; e++)
        if ((s->from[e] == a && s->end[e] == b) || (s->from[e] == b && s->end[e] == a))
            return;
    s->from[s->n_edges] = a;
    s->end[s->n_edges] = b;
    s->w[s->n_edges++] = weight;
}

static struct s4d_graph graph(struct small *s)
{
    int at = 0;
    for (int v = 0; v < s->n; v++) {
        s->start[v] = at;
        for (int e = 0; e < s->n_edges; e++) {
            if (s->from[e] != v && s->end[e] != v)
                continue;
            s->to[at] = s->from[e] == v ? s->end[e] : s->from[e];
            s->weight[at++] = s->w[e];
        }
    }
    s->start[s->n] = at;
    return (struct s4d_graph){s->n, s->start, s->to, s->weight, s->totals, s->key};
}

/* Whether a and b have the same neighbours, by comparing every class and weight. */
static bool alike(const struct s4d_graph *g, const int *class_of, int a, int b)
{
    if (g->totals[a] != g->totals[b] ||
        memcmp(g->key + a * S4D_KEY_WORDS, g->key + b * S4D_KEY_WORDS,
               S4D_KEY_WORDS * sizeof *g->key) != 0)
        return false;
    for (int c = 0; c < g->n; c++) {
        if (g->totals[a]) {
            int64_t total = 0;
            for (int e = g->start[a]; e < g->start[a + 1]; e++)
                total += class_of[g->to[e]] == c ? g->weight[e] : 0;
            for (int e = g->start[b]; e < g->start[b + 1]; e++)
                total -= class_of[g->to[e]] == c ? g->weight[e] : 0;
            if (total != 0)
                return false;
            continue;
        }
        for (int w = 1; w <= 3; w++) {
            bool in_a = false, in_b = false;
            for (int e = g->start[a]; e < g->start[a + 1]; e++)
                in_a |= class_of[g->to[e]] == c && g->weight[e] == w;
            for (int e = g->start[b]; e < g->start[b + 1]; e++)
                in_b |= class_of[g->to[e]] == c && g->weight[e] == w;
            if (in_a != in_b)
                return false;
        }
    }
    return true;
}

/* Splits until nothing changes; classes numbered by their lowest member. */
static int reference(const struct s4d_graph *g, int *class_of)
{
    int n_classes = 1;
    memset(class_of, 0, (size_t)g->n * sizeof *class_of);
    for (int before = 0; before != n_classes;) {
        int next[N_MAX];
        before = n_classes;
        n_classes = 0;
        for (int v = 0; v < g->n; v++) {
            next[v] = -1;
            for (int u = 0; u < v && next[v] < 0; u++)
                if (class_of[u] == class_of[v] && alike(g, class_of, u, v))
                    next[v] = next[u];
            if (next[v] < 0)
                next[v] = n_classes++;
        }
        memcpy(class_of, next, (size_t)g->n * sizeof *class_of);
    }
    return n_classes;
}

/* A path of 5 nodes folds about its middle: ends, their neighbours, the middle. */
static void path_of_five(void **state)
{
    (void)state;
    struct small s = {.n = 5};
    int class_of[5];
    for (int v = 0; v + 1 < 5; v++)
        edge(&s, v, v + 1, 1);
    for (int v = 0; v < 5; v++)
        s.totals[v] = true;
    struct s4d_graph g = graph(&s);
    assert_int_equal(s4d_refine(&g, class_of), 3);
    assert_memory_equal(class_of, ((int[]){0, 1, 2, 1, 0}), sizeof class_of);
}

/* A cycle is one class; a key on one node makes classes by distance from it: 1 + 8/2. */
static void cycle(void **state)
{
    (void)state;
    struct small s = {.n = 8};
    int class_of[8];
    for (int v = 0; v < 8; v++)
        edge(&s, v, (v + 1) % 8, 1);
    struct s4d_graph g = graph(&s);
    assert_int_equal(s4d_refine(&g, class_of), 1);
    assert_int_equal(s4d_equitable(&g, class_of, 1, NULL), 0);
    s.key[3 * S4D_KEY_WORDS + 1] = 7;
    assert_int_equal(s4d_equitable(&g, class_of, 1, NULL), -1);
    assert_int_equal(s4d_refine(&g, class_of), 5);
    assert_memory_equal(class_of, ((int[]){0, 1, 2, 3, 2, 1, 0, 4}), sizeof class_of);
}

/* Hubs 0 and 1 have 1 and 2 leaves: the same set of neighbours, other totals. */
static void set_and_totals(void **state)
{
    (void)state;
    struct small s = {.n = 5};
    int class_of[5];
    edge(&s, 0, 2, 1);
    edge(&s, 1, 3, 1);
    edge(&s, 1, 4, 1);
    for (int v = 0; v < 5; v++)
        s.key[v * S4D_KEY_WORDS] = v >= 2;
    struct s4d_graph g = graph(&s);
    assert_int_equal(s4d_refine(&g, class_of), 2);
    s.totals[0] = s.totals[1] = true;
    assert_int_equal(s4d_equitable(&g, class_of, 2, NULL), -1);
    assert_int_equal(s4d_refine(&g, class_of), 4);
    s.w[0] = 2; /* one edge of weight 2 makes the totals equal */
    g = graph(&s);
    s.totals[2] = s.totals[3] = s.totals[4] = true;
    assert_int_equal(s4d_refine(&g, class_of), 4); /* but leaf 2 sees 2, the others 1 */
}

static void random_graphs_equal_reference(void **state)
{
    (void)state;
    unsigned seed = 1;
    for (int trial = 0; trial < 400; trial++) {
        struct small s = {.n = 2 + rand_r(&seed) % (N_MAX - 2)};
        int edges = rand_r(&seed) % (2 * s.n), weights = 1 + rand_r(&seed) % 3;
        int keys = 1 + rand_r(&seed) % 2;
        for (int v = 0; v < s.n; v++) {
            s.totals[v] = rand_r(&seed) % 2;
            s.key[v * S4D_KEY_WORDS + 2] = (uint64_t)(rand_r(&seed) % keys);
        }
        for (int e = 0; e < edges; e++) {
            int a = rand_r(&seed) % s.n, b = rand_r(&seed) % s.n, w = 1 + rand_r(&seed) % weights;
            if (a != b)
                edge(&s, a, b, w);
        }
        int fast[N_MAX], slow[N_MAX];
        struct s4d_graph g = graph(&s);
        int n_fast = s4d_refine(&g, fast), n_slow = reference(&g, slow);
        assert_int_equal(n_fast, n_slow);
        assert_memory_equal(fast, slow, (size_t)s.n * sizeof *fast);
        assert_int_equal(s4d_equitable(&g, fast, n_fast, NULL), 0);
    }
}

/* The check itself: merging any two classes of the coarsest partition must be noticed. */
static void merged_classes_are_noticed(void **state)
{
    (void)state;
    unsigned seed = 2;
    int merged = 0;
    for (int trial = 0; trial < 200; trial++) {
        struct small s = {.n = 2 + rand_r(&seed) % 20};
        for (int v = 0; v < s.n; v++)
            s.totals[v] = rand_r(&seed) % 2;
        for (int v = 1; v < s.n; v++)
            edge(&s, v, rand_r(&seed) % v, 1 + rand_r(&seed) % 2);
        int class_of[N_MAX];
        struct s4d_graph g = graph(&s);
        int n = s4d_refine(&g, class_of);
        if (n < 2)
            continue;
        int into = rand_r(&seed) % (n - 1);
        for (int v = 0; v < s.n; v++)
            class_of[v] -= class_of[v] > into;
        struct s4d_error err = {0};
        assert_int_equal(s4d_equitable(&g, class_of, n - 1, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_BUG);
        merged++;
    }
    assert_true(merged > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_of_five),
        cmocka_unit_test(cycle),
        cmocka_unit_test(set_and_totals),
        cmocka_unit_test(random_graphs_equal_reference),
        cmocka_unit_test(merged_classes_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
