/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: greedy by size, over the happens-before relation of two iterations.
 *
 * All uses of A come before all uses of B if, for every stream that uses A, A's last use there has
 * completed before any use of B starts. So a storage needs two rows: its last position on each
 * stream, and the least of its users' clocks. */
#include "schedule/plan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/order.h" /* for: struct s4d_clocks */

enum { ALIGN = 256 };

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
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
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
static struct life *lives_make(const struct s4d_program *p)
{
    struct life *lives = s4d_calloc((size_t)p->n_storages, sizeof *lives);
    for (int i = 0; i < p->n_storages; i++) {
        lives[i] = (struct life){
            .storage = i, .bytes = aligned(p->storages[i].bytes), .first_use = -1, .last_use = -1};
        for (int s = 0; s < S4D_STREAMS; s++)
            lives[i].least[0][s] = lives[i].least[1][s] = INT_MAX;
    }
    struct s4d_clocks clocks = s4d_clocks_make(p);
    for (int op = 0; op < p->n_ops; op++)
        for (int k = 0; k < s4d_op_kinds[p->ops[op].kind].n_operands; k++)
            if (p->ops[op].operand[k].tensor >= 0)
                note_use(&lives[p->tensors[p->ops[op].operand[k].tensor].storage], p, &clocks, op);
    s4d_clocks_free(&clocks);
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

/* Storages that have an offset, lowest first. */
struct placed {
    const struct life **v;
    int n;
};

static void place(struct s4d_program *p, struct placed *placed, const struct life *l, int64_t base)
{
    int64_t offset = base;
    int i = 0;
    for (; i < placed->n; i++) {
        const struct life *q = placed->v[i];
        int64_t at = p->storages[q->storage].offset;
        if (at >= offset + l->bytes)
            break; /* and so are all that follow: the gap is found */
        if (at + q->bytes > offset && conflict(l, q))
            offset = at + q->bytes;
    }
    p->storages[l->storage].offset = offset;
    int low = 0, high = placed->n;
    while (low < high) {
        int middle = (low + high) / 2;
        if (p->storages[placed->v[middle]->storage].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&placed->v[low + 1], &placed->v[low], (size_t)(placed->n - low) * sizeof(*placed->v));
    placed->v[low] = l;
    placed->n++;
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

static int64_t plan_shared(struct s4d_program *p, enum s4d_place where, const struct life *lives,
                           int64_t base)
{
    size_t room = (size_t)p->n_storages * sizeof(const struct life *);
    const struct life **order = s4d_malloc(room);
    struct placed placed = {.v = s4d_malloc(room)};
    int n = 0;
    for (int i = 0; i < p->n_storages; i++)
        if (p->storages[i].place == where && !p->storages[i].persistent)
            order[n++] = &lives[i];
    qsort(order, (size_t)n, sizeof(*order), larger_first);
    int64_t end = base;
    for (int i = 0; i < n; i++) {
        place(p, &placed, order[i], base);
        int64_t top = p->storages[order[i]->storage].offset + order[i]->bytes;
        end = top > end ? top : end;
    }
    free(order);
    free(placed.v);
    return end;
}

void s4d_plan(struct s4d_program *program)
{
    struct life *lives = lives_make(program);
    for (int where = S4D_DEVICE; where <= S4D_PINNED_HOST; where++) {
        int64_t base = plan_persistent(program, (enum s4d_place)where);
        program->arena_bytes[where] = plan_shared(program, (enum s4d_place)where, lives, base);
    }
    free(lives);
}

struct s4d_plan_summary s4d_plan_summarise(const struct s4d_program *program)
{
    struct s4d_plan_summary sum = {.total = program->arena_bytes[S4D_DEVICE]};
    int64_t persistent = 0;
    for (int i = 0; i < program->n_storages; i++) {
        const struct s4d_storage *s = &program->storages[i];
        if (s->place == S4D_DEVICE && s->persistent) {
            sum.by_role[s->role] += aligned(s->bytes);
            persistent += aligned(s->bytes);
        }
    }
    sum.shared = sum.total - persistent;
    return sum;
}
