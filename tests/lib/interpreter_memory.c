/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's memory: every rank's storages, access to operands, and poison.
 *
 * When poison is legal: a transient storage means nothing outside an iteration, so its bytes may be
 * overwritten before its first use and after its last use of an iteration has completed, unless a
 * use of the neighbouring iteration is still to come or already done (disjoint parts of a storage
 * need no order). */
#include "tests/lib/interpreter_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/lib/numbers.h"

enum { POISON = 0xFF };

static unsigned char *allocate(int64_t bytes)
{
    return memset(s4d_malloc((size_t)bytes), POISON, (size_t)bytes);
}

static unsigned char *place_storage(struct s4d_interpreter *in, int rank, int storage)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    const struct s4d_storage *s = &p->storages[storage];
    if (!in->options.planned)
        return allocate(s->bytes);
    S4D_ASSERT(s->offset >= 0 && s->offset + s->bytes <= p->arena_bytes[s->place],
               "storage %s is not inside its arena", s->name);
    return in->arenas[rank * 2 + s->place] + s->offset;
}

static void count_uses(const struct s4d_program *p, struct s4d_stage *in)
{
    in->uses = s4d_calloc((size_t)p->n_storages, sizeof *in->uses);
    in->touched = s4d_malloc((size_t)p->n_ops * S4D_OPERANDS * sizeof *in->touched);
    for (int op = 0; op < p->n_ops; op++) {
        int *touched = &in->touched[op * S4D_OPERANDS], n = 0;
        for (int k = 0; k < S4D_OPERANDS; k++)
            touched[k] = -1;
        for (int k = 0; k < s4d_op_kinds[p->ops[op].kind].n_operands; k++) {
            int tensor = p->ops[op].operand[k].tensor, seen = 0;
            if (tensor < 0)
                continue;
            for (int i = 0; i < n; i++)
                seen |= touched[i] == p->tensors[tensor].storage;
            if (!seen)
                touched[n++] = p->tensors[tensor].storage;
        }
        for (int i = 0; i < n; i++)
            in->uses[touched[i]]++;
    }
}

void s4d_memory_create(struct s4d_interpreter *in)
{
    in->arenas = s4d_calloc((size_t)in->ranks * 2, sizeof *in->arenas);
    for (int stage = 0; stage < in->p->grid.size[S4D_PIPE]; stage++) {
        const struct s4d_program *p = s4d_stage_program(in->p, stage);
        in->n_storages = p->n_storages > in->n_storages ? p->n_storages : in->n_storages;
        count_uses(p, &in->stages[stage]);
    }
    in->bytes = s4d_calloc((size_t)in->ranks * (size_t)in->n_storages, sizeof *in->bytes);
    for (int rank = 0; rank < in->ranks; rank++) {
        const struct s4d_program *p = s4d_rank_program(in, rank);
        for (int place = 0; place < 2 && in->options.planned; place++)
            in->arenas[rank * 2 + place] = allocate(p->arena_bytes[place]);
        for (int s = 0; s < p->n_storages; s++) {
            unsigned char *bytes = place_storage(in, rank, s);
            in->bytes[rank * in->n_storages + s] = bytes;
            if (p->storages[s].persistent)
                memset(bytes, 0, (size_t)p->storages[s].bytes);
        }
    }
}

void s4d_memory_free(struct s4d_interpreter *in)
{
    for (int i = 0; i < in->ranks * 2; i++)
        free(in->arenas[i]);
    for (int i = 0; i < in->ranks * in->n_storages && !in->options.planned; i++)
        free(in->bytes[i]);
    free(in->arenas);
    free(in->bytes);
    for (int stage = 0; stage < in->p->grid.size[S4D_PIPE]; stage++) {
        free(in->stages[stage].uses);
        free(in->stages[stage].touched);
    }
    free(in->used);
}

static int *used_of(struct s4d_interpreter *in, int iteration, int rank, int storage)
{
    return &in->used[((int64_t)iteration * in->ranks + rank) * in->n_storages + storage];
}

