/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: greedy by size, and where that leaves gaps in other orders too, over the
 * happens-before relation of two iterations.
 *
 * All uses of A come before all uses of B if, for every stream that uses A, A's last use there has
 * completed before any use of B starts. So a storage needs two rows: its last position on each
 * stream, and the least of its users' clocks. */
#include "schedule/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h" /* for: struct s4d_clocks */

struct life {
    int storage;
    int64_t bytes;                      /* rounded up */
    int first_use, last_use;            /* list indices; -1: never used */
    int n_streams, stream[S4D_STREAMS]; /* that use it */
    int last[S4D_STREAMS];              /* of each of those: position of the last use */
    int least[2][S4D_STREAMS];          /* clock at any use, at the least, in iterations 0 and 1 */
};

static int64_t aligned(int64_t bytes)
{
    return (bytes + S4D_PLAN_ALIGN - 1) / S4D_PLAN_ALIGN * S4D_PLAN_ALIGN;
}

static void note_use(struct life *l, const struct s4d_program *p, const struct s4d_clocks *c,
                     int op)
{
    const struct s4d_op *x = &p->ops[op];
    if (l->first_use < 0)
        l->first_use = op;
    l->last_use = op;
    int i = 0;
    while (i < l->n_streams && l->stream[i] != (int)x->stream)
        i++;
    if (i == l->n_streams)
        l->stream[l->n_streams++] = (int)x->stream;
    l->last[i] = x->position; /* the list follows the positions */
    for (int it = 0; it < 2; it++) {
        const int *clock = &c->clock[((size_t)it * (size_t)p->n_ops + (size_t)op) * S4D_STREAMS];
        for (int s = 0; s < S4D_STREAMS; s++)
            if (l->least[it][s] > clock[s])
                l->least[it][s] = clock[s];
    }
}

/* One for every storage, in storage order. */
static struct life *lives_make(const struct s4d_program *p, const struct s4d_clocks *clocks)
{
    struct life *lives = s4d_calloc((size_t)p->n_storages, sizeof *lives);
    for (int i = 0; i < p->n_storages; i++) {
        lives[i] = (struct life){
            .storage = i, .bytes = aligned(p->storages[i].bytes), .first_use = -1, .last_use = -1};
        for (int s = 0; s < S4D_STREAMS; s++)
            lives[i].least[0][s] = lives[i].least[1][s] = INT_MAX;
    }
    for (int op = 0; op < p->n_ops; op++)
        for (int k = 0; k < s4d_op_kinds[p->ops[op].kind].n_operands; k++)
            if (p->ops[op].operand[k].tensor >= 0)
                note_use(&lives[p->tensors[p->ops[op].operand[k].tensor].storage], p, clocks, op);
    return lives;
}

/* Every use of a in iteration 0 has completed before any use of b in that iteration starts. */
static bool all_before(const struct life *a, const struct life *b, int iteration)
{
    for (int i = 0; i < a->n_streams; i++)
        if (b->least[iteration][a->stream[i]] <= a->last[i])
            return false;
    return true;
}

/* May not share bytes. If a is done before b starts, b must be done before a starts again. */
static bool conflict(const struct life *a, const struct life *b)
{
    if (a->first_use < 0 || b->first_use < 0)
        return false;
    if (a->last_use < b->first_use)
        return !(all_before(a, b, 0) && all_before(b, a, 1));
    if (b->last_use < a->first_use)
        return !(all_before(b, a, 0) && all_before(a, b, 1));
    return true; /* happens-before agrees with the list, in which their uses interleave */
}

static int larger_first(const void *a, const void *b)
{
    const struct life *x = *(const struct life *const *)a, *y = *(const struct life *const *)b;
    if (x->bytes != y->bytes)
        return (x->bytes < y->bytes) - (x->bytes > y->bytes);
    return x->storage - y->storage;
}

static double lifetime(const struct life *l)
{
    return (double)l->last_use - l->first_use + 1;
}

static int larger_and_longer_first(const void *a, const void *b)
{
    const struct life *x = *(const struct life *const *)a, *y = *(const struct life *const *)b;
    double p = (double)x->bytes * lifetime(x), q = (double)y->bytes * lifetime(y);
    return p != q ? (p < q) - (p > q) : larger_first(a, b);
}

static int longer_first(const void *a, const void *b)
{
    const struct life *x = *(const struct life *const *)a, *y = *(const struct life *const *)b;
    double p = lifetime(x), q = lifetime(y);
    return p != q ? (p < q) - (p > q) : larger_first(a, b);
}

/* The storages that have an offset are listed under every CHUNK ops of the list that their lives
 * touch, so that a new one meets only those it may conflict with; the few with LONG lives are in
 * one list that everyone meets, lowest offset first. */
enum { CHUNK = 64, LONG = 128 * CHUNK };
struct chunk {
    const struct life **v;
    int n, cap;
};

