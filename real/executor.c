/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: resolves what differs between ranks once, then walks the list. */
#include "real/executor.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "support/memory.h"

typedef int (*enqueue)(void *self, const struct s4d_call *call, int iteration,
                       struct s4d_error *err);

/* What an iteration reports; written by the device when its streams get there. */
struct outcome {
    double loss, grad_norm;
    _Atomic double end_s; /* of its last adamw; written after the other two */
};

struct s4d_executor {
    const struct s4d_program *p;
    struct s4d_device *device;
    int coordinate[S4D_AXES];
    unsigned char *arena[2]; /* by place */
    struct s4d_call *calls;  /* by list index */
    int last_adamw;          /* list index: an iteration ends with it */
    struct outcome *outcomes;
    double *marks; /* of each iteration, before they are published */
    int issued, max_iterations, published;
};

static enqueue enqueue_of(const struct s4d_device *d, enum s4d_op_kind kind)
{
    switch (s4d_op_kinds[kind].op_class) {
    case S4D_CLASS_GEMM:
        return d->gemm;
    case S4D_CLASS_ATTENTION:
    case S4D_CLASS_KERNEL:
        return d->kernel;
    case S4D_CLASS_COPY:
        return d->copy;
    case S4D_CLASS_HOST:
        return d->host_task;
    case S4D_CLASS_COLLECTIVE:
    case S4D_CLASS_MESSAGE:
        break;
    }
    s4d_bug(__FILE__, __LINE__, "class", "op kind %d is posted, or has no class", kind);
}

/* A view as rows of consecutive elements: every dimension but the last two must lie densely. */
struct s4d_buffer s4d_executor_buffer(const struct s4d_executor *x, int tensor)
{
    const struct s4d_tensor *t = &x->p->tensors[tensor];
    const struct s4d_storage *s = &x->p->storages[t->storage];
    struct s4d_buffer b = {.type = t->type, .rows = 1, .cols = t->shape[t->dims - 1]};
    S4D_ASSERT(b.cols <= 1 || t->stride[t->dims - 1] == 1, "%s: rows are not consecutive", t->name);
    b.stride = t->dims > 1 ? t->stride[t->dims - 2] : b.cols;
    for (int d = 0; d < t->dims - 1; d++) {
        b.rows *= t->shape[d];
        S4D_ASSERT(d == t->dims - 2 || t->stride[d] == t->shape[d + 1] * t->stride[d + 1],
                   "%s: no matrix of equally spaced rows", t->name);
    }
    int64_t first = s4d_expr_value(&t->offset, x->coordinate) * s4d_type_bytes[t->type];
    int64_t last = first + ((b.rows - 1) * b.stride + b.cols) * s4d_type_bytes[t->type];
    S4D_ASSERT(first >= 0 && last <= s->bytes && s->offset >= 0 &&
                   s->offset + s->bytes <= x->p->arena_bytes[s->place],
               "%s reaches beyond its storage, or that beyond its arena", t->name);
    b.data = x->arena[s->place] + s->offset + first;
    return b;
}

static void resolve(struct s4d_executor *x)
{
    const struct s4d_program *p = x->p;
    x->calls = s4d_calloc((size_t)p->n_ops, sizeof *x->calls);
    x->last_adamw = p->n_ops - 1;
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        x->calls[i] = (struct s4d_call){.op = op, .index = i, .coordinate = x->coordinate};
        for (int k = 0; k < s4d_op_kinds[op->kind].n_operands; k++)
            if (op->operand[k].tensor >= 0)
                x->calls[i].operand[k] = s4d_executor_buffer(x, op->operand[k].tensor);
        if (op->kind == S4D_OP_ADAMW)
            x->last_adamw = i;
    }
}

int s4d_executor_create(struct s4d_executor **executor, const struct s4d_program *p, int rank,
                        struct s4d_device *device, int max_iterations, struct s4d_error *err)
{
    struct s4d_executor *x = s4d_calloc(1, sizeof *x);
    *x = (struct s4d_executor){.p = p, .device = device, .max_iterations = max_iterations};
    s4d_grid_coordinates(&p->grid, rank, x->coordinate);
    for (int place = 0; place < 2; place++) {
        void *memory;
        if (device->allocate(device->self, (enum s4d_place)place, p->arena_bytes[place], &memory,
                             err)) {
            free(x);
            return -1;
        }
        x->arena[place] = memory;
    }
    resolve(x);
    x->outcomes = s4d_calloc((size_t)max_iterations + 1, sizeof *x->outcomes);
    x->marks = s4d_calloc((size_t)max_iterations + 1, sizeof *x->marks);
    for (int i = 0; i <= max_iterations; i++) {
        x->outcomes[i].loss = x->outcomes[i].grad_norm = x->marks[i] = NAN;
        atomic_init(&x->outcomes[i].end_s, NAN);
    }
    *executor = x;
    return 0;
}

