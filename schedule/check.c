/* SPDX-License-Identifier: Apache-2.0 */
/* program_check: happens-before is found here anew, from streams and waits alone, so that a fault
 * of schedule/order.c or schedule/plan.c cannot hide. */
#include "schedule/check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/check_operands.h"

/* Uses of one storage: op is numbered over both iterations, iteration * n_ops + list index. */
struct use {
    int64_t first, last;
    int op, operand;
    bool read, write;
};
struct uses {
    struct use *v;
    int n, cap;
};

struct checking {
    const struct s4d_program *p;
    int n;                /* ops of one iteration */
    int *at[S4D_STREAMS]; /* list index by position */
    int *known;           /* [op][stream]: the latest op of the stream that is surely done before
                             op starts, numbered over both iterations; -1: none */
    struct uses *uses;    /* by storage */
    struct span *spans;   /* of every storage, iterations 0 and 1 */
    struct s4d_error *err;
};

static int check_positions(struct checking *c)
{
    const struct s4d_program *p = c->p;
    int length[S4D_STREAMS] = {0};
    for (int i = 0; i < c->n; i++) {
        const struct s4d_op *x = &p->ops[i];
        if ((int)x->kind < 0 || x->kind >= S4D_OP_KINDS || (int)x->stream < 0 ||
            x->stream >= S4D_STREAMS)
            return s4d_fail(c->err, S4D_EXIT_BUG, "program", "op %d: no such kind or stream", i);
        if (x->position != length[x->stream]++)
            return s4d_check_fail(p, i, c->err, "expected position %d in its stream",
                                  length[x->stream] - 1);
    }
    for (int s = 0; s < S4D_STREAMS; s++) {
        if (length[s] != p->stream_length[s])
            return s4d_fail(c->err, S4D_EXIT_BUG, "program", "stream %s has %d ops, not %d",
                            s4d_streams[s].name, length[s], p->stream_length[s]);
        c->at[s] = s4d_malloc((size_t)length[s] * sizeof(int));
    }
    for (int i = 0; i < c->n; i++)
        c->at[p->ops[i].stream][p->ops[i].position] = i;
    return 0;
}

/* Batches are runs of the list, and their numbers ascend, so that none comes twice. */
static int check_batches(struct checking *c)
{
    const struct s4d_op *ops = c->p->ops;
    for (int i = 0, newest = 0; i < c->n; i++) {
        const struct s4d_op *x = &ops[i], *before = i > 0 ? &ops[i - 1] : NULL;
        if (x->batch < 0)
            return s4d_check_fail(c->p, i, c->err, "batch %d", x->batch);
        if (x->batch == 0)
            continue;
        if (!s4d_communicates(x->kind))
            return s4d_check_fail(c->p, i, c->err, "in batch %d, and no communication", x->batch);
        bool follows = before && before->batch == x->batch;
        if (!follows && x->batch <= newest)
            return s4d_check_fail(c->p, i, c->err,
                                  "batch %d after batch %d: ops of a batch are neighbours, and "
                                  "their numbers ascend",
                                  x->batch, newest);
        if (follows && before->stream != x->stream)
            return s4d_check_fail(c->p, i, c->err, "batch %d has ops of stream %s, too", x->batch,
                                  s4d_streams[before->stream].name);
        newest = x->batch;
    }
    return 0;
}

static int check_waits(struct checking *c)
{
    for (int i = 0; i < c->n; i++)
        for (int w = 0; w < c->p->ops[i].n_waits; w++) {
            const struct s4d_wait *wait = &c->p->ops[i].waits[w];
            if ((wait->iteration != 0 && wait->iteration != -1) || (int)wait->stream < 0 ||
                wait->stream >= S4D_STREAMS || wait->position < 0 ||
                wait->position >= c->p->stream_length[wait->stream])
                return s4d_check_fail(c->p, i, c->err, "wait %d names no op", w);
            int before = c->at[wait->stream][wait->position];
            if (wait->iteration == 0 && before >= i)
                return s4d_check_fail(c->p, i, c->err,
                                      "deadlock: waits for %s[%d], op %d, which is issued later",
                                      s4d_streams[wait->stream].name, wait->position, before);
            if (wait->iteration == 0 && before >= s4d_batch_first(c->p, i))
                return s4d_check_fail(c->p, i, c->err,
                                      "waits for %s[%d], op %d of its own batch %d, which "
                                      "completes with it",
                                      s4d_streams[wait->stream].name, wait->position, before,
                                      c->p->ops[i].batch);
        }
    return 0;
}

