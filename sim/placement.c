/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/placement.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/quote.h"
#include "support/random.h"
#include "support/units.h"

static const char *const names[] = {"node-major", "random", "fragmented"};

int s4d_placement_parse(struct s4d_placement *p, const char *text, struct s4d_error *err)
{
    *p = (struct s4d_placement){.seed = 1};
    size_t n = strcspn(text, ":");
    int64_t seed = 1;
    for (int i = 0; i < 3; i++)
        if (strlen(names[i]) == n && strncmp(names[i], text, n) == 0) {
            p->kind = (enum s4d_placement_kind)i;
            if (text[n] == '\0')
                return 0;
            if (i == S4D_NODE_MAJOR)
                break;
            if (s4d_parse_int(text + n + 1, 0, INT64_MAX, &seed, err)) {
                snprintf(err->where, sizeof err->where, "--placement: seed");
                err->exit = S4D_EXIT_USAGE;
                return -1;
            }
            p->seed = (uint64_t)seed;
            return 0;
        }
    return s4d_fail(err, S4D_EXIT_USAGE, "--placement",
                    "expected node-major, random[:SEED] or fragmented[:SEED], found %s",
                    s4d_quote(text).text);
}

const char *s4d_placement_text(const struct s4d_placement *p, char *text, size_t size)
{
    if (p->kind == S4D_HOSTS)
        snprintf(text, size, "hosts");
    else if (p->kind == S4D_NODE_MAJOR)
        snprintf(text, size, "%s", names[0]);
    else
        snprintf(text, size, "%s:%llu", names[p->kind], (unsigned long long)p->seed);
    return text;
}

void s4d_placement_free(struct s4d_placement *p)
{
    for (int i = 0; i < p->n_hosts; i++)
        free(p->host[i]);
    free(p->host);
    free(p->line);
    free(p->file);
    *p = (struct s4d_placement){.seed = 0};
}

static int fail_at(const struct s4d_placement *p, int line, struct s4d_error *err, const char *text,
                   const char *host)
{
    char where[512];
    snprintf(where, sizeof where, "%s:%d", p->file, line);
    return s4d_fail(err, S4D_EXIT_DATA, where, text, s4d_quote(host).text);
}

struct host {
    const char *name;
    int line;
};

