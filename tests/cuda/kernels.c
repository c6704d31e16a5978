/* SPDX-License-Identifier: Apache-2.0 */
/* Every CUDA kernel, compiled for the CPU from its own file, against the host's kernel of that op:
 * with the blocks and grids that a GPU would get, with one thread, and with odd numbers of both.
 * Attention's products are plain loops here. Speaks TAP; needs no CUDA and no MPI.
 *
 *   build/tests/cuda_kernels [SEED] */
#include <stdlib.h>

#include "tests/cuda/compare.h"
#include "tests/cuda/cpu_work.h"

static bool run(void *self, const struct s4d_call *call, const struct s4d_room *rooms, bool f64)
{
    (void)rooms; /* host memory will do */
    return s4d_cpu_run(call, *(const enum s4d_cpu_shapes *)self, f64);
}

int main(int argc, char **argv)
{
    static enum s4d_cpu_shapes shapes[S4D_CPU_SHAPES] = {S4D_CPU_AS_LAUNCHED, S4D_CPU_ONE_THREAD,
                                                         S4D_CPU_ODD};
    const struct s4d_op_runner runners[S4D_CPU_SHAPES] = {{"as launched", &shapes[0], run},
                                                          {"one thread", &shapes[1], run},
                                                          {"odd blocks", &shapes[2], run}};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    return s4d_compare_kernels(seed, runners, S4D_CPU_SHAPES) > 0;
}
