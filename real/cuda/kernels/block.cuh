/* SPDX-License-Identifier: Apache-2.0 */
/* How a grid of blocks covers rows and columns, and sums within a block: for any number of threads.
 */
#ifndef S4D_REAL_CUDA_KERNELS_BLOCK_CUH
#define S4D_REAL_CUDA_KERNELS_BLOCK_CUH

#include "real/cuda/kernels/element.cuh"

/* body(i, j, n) for the n columns from j on of row i, over the whole grid. */
template <typename BODY>
static __device__ __forceinline__ void each(int64_t rows, int64_t cols, BODY body)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x * WIDE;
    int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * WIDE;
    for (int64_t i = blockIdx.y; i < rows; i += gridDim.y)
        for (int64_t j = first; j < cols; j += step)
            body(i, j, at_most_wide(cols - j));
}

/* body(j, n) for the n columns from j on of one row, over the block. */
template <typename BODY> static __device__ __forceinline__ void each_of_row(int64_t cols, BODY body)
{
    for (int64_t j = (int64_t)threadIdx.x * WIDE; j < cols; j += (int64_t)blockDim.x * WIDE)
        body(j, at_most_wide(cols - j));
}

struct plus {
    template <typename T> static __device__ __forceinline__ T of(T a, T b)
    {
        return a + b;
    }
};
struct larger {
    template <typename T> static __device__ __forceinline__ T of(T a, T b)
    {
        return a > b ? a : b;
    }
};

/* v[0 .. N) of all threads of the block, combined in a tree over their numbers; every thread gets
 * the result. N sizeof(T) bytes of shared memory a thread. */
template <typename OP, int N, typename T> static __device__ __forceinline__ void combine(T *v)
{
    extern __shared__ double s4d_shared[];
    T *room = (T *)s4d_shared;
    unsigned t = threadIdx.x;
    __syncthreads(); /* of the room's use before */
    for (int k = 0; k < N; k++)
        room[k * blockDim.x + t] = v[k];
    __syncthreads();
    for (unsigned n = blockDim.x, half; n > 1; n = half) {
        half = (n + 1) / 2;
        for (int k = 0; k < N && t < n / 2; k++) {
            T *at = room + k * blockDim.x + t;
            *at = OP::of(*at, at[half]);
        }
        __syncthreads();
    }
    for (int k = 0; k < N; k++)
        v[k] = room[k * blockDim.x];
}

/* s4d_cuda_NAME: the kernel of that name, for fp32 and fp64 arithmetic. */
#define S4D_KERNEL(kernel, span, over, bytes, flattened)                                           \
    extern "C" const struct s4d_cuda_kernel s4d_cuda_##kernel = {                                  \
        #kernel,  {(const void *)kernel<float>, (const void *)kernel<double>}, span, over, bytes,  \
        flattened}

#endif
