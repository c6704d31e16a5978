/* SPDX-License-Identifier: Apache-2.0 */
/* Which share of some work this process has, where a launcher started several of one program: the
 * ranks of mpirun or srun, the tasks of a Slurm job array, or both. Only environment variables are
 * read: no library of the launcher's is needed. */
#ifndef S4D_SUPPORT_SHARE_H
#define S4D_SUPPORT_SHARE_H

#include "support/error.h"

struct s4d_share {
    int index, of;    /* share 0 of 1: all of it */
    const char *from; /* the variable that says so, for people; "" alone */
};

/* Of the launcher: OMPI_COMM_WORLD_RANK, PMI_RANK, MV2_COMM_WORLD_RANK, FLUX_TASK_RANK,
 * SLURM_PROCID with the number of ranks (the first that is there), times
 * SLURM_ARRAY_TASK_ID with MIN, MAX, COUNT and STEP. SLURM_PROCID counts only beside
 * SLURM_STEP_NUM_TASKS: a batch script is no rank, though it has the former. 0, or -1 (exit 64): a
 * variable without its other, no number, an array with gaps. */
int s4d_share_from_environment(struct s4d_share *share, struct s4d_error *err);

/* "2/8": the second of eight, index 1. 0, or -1 (exit 64). For struct s4d_option's parse. */
int s4d_share_parse(const char *text, void *field, struct s4d_error *err);

#endif