/* What is done before `cause` starts is done, and cause itself with its batch. */
static void learn(const struct checking *c, int *mine, int cause)
{
    const int *theirs = &c->known[(size_t)cause * S4D_STREAMS];
    int stream = (int)c->p->ops[cause % c->n].stream;
    int last = s4d_batch_last(c->p, cause % c->n) + cause / c->n * c->n;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (theirs[s] > mine[s])
            mine[s] = theirs[s];
    if (last > mine[stream])
        mine[stream] = last;
}

/* After check_waits every cause of an op precedes it in the list, and its batch. */
static void find_known(struct checking *c)
{
    c->known = s4d_malloc(2 * (size_t)c->n * S4D_STREAMS * sizeof(int));
    int newest[S4D_STREAMS];
    memset(newest, -1, sizeof newest);
    for (int op = 0, last; op < 2 * c->n; op = last + 1) {
        int *mine = &c->known[(size_t)op * S4D_STREAMS];
        enum s4d_stream stream = c->p->ops[op % c->n].stream;
        last = s4d_batch_last(c->p, op % c->n) + op / c->n * c->n;
        memset(mine, -1, S4D_STREAMS * sizeof(int));
        if (newest[stream] >= 0)
            learn(c, mine, newest[stream]);
        for (int i = op; i <= last; i++) {
            const struct s4d_op *x = &c->p->ops[i % c->n];
            for (int w = 0; w < x->n_waits; w++)
                if (op / c->n + x->waits[w].iteration >= 0) /* else the first iteration meets it */
                    learn(c, mine,
                          c->at[x->waits[w].stream][x->waits[w].position] +
                              (op / c->n + x->waits[w].iteration) * c->n);
        }
        for (int i = op + 1; i <= last; i++)
            memcpy(&c->known[(size_t)i * S4D_STREAMS], mine, S4D_STREAMS * sizeof(int));
        newest[stream] = last;
    }
}

static bool done_before(const struct checking *c, int a, int b)
{
    return c->known[(size_t)b * S4D_STREAMS + c->p->ops[a % c->n].stream] >= a;
}

static void collect_uses(struct checking *c)
{
    c->uses = s4d_calloc((size_t)c->p->n_storages, sizeof *c->uses);
    for (int op = 0; op < 2 * c->n; op++) {
        const struct s4d_op *x = &c->p->ops[op % c->n];
        for (int k = 0; k < s4d_op_kinds[x->kind].n_operands; k++) {
            const struct s4d_operand *o = &x->operand[k];
            if (o->tensor < 0)
                continue;
            struct use u = {.op = op,
                            .operand = k,
                            .read = o->access & S4D_READ,
                            .write = o->access & S4D_WRITE};
            s4d_tensor_range(c->p, o->tensor, &u.first, &u.last);
            struct uses *list = &c->uses[c->p->tensors[o->tensor].storage];
            s4d_push(list->v, list->n, list->cap, u);
        }
    }
}

static const char *operand_name(const struct checking *c, const struct use *u)
{
    return s4d_op_kinds[c->p->ops[u->op % c->n].kind].operand[u->operand].name;
}

static const char *iteration_name(const struct checking *c, const struct use *u)
{
    return u->op < c->n ? "" : " of the next iteration";
}

static int by_first_byte(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->op != y->op ? x->op - y->op : x->operand - y->operand;
}