void s4d_executor_free(struct s4d_executor *x)
{
    if (!x)
        return;
    free(x->calls);
    free(x->outcomes);
    free(x->marks);
    free(x);
}

/* Position `w->position` of its stream in its iteration, counted from the first iteration's first
 * op. What the iteration before the first would have done is met. */
static void issue_waits(struct s4d_executor *x, const struct s4d_op *op, int iteration)
{
    for (int i = 0; i < op->n_waits; i++) {
        const struct s4d_wait *w = &op->waits[i];
        int64_t of = iteration + w->iteration;
        if (of >= 0)
            x->device->wait(x->device->self, op->stream, w->stream,
                            of * x->p->stream_length[w->stream] + w->position + 1);
    }
}

/* The loss mean and the gradient norm leave the device before the next iteration writes them. */
static int issue_reports(struct s4d_executor *x, const struct s4d_call *call, int iteration,
                         struct s4d_error *err)
{
    struct s4d_device *d = x->device;
    enum s4d_op_kind kind = call->op->kind;
    if (kind == S4D_OP_LOSS_MEAN &&
        d->report(d->self, call->op->stream, &call->operand[2], &x->outcomes[iteration].loss, err))
        return -1;
    if (kind == S4D_OP_CLIP_FACTOR && d->report(d->self, call->op->stream, &call->operand[1],
                                                &x->outcomes[iteration].grad_norm, err))
        return -1;
    if (call->index == x->last_adamw)
        return d->mark(d->self, call->op->stream, &x->marks[iteration], err);
    return 0;
}

/* Marks that have arrived become ends that other threads may read. */
static void publish(struct s4d_executor *x)
{
    while (x->published < x->issued && !isnan(x->marks[x->published])) {
        atomic_store(&x->outcomes[x->published].end_s, x->marks[x->published]);
        x->published++;
    }
}

static int issue_ops(struct s4d_executor *x, int iteration, struct s4d_error *err)
{
    struct s4d_device *d = x->device;
    for (int i = 0, last; i < x->p->n_ops; i = last + 1) {
        const struct s4d_call *call = &x->calls[i];
        last = s4d_batch_last(x->p, i);
        for (int k = i; k <= last; k++)
            issue_waits(x, x->calls[k].op, iteration);
        if (s4d_communicates(call->op->kind)
                ? d->post(d->self, call, last - i + 1, iteration, err)
                : enqueue_of(d, call->op->kind)(d->self, call, iteration, err))
            return -1;
        for (int k = i; k <= last; k++)
            if (issue_reports(x, &x->calls[k], iteration, err))
                return -1;
    }
    return 0;
}

int s4d_executor_issue(struct s4d_executor *x, struct s4d_error *err)
{
    struct s4d_device *d = x->device;
    int iteration = x->issued;
    S4D_ASSERT(iteration < x->max_iterations, "more than %d iterations", x->max_iterations);
    x->issued++;
    if ((d->begin && d->begin(d->self, iteration, err)) || issue_ops(x, iteration, err) ||
        (d->end && d->end(d->self, iteration, err)))
        return -1;
    publish(x);
    return 0;
}

int s4d_executor_finish(struct s4d_executor *x, struct s4d_error *err)
{
    if (x->device->finish(x->device->self, err))
        return -1;
    publish(x);
    return 0;
}

double s4d_executor_end_s(const struct s4d_executor *x, int iteration)
{
    return atomic_load(&x->outcomes[iteration].end_s);
}

double s4d_executor_loss(const struct s4d_executor *x, int iteration)
{
    return isnan(s4d_executor_end_s(x, iteration)) ? NAN : x->outcomes[iteration].loss;
}

double s4d_executor_grad_norm(const struct s4d_executor *x, int iteration)
{
    return isnan(s4d_executor_end_s(x, iteration)) ? NAN : x->outcomes[iteration].grad_norm;
}
