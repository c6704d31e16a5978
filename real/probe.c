/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: pools of memory, and ops that a rank runs by itself. */
#include "real/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/probe_parts.h"
#include "support/half.h"
#include "support/memory.h"

enum {
    LEAST = 1 << 20,
    ALIGN = S4D_PROBE_ALIGN,
    MOST_REPEATS = 4096,
    MOST_SAMPLES = 1000,
    PIECE = 64 << 20
};

static int pool_of(enum s4d_type type)
{
    if (type == S4D_F64 || type == S4D_F32)
        return 0;
    return type == S4D_BF16 || type == S4D_F16 ? 1 : 2;
}

/* Contents are those of a piece, again and again. */
static int64_t piece_of(const struct s4d_probe_pool *pool)
{
    return pool->bytes < PIECE ? pool->bytes : PIECE;
}

/* Floats in (0, 1], so that no operation gets slow on what it is given; small token numbers. */
static void fill(struct s4d_probe *p, int k)
{
    struct s4d_probe_pool *pool = &p->pool[k];
    for (int64_t i = 0; i < piece_of(pool) / 8; i++) {
        double x = (double)(i * 7919 % 1021 + 1) / 1021;
        int32_t token = (int32_t)(i * 7919 % p->options.vocabulary);
        uint16_t half = s4d_bf16_of((float)x);
        for (int j = 0; j < 2 && k == 0; j++) /* as one double: about 1e-5, as good */
            ((float *)pool->contents)[2 * i + j] = (float)x;
        for (int j = 0; j < 4 && k == 1; j++)
            ((uint16_t *)pool->contents)[4 * i + j] = half;
        for (int j = 0; j < 2 && k == 2; j++)
            ((int32_t *)pool->contents)[2 * i + j] = token;
    }
}

int s4d_probe_refill(struct s4d_probe *p, struct s4d_error *err)
{
    for (int k = 0; k < 3; k++) {
        struct s4d_probe_pool *pool = &p->pool[k];
        for (int64_t at = 0, n; at < pool->used; at += n) {
            n = pool->used - at < piece_of(pool) ? pool->used - at : piece_of(pool);
            struct s4d_buffer used = {pool->memory + at, S4D_U8, 1, n, n};
            if (p->device->upload(p->device->self, &used, pool->contents, err))
                return -1;
        }
        pool->cursor = pool->used = 0;
    }
    return 0;
}

static unsigned char *take(struct s4d_probe_pool *pool, int64_t bytes)
{
    unsigned char *taken = pool->memory + pool->cursor;
    pool->cursor += bytes;
    if (pool->used < pool->cursor)
        pool->used = pool->cursor;
    return taken;
}

int s4d_probe_open(struct s4d_probe *p, struct s4d_device *device, const struct s4d_peers *peers,
                   const struct s4d_probe_options *options, int64_t pool_bytes,
                   struct s4d_error *err)
{
    *p = (struct s4d_probe){.device = device, .peers = peers, .options = *options};
    int64_t bytes = (pool_bytes < LEAST ? LEAST : pool_bytes) / ALIGN * ALIGN + ALIGN;
    void *memory, *pinned;
    S4D_ASSERT(options->samples >= 3 && 10 * options->samples <= MOST_SAMPLES, "%d samples",
               options->samples);
    p->samples_s = s4d_calloc(MOST_SAMPLES, sizeof *p->samples_s);
    /* One block: a zeroed head for flags that must not be set, then the three pools. */
    p->pinned_bytes = bytes < S4D_PROBE_PINNED ? bytes : S4D_PROBE_PINNED;
    if (device->allocate(device->self, S4D_DEVICE, 3 * bytes + ALIGN, &memory, err) ||
        device->allocate(device->self, S4D_PINNED_HOST, p->pinned_bytes, &pinned, err))
        return -1;
    p->zeros = memory;
    p->pinned = pinned;
    for (int k = 0; k < 3; k++) {
        p->pool[k].memory = p->zeros + ALIGN + k * bytes;
        p->pool[k].bytes = p->pool[k].used = bytes;
        p->pool[k].contents = s4d_malloc((size_t)piece_of(&p->pool[k]));
        fill(p, k);
    }
    return 0;
}

void s4d_probe_close(struct s4d_probe *p)
{
    for (int k = 0; k < 3; k++)
        free(p->pool[k].contents);
    free(p->samples_s);
    *p = (struct s4d_probe){0};
}

/* An operand's view as rows that are `stride` apart, by itself: without the place in its storage.
 */