/* Every two uses of common bytes, one of them a write, are ordered. */
static int check_races(struct checking *c, int storage)
{
    struct uses *list = &c->uses[storage];
    if (list->n > 1)
        qsort(list->v, (size_t)list->n, sizeof *list->v, by_first_byte);
    for (int i = 0; i < list->n; i++)
        for (int j = i + 1; j < list->n && list->v[j].first < list->v[i].last; j++) {
            const struct use *a = &list->v[i], *b = &list->v[j];
            if ((!a->write && !b->write) || a->op == b->op)
                continue;
            if (a->op > b->op)
                a = &list->v[j], b = &list->v[i];
            if (a->op / c->n == b->op / c->n && s4d_batch_last(c->p, a->op % c->n) >= b->op % c->n)
                return s4d_check_fail(
                    c->p, b->op % c->n, c->err,
                    "operand %s: uses bytes of storage %s that op %d (operand %s) of the same "
                    "batch uses, and one of them writes",
                    operand_name(c, b), c->p->storages[storage].name, a->op % c->n,
                    operand_name(c, a));
            if (!done_before(c, a->op, b->op))
                return s4d_check_fail(
                    c->p, b->op % c->n, c->err,
                    "operand %s%s: uses bytes of storage %s that op %d (operand %s) may still be "
                    "using: a wait is missing",
                    operand_name(c, b), iteration_name(c, b), c->p->storages[storage].name,
                    a->op % c->n, operand_name(c, a));
        }
    return 0;
}

/* The bytes of a read are covered by writes of the same iteration that happen before it. */
static bool is_written(const struct checking *c, const struct uses *list, const struct use *read)
{
    int64_t covered = read->first; /* the uses are in the order of their first bytes */
    for (int i = 0; i < list->n && list->v[i].first <= covered && covered < read->last; i++) {
        const struct use *w = &list->v[i];
        if (w->write && w->last > covered && w->op / c->n == read->op / c->n && w->op != read->op &&
            done_before(c, w->op, read->op))
            covered = w->last;
    }
    return covered >= read->last;
}

static int check_reads(struct checking *c, int storage)
{
    const struct uses *list = &c->uses[storage];
    if (c->p->storages[storage].persistent) /* written at initialisation */
        return 0;
    for (int i = 0; i < list->n; i++)
        if (list->v[i].read && !is_written(c, list, &list->v[i]))
            return s4d_check_fail(c->p, list->v[i].op % c->n, c->err,
                                  "operand %s%s: reads bytes of storage %s that no op before it "
                                  "has written",
                                  operand_name(c, &list->v[i]), iteration_name(c, &list->v[i]),
                                  c->p->storages[storage].name);
    return 0;
}

/* The uses of one storage in one iteration: the first op of the list that uses it, the last on each
 * stream (-1: none), and what is known to be done before any of them starts. */
