/* SPDX-License-Identifier: Apache-2.0 */
#include "real/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "support/memory.h"

enum { LEAST = 1 << 20, ALIGN = 256, MOST_REPEATS = 4096, MOST_SAMPLES = 1000, PIECE = 64 << 20 };

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

static int refill(struct s4d_probe *p, struct s4d_error *err)
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

static int enqueue(struct s4d_device *d, const struct s4d_call *call, struct s4d_error *err)
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

/* Seconds of `repeats` ops in a row. */
static int time_calls(struct s4d_device *d, const struct s4d_call *calls, int repeats, double *t_s,
                      struct s4d_error *err)
{
    enum s4d_stream stream = calls[0].op->stream;
    double start_s = NAN, end_s = NAN;
    if (d->mark(d->self, stream, &start_s, err))
        return -1;
    for (int i = 0; i < repeats; i++)
        if (enqueue(d, &calls[i], err))
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
    rc = time_calls(p->device, calls, 1, &once_s, err);
    for (int i = 0; i < 2 && !rc; i++) /* the second estimate is of a warm one */
        rc = time_calls(p->device, calls, 1, &once_s, err);
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
        rc = time_calls(p->device, calls, repeats, &p->samples_s[i], err);
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

static void keep_better(struct s4d_probed *result, const struct s4d_statistics *t)
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
        if (measures && refill(p, err))
            return -1;
        peers->barrier(peers->self);
        if (measures && sample_op(p, program, op, &n, err))
            return -1;
        if (measures) {
            own = s4d_statistics(p->samples_s, n);
            p->own_s = fmin(p->own_s, own.median);
        }
        all = combine(peers, measures ? &own : NULL);
        keep_better(result, &all);
    }
    return 0;
}

/* An op of its own, between two vectors of a pool. */
struct collective {
    struct s4d_op op;
    struct s4d_call call;
    int64_t in_count, out_count;
};

static void make_collective(struct s4d_probe *p, const struct s4d_grid *grid, enum s4d_op_kind kind,
                            enum s4d_stream stream, int64_t bytes, struct collective *c)
{
    s4d_axes axes = s4d_streams[stream].axes;
    int members = s4d_group_size(grid, axes);
    int64_t count = bytes / 4 / (kind == S4D_OP_ALL_REDUCE ? 1 : members);
    S4D_ASSERT(count > 0 && 2 * bytes + 2 * ALIGN <= p->pool[0].bytes, "%lld bytes",
               (long long)bytes);
    *c = (struct collective){.op = {.kind = kind, .stream = stream}};
    c->op.label.name = "probe";
    c->op.c.collective.axes = axes;
    c->op.c.collective.reduction = S4D_SUM;
    c->op.c.collective.type = S4D_F32;
    c->op.c.collective.count = count;
    c->op.c.collective.members = members;
    c->in_count = kind == S4D_OP_REDUCE_SCATTER ? count * members : count;
    c->out_count = kind == S4D_OP_ALL_GATHER ? count * members : count;
    unsigned char *in = p->pool[0].memory, *out = in + (bytes + ALIGN - 1) / ALIGN * ALIGN;
    p->pool[0].used = p->pool[0].bytes;
    c->call = (struct s4d_call){.op = &c->op};
    c->call.operand[0] = (struct s4d_buffer){in, S4D_F32, 1, c->in_count, c->in_count};
    c->call.operand[1] = (struct s4d_buffer){out, S4D_F32, 1, c->out_count, c->out_count};
}

/* At most 8 bits for 16 ranks: sums are exact in any order, and in bf16. */
static float value_of(int rank, int64_t i)
{
    return (float)((rank * 7 + i % 13) % 16);
}

static float expected(const struct collective *c, const int *members, int index, int64_t i)
{
    int64_t count = c->op.c.collective.count;
    if (c->op.kind == S4D_OP_ALL_GATHER)
        return value_of(members[i / count], i % count);
    if (c->op.kind == S4D_OP_REDUCE_SCATTER)
        i += index * count;
    float sum = 0;
    for (int m = 0; m < c->op.c.collective.members; m++)
        sum += value_of(members[m], i);
    return sum;
}

/* Runs it once on known data and counts what is wrong. */
static int check_collective(struct s4d_probe *p, const struct s4d_grid *grid,
                            const struct collective *c, double *wrong, struct s4d_error *err)
{
    struct s4d_device *d = p->device;
    int rank = p->peers->rank, members[1 << 12];
    int64_t most = c->in_count > c->out_count ? c->in_count : c->out_count;
    float *data = s4d_malloc((size_t)most * sizeof *data);
    s4d_group_members(grid, rank, c->op.c.collective.axes, members);
    int index = s4d_group_index(grid, rank, c->op.c.collective.axes);
    for (int64_t i = 0; i < c->in_count; i++)
        data[i] = value_of(rank, i);
    double count = 0, t_s;
    int rc = d->upload(d->self, &c->call.operand[0], data, err) ||
             time_calls(d, &c->call, 1, &t_s, err) ||
             d->download(d->self, &c->call.operand[1], data, err);
    for (int64_t i = 0; i < c->out_count && !rc; i++)
        count += data[i] != expected(c, members, index, i);
    free(data);
    if (rc)
        return -1;
    p->peers->sum(p->peers->self, &count, 1);
    *wrong = count;
    return 0;
}

