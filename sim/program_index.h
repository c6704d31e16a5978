/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulated executor looks up for every op, worked out once. */
#ifndef S4D_SIM_PROGRAM_INDEX_H
#define S4D_SIM_PROGRAM_INDEX_H

#include "schedule/program.h"
#include "sim/kernel.h" /* for: s4d_kernel_time_s */
#include "sim/rates.h"

struct s4d_program_index {
    const struct s4d_op **order[S4D_STREAMS]; /* a stream's ops by position */
    double *kernel_s;                         /* by op, at the rates; 0 of what communicates */
    int *size;   /* by op: which of its stream's distinct (kind, bytes) of collectives */
    int n_sizes; /* the most that a stream has */
    bool *ends;  /* by op: an iteration ends with the last of these */
    int n_ends;  /* the adamw ops, or every op of a program that has none */
    double gemm_flops;
};

struct s4d_program_index s4d_program_index_make(const struct s4d_program *program,
                                                const struct s4d_kernels *kernels,
                                                const struct s4d_rates *rates);
void s4d_program_index_free(struct s4d_program_index *index);

#endif
