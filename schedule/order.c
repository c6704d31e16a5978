/* SPDX-License-Identifier: Apache-2.0 */
/* Waits from operands, reduced with vector clocks.
 *
 * The list is walked twice, as two iterations in a row. Of every storage the walk keeps the
 * accesses that a later op may have to wait for; an op's hazards with them are candidates for
 * waits. Latest first, a candidate becomes a wait unless the clock already shows it completed. */
#include "schedule/order.h"

#include <stdlib.h>
#include <string.h>

/* A use of bytes [first, last) by an op, numbered over both iterations: iteration * n_ops + index.
 */
struct access {
    int64_t first, last;
    int op;
    bool write;
};
struct accesses {
    struct access *v;
    int n, cap;
};
struct candidate {
    int op, of; /* the op `of` may have to wait for */
    enum s4d_wait_kind kind;
};

struct ordering {
    struct s4d_program *p;
    struct accesses *storage;           /* by storage */
    int *clock;                         /* as s4d_clocks */
    const struct s4d_order_edge **edge; /* sorted by after */
    int n_edges;
    struct candidate *candidate; /* of the ops at hand, which are posted together */
    int n_candidates, cap_candidates;
    struct candidate *kept; /* those that become waits */
    int n_kept, cap_kept;
    struct s4d_wait *wait; /* of one of the ops */
    int n_waits, cap_waits;
};

static const struct s4d_op *op_of(const struct ordering *o, int op)
{
    return &o->p->ops[op % o->p->n_ops];
}

/* Counted over both iterations. */
static int place_of(const struct ordering *o, int op)
{
    const struct s4d_op *x = op_of(o, op);
    return x->position + (op >= o->p->n_ops ? o->p->stream_length[x->stream] : 0);
}

static void join(int *clock, const int *other, enum s4d_stream stream, int place)
{
    for (int s = 0; s < S4D_STREAMS; s++)
        if (clock[s] < other[s])
            clock[s] = other[s];
    if (clock[stream] < place + 1)
        clock[stream] = place + 1;
}

static int *clock_of(const struct ordering *o, int op)
{
    return &o->clock[(size_t)op * S4D_STREAMS];
}

static void set_positions(struct s4d_program *p)
{
    memset(p->stream_length, 0, sizeof p->stream_length);
    for (int i = 0; i < p->n_ops; i++)
        p->ops[i].position = p->stream_length[p->ops[i].stream]++;
}

static void add_candidate(struct ordering *o, int op, int of, enum s4d_wait_kind kind)
{
    s4d_push(o->candidate, o->n_candidates, o->cap_candidates, (struct candidate){op, of, kind});
}

/* Read after write is data; write after read or write is memory. Ranges are half open. */
static void find_hazards(struct ordering *o, int op)
{
    const struct s4d_op *x = op_of(o, op);
    for (int k = 0; k < s4d_op_kinds[x->kind].n_operands; k++) {
        const struct s4d_operand *u = &x->operand[k];
        if (u->tensor < 0)
            continue;
        int64_t first, last;
        s4d_tensor_range(o->p, u->tensor, &first, &last);
        const struct accesses *list = &o->storage[o->p->tensors[u->tensor].storage];
        for (int i = 0; i < list->n; i++) {
            const struct access *a = &list->v[i];
            if (a->last <= first || last <= a->first)
                continue;
            if (a->write && (u->access & S4D_READ))
                add_candidate(o, a->op, op, S4D_WAIT_DATA);
            else if (u->access & S4D_WRITE)
                add_candidate(o, a->op, op, S4D_WAIT_MEMORY);
        }
    }
}

/* Whoever must wait for `old` will have to wait for `new` anyway, which comes after it. */
static bool replaces(const struct ordering *o, const struct access *new, const struct access *old)
{
    if (new->first > old->first || old->last > new->last)
        return false;
    return new->write || (!old->write && op_of(o, new->op)->stream == op_of(o, old->op)->stream);
}

static void remember(struct ordering *o, int op, enum s4d_access access)
{
    const struct s4d_op *x = op_of(o, op);
    for (int k = 0; k < s4d_op_kinds[x->kind].n_operands; k++) {
        const struct s4d_operand *u = &x->operand[k];
        bool write = u->tensor >= 0 && (u->access & S4D_WRITE);
        if (u->tensor < 0 || write != (access == S4D_WRITE))
            continue;
        struct access new = {.op = op, .write = write};
        s4d_tensor_range(o->p, u->tensor, &new.first, &new.last);
        struct accesses *list = &o->storage[o->p->tensors[u->tensor].storage];
        int kept = 0;
        for (int i = 0; i < list->n; i++)
            if (!replaces(o, &new, &list->v[i]))
                list->v[kept++] = list->v[i];
        list->n = kept;
        s4d_push(list->v, list->n, list->cap, new);
    }
}

