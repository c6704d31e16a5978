// SPDX-License-Identifier: Apache-2.0
/* out = transpose(x), by tiles that pass through shared memory, so that both sides are read and
 * written in runs, 16 bytes an access. */
#include "real/cuda/kernels/block.cuh"

/* A row of a tile is one longer than the tile is wide: columns then lie in different banks. */
enum { TILE = S4D_CUDA_TILE, PITCH = TILE + 1 };

/* body(row, column, n, data) for the packets of a tile's rows, those within `b` from row i and
 * column j on; the last of a row may be short. */
template <typename T, typename BODY>
static __device__ __forceinline__ void each_packet(const s4d_buffer &b, int64_t i, int64_t j,
                                                   BODY body)
{
    enum { PER = 16 / sizeof(T), PACKETS = TILE / PER };
    for (int e = threadIdx.x; e < TILE * PACKETS; e += blockDim.x) {
        int row = e / PACKETS, col = e % PACKETS * PER;
        int64_t rest = b.cols - j - col;
        if (i + row < b.rows && rest > 0)
            body(row, col, rest < PER ? (int)rest : (int)PER,
                 (T *)b.data + (i + row) * b.stride + j + col);
    }
}

template <typename T> static __device__ __forceinline__ void transpose_of(const s4d_cuda_args &a)
{
    extern __shared__ double s4d_shared[];
    enum { PER = 16 / sizeof(T) };
    T *room = (T *)s4d_shared;
    const s4d_buffer &x = a.o[0], &out = a.o[1];
    for (int64_t i = (int64_t)blockIdx.y * TILE; i < x.rows; i += (int64_t)gridDim.y * TILE)
        for (int64_t j = (int64_t)blockIdx.x * TILE; j < x.cols; j += (int64_t)gridDim.x * TILE) {
            each_packet<T>(x, i, j, [&](int row, int col, int n, const T *from) {
                packet<T> p = {};
                if (n == PER && is_aligned(from))
                    p = *(const packet<T> *)from;
                else
#pragma unroll
                    for (int l = 0; l < PER; l++)
                        p.v[l] = l < n ? from[l] : (T)0;
#pragma unroll
                for (int l = 0; l < PER; l++)
                    room[row * PITCH + col + l] = p.v[l];
            });
            __syncthreads();
            each_packet<T>(out, j, i, [&](int row, int col, int n, T *to) {
                packet<T> p;
#pragma unroll
                for (int l = 0; l < PER; l++)
                    p.v[l] = room[(col + l) * PITCH + row];
                if (n == PER && is_aligned(to)) { /* of plain stores nvcc makes PER */
                    uint4 whole;
                    memcpy(&whole, &p, sizeof whole);
                    __stcg((uint4 *)to, whole);
                    return;
                }
#pragma unroll
                for (int l = 0; l < PER; l++)
                    if (l < n)
                        to[l] = p.v[l];
            });
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
