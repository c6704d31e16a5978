/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run calibrate: what its files share. */
#ifndef S4D_CLI_RUN_CALIBRATE_H
#define S4D_CLI_RUN_CALIBRATE_H

#include <jansson.h>

#include "cli/run/waiting.h"
#include "real/calibration.h"
#include "real/mpi/world.h"
#include "schedule/schedule_options.h"

/* Bytes of the largest copy, and of the all-reduce beside which products are timed: assumed, long
 * enough for a bus's full rate, and for several products. */
#define S4D_LARGEST_COPY (16 << 20)
#define S4D_BESIDE_BYTES (1 << 20)

enum {
    S4D_PART_GEMM = 1,
    S4D_PART_ATTENTION = 2,
    S4D_PART_KERNELS = 4,
    S4D_PART_COPIES = 8,
    S4D_PART_COLLECTIVES = 16,
    S4D_ALL_PARTS = 31
};

struct s4d_calibrate_config {
    int backend, threads, samples, progress;
    bool tf32, transposes;
    char *output, *topology;
    struct s4d_texts workloads;
    struct s4d_waiting waiting;
    struct s4d_schedule_options schedule;
};

struct s4d_calibrate {
    const struct s4d_calibrate_config *config;
    struct s4d_world *world;
    json_t *provenance;
    unsigned parts;
    enum s4d_type precision;
    struct s4d_program *program; /* whose ops are measured */
    int n_programs, cap_programs;
    int64_t pool_bytes, largest_collective;
    struct s4d_calibration result;
};

struct s4d_bench; /* cli/run/bench.h */

/* calibrate_print.c: of an open bench: fills result's names of machine and source, and what is
 * known of a device; prints what will be measured. */
void s4d_calibrate_describe(struct s4d_calibrate *c, const struct s4d_bench *b);
/* What was measured, as tables. */
void s4d_calibrate_print(const struct s4d_calibrate *c);

#endif