/* How many samples of how many calls each, agreed on by all ranks. */
struct shots {
    int samples, repeats;
};
static struct shots collective_shots(struct s4d_probe *p, double once_s)
{
    const struct s4d_probe_options *o = &p->options;
    p->peers->maximum(p->peers->self, &once_s, 1);
    double repeats = ceil(o->sample_s / once_s), samples = o->op_s / once_s;
    struct shots s = {.repeats = repeats < 1 ? 1 : repeats > 100 ? 100 : (int)repeats};
    samples /= s.repeats;
    s.samples = samples < 3 ? 3 : samples > 10 * o->samples ? 10 * o->samples : (int)samples;
    return s;
}

/* Samples of a row of calls: from the end of some to the end of the next, of the slowest rank. */
static int sample_collective(struct s4d_probe *p, const struct collective *c, struct shots shots,
                             struct s4d_error *err)
{
    struct s4d_device *d = p->device;
    int n = shots.samples, r = shots.repeats, rc = 0;
    double *mark_s = s4d_calloc((size_t)n + 2, sizeof *mark_s);
    p->peers->barrier(p->peers->self);
    for (int i = 0; i < n + 1 && !rc; i++) { /* the first sample brings the ranks together */
        for (int j = 0; j < r && !rc; j++)
            rc = enqueue(d, &c->call, err);
        rc = rc || d->mark(d->self, c->op.stream, &mark_s[i], err);
    }
    rc = rc || d->finish(d->self, err);
    for (int i = 0; i < n && !rc; i++)
        p->samples_s[i] = (mark_s[i + 1] - mark_s[i]) / r;
    free(mark_s);
    if (rc)
        return -1;
    p->peers->maximum(p->peers->self, p->samples_s, n);
    return 0;
}

int s4d_probe_collective(struct s4d_probe *p, const struct s4d_grid *grid, enum s4d_op_kind kind,
                         enum s4d_stream stream, int64_t bytes, struct s4d_probed *result,
                         struct s4d_error *err)
{
    struct collective c;
    double once_s;
    make_collective(p, grid, kind, stream, bytes, &c);
    *result = (struct s4d_probed){.noisy = true};
    if (check_collective(p, grid, &c, &result->wrong, err) ||
        time_calls(p->device, &c.call, 1, &once_s, err))
        return -1;
    for (int attempt = 0; attempt < p->options.attempts && result->noisy; attempt++) {
        struct shots shots = collective_shots(p, once_s);
        if (sample_collective(p, &c, shots, err))
            return -1;
        struct s4d_statistics t = s4d_statistics(p->samples_s, shots.samples);
        keep_better(result, &t);
    }
    return 0;
}

/* Seconds of the collective (or none), and of matrix products (or none) beside it. */
static int time_both(struct s4d_probe *p, const struct collective *c, const struct s4d_call *gemm,
                     int products, double *t_s, struct s4d_error *err)
{
    struct s4d_device *d = p->device;
    p->peers->barrier(p->peers->self);
    double start_s = d->now_s(d->self);
    if (c && enqueue(d, &c->call, err))
        return -1;
    for (int i = 0; i < products; i++)
        if (enqueue(d, gemm, err))
            return -1;
    if (d->finish(d->self, err))
        return -1;
    *t_s = d->now_s(d->self) - start_s;
    p->peers->maximum(p->peers->self, t_s, 1);
    return 0;
}

static void make_product(struct s4d_probe *p, struct s4d_op *op, struct s4d_call *call)
{
    enum { SIZE = 256 };
    *op = (struct s4d_op){.kind = S4D_OP_GEMM, .stream = S4D_STREAM_COMPUTE};
    op->label.name = "probe";
    op->c.gemm.m = op->c.gemm.n = op->c.gemm.k = SIZE;
    *call = (struct s4d_call){.op = op};
    /* In a pool that the collective does not use; pairs of its 16-bit floats are good fp32 numbers.
     */
    S4D_ASSERT(p->pool[1].bytes >= 3 * SIZE * SIZE * 4, "a pool of %lld bytes",
               (long long)p->pool[1].bytes);
    p->pool[1].used = p->pool[1].bytes;
    for (int i = 0; i < 3; i++)
        call->operand[i] = (struct s4d_buffer){p->pool[1].memory + (int64_t)i * SIZE * SIZE * 4,
                                               S4D_F32, SIZE, SIZE, SIZE};
}

int s4d_probe_beside(struct s4d_probe *p, const struct s4d_grid *grid, enum s4d_stream stream,
                     int64_t bytes, struct s4d_probed *result, struct s4d_error *err)
{
    struct collective c;
    struct s4d_op op;
    struct s4d_call gemm;
    double alone_s, products_s, both_s, product_s;
    make_collective(p, grid, S4D_OP_ALL_REDUCE, stream, bytes, &c);
    make_product(p, &op, &gemm);
    *result = (struct s4d_probed){.noisy = true};
    if (refill(p, err) || time_both(p, &c, NULL, 0, &alone_s, err) ||
        time_both(p, NULL, &gemm, 4, &product_s, err) || time_both(p, &c, NULL, 0, &alone_s, err) ||
        time_both(p, NULL, &gemm, 4, &product_s, err))
        return -1;
    int products = (int)ceil(2 * alone_s / (product_s / 4)), n = p->options.samples;
    for (int attempt = 0; attempt < p->options.attempts && result->noisy; attempt++) {
        for (int i = 0; i < n; i++) {
            if (time_both(p, &c, NULL, 0, &alone_s, err) ||
                time_both(p, NULL, &gemm, products, &products_s, err) ||
                time_both(p, &c, &gemm, products, &both_s, err))
                return -1;
            double kept = (products_s + alone_s - both_s) / alone_s;
            p->samples_s[i] = kept < 0.01 ? 0.01 : kept > 1 ? 1 : kept;
        }
        struct s4d_statistics t = s4d_statistics(p->samples_s, n);
        keep_better(result, &t);
    }
    return 0;
}
