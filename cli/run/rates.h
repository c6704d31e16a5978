/* SPDX-License-Identifier: Apache-2.0 */
/* What the operations of a training take, each alone: calibrate's short form. */
#ifndef S4D_CLI_RUN_RATES_H
#define S4D_CLI_RUN_RATES_H

#include "cli/run/bench.h"
#include "cli/run/train.h"
#include "real/calibration.h"

/* Of a training that is prepared: its shapes of matrix products, its kernels, its collectives at
 * their sizes, on its ranks, backend and grid. On rank 0 *record is a new record of kind "rates"
 * (plots/RECORD.md), without "suite" and "host_class"; elsewhere NULL. Collective; watches the
 * ranks meanwhile, with the hooks of the training. Returns the exit code, the same on all ranks; an
 * error in the middle of a measurement ends the job. */
int s4d_rates_measure(struct s4d_train *t, json_t **record);

/* A kernel that differs from the others in what its time depends on. */
struct s4d_rates_kernel {
    struct s4d_calibrated_op key;
    int calls; /* of a rank and iteration */
    double own_s;
};

struct s4d_rates_collective {
    enum s4d_stream stream;
    enum s4d_op_kind kind;
    int64_t bytes;
    int calls, ranks;
    struct s4d_probed probed;
};

struct s4d_rates {
    struct s4d_train *train;
    struct s4d_bench bench;
    struct s4d_rates_kernel *kernel;
    int n_kernels, cap_kernels;
    struct s4d_rates_collective *collective;
    int n_collectives, cap_collectives;
    int64_t pool_bytes;
};

/* rates_record.c: collective, as what ranks measured by themselves is asked of them. NULL but on
 * rank 0. */
json_t *s4d_rates_record(const struct s4d_rates *r);

#endif
