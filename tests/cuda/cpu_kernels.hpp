/* SPDX-License-Identifier: Apache-2.0 */
/* The words of CUDA C++ that the kernels (real/cuda/kernels) use, for a C++ compiler alone:
 * included before a .cu file, they make of a kernel a function that one thread of one block runs.
 * cpu_launch.h runs them all, one block after another, forwards or backwards, threads switching
 * where they wait for each other. */
#ifndef S4D_TESTS_CUDA_CPU_KERNELS_HPP
#define S4D_TESTS_CUDA_CPU_KERNELS_HPP

#include <math.h> /* for: functions of float and double, as C++ has them */
#include <stdint.h>
#include <string.h>

extern "C" {
#include "support/half.h"
}

#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline

struct s4d_cpu_index {
    unsigned x, y, z;
};
extern s4d_cpu_index threadIdx, blockIdx, blockDim, gridDim;
extern double s4d_shared[];

extern "C" void __syncthreads(void);
extern "C" int __syncthreads_or(int value); /* the same result for all threads of the block */

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
static inline void __stcg(uint4 *to, uint4 value)
{
    *to = value;
}

struct s4d_cpu_half {
    uint16_t bits;
};
static inline s4d_cpu_half __ushort_as_half(uint16_t bits)
{
    return {bits};
}
static inline uint16_t __half_as_ushort(s4d_cpu_half x)
{
    return x.bits;
}
static inline float __half2float(s4d_cpu_half x)
{
    return (float)s4d_f16_value(x.bits);
}
static inline s4d_cpu_half __float2half_rn(float x)
{
    return {s4d_f16_of(x)};
}

#endif
