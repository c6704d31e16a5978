/* SPDX-License-Identifier: Apache-2.0 */
/* What the double's own tests share. */
#ifndef S4D_TESTS_DOUBLE_SELF_SELF_H
#define S4D_TESTS_DOUBLE_SELF_SELF_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>

#include "support/error.h"

enum { SEEDS = 40 };

#define GOOD(call) S4D_ASSERT((call) == 0, "%s", #call)

extern cudaStream_t stream[3];
extern float *device, *pinned; /* of 1024 floats */

/* A test, good if it is on all ranks. */
void report(bool good, const char *name);
/* The signal that ends f(), 0: none. */
int ends_by(void (*f)(void));
void set_seed(int seed);
/* Copies of n floats on stream `on`. */
cudaError_t up(float *to, const float *from, int n, int on);
cudaError_t down(float *to, const float *from, int n, int on);
float read_one(const float *from);
ncclResult_t settle(ncclComm_t comm);

/* graphs.c; comm: of both ranks. Leaves a graph with collectives of it, destroyed at the end. */
void check_graphs(ncclComm_t comm);

#endif
