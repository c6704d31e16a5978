/* SPDX-License-Identifier: Apache-2.0 */
/* Every use of a storage's bytes: two of the same bytes, one of them a write, are ordered, and what
 * is read has been written. */
#include <stdlib.h>

#include "schedule/check_operands.h"
#include "schedule/check_state.h"
#include "support/memory.h"

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
            if (!s4d_done_before(c, a->op, b->op))
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
            s4d_done_before(c, w->op, read->op))
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

int s4d_check_uses(struct checking *c)
{
    collect_uses(c);
    for (int s = 0; s < c->p->n_storages; s++)
        if (check_races(c, s) != 0 || check_reads(c, s) != 0)
            return -1;
    return 0;
}

void s4d_uses_free(struct checking *c)
{
    for (int s = 0; c->uses && s < c->p->n_storages; s++)
        free(c->uses[s].v);
    free(c->uses);
}