static struct s4d_buffer shape_of(const struct s4d_tensor *t)
{
    struct s4d_buffer b = {.type = t->type, .rows = 1, .cols = t->shape[t->dims - 1]};
    b.stride = t->dims > 1 ? t->stride[t->dims - 2] : b.cols;
    for (int d = 0; d < t->dims - 1; d++)
        b.rows *= t->shape[d];
    return b;
}

static int64_t bytes_of(const struct s4d_buffer *b)
{
    int64_t elements = b->rows * b->stride > b->cols ? b->rows * b->stride : b->cols;
    return (elements * s4d_type_bytes[b->type] + ALIGN - 1) / ALIGN * ALIGN;
}

int64_t s4d_probe_bytes(const struct s4d_program *program, const struct s4d_op *op)
{
    int64_t sum = 0;
    for (int k = 0; k < s4d_op_kinds[op->kind].n_operands; k++)
        if (op->operand[k].tensor >= 0) {
            struct s4d_buffer b = shape_of(&program->tensors[op->operand[k].tensor]);
            sum += bytes_of(&b);
        }
    return sum;
}

/* Places the operands at the pools' cursors; the same tensor twice at the same place. */
static void place(struct s4d_probe *p, const struct s4d_program *program, struct s4d_call *call)
{
    const struct s4d_op *op = call->op;
    const struct s4d_op_info *info = &s4d_op_kinds[op->kind];
    int64_t needs[3] = {0};
    int host = op->kind == S4D_OP_HOST_TO_DEVICE   ? 0
               : op->kind == S4D_OP_DEVICE_TO_HOST ? 1
                                                   : -1; /* the operand in the host's memory */
    for (int k = 0; k < info->n_operands; k++)
        if (op->operand[k].tensor >= 0) {
            call->operand[k] = shape_of(&program->tensors[op->operand[k].tensor]);
            needs[pool_of(call->operand[k].type)] += bytes_of(&call->operand[k]);
        }
    for (int k = 0; k < 3; k++) {
        int64_t reach = program->arena_bytes[S4D_DEVICE];
        S4D_ASSERT(needs[k] <= p->pool[k].bytes, "%s does not fit the pool", info->name);
        reach = reach < S4D_PROBE_REACH ? reach : S4D_PROBE_REACH;
        reach = reach > needs[k] ? reach : needs[k];
        if (program->arena_bytes[S4D_DEVICE] <= 0 || reach > p->pool[k].bytes)
            reach = p->pool[k].bytes;
        if (p->pool[k].cursor + needs[k] > reach)
            p->pool[k].cursor = 0;
    }
    for (int k = 0; k < info->n_operands; k++) {
        struct s4d_buffer *b = &call->operand[k];
        if (op->operand[k].tensor < 0)
            continue;
        for (int i = 0; i < k; i++)
            if (op->operand[i].tensor == op->operand[k].tensor)
                b->data = call->operand[i].data;
        if (info->operand[k].access == 'r' && strcmp(info->operand[k].name, "found_inf") == 0)
            b->data = p->zeros; /* set, it would spare the work */
        if (b->data)
            continue;
        if (k == host) {
            S4D_ASSERT(bytes_of(b) <= p->pinned_bytes, "%s does not fit pinned memory", info->name);
            b->data = p->pinned;
            continue;
        }
        b->data = take(&p->pool[pool_of(b->type)], bytes_of(b));
    }
}

int s4d_probe_enqueue(struct s4d_device *d, const struct s4d_call *call, struct s4d_error *err)
{
    switch (s4d_op_kinds[call->op->kind].op_class) {
    case S4D_CLASS_GEMM:
        return d->gemm(d->self, call, 0, err);
    case S4D_CLASS_ATTENTION:
    case S4D_CLASS_KERNEL:
        return d->kernel(d->self, call, 0, err);
    case S4D_CLASS_COPY:
        return d->copy(d->self, call, 0, err);
    case S4D_CLASS_COLLECTIVE:
        return d->post(d->self, call, 1, 0, err);
    default:
        return s4d_fail(err, S4D_EXIT_BUG, s4d_op_kinds[call->op->kind].name, "cannot be timed");
    }
}