struct span {
    int first, last[S4D_STREAMS], known[S4D_STREAMS];
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
            if (c->known[(size_t)op * S4D_STREAMS + s] < span.known[s])
                span.known[s] = c->known[(size_t)op * S4D_STREAMS + s];
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

static int check_pair(struct checking *c, int a, int b)
{
    const struct s4d_storage *x = &c->p->storages[a], *y = &c->p->storages[b];
    const struct span *u = &c->spans[2 * a], *v = &c->spans[2 * b]; /* of both iterations */
    bool ab = all_before(&u[0], &v[0]) && all_before(&v[0], &u[1]);
    bool ba = all_before(&v[0], &u[0]) && all_before(&u[0], &v[1]);
    if (!x->persistent && !y->persistent && (ab || ba))
        return 0;
    return s4d_fail(c->err, S4D_EXIT_BUG, "memory plan",
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
static int join(struct checking *c, struct sharers *s, const struct planned *x)
{
    int at = place_of(s, x);
    memmove(&s->v[at + 1], &s->v[at], (size_t)(s->n - at) * sizeof *s->v);
    s->v[at] = *x;
    s->n++;
    if (at > 0 && check_pair(c, s->v[at - 1].storage, x->storage) != 0)
        return -1;
    if (at + 1 < s->n && check_pair(c, x->storage, s->v[at + 1].storage) != 0)
        return -1;
    return s->n > 2 ? check_pair(c, s->v[0].storage, s->v[s->n - 1].storage) : 0;
}

static int check_shared(struct checking *c, enum s4d_place place)
{
    const struct s4d_program *p = c->p;
    size_t size = (size_t)p->n_storages + 1;
    struct planned *start = s4d_malloc(size * sizeof *start), *end;
    struct sharers sharers = {.v = s4d_malloc(size * sizeof *start)};
    int n = 0, left = 0, rc = 0;
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        if (s->place == place && s->bytes > 0 && c->uses[i].n > 0)
            start[n++] =
                (struct planned){i, c->spans[2 * i].first, s->offset, s->offset + s->bytes};
    }
    end = s4d_malloc(size * sizeof *end);
    memcpy(end, start, (size_t)n * sizeof *end);
    qsort(start, (size_t)n, sizeof *start, by_offset);
    qsort(end, (size_t)n, sizeof *end, by_end);
    for (int i = 0; i < n && rc == 0; i++) {
        while (end[left].end <= start[i].offset)
            leave(&sharers, &end[left++]);
        rc = join(c, &sharers, &start[i]);
    }
    free(start);
    free(end);
    free(sharers.v);
    return rc;
}

static int check_plan(struct checking *c)
{
    const struct s4d_program *p = c->p;
    c->spans = s4d_malloc(2 * (size_t)p->n_storages * sizeof *c->spans);
    for (int i = 0; i < p->n_storages; i++) {
        const struct s4d_storage *s = &p->storages[i];
        if (s->offset < 0 || s->offset % 256 != 0 ||
            s->offset + s->bytes > p->arena_bytes[s->place])
            return s4d_fail(c->err, S4D_EXIT_BUG, "memory plan",
                            "storage %s: offset %lld is outside the arena or not aligned", s->name,
                            (long long)s->offset);
        c->spans[2 * i] = span_of(c, i, 0);
        c->spans[2 * i + 1] = span_of(c, i, 1);
    }
    return check_shared(c, S4D_DEVICE) || check_shared(c, S4D_PINNED_HOST) ? -1 : 0;
}

static int check_all(struct checking *c)
{
    if (c->p->stage < 0 || c->p->stage >= c->p->grid.size[S4D_PIPE])
        return s4d_fail(c->err, S4D_EXIT_BUG, "program", "stage %d of a pipe of %d", c->p->stage,
                        c->p->grid.size[S4D_PIPE]);
    if (check_positions(c) != 0 || check_batches(c) != 0)
        return -1;
    for (int i = 0; i < c->n; i++)
        if (s4d_check_operands(c->p, i, c->err) != 0)
            return -1;
    if (check_waits(c) != 0)
        return -1;
    find_known(c);
    collect_uses(c);
    bool planned = false;
    for (int s = 0; s < c->p->n_storages; s++) {
        if (check_races(c, s) != 0 || check_reads(c, s) != 0)
            return -1;
        planned |= c->p->storages[s].offset >= 0;
    }
    return planned ? check_plan(c) : 0;
}

int s4d_check(const struct s4d_program *program, struct s4d_error *err)
{
    struct checking c = {.p = program, .n = program->n_ops, .err = err};
    int rc = check_all(&c);
    for (int s = 0; s < S4D_STREAMS; s++)
        free(c.at[s]);
    for (int s = 0; c.uses && s < program->n_storages; s++)
        free(c.uses[s].v);
    free(c.uses);
    free(c.known);
    free(c.spans);
    return rc;
}

struct s4d_traffic s4d_traffic_count(const struct s4d_program *program)
{
    struct s4d_traffic t = {0};
    for (int i = 0; i < program->n_ops; i++) {
        const struct s4d_op *x = &program->ops[i];
        if (!s4d_communicates(x->kind))
            continue;
        t.bytes[x->kind - S4D_OP_ALL_REDUCE][x->stream] += s4d_collective_bytes(&x->c, x->kind);
        t.calls[x->kind - S4D_OP_ALL_REDUCE][x->stream]++;
    }
    return t;
}
