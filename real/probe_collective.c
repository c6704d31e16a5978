/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of what ranks do together: collectives, and matrix products beside one. */
#include <math.h>
#include <stdlib.h>

#include "real/probe_parts.h"
#include "support/memory.h"

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
    S4D_ASSERT(count > 0 && 2 * bytes + 2 * S4D_PROBE_ALIGN <= p->pool[0].bytes, "%lld bytes",
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
    unsigned char *in = p->pool[0].memory,
                  *out = in + (bytes + S4D_PROBE_ALIGN - 1) / S4D_PROBE_ALIGN * S4D_PROBE_ALIGN;
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
             s4d_probe_time(d, &c->call, 1, &t_s, err) ||
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
            rc = s4d_probe_enqueue(d, &c->call, err);
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
        s4d_probe_time(p->device, &c.call, 1, &once_s, err))
        return -1;
    for (int attempt = 0; attempt < p->options.attempts && result->noisy; attempt++) {
        struct shots shots = collective_shots(p, once_s);
        if (sample_collective(p, &c, shots, err))
            return -1;
        struct s4d_statistics t = s4d_statistics(p->samples_s, shots.samples);
        s4d_probe_keep(result, &t);
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
    if (c && s4d_probe_enqueue(d, &c->call, err))
        return -1;
    for (int i = 0; i < products; i++)
        if (s4d_probe_enqueue(d, gemm, err))
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
    if (s4d_probe_refill(p, err) || time_both(p, &c, NULL, 0, &alone_s, err) ||
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
        s4d_probe_keep(result, &t);
    }
    return 0;
}
