/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: storages that share bytes of an arena are in use one after the other, the next
 * iteration's uses included. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/check_state.h"
#include "support/memory.h"

/* The uses of one storage in one iteration: the first op of the list that uses it, the last on each
 * stream (-1: none), and what is known to be done before any of them starts. */
struct span {
    int first, last[S4D_STREAMS], known[S4D_STREAMS];
};

struct planning {
    const struct checking *c;
    struct span *spans; /* [storage][iteration] */
};

static struct span span_of(const struct checking *c, int storage, int iteration)
{
    struct span span = {.first = INT_MAX};
    for (int s = 0; s < S4D_STREAMS; s++) {
        span.last[s] = -1;
        span.known[s] = INT_MAX;
    }
    for (int i = 0; i < c->uses[storage].n; i++) {
        int op = c->uses[storage].v[i].op, *last = &span.last[c->p->ops[op % c->n].stream];
        if (op / c->n != iteration)
            continue;
        if (op < span.first)
            span.first = op;
        if (op > *last)
            *last = op;
        for (int s = 0; s < S4D_STREAMS; s++)
            if (s4d_known(c, op, (enum s4d_stream)s) < span.known[s])
                span.known[s] = s4d_known(c, op, (enum s4d_stream)s);
    }
    return span;
}

/* Every use of a is done before every use of b. */
static bool all_before(const struct span *a, const struct span *b)
{
    for (int s = 0; s < S4D_STREAMS; s++)
        if (a->last[s] > b->known[s])
            return false;
    return true;
}

static int check_pair(const struct planning *l, int a, int b)
{
    const struct s4d_storage *x = &l->c->p->storages[a], *y = &l->c->p->storages[b];
    const struct span *u = &l->spans[2 * a], *v = &l->spans[2 * b]; /* of both iterations */
    bool ab = all_before(&u[0], &v[0]) && all_before(&v[0], &u[1]);
    bool ba = all_before(&v[0], &u[0]) && all_before(&u[0], &v[1]);
    if (!x->persistent && !y->persistent && (ab || ba))
        return 0;
    return s4d_fail(l->c->err, S4D_EXIT_BUG, "memory plan",
                    "storages %s and %s share bytes of the arena, at %lld and %lld, but may be in "
                    "use at the same time",
                    x->name, y->name, (long long)x->offset, (long long)y->offset);
}

struct planned {
    int storage, first_use; /* list index */
    int64_t offset, end;
};

static int by_offset(const void *a, const void *b)
{
    const struct planned *x = a, *y = b;
    return x->offset != y->offset ? (x->offset > y->offset) - (x->offset < y->offset)
                                  : x->storage - y->storage;
}

static int by_end(const void *a, const void *b)
{
    const struct planned *x = a, *y = b;
    return (x->end > y->end) - (x->end < y->end);
}

/* The storages that share the byte at which a walk through the arena has arrived, in the order of
 * their first uses. */
struct sharers {
    struct planned *v;
    int n;
};

/* Where in the order x is, or belongs. */
static int place_of(const struct sharers *s, const struct planned *x)
{
    int low = 0, high = s->n;
    while (low < high) {
        int middle = (low + high) / 2;
        const struct planned *m = &s->v[middle];
        if (m->first_use < x->first_use ||
            (m->first_use == x->first_use && m->storage < x->storage))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void leave(struct sharers *s, const struct planned *x)
{
    int at = place_of(s, x);
    s->n--;
    memmove(&s->v[at], &s->v[at + 1], (size_t)(s->n - at) * sizeof *s->v);
}

/* Only neighbours are compared, and the last with the first: "all uses before all uses of" is
 * transitive, so that the others follow, also after one between them has left. */
static int join(const struct planning *l, struct sharers *s, const struct planned *x)
{
    int at = place_of(s, x);
    memmove(&s->v[at + 1], &s->v[at], (size_t)(s->n - at) * sizeof *s->v);
    s->v[at] = *x;
    s->n++;
    if (at > 0 && check_pair(l, s->v[at - 1].storage, x->storage) != 0)
        return -1;
    if (at + 1 < s->n && check_pair(l, x->storage, s->v[at + 1].storage) != 0)
        return -1;
    return s->n > 2 ? check_pair(l, s->v[0].storage, s->v[s->n - 1].storage) : 0;
}

static int check_shared(const struct planning *l, enum s4d_place place)
{
    const struct s4d_program *p = l->c->p;
    size_t size = (size_t)p->n_storages + 1;
    struct planned *start = s4d_malloc(size * sizeof *start), *end;
    struct sharers sharers = {.v = s4d_malloc(size * sizeof *start)};
    int n = 0, left = 0, rc = 0;
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        if (s->place == place && s->bytes > 0 && l->c->uses[i].n > 0)
            start[n++] =
                (struct planned){i, l->spans[2 * i].first, s->offset, s->offset + s->bytes};
    }
    end = s4d_malloc(size * sizeof *end);
    memcpy(end, start, (size_t)n * sizeof *end);
    qsort(start, (size_t)n, sizeof *start, by_offset);
    qsort(end, (size_t)n, sizeof *end, by_end);
    for (int i = 0; i < n && rc == 0; i++) {
        while (end[left].end <= start[i].offset)
            leave(&sharers, &end[left++]);
        rc = join(l, &sharers, &start[i]);
    }
    free(start);
    free(end);
    free(sharers.v);
    return rc;
}

static int check_places(const struct checking *c)
{
    const struct s4d_program *p = c->p;
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        if (s->offset < 0 || s->offset % 256 != 0 ||
            s->offset + s->bytes > p->arena_bytes[s->place])
            return s4d_fail(c->err, S4D_EXIT_BUG, "memory plan",
                            "storage %s: offset %lld is outside the arena or not aligned", s->name,
                            (long long)s->offset);
    }
    return 0;
}

int s4d_check_plan(const struct checking *c)
{
    int n = c->p->n_storages, planned = 0;
    for (int i = 0; i < n; i++)
        planned += c->p->storages[i].offset >= 0;
    if (planned == 0)
        return 0;
    if (check_places(c) != 0)
        return -1;
    struct planning l = {.c = c, .spans = s4d_malloc(2 * (size_t)n * sizeof *l.spans)};
    for (int i = 0; i < n; i++) {
        l.spans[2 * i] = span_of(c, i, 0);
        l.spans[2 * i + 1] = span_of(c, i, 1);
    }
    int rc = check_shared(&l, S4D_DEVICE) || check_shared(&l, S4D_PINNED_HOST) ? -1 : 0;
    free(l.spans);
    return rc;
}
