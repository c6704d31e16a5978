/* SPDX-License-Identifier: Apache-2.0 */
/* What is in memory before the first iteration: initial weights and scalars. */
#ifndef S4D_REAL_STATE_H
#define S4D_REAL_STATE_H

#include "real/executor.h"

/* n numbers of this rank's view of a tensor. 0, or -1. */
int s4d_state_read(const struct s4d_executor *x, struct s4d_device *device, int tensor,
                   double *values, struct s4d_error *err);

/* A parameter's shard into master and working weights; of fp64 numbers, shard_elements of them. */
int s4d_state_write_weights(const struct s4d_executor *x, struct s4d_device *device,
                            const struct s4d_param *param, const double *shard,
                            struct s4d_error *err);

enum { S4D_LOSS_SCALE_START = 1 << 16 };

/* All weights from the seed alone (schedule/initial.h), the learning rate, and the first loss scale
 * (S4D_LOSS_SCALE_START, as PyTorch's GradScaler). 0, or -1. */
int s4d_state_initialise(const struct s4d_executor *x, struct s4d_device *device,
                         const struct s4d_program *program, int rank, uint64_t seed,
                         struct s4d_error *err);

#endif