static int by_name(const void *a, const void *b)
{
    const struct host *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int check_twice(const struct s4d_placement *p, struct s4d_error *err)
{
    struct host *sorted = s4d_malloc(((size_t)p->n_hosts + 1) * sizeof *sorted);
    int rc = 0;
    for (int i = 0; i < p->n_hosts; i++)
        sorted[i] = (struct host){p->host[i], p->line[i]};
    qsort(sorted, (size_t)p->n_hosts, sizeof *sorted, by_name);
    for (int i = 1; i < p->n_hosts && rc == 0; i++)
        if (strcmp(sorted[i].name, sorted[i - 1].name) == 0) {
            rc = fail_at(p, sorted[i].line, err, "host %s is there twice", sorted[i].name);
            s4d_hint(err, "the first time in line %d", sorted[i - 1].line);
        }
    free(sorted);
    return rc ? -1 : 0;
}

/* One line: at most one word before a comment. */
static int read_line(struct s4d_placement *p, char *text, int line, struct s4d_error *err)
{
    text[strcspn(text, "#\r")] = '\0';
    text += strspn(text, " \t");
    size_t n = strcspn(text, " \t");
    if (n == 0)
        return 0;
    if (text[n + strspn(text + n, " \t")] != '\0')
        return fail_at(p, line, err, "expected one host a line, found %s", text);
    text[n] = '\0';
    s4d_push(p->host, p->n_hosts, p->cap_hosts, s4d_strdup(text));
    s4d_push(p->line, p->n_lines, p->cap_lines, line);
    return 0;
}

int s4d_placement_parse_hosts(struct s4d_placement *p, const char *file, const char *bytes,
                              size_t n, struct s4d_error *err)
{
    *p = (struct s4d_placement){.kind = S4D_HOSTS, .file = s4d_strdup(file)};
    int rc = 0, line = 1;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (bytes[i] == '\0')
            rc = fail_at(p, line, err, "a text file of host names, not %s", "a byte of 0");
        else
            line += bytes[i] == '\n';
    char *text = s4d_malloc(n + 1);
    memcpy(text, bytes, n);
    text[n] = '\0';
    line = 1;
    for (char *at = text; rc == 0 && at; line++) {
        char *end = strchr(at, '\n');
        if (end)
            *end = '\0';
        rc = read_line(p, at, line, err);
        at = end ? end + 1 : NULL;
    }
    free(text);
    if (rc == 0 && p->n_hosts == 0)
        rc = s4d_fail(err, S4D_EXIT_DATA, file, "no host in it: expected one a line");
    return rc || check_twice(p, err) ? -1 : 0;
}

int s4d_placement_read(struct s4d_placement *p, const char *file, struct s4d_error *err)
{
    char *bytes = NULL;
    size_t n;
    *p = (struct s4d_placement){.kind = S4D_HOSTS};
    if (s4d_file_read(file, &bytes, &n, err))
        return -1;
    int rc = s4d_placement_parse_hosts(p, file, bytes, n, err);
    free(bytes);
    return rc;
}

/* Uniform below n. */
static int below(uint64_t *state, int n)
{
    return (int)(((s4d_random_next(state) >> 32) * (uint64_t)n) >> 32);
}

static void shuffle(int *v, int n, uint64_t *state)
{
    for (int i = n - 1; i > 0; i--) {
        int j = below(state, i + 1), kept = v[i];
        v[i] = v[j];
        v[j] = kept;
    }
}

static void pick_random(int *nodes, int all, uint64_t seed)
{
    for (int i = 0; i < all; i++)
        nodes[i] = i;
    shuffle(nodes, all, &seed);
}

static int ascending(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The machine is cut into runs of random length; the job gets runs until it has enough. */
static void pick_fragmented(int *nodes, int all, int n, uint64_t seed)
{
    enum { LONGEST = 16 };
    int *first = s4d_malloc((size_t)(all + 1) * sizeof *first), runs = 0, taken = 0;
    int *order = s4d_malloc((size_t)all * sizeof *order);
    for (int at = 0; at < all; at += 1 + below(&seed, LONGEST))
        first[runs++] = at;
    first[runs] = all;
    for (int i = 0; i < runs; i++)
        order[i] = i;
    shuffle(order, runs, &seed);
    for (int i = 0; taken < n; i++)
        for (int node = first[order[i]]; node < first[order[i] + 1] && taken < n; node++)
            nodes[taken++] = node;
    qsort(nodes, (size_t)n, sizeof *nodes, ascending);
    free(first);
    free(order);
}

struct named {
    char *name;
    int node;
};

static int by_node_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The nodes by their names, in the file's order; `nodes` has room for all. */
static int pick_hosts(const struct s4d_placement *p, const struct s4d_cluster *c, int n, int *nodes,
                      struct s4d_error *err)
{
    if (p->n_hosts < n)
        return s4d_fail(err, S4D_EXIT_DATA, p->file, "%d hosts, but the job needs %d nodes",
                        p->n_hosts, n);
    struct named *all = s4d_malloc((size_t)c->n_nodes * sizeof *all);
    for (int i = 0; i < c->n_nodes; i++)
        all[i] = (struct named){s4d_node_name(c, i), i};
    qsort(all, (size_t)c->n_nodes, sizeof *all, by_node_name);
    int rc = 0;
    for (int i = 0; i < p->n_hosts && rc == 0; i++) {
        struct named key = {p->host[i], 0};
        const struct named *found =
            bsearch(&key, all, (size_t)c->n_nodes, sizeof *all, by_node_name);
        if (found) {
            nodes[i] = found->node;
            continue;
        }
        char *first = s4d_node_name(c, 0), *last = s4d_node_name(c, c->n_nodes - 1);
        rc = fail_at(p, p->line[i], err, "no node %s", p->host[i]);
        s4d_hint(err, "the %d nodes of %s are called %s to %s", c->n_nodes, c->machine->name, first,
                 last);
        free(first);
        free(last);
    }
    for (int i = 0; i < c->n_nodes; i++)
        free(all[i].name);
    free(all);
    return rc ? -1 : 0;
}

int s4d_placement_apply(const struct s4d_placement *p, struct s4d_cluster *c, int n,
                        struct s4d_error *err)
{
    int room = c->n_nodes > p->n_hosts ? c->n_nodes : p->n_hosts, rc = 0;
    int *nodes = s4d_malloc((size_t)room * sizeof *nodes);
    S4D_ASSERT(n >= 1 && n <= c->n_nodes, "%d of %d nodes", n, c->n_nodes);
    if (p->kind == S4D_HOSTS)
        rc = pick_hosts(p, c, n, nodes, err);
    else if (p->kind == S4D_RANDOM)
        pick_random(nodes, c->n_nodes, p->seed);
    else if (p->kind == S4D_FRAGMENTED)
        pick_fragmented(nodes, c->n_nodes, n, p->seed);
    else
        for (int i = 0; i < n; i++)
            nodes[i] = i;
    if (rc == 0)
        s4d_cluster_place(c, nodes, n);
    else
        free(nodes);
    return rc;
}