int s4d_probe_time(struct s4d_device *d, const struct s4d_call *calls, int repeats, double *t_s,
                   struct s4d_error *err)
{
    enum s4d_stream stream = calls[0].op->stream;
    double start_s = NAN, end_s = NAN;
    if (d->mark(d->self, stream, &start_s, err))
        return -1;
    for (int i = 0; i < repeats; i++)
        if (s4d_probe_enqueue(d, &calls[i], err))
            return -1;
    if (d->mark(d->self, stream, &end_s, err) || d->finish(d->self, err))
        return -1;
    *t_s = end_s - start_s;
    return 0;
}

/* This rank's samples; *n of them. */
static int sample_op(struct s4d_probe *p, const struct s4d_program *program,
                     const struct s4d_op *op, int *n, struct s4d_error *err)
{
    const struct s4d_probe_options *o = &p->options;
    static const int origin[S4D_AXES];
    struct s4d_call *calls = s4d_calloc(MOST_REPEATS, sizeof *calls);
    struct s4d_op alone = *op; /* nobody runs what it waits for */
    double once_s = 0;
    int repeats = 1, rc = 0;
    alone.n_waits = 0;
    for (int i = 0; i < MOST_REPEATS; i++)
        calls[i] = (struct s4d_call){.op = &alone,
                                     .index = program->ops == p->ops ? (int)(op - program->ops) : 0,
                                     .coordinate = origin};
    place(p, program, &calls[0]);
    rc = s4d_probe_time(p->device, calls, 1, &once_s, err);
    for (int i = 0; i < 2 && !rc; i++) /* the second estimate is of a warm one */
        rc = s4d_probe_time(p->device, calls, 1, &once_s, err);
    if (once_s * MOST_REPEATS > o->sample_s)
        repeats = once_s < o->sample_s ? (int)ceil(o->sample_s / once_s) : 1;
    else
        repeats = MOST_REPEATS;
    double sample_s = once_s * repeats;
    *n = sample_s * o->samples > o->op_s ? (int)(o->op_s / sample_s) : o->samples;
    *n = *n < 3 ? 3 : *n;
    for (int i = 0; i < *n && !rc; i++) {
        for (int j = 0; j < repeats; j++) {
            memset(calls[j].operand, 0, sizeof calls[j].operand);
            place(p, program, &calls[j]);
        }
        rc = s4d_probe_time(p->device, calls, repeats, &p->samples_s[i], err);
        p->samples_s[i] /= repeats;
    }
    free(calls);
    return rc;
}

/* Of the ranks that measured, to all. */
static struct s4d_statistics combine(const struct s4d_peers *peers,
                                     const struct s4d_statistics *own)
{
    double sums[4] = {0}, most[3] = {0};
    if (own) {
        sums[0] = own->median, sums[1] = own->mean, sums[2] = own->least, sums[3] = 1;
        most[0] = own->p99, most[1] = own->variation, most[2] = own->n;
    }
    peers->sum(peers->self, sums, 4);
    peers->maximum(peers->self, most, 3);
    double measured = sums[3];
    return (struct s4d_statistics){.n = (int)most[2],
                                   .median = sums[0] / measured,
                                   .mean = sums[1] / measured,
                                   .least = sums[2] / measured,
                                   .p99 = most[0],
                                   .variation = most[1]};
}

void s4d_probed_keep(struct s4d_probed *best, const struct s4d_probed *other)
{
    double wrong = best->wrong + other->wrong;
    if (best->t.n == 0 || other->t.median < best->t.median)
        *best = *other;
    best->wrong = wrong;
}

void s4d_probe_keep(struct s4d_probed *result, const struct s4d_statistics *t)
{
    struct s4d_probed attempt = {.t = *t, .noisy = t->variation > S4D_PROBE_NOISY};
    s4d_probed_keep(result, &attempt);
}

int s4d_probe_op(struct s4d_probe *p, const struct s4d_program *program, const struct s4d_op *op,
                 struct s4d_probed *result, struct s4d_error *err)
{
    const struct s4d_peers *peers = p->peers;
    bool measures = peers->local < peers->active;
    *result = (struct s4d_probed){.noisy = true};
    p->own_s = NAN;
    for (int attempt = 0; attempt < p->options.attempts && result->noisy; attempt++) {
        struct s4d_statistics own, all;
        int n = 0;
        if (measures && s4d_probe_refill(p, err))
            return -1;
        peers->barrier(peers->self);
        if (measures && sample_op(p, program, op, &n, err))
            return -1;
        if (measures) {
            own = s4d_statistics(p->samples_s, n);
            p->own_s = fmin(p->own_s, own.median);
        }
        all = combine(peers, measures ? &own : NULL);
        s4d_probe_keep(result, &all);
    }
    return 0;
}
