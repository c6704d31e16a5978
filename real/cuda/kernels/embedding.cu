// SPDX-License-Identifier: Apache-2.0
/* The embedding of the vocabulary rows that this rank holds, and rotary positions. */
#include "real/cuda/kernels/block.cuh"

/* The own row of token t, or -1. */
static __device__ __forceinline__ int64_t own_row(const s4d_cuda_args &a, int64_t t, int64_t rows)
{
    int64_t token = token_at(a.o[0], t), row = token - a.first;
    return token >= 0 && row >= 0 && row < rows ? row : -1;
}

/* x = W[token - first] where held, else 0 */
template <typename REAL> static __global__ void embedding_forward(const s4d_cuda_args a)
{
    each(a.o[2].rows, a.o[2].cols, [&](int64_t t, int64_t j, int n) {
        int64_t row = own_row(a, t, a.o[1].rows);
        store(a.o[2], t, j, n, row >= 0 ? load<REAL>(a.o[1], row, j, n) : wide<REAL>{});
    });
}

/* d_w[row] += dx[t] for t and all later tokens of the same row, in order. Looks through tokens a
 * block at a time; few of them hold one. */
template <typename REAL>
static __device__ void add_tokens(const s4d_cuda_args &a, int64_t row, int64_t t)
{
    extern __shared__ double s4d_shared[];
    int *is_same = (int *)s4d_shared;
    const s4d_buffer &dx = a.o[1], &d_w = a.o[2];
    for (int64_t from = t; from < dx.rows; from += blockDim.x) {
        int64_t own = from + threadIdx.x;
        int same = own < dx.rows && own_row(a, own, d_w.rows) == row;
        if (!__syncthreads_or(same))
            continue;
        is_same[threadIdx.x] = same;
        __syncthreads();
        each_of_row(dx.cols, [&](int64_t j, int n) {
            wide<REAL> sum = load<REAL>(d_w, row, j, n);
            for (unsigned k = 0; k < blockDim.x; k++) {
                if (!is_same[k])
                    continue;
                wide<REAL> d = load<REAL>(dx, from + k, j, n);
#pragma unroll
                for (int l = 0; l < WIDE; l++)
                    sum.v[l] += d.v[l];
            }
            store(d_w, row, j, n, sum);
        });
        __syncthreads();
    }
}

/* d_w[token - first] += dx, for own tokens: the block of a row's first token adds them all. */
template <typename REAL> static __global__ void embedding_backward(const s4d_cuda_args a)
{
    for (int64_t t = blockIdx.x; t < a.o[1].rows; t += gridDim.x) {
        int64_t row = own_row(a, t, a.o[2].rows);
        int earlier = row < 0;
        for (int64_t k = threadIdx.x; k < t && !earlier; k += blockDim.x)
            earlier = own_row(a, k, a.o[2].rows) == row;
        if (!__syncthreads_or(earlier))
            add_tokens<REAL>(a, row, t);
    }
}

/* Pairs (x[i], x[i + d/2]) of every head turn by (t mod seq) f(i). */
template <typename REAL> static __global__ void rotary(const s4d_cuda_args a)
{
    int64_t d = a.c.rotary.head_dim, half = d / 2, per_head = (half + WIDE - 1) / WIDE;
    int64_t heads = a.o[0].cols / d;
    s4d_buffer table = {(void *)a.table, sizeof(REAL) == 8 ? S4D_F64 : S4D_F32, a.c.rotary.seq, d,
                        d};
    REAL sign = a.c.rotary.inverse ? -1 : 1;
    each(a.o[0].rows, heads * per_head * WIDE, [&](int64_t t, int64_t unit, int) {
        int64_t head = unit / WIDE / per_head, i = unit / WIDE % per_head * WIDE, at = head * d + i;
        int n = at_most_wide(half - i);
        wide<REAL> cosine = load<REAL>(table, t % a.c.rotary.seq, i, n);
        wide<REAL> sine = load<REAL>(table, t % a.c.rotary.seq, half + i, n);
        wide<REAL> x = load<REAL>(a.o[0], t, at, n), y = load<REAL>(a.o[0], t, at + half, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++) {
            REAL re = x.v[l], im = y.v[l];
            x.v[l] = re * cosine.v[l] - sign * im * sine.v[l];
            y.v[l] = im * cosine.v[l] + sign * re * sine.v[l];
        }
        store(a.o[0], t, at, n, x);
        store(a.o[0], t, at + half, n, y);
    });
}

S4D_KERNEL(embedding_forward, S4D_SPAN_ELEMENTS, 2, 0, false);
S4D_KERNEL(embedding_backward, S4D_SPAN_ROWS, 1, 4, false);
S4D_KERNEL(rotary, S4D_SPAN_ELEMENTS, 0, 0, false);