static void poison(struct s4d_interpreter *in, int rank, int storage)
{
    memset(in->bytes[rank * in->n_storages + storage], POISON,
           (size_t)s4d_rank_program(in, rank)->storages[storage].bytes);
}

void s4d_memory_before(struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_storage *storages = s4d_rank_program(in, rank)->storages;
    const struct s4d_stage *stage = s4d_rank_stage(in, rank);
    const int *touched = &stage->touched[op * S4D_OPERANDS];
    for (int i = 0; i < S4D_OPERANDS && touched[i] >= 0; i++) {
        int s = touched[i];
        bool first = !storages[s].persistent && *used_of(in, iteration, rank, s) == 0;
        bool last_over = iteration == 0 || *used_of(in, iteration - 1, rank, s) == stage->uses[s];
        if (first && last_over)
            poison(in, rank, s);
    }
}

void s4d_memory_after(struct s4d_interpreter *in, int rank, int op, int iteration)
{
    const struct s4d_storage *storages = s4d_rank_program(in, rank)->storages;
    const struct s4d_stage *stage = s4d_rank_stage(in, rank);
    const int *touched = &stage->touched[op * S4D_OPERANDS];
    for (int i = 0; i < S4D_OPERANDS && touched[i] >= 0; i++) {
        int s = touched[i], *used = used_of(in, iteration, rank, s);
        ++*used;
        bool last = !storages[s].persistent && *used == stage->uses[s];
        bool next_begun =
            iteration + 1 < in->iterations && *used_of(in, iteration + 1, rank, s) > 0;
        if (last && !next_begun)
            poison(in, rank, s);
    }
}

/* The byte offset of element i (row-major) of a view in its storage; false if it lies outside. */
static bool locate(const struct s4d_interpreter *in, int rank, int tensor, int64_t i, int64_t *at)
{
    const struct s4d_program *p = s4d_rank_program(in, rank);
    const struct s4d_tensor *t = &p->tensors[tensor];
    int64_t element = s4d_expr_value(&t->offset, in->coordinate[rank]);
    for (int d = t->dims - 1; d >= 0; d--) {
        element += i % t->shape[d] * t->stride[d];
        i /= t->shape[d];
    }
    *at = element * s4d_type_bytes[t->type];
    return *at >= 0 && *at + s4d_type_bytes[t->type] <= p->storages[t->storage].bytes;
}

static unsigned char *element(const struct s4d_interpreter *in, int rank, int tensor, int64_t i)
{
    int64_t at;
    if (!locate(in, rank, tensor, i, &at))
        return NULL;
    int storage = s4d_rank_program(in, rank)->tensors[tensor].storage;
    return in->bytes[rank * in->n_storages + storage] + at;
}

/* Asked of NaNs: -1 is a good integer. */
static bool is_poison(enum s4d_type type, const unsigned char *bytes)
{
    for (int i = 0; i < s4d_type_bytes[type]; i++)
        if (bytes[i] != POISON)
            return false;
    return true;
}

double *s4d_turn_new(struct s4d_turn *t, int64_t n)
{
    S4D_ASSERT(t->n_scratch < 2 * S4D_OPERANDS, "too many temporaries in one op");
    double *values = s4d_malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++)
        values[i] = NAN;
    return t->scratch[t->n_scratch++] = values;
}

void s4d_turn_end(struct s4d_turn *t)
{
    while (t->n_scratch > 0)
        free(t->scratch[--t->n_scratch]);
}

static const struct s4d_operand *operand_of(const struct s4d_turn *t, int k)
{
    return &s4d_rank_op(t->in, t->rank, t->op)->operand[k];
}

static const struct s4d_tensor *tensor_of(const struct s4d_turn *t, int tensor)
{
    return &s4d_rank_program(t->in, t->rank)->tensors[tensor];
}

int64_t s4d_turn_elements(const struct s4d_turn *t, int k)
{
    int tensor = operand_of(t, k)->tensor;
    return tensor < 0 ? 0 : s4d_tensor_elements(tensor_of(t, tensor));
}

