/* SPDX-License-Identifier: Apache-2.0 */
/* Executes work of the CUDA device on the CPU, now: kernels by cpu_launch.h, products by plain
 * loops. */
#ifndef S4D_TESTS_CUDA_CPU_WORK_H
#define S4D_TESTS_CUDA_CPU_WORK_H

#include "real/cuda/work.h"

enum s4d_cpu_shapes {
    S4D_CPU_AS_LAUNCHED, /* the blocks and grids that a GPU would get */
    S4D_CPU_ONE_THREAD,
    S4D_CPU_ODD, /* random numbers of blocks and threads (cases.h) */
    S4D_CPU_SHAPES
};

/* An op with exactly the scratch that it asks for. false: it failed, or wrote beyond that. */
bool s4d_cpu_run(const struct s4d_call *call, enum s4d_cpu_shapes shapes, bool f64);

#endif
