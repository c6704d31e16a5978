/* SPDX-License-Identifier: Apache-2.0 */
/* A device and a probe for measurements that are no training: what calibrate and collective share.
 */
#ifndef S4D_CLI_RUN_BENCH_H
#define S4D_CLI_RUN_BENCH_H

#include <stdatomic.h>

#include "cli/run/waiting.h"
#include "real/mpi/backend.h"
#include "real/mpi/peers.h"
#include "real/mpi/world.h"
#include "real/probe.h"

struct s4d_bench {
    struct s4d_world *world;
    const struct s4d_backend *backend;
    int threads; /* of BLAS */
    double group_timeout_s;
    int progress;    /* enum s4d_progress_mode: the default, unless set before s4d_bench_open */
    bool tf32;       /* likewise, and off */
    int gemm_tuning; /* likewise: of the program's products; and its file */
    const char *gemm_cache;
    struct s4d_peers peers;
    struct s4d_program program; /* of one op that is never run: grid, streams and precision */
    struct s4d_op op;
    struct s4d_token_source tokens;
    struct s4d_device device;
    struct s4d_probe probe;
    atomic_bool open; /* the watching thread may ask the device */
};

/* These three are collective, and return an exit code, the same on all ranks, whose error has been
 * printed: 64: waiting that the backend does not know; 69: a device or what it needs is missing.
 *
 * Watches the ranks, for measurements on a backend of this build, until s4d_watch_stop; the bench
 * outlives it. The job ends after limit_s (0: never), whatever completes. */
int s4d_bench_watch(struct s4d_bench *b, struct s4d_world *world, int backend, int threads,
                    const struct s4d_waiting *waiting, double limit_s);
/* Opens a device whose groups on `stream` are those of the grid. */
int s4d_bench_open(struct s4d_bench *b, const struct s4d_grid *grid, enum s4d_stream stream,
                   enum s4d_type precision, const struct s4d_probe_options *options,
                   int64_t pool_bytes);
/* The same of a program that has its grid, precision and streams; options NULL: without a probe.
 * Its ops outlive the bench. */
int s4d_bench_open_program(struct s4d_bench *b, const struct s4d_program *program,
                           const struct s4d_probe_options *options, int64_t pool_bytes);
/* Of what is open; else nothing. Collective. */
void s4d_bench_close(struct s4d_bench *b);

/* 0, or -1 (exit 64): --tf32 of a backend or precision that has none; --gemm-tuning of a backend
 * that has none, and --gemm-cache (NULL: not given) without it. */
int s4d_bench_check_tf32(bool tf32, int backend, enum s4d_type precision, struct s4d_error *err);
int s4d_bench_check_tuning(int tuning, const char *cache, int backend, struct s4d_error *err);

/* How many consecutive ranks each node has; 0: it is not so regular. Collective. */
int s4d_bench_ranks_per_node(const struct s4d_world *w);

/* The stream of --axis, or -1 (exit 64): no axes, none that communicate, groups of one. */
int s4d_bench_stream(const char *axis, const struct s4d_grid *grid, struct s4d_error *err);

#endif
