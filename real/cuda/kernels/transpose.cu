// SPDX-License-Identifier: Apache-2.0
/* out = transpose(x), by tiles that pass through shared memory, so that both sides are read and
 * written in runs. */
#include "real/cuda/kernels/block.cuh"

/* A row of a tile is one longer than the tile is wide: columns then lie in different banks. */
enum { TILE = S4D_CUDA_TILE, PITCH = TILE + 1 };

template <typename T> static __device__ __forceinline__ void transpose_of(const s4d_cuda_args &a)
{
    extern __shared__ double s4d_shared[];
    T *room = (T *)s4d_shared;
    const s4d_buffer &x = a.o[0], &out = a.o[1];
    for (int64_t i = (int64_t)blockIdx.y * TILE; i < x.rows; i += (int64_t)gridDim.y * TILE)
        for (int64_t j = (int64_t)blockIdx.x * TILE; j < x.cols; j += (int64_t)gridDim.x * TILE) {
            for (int e = threadIdx.x; e < TILE * TILE; e += blockDim.x)
                if (i + e / TILE < x.rows && j + e % TILE < x.cols)
                    room[e / TILE * PITCH + e % TILE] =
                        ((const T *)x.data)[(i + e / TILE) * x.stride + j + e % TILE];
            __syncthreads();
            for (int e = threadIdx.x; e < TILE * TILE; e += blockDim.x)
                if (j + e / TILE < x.cols && i + e % TILE < x.rows)
                    ((T *)out.data)[(j + e / TILE) * out.stride + i + e % TILE] =
                        room[e % TILE * PITCH + e / TILE];
            __syncthreads();
        }
}

template <typename REAL> static __global__ void transpose(const s4d_cuda_args a)
{
    if (a.o[0].type == S4D_BF16 || a.o[0].type == S4D_F16)
        transpose_of<uint16_t>(a);
    else
        transpose_of<REAL>(a);
}

S4D_KERNEL(transpose, S4D_SPAN_TILES, 0, TILE *PITCH * 8, false);