struct planner {
    struct s4d_program *p;
    struct life *lives;
    int *floor[2];        /* [op][stream]: the least clock of any op from here to the list's end,
                             in iterations 0 and 1 */
    int *at[S4D_STREAMS]; /* list index by position */
    struct chunk *chunk, longs;
    int n_chunks;
    int *stamp;              /* by storage: when it was last met */
    const struct life **met; /* those that conflict with the one at hand */
    int n_met;
};

/* The earliest op of the list that is not sure to be done before l's first use in the iteration. */
static int first_running(const struct planner *k, const struct life *l, int iteration)
{
    int first = k->p->n_ops;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (l->least[iteration][s] < k->p->stream_length[s] &&
            k->at[s][l->least[iteration][s]] < first)
            first = k->at[s][l->least[iteration][s]];
    return first;
}

/* The earliest op from which on all start after l's last use in iteration 0. */
static int first_after(const struct planner *k, const struct life *l, int iteration)
{
    int low = 0, high = k->p->n_ops;
    while (low < high) {
        int middle = (low + high) / 2;
        const int *floor = &k->floor[iteration][(size_t)middle * S4D_STREAMS];
        bool after = true;
        for (int i = 0; i < l->n_streams; i++)
            after = after && floor[l->stream[i]] > l->last[i];
        if (after)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Adds the storages that live in ops [from, to) and conflict with l. */
static void meet(struct planner *k, const struct life *l, int from, int to)
{
    for (int c = from / CHUNK; c < k->n_chunks && c * CHUNK < to; c++)
        for (int i = 0; i < k->chunk[c].n; i++) {
            const struct life *q = k->chunk[c].v[i];
            if (k->stamp[q->storage] == l->storage)
                continue;
            k->stamp[q->storage] = l->storage;
            if (conflict(l, q))
                k->met[k->n_met++] = q;
        }
}

struct taken {
    int64_t first, last;
};

static int by_first(const void *a, const void *b)
{
    const struct taken *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static struct taken taken_by(const struct planner *k, const struct life *l)
{
    int64_t at = k->p->storages[l->storage].offset;
    return (struct taken){at, at + l->bytes};
}

/* Those with short lives that conflict with l, lowest offset first; returns how many. */
static int find_taken(struct planner *k, const struct life *l, struct taken *taken)
{
    k->n_met = 0;
    meet(k, l, first_running(k, l, 0), first_after(k, l, 0));
    meet(k, l, 0, first_after(k, l, 1));             /* those that start the next iteration */
    meet(k, l, first_running(k, l, 1), k->p->n_ops); /* those that end the last one */
    for (int i = 0; i < k->n_met; i++)
        taken[i] = taken_by(k, k->met[i]);
    qsort(taken, (size_t)k->n_met, sizeof *taken, by_first);
    return k->n_met;
}

/* The lowest offset at which l's bytes are free: both lists are walked upwards together. */
static int64_t lowest_offset(const struct planner *k, const struct life *l, int64_t base,
                             const struct taken *taken, int n)
{
    int64_t offset = base;
    for (int i = 0, j = 0; i < n || j < k->longs.n;) {
        struct taken next;
        bool in_use = true;
        if (j == k->longs.n ||
            (i < n && taken[i].first < k->p->storages[k->longs.v[j]->storage].offset)) {
            next = taken[i++];
        } else {
            const struct life *q = k->longs.v[j++];
            next = taken_by(k, q);
            in_use = next.last > offset && conflict(l, q);
        }
        if (next.first >= offset + l->bytes)
            break; /* and so are all that follow: the gap is found */
        if (in_use && next.last > offset)
            offset = next.last;
    }
    return offset;
}

static void add_long(struct planner *k, const struct life *l)
{
    int64_t offset = k->p->storages[l->storage].offset;
    s4d_push(k->longs.v, k->longs.n, k->longs.cap, l);
    int low = 0, high = k->longs.n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (k->p->storages[k->longs.v[middle]->storage].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&k->longs.v[low + 1], &k->longs.v[low],
            (size_t)(k->longs.n - 1 - low) * sizeof(*k->longs.v));
    k->longs.v[low] = l;
}

static void place(struct planner *k, const struct life *l, int64_t base, struct taken *taken)
{
    if (l->first_use < 0) { /* never used: it conflicts with nothing */
        k->p->storages[l->storage].offset = base;
        return;
    }
    int n = find_taken(k, l, taken);
    k->p->storages[l->storage].offset = lowest_offset(k, l, base, taken, n);
    if (l->last_use - l->first_use >= LONG) {
        add_long(k, l);
        return;
    }
    for (int c = l->first_use / CHUNK; c <= l->last_use / CHUNK; c++)
        s4d_push(k->chunk[c].v, k->chunk[c].n, k->chunk[c].cap, l);
}

static int64_t plan_persistent(struct s4d_program *p, enum s4d_place where)
{
    int64_t end = 0;
    for (int i = 0; i < p->n_storages; i++) {
        struct s4d_storage *s = &p->storages[i];
        if (s->place == where && s->persistent) {
            s->offset = end;
            end += aligned(s->bytes);
        }
    }
    return end;
}

/* Those of `order` at the lowest offsets that are free, one after the other; returns the end. */
static int64_t place_all(struct planner *k, const struct life *const *order, int n, int64_t base,
                         struct taken *taken)
{
    int64_t end = base;
    k->longs.n = 0;
    for (int c = 0; c < k->n_chunks; c++)
        k->chunk[c].n = 0;
    for (int i = 0; i < k->p->n_storages; i++)
        k->stamp[i] = -1;
    for (int i = 0; i < n; i++) {
        place(k, order[i], base, taken);
        int64_t top = k->p->storages[order[i]->storage].offset + order[i]->bytes;
        end = top > end ? top : end;
    }
    return end;
}

/* Bytes in use at the same op of the list, at the most: no plan is lower. */
static int64_t depth(const struct planner *k, const struct life *const *order, int n)
{
    int64_t *change = s4d_calloc((size_t)k->p->n_ops + 1, sizeof *change), now = 0, most = 0;
    for (int i = 0; i < n; i++)
        if (order[i]->first_use >= 0) {
            change[order[i]->first_use] += order[i]->bytes;
            change[order[i]->last_use + 1] -= order[i]->bytes;
        }
    for (int op = 0; op < k->p->n_ops; op++) {
        now += change[op];
        most = now > most ? now : most;
    }
    free(change);
    return most;
}

/* An order is tried where those before it left more gaps than this, in % of the depth. */
enum { GAPS_PERCENT = 4 };
static int (*const orders[])(const void *, const void *) = {larger_first, larger_and_longer_first,
                                                            longer_first};

static int64_t plan_shared(struct planner *k, enum s4d_place where, int64_t base)
{
    struct s4d_program *p = k->p;
    size_t most = (size_t)p->n_storages;
    const struct life **order = s4d_malloc(most * sizeof(*order));
    struct taken *taken = s4d_malloc(most * sizeof *taken);
    int64_t *best = s4d_malloc(most * sizeof *best), end = INT64_MAX;
    int n = 0;
    for (int i = 0; i < p->n_storages; i++)
        if (p->storages[i].place == where && !p->storages[i].persistent)
            order[n++] = &k->lives[i];
    int64_t enough = base + depth(k, order, n) / 100 * (100 + GAPS_PERCENT);
    for (size_t o = 0; o < sizeof orders / sizeof *orders && end > enough; o++) {
        qsort(order, (size_t)n, sizeof(*order), orders[o]);
        int64_t now = place_all(k, order, n, base, taken);
        for (int i = 0; i < n && now < end; i++)
            best[order[i]->storage] = p->storages[order[i]->storage].offset;
        end = now < end ? now : end;
    }
    for (int i = 0; i < n; i++)
        p->storages[order[i]->storage].offset = best[order[i]->storage];
    free(order);
    free(taken);
    free(best);
    return end;
}

static void planner_init(struct planner *k, struct s4d_program *p)
{
    struct s4d_clocks clocks = s4d_clocks_make(p);
    size_t n = (size_t)p->n_ops, row = S4D_STREAMS;
    *k =
        (struct planner){.p = p, .lives = lives_make(p, &clocks), .n_chunks = p->n_ops / CHUNK + 1};
    for (int it = 0; it < 2; it++) {
        int *floor = k->floor[it] = s4d_malloc(n * row * sizeof(int));
        memcpy(floor, clocks.clock + (size_t)it * n * row, n * row * sizeof(int));
        for (size_t i = n < 2 ? 0 : (n - 1) * row; i-- > 0;)
            if (floor[i + row] < floor[i])
                floor[i] = floor[i + row];
    }
    s4d_clocks_free(&clocks);
    for (int s = 0; s < S4D_STREAMS; s++)
        k->at[s] = s4d_malloc((size_t)p->stream_length[s] * sizeof(int));
    for (int i = 0; i < p->n_ops; i++)
        k->at[p->ops[i].stream][p->ops[i].position] = i;
    k->chunk = s4d_calloc((size_t)k->n_chunks, sizeof *k->chunk);
    k->met = s4d_malloc((size_t)p->n_storages * sizeof(*k->met));
    k->stamp = s4d_malloc((size_t)p->n_storages * sizeof(int));
    for (int i = 0; i < p->n_storages; i++)
        k->stamp[i] = -1;
}

static void planner_fini(struct planner *k)
{
    for (int c = 0; c < k->n_chunks; c++)
        free(k->chunk[c].v);
    for (int s = 0; s < S4D_STREAMS; s++)
        free(k->at[s]);
    free(k->chunk);
    free(k->longs.v);
    free(k->met);
    free(k->stamp);
    free(k->floor[0]);
    free(k->floor[1]);
    free(k->lives);
}

void s4d_plan(struct s4d_program *program)
{
    struct planner k;
    planner_init(&k, program);
    for (int where = S4D_DEVICE; where <= S4D_PINNED_HOST; where++) {
        int64_t base = plan_persistent(program, (enum s4d_place)where);
        program->arena_bytes[where] = plan_shared(&k, (enum s4d_place)where, base);
    }
    planner_fini(&k);
}