/* Latest op first; of one op the strongest kind (data, memory, order) first. */
static int by_op_descending(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->op != y->op)
        return (x->op < y->op) - (x->op > y->op);
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->of - y->of;
}

static int by_stream(const void *a, const void *b)
{
    const struct s4d_wait *x = a, *y = b;
    if (x->iteration != y->iteration)
        return y->iteration - x->iteration;
    return x->stream != y->stream ? (int)x->stream - (int)y->stream : x->position - y->position;
}

/* An earlier op never implies a later one, so taking the latest first leaves out every implied
 * wait. clock: of all that are posted together. */
static void reduce(struct ordering *o, int *clock)
{
    int n_ops = o->p->n_ops;
    if (o->n_candidates > 1)
        qsort(o->candidate, (size_t)o->n_candidates, sizeof *o->candidate, by_op_descending);
    o->n_kept = 0;
    for (int i = 0; i < o->n_candidates; i++) {
        int before = o->candidate[i].op, place = place_of(o, before);
        int batch = s4d_batch_last(o->p, before % n_ops) - before % n_ops; /* that end with it */
        const struct s4d_op *b = op_of(o, before);
        if (clock[b->stream] > place)
            continue;
        join(clock, clock_of(o, before), b->stream, place + batch);
        s4d_push(o->kept, o->n_kept, o->cap_kept, o->candidate[i]);
    }
}

static void keep_waits(struct ordering *o, int op)
{
    struct s4d_op *x = &o->p->ops[op % o->p->n_ops];
    o->n_waits = 0;
    for (int i = 0; i < o->n_kept; i++) {
        const struct s4d_op *b = op_of(o, o->kept[i].op);
        if (o->kept[i].of == op)
            s4d_push(o->wait, o->n_waits, o->cap_waits,
                     (struct s4d_wait){.iteration = o->kept[i].op / o->p->n_ops - op / o->p->n_ops,
                                       .stream = b->stream,
                                       .position = b->position,
                                       .kind = o->kept[i].kind});
    }
    if (o->n_waits > 1)
        qsort(o->wait, (size_t)o->n_waits, sizeof *o->wait, by_stream);
    x->n_waits = o->n_waits;
    x->waits = NULL;
    if (o->n_waits > 0) {
        size_t bytes = (size_t)o->n_waits * sizeof *o->wait;
        x->waits = memcpy(s4d_arena_alloc(&o->p->memory, bytes), o->wait, bytes);
    }
}

/* Ops that are posted together share one clock; hazards among themselves are nobody's wait. */
static void walk_batch(struct ordering *o, int first, int last, int *edge)
{
    int n_ops = o->p->n_ops;
    o->n_candidates = 0;
    for (int op = first; op <= last; op++) {
        for (; *edge < o->n_edges && o->edge[*edge]->after == op % n_ops; ++*edge) {
            int before = first / n_ops * n_ops + o->edge[*edge]->before;
            S4D_ASSERT(before < first, "op %d waits for op %d of its own batch", op % n_ops,
                       before % n_ops);
            add_candidate(o, before, op, o->edge[*edge]->kind);
        }
        find_hazards(o, op);
    }
    reduce(o, clock_of(o, first));
    for (int op = first; op <= last; op++) {
        if (op >= n_ops) /* the same waits as in the first, and those on the one before */
            keep_waits(o, op);
        if (op > first)
            memcpy(clock_of(o, op), clock_of(o, first), S4D_STREAMS * sizeof(int));
    }
    for (int op = first; op <= last; op++) {
        remember(o, op, S4D_READ);
        remember(o, op, S4D_WRITE);
    }
}

static void walk(struct ordering *o, int iteration, int *previous)
{
    int n_ops = o->p->n_ops, edge = 0;
    for (int i = 0, last; i < n_ops; i = last + 1) {
        enum s4d_stream stream = o->p->ops[i].stream;
        int first = iteration * n_ops + i;
        last = s4d_batch_last(o->p, i);
        if (previous[stream] >= 0)
            join(clock_of(o, first), clock_of(o, previous[stream]), stream,
                 place_of(o, previous[stream]));
        walk_batch(o, first, iteration * n_ops + last, &edge);
        previous[stream] = iteration * n_ops + last;
    }
}

