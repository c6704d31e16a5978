/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/bench.h"

#include <stdio.h>
#include <string.h>

#include "real/host/host.h"
#include "real/watch.h"

int s4d_bench_ranks_per_node(const struct s4d_world *w)
{
    int regular = w->rank % w->local_size == w->local_rank,
        range[2] = {w->local_size, -w->local_size};
    for (int i = 0; i < w->local_size; i++)
        regular = regular && w->local_ranks[i] == w->rank - w->local_rank + i;
    MPI_Allreduce(MPI_IN_PLACE, range, 2, MPI_INT, MPI_MAX, w->comm);
    regular = regular && range[0] == -range[1];
    MPI_Allreduce(MPI_IN_PLACE, &regular, 1, MPI_INT, MPI_MIN, w->comm);
    return regular ? w->local_size : 0;
}

static int64_t completed(void *self)
{
    struct s4d_bench *b = self;
    return b->open ? b->backend->completed(&b->device) : 0;
}

static void describe(void *self, char *text, int size)
{
    struct s4d_bench *b = self;
    if (b->open)
        b->backend->describe(&b->device, text, size);
    else
        snprintf(text, (size_t)size, "the start of a measurement");
}

int s4d_bench_watch(struct s4d_bench *b, struct s4d_world *world, int backend, int threads,
                    const struct s4d_waiting *waiting, double limit_s)
{
    struct s4d_error err;
    *b = (struct s4d_bench){.world = world,
                            .backend = s4d_backend_of(backend),
                            .threads = threads,
                            .group_timeout_s = waiting->group_timeout_s,
                            .progress = S4D_PROGRESS_DEFAULT};
    struct s4d_watch watch = {.rank = world->rank,
                              .host = world->host,
                              .timeout_s = waiting->timeout_s,
                              .limit_s = limit_s,
                              .n_peers = world->local_size,
                              .peer_rank = world->local_ranks,
                              .peer_pid = world->local_pids,
                              .completed = completed,
                              .describe = describe,
                              .self = b};
    int rc = s4d_waiting_check(waiting, backend, &err);
    if (!rc && b->backend->absent)
        rc = s4d_fail(&err, S4D_EXIT_DEVICE, "--backend", "this build has no %s: %s",
                      b->backend->name, b->backend->absent);
    if (!rc)
        rc = s4d_watch_start(&watch, &err);
    return s4d_world_agree(world, rc ? &err : NULL);
}

static int open_device(struct s4d_bench *b, const struct s4d_program *program,
                       struct s4d_error *err)
{
    struct s4d_backend_options o = {.comm = b->world->comm,
                                    .threads = b->threads,
                                    .progress =
                                        s4d_host_progress(b->progress, b->peers.oversubscribed),
                                    .tf32 = b->tf32,
                                    .gemm_tuning = b->gemm_tuning,
                                    .gemm_cache = b->gemm_cache,
                                    .group_timeout_s = b->group_timeout_s};
    b->program = *program;
    s4d_tokens_random(&b->tokens, 1, 2, 1); /* never asked */
    o.tokens = b->tokens;
    int rc = b->backend->open(&b->device, &b->program, &o, err);
    if (rc == S4D_BACKEND_ALONE)
        s4d_world_abort(b->world, err);
    if (rc)
        return -1;
    b->open = true;
    return 0;
}

int s4d_bench_open_program(struct s4d_bench *b, const struct s4d_program *program,
                           const struct s4d_probe_options *options, int64_t pool_bytes)
{
    struct s4d_error err;
    int rc = open_device(b, program, &err);
    if (!rc && options)
        rc = s4d_probe_open(&b->probe, &b->device, &b->peers, options, pool_bytes, &err);
    int code = s4d_world_agree(b->world, rc ? &err : NULL);
    if (code)
        s4d_bench_close(b);
    return code;
}

int s4d_bench_open(struct s4d_bench *b, const struct s4d_grid *grid, enum s4d_stream stream,
                   enum s4d_type precision, const struct s4d_probe_options *options,
                   int64_t pool_bytes)
{
    struct s4d_program program = {.grid = *grid, .ops = &b->op, .n_ops = 1};
    b->op = (struct s4d_op){.kind = S4D_OP_ALL_REDUCE,
                            .stream = stream,
                            .label = {.layer = -1, .micro_batch = -1, .name = "probe"}};
    program.options.precision = precision;
    program.stream_length[stream] = 1;
    return s4d_bench_open_program(b, &program, options, pool_bytes);
}

void s4d_bench_close(struct s4d_bench *b)
{
    if (!b->open)
        return;
    b->open = false;
    s4d_probe_close(&b->probe);
    b->device.close(b->device.self);
    s4d_tokens_close(&b->tokens);
}

int s4d_bench_check_tf32(bool tf32, int backend, enum s4d_type precision, struct s4d_error *err)
{
    const char *name = s4d_backend_names[backend];
    if (tf32 && strcmp(name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--tf32", "--backend %s has none", name);
    if (tf32 && precision != S4D_F32)
        return s4d_fail(err, S4D_EXIT_USAGE, "--tf32",
                        "rounds products of f32 matrices, and --precision is %s",
                        s4d_type_names[precision]);
    return 0;
}

int s4d_bench_check_tuning(int tuning, const char *cache, int backend, struct s4d_error *err)
{
    const char *name = s4d_backend_names[backend];
    if (tuning != S4D_TUNING_OFF && strcmp(name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--gemm-tuning", "--backend %s has none", name);
    if (cache && tuning == S4D_TUNING_OFF)
        return s4d_fail(err, S4D_EXIT_USAGE, "--gemm-cache",
                        "is of --gemm-tuning cached or full, which is not given");
    return 0;
}

int s4d_bench_stream(const char *axis, const struct s4d_grid *grid, struct s4d_error *err)
{
    s4d_axes axes = s4d_axes_parse(axis);
    int stream = 0;
    while (stream < S4D_STREAMS && (axes == 0 || s4d_streams[stream].axes != axes))
        stream++;
    if (stream == S4D_STREAMS)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis",
                        "expected x, y, z, data, z,data or x,y,z, got '%s'", axis);
    if (s4d_group_size(grid, axes) < 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis", "its groups have one member in this grid");
    return stream;
}
