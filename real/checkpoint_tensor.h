/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a parameter in a file; for loading and saving alone. */
#ifndef S4D_REAL_CHECKPOINT_TENSOR_H
#define S4D_REAL_CHECKPOINT_TENSOR_H

#include "schedule/program.h"
#include "support/safetensors.h"

/* Name, shape and elements of tensor `i` of a parameter; 0 if it has no more. */
int s4d_checkpoint_tensor(const struct s4d_param *param, int i, struct s4d_safetensor *t);

#endif