int64_t s4d_turn_columns(const struct s4d_turn *t, int k)
{
    const struct s4d_tensor *tensor = tensor_of(t, operand_of(t, k)->tensor);
    return tensor->shape[tensor->dims - 1];
}

static const char *operand_name(const struct s4d_turn *t, int k)
{
    return s4d_op_kinds[s4d_rank_op(t->in, t->rank, t->op)->kind].operand[k].name;
}

/* True if the operand may be touched this way; else a fault. */
static bool allowed(struct s4d_turn *t, int k, enum s4d_access access)
{
    const struct s4d_operand *o = operand_of(t, k);
    const char *verb = access == S4D_READ ? "reads" : "writes";
    if (!(o->access & access)) {
        s4d_fault(t->in, t->rank, t->op, "%s operand %s, which is not declared so", verb,
                  operand_name(t, k));
        return false;
    }
    int64_t n = s4d_turn_elements(t, k), at;
    if (!locate(t->in, t->rank, o->tensor, 0, &at) ||
        !locate(t->in, t->rank, o->tensor, n - 1, &at)) {
        s4d_fault(t->in, t->rank, t->op, "operand %s (tensor %s) reaches beyond its storage",
                  operand_name(t, k), tensor_of(t, o->tensor)->name);
        return false;
    }
    return true;
}

/* Elements one after another: located once a row, then a stride further. */
struct row {
    unsigned char *at;
    int64_t left;
};

static unsigned char *next(const struct s4d_turn *t, int tensor, const struct s4d_tensor *v,
                           int64_t i, struct row *row)
{
    if (row->left == 0) {
        row->left = v->shape[v->dims - 1];
        row->at = element(t->in, t->rank, tensor, i);
    } else {
        row->at += v->stride[v->dims - 1] * s4d_type_bytes[v->type];
    }
    row->left--;
    return row->at;
}

double *s4d_turn_load(struct s4d_turn *t, int k)
{
    int tensor = operand_of(t, k)->tensor;
    if (tensor < 0)
        return NULL;
    int64_t n = s4d_turn_elements(t, k);
    double *values = s4d_turn_new(t, n);
    if (!allowed(t, k, S4D_READ))
        return values;
    const struct s4d_tensor *v = tensor_of(t, tensor);
    struct row row = {NULL, 0};
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *bytes = next(t, tensor, v, i, &row);
        values[i] = s4d_number_load(v->type, bytes);
        if (isnan(values[i]) && is_poison(v->type, bytes))
            s4d_fault(t->in, t->rank, t->op,
                      "operand %s (tensor %s): element %lld is read but was never written, or its "
                      "bytes were given away",
                      operand_name(t, k), v->name, (long long)i);
    }
    return values;
}

void s4d_turn_store(struct s4d_turn *t, int k, const double *values)
{
    int tensor = operand_of(t, k)->tensor;
    if (tensor < 0 || !allowed(t, k, S4D_WRITE))
        return;
    const struct s4d_tensor *v = tensor_of(t, tensor);
    struct row row = {NULL, 0};
    for (int64_t i = 0, n = s4d_turn_elements(t, k); i < n; i++)
        s4d_number_store(v->type, next(t, tensor, v, i, &row), values[i]);
}

double s4d_interpreter_get(const struct s4d_interpreter *in, int rank, int tensor, int64_t i)
{
    const unsigned char *bytes = element(in, rank, tensor, i);
    S4D_ASSERT(bytes, "tensor %s has no element %lld",
               s4d_rank_program(in, rank)->tensors[tensor].name, (long long)i);
    return s4d_number_load(s4d_rank_program(in, rank)->tensors[tensor].type, bytes);
}

void s4d_interpreter_set(struct s4d_interpreter *in, int rank, int tensor, int64_t i, double value)
{
    unsigned char *bytes = element(in, rank, tensor, i);
    S4D_ASSERT(bytes, "tensor %s has no element %lld",
               s4d_rank_program(in, rank)->tensors[tensor].name, (long long)i);
    s4d_number_store(s4d_rank_program(in, rank)->tensors[tensor].type, bytes, value);
}
