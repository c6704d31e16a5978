/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a kernel that cpu_kernels.hpp made a function: all blocks, one after another; in every
 * second launch blocks and threads from the last to the first. */
#ifndef S4D_TESTS_CUDA_CPU_LAUNCH_H
#define S4D_TESTS_CUDA_CPU_LAUNCH_H

#include "real/cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* function: one of s4d_cuda_kernel's. Any number of threads up to 1024; more than one switch stacks
 * where they wait for each other. At most 64 KiB of shared memory, filled with NaNs before every
 * block. A block whose threads do not all reach the same waits is a fault of ours (exit 70). */
void s4d_cpu_launch(const void *function, const struct s4d_cuda_args *args, unsigned grid_x,
                    unsigned grid_y, unsigned threads, unsigned shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
