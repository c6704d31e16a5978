/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/rates.h"

#include <math.h>
#include <stdlib.h>

#include "real/watch.h"
#include "schedule/op.h"
#include "support/memory.h"

/* Operands move through this much at most: more than any cache of a device holds. */
#define MOST_POOL_BYTES ((int64_t)256 << 20)

static bool is_compute(const struct s4d_op *op)
{
    enum s4d_op_class c = s4d_op_kinds[op->kind].op_class;
    return c == S4D_CLASS_GEMM || c == S4D_CLASS_ATTENTION || c == S4D_CLASS_KERNEL;
}

static int find_kernel(const struct s4d_rates *r, const struct s4d_calibrated_op *key)
{
    for (int i = 0; i < r->n_kernels; i++)
        if (s4d_calibration_same(&r->kernel[i].key, key))
            return i;
    return -1;
}

/* nccl-tests counts whole elements on every rank. */
static int64_t whole_bytes(const struct s4d_op *op)
{
    int64_t bytes = s4d_collective_bytes(&op->c, op->kind), unit = 4;
    if (op->kind != S4D_OP_ALL_REDUCE)
        unit *= op->c.collective.members;
    return bytes < unit ? unit : bytes / unit * unit;
}

static void count_collective(struct s4d_rates *r, const struct s4d_op *op)
{
    int64_t bytes = whole_bytes(op);
    if (op->c.collective.members < 2)
        return;
    for (int i = 0; i < r->n_collectives; i++) {
        struct s4d_rates_collective *c = &r->collective[i];
        if (c->stream == op->stream && c->kind == op->kind && c->bytes == bytes) {
            c->calls++;
            return;
        }
    }
    struct s4d_rates_collective c = {op->stream, op->kind, bytes, 1, op->c.collective.members,
                                     {{0}, 0, 0}};
    s4d_push(r->collective, r->n_collectives, r->cap_collectives, c);
}

static bool is_measured(const struct s4d_op *op)
{
    return op->kind == S4D_OP_ALL_REDUCE || op->kind == S4D_OP_ALL_GATHER ||
           op->kind == S4D_OP_REDUCE_SCATTER;
}

/* What there is to measure, and the pool that all of it fits. */
static void collect(struct s4d_rates *r)
{
    const struct s4d_program *p = &r->train->program;
    int64_t arena = p->arena_bytes[S4D_DEVICE], most = 0;
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        int64_t needs = 0;
        if (is_measured(op)) {
            count_collective(r, op);
            needs = 2 * whole_bytes(op) + 4096;
        } else if (is_compute(op)) {
            struct s4d_rates_kernel k = {s4d_calibration_key(p, op), 1, NAN};
            int at = find_kernel(r, &k.key);
            if (at < 0)
                s4d_push(r->kernel, r->n_kernels, r->cap_kernels, k);
            else
                r->kernel[at].calls++;
            needs = s4d_probe_bytes(p, op);
        }
        most = needs > most ? needs : most;
    }
    arena = arena < MOST_POOL_BYTES ? arena : MOST_POOL_BYTES;
    r->pool_bytes = arena > most ? arena : most;
}

static int open_bench(struct s4d_rates *r, enum s4d_stream stream, enum s4d_type precision)
{
    const struct s4d_probe_options o = {.samples = 7,
                                        .sample_s = 3e-4,
                                        .op_s = 0.015,
                                        .attempts = 3,
                                        .vocabulary = r->train->program.model.vocab_size};
    return s4d_bench_open(&r->bench, &r->train->program.grid, stream, precision, &o, r->pool_bytes);
}

static int measure_kernels(struct s4d_rates *r, struct s4d_error *err)
{
    const struct s4d_program *p = &r->train->program;
    int code = open_bench(r, S4D_STREAM_COMPUTE, p->options.precision);
    if (code)
        return code;
    for (int i = 0; i < p->n_ops; i++) {
        if (!is_compute(&p->ops[i]))
            continue;
        struct s4d_calibrated_op key = s4d_calibration_key(p, &p->ops[i]);
        struct s4d_rates_kernel *k = &r->kernel[find_kernel(r, &key)];
        if (k->key.passes++ > 0)
            continue;
        if (s4d_probe_op(&r->bench.probe, p, &p->ops[i], &k->key.probed, err))
            return -1;
        k->own_s = r->bench.probe.own_s;
    }
    s4d_bench_close(&r->bench);
    return 0;
}

static int measure_collectives(struct s4d_rates *r, struct s4d_error *err)
{
    const struct s4d_grid *grid = &r->train->program.grid;
    for (int s = 0; s < S4D_STREAMS; s++)
        for (int i = 0; i < r->n_collectives; i++) {
            struct s4d_rates_collective *c = &r->collective[i];
            if ((int)c->stream != s)
                continue;
            int code = r->bench.open ? 0 : open_bench(r, c->stream, S4D_F32);
            if (code)
                return code;
            if (s4d_probe_collective(&r->bench.probe, grid, c->kind, c->stream, c->bytes,
                                     &c->probed, err))
                return -1;
            bool last = true;
            for (int j = i + 1; j < r->n_collectives; j++)
                last = last && (int)r->collective[j].stream != s;
            if (last)
                s4d_bench_close(&r->bench);
        }
    return 0;
}

int s4d_rates_measure(struct s4d_train *t, json_t **record)
{
    const struct s4d_train_config *c = t->config;
    struct s4d_rates r = {.train = t};
    struct s4d_error err;
    *record = NULL;
    int code =
        s4d_bench_watch(&r.bench, t->world, c->backend, c->threads, &c->waiting, t->hooks.limit_s);
    if (code)
        return code;
    r.bench.progress = c->progress;
    r.bench.tf32 = c->tf32;
    r.bench.gemm_tuning = c->gemm_tuning;
    r.bench.gemm_cache = c->gemm_cache;
    r.bench.peers = s4d_mpi_peers(t->world, c->threads);
    t->progress = s4d_host_progress(c->progress, r.bench.peers.oversubscribed);
    collect(&r);
    code = measure_kernels(&r, &err);
    if (!code)
        code = measure_collectives(&r, &err);
    s4d_watch_stop();
    if (code < 0)
        s4d_world_abort(t->world, &err);
    if (!code)
        *record = s4d_rates_record(&r);
    free(r.kernel);
    free(r.collective);
    return code;
}