static int by_after(const void *a, const void *b)
{
    const struct s4d_order_edge *x = *(const struct s4d_order_edge *const *)a,
                                *y = *(const struct s4d_order_edge *const *)b;
    return x->after != y->after ? x->after - y->after : x->before - y->before;
}

void s4d_order(struct s4d_program *program, const struct s4d_order_edge *edges, int n_edges)
{
    struct ordering o = {.p = program, .n_edges = n_edges};
    o.storage = s4d_calloc((size_t)program->n_storages, sizeof *o.storage);
    o.clock = s4d_calloc(2 * (size_t)program->n_ops * S4D_STREAMS, sizeof *o.clock);
    o.edge = s4d_malloc((size_t)n_edges * sizeof(*o.edge));
    for (int i = 0; i < n_edges; i++) {
        S4D_ASSERT(0 <= edges[i].before && edges[i].before < edges[i].after &&
                       edges[i].after < program->n_ops,
                   "edge %d -> %d of %d ops", edges[i].before, edges[i].after, program->n_ops);
        o.edge[i] = &edges[i];
    }
    if (n_edges > 1)
        qsort(o.edge, (size_t)n_edges, sizeof(*o.edge), by_after);
    set_positions(program);
    int previous[S4D_STREAMS];
    for (int s = 0; s < S4D_STREAMS; s++)
        previous[s] = -1;
    walk(&o, 0, previous);
    walk(&o, 1, previous);
    for (int i = 0; i < program->n_storages; i++)
        free(o.storage[i].v);
    free(o.storage);
    free(o.clock);
    free(o.edge);
    free(o.candidate);
    free(o.kept);
    free(o.wait);
}

/* at: list indices of the wait's stream. What is waited for has completed with its batch. */
static void join_wait(const struct s4d_program *p, struct s4d_clocks *c, const int *at, int op,
                      const struct s4d_wait *wait)
{
    int n = p->n_ops, iteration = op / n + wait->iteration, before = at[wait->position];
    int batch = s4d_batch_last(p, before) - before;
    join(&c->clock[(size_t)op * S4D_STREAMS],
         &c->clock[((size_t)before + (size_t)iteration * (size_t)n) * S4D_STREAMS], wait->stream,
         wait->position + batch + iteration * p->stream_length[wait->stream]);
}

struct s4d_clocks s4d_clocks_make(const struct s4d_program *p)
{
    int n = p->n_ops, base[S4D_STREAMS], total = 0;
    for (int s = 0; s < S4D_STREAMS; s++) {
        base[s] = total;
        total += p->stream_length[s];
    }
    int *at = s4d_malloc((size_t)total * sizeof(int)); /* list index by stream and position */
    for (int i = 0; i < n; i++)
        at[base[p->ops[i].stream] + p->ops[i].position] = i;
    struct s4d_clocks c = {.n_ops = n,
                           .clock = s4d_calloc(2 * (size_t)n * S4D_STREAMS, sizeof(int))};
    for (int u = 0, size; u < 2 * n; u += size) {
        const struct s4d_op *x = &p->ops[u % n];
        int *clock = &c.clock[(size_t)u * S4D_STREAMS], length = p->stream_length[x->stream];
        int place = x->position + u / n * length;
        size = s4d_batch_last(p, u % n) - u % n + 1;
        if (place > 0) {
            int before = at[base[x->stream] + (place - 1) % length] + (place - 1) / length * n;
            join(clock, &c.clock[(size_t)before * S4D_STREAMS], x->stream, place - 1);
        }
        for (int k = 0; k < size; k++)
            for (int w = 0; w < x[k].n_waits; w++)
                if (u / n + x[k].waits[w].iteration >= 0)
                    join_wait(p, &c, at + base[x[k].waits[w].stream], u, &x[k].waits[w]);
        for (int k = 1; k < size; k++)
            memcpy(clock + k * S4D_STREAMS, clock, S4D_STREAMS * sizeof(int));
    }
    free(at);
    return c;
}

void s4d_clocks_free(struct s4d_clocks *clocks)
{
    free(clocks->clock);
    clocks->clock = NULL;
}

bool s4d_before(const struct s4d_program *p, const struct s4d_clocks *c, int ia, int a, int ib,
                int b)
{
    const struct s4d_op *x = &p->ops[a];
    return c->clock[((size_t)ib * (size_t)c->n_ops + (size_t)b) * S4D_STREAMS + x->stream] >
           x->position + ia * p->stream_length[x->stream];
}
