// SPDX-License-Identifier: Apache-2.0
/* What lies between the matrix products of attention (real/cuda/attention.c): softmax of a tile of
 * scores, and its gradient. A tile is tile.rows query rows of every tile.apart-th head from
 * tile.head on, head after head; it sees the first `cols` tokens, some rows fewer. */
#include "real/cuda/kernels/block.cuh"

struct query {
    int64_t head, row; /* of the sequence's rows */
    int64_t seen;      /* tokens */
};

static __device__ __forceinline__ query query_of(const s4d_cuda_args &a, int64_t i)
{
    query q;
    q.head = a.tile.head + i / a.tile.rows * a.tile.apart;
    q.row = a.tile.first + i % a.tile.rows;
    q.seen = a.c.attention.causal ? q.row + 1 : a.c.attention.seq;
    return q;
}

/* p = exp(score - max) / sum; lse = max + log(sum) */
template <typename REAL> static __global__ void softmax(const s4d_cuda_args a)
{
    const s4d_buffer &scores = a.o[0], &p = a.o[1], &lse = a.o[2];
    for (int64_t i = blockIdx.x; i < scores.rows; i += gridDim.x) {
        query q = query_of(a, i);
        REAL most = -(REAL)INFINITY, sum = 0;
        each_of_row(q.seen, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(scores, i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                most = l < n ? larger::of(x.v[l], most) : most;
        });
        combine<larger, 1>(&most);
        each_of_row(q.seen, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(scores, i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                sum += l < n ? exp(x.v[l] - most) : 0;
        });
        combine<plus, 1>(&sum);
        each_of_row(p.cols, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(scores, i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                x.v[l] = j + l < q.seen ? exp(x.v[l] - most) / sum : 0;
            store(p, i, j, n, x);
        });
        if (threadIdx.x == 0)
            store_one(lse, a.tile.lse + q.head, q.row, most + log(sum));
    }
}

/* p = exp(score - lse); ds = p (dp - d_out . out) scale */
template <typename REAL> static __global__ void softmax_backward(const s4d_cuda_args a)
{
    const s4d_buffer &scores = a.o[0], &dp = a.o[1];
    int64_t d = a.c.attention.head_dim;
    REAL scale = (REAL)a.c.attention.scale;
    for (int64_t i = blockIdx.x; i < scores.rows; i += gridDim.x) {
        query q = query_of(a, i);
        REAL lse = load_one<REAL>(a.o[2], a.tile.lse + q.head, q.row), delta = 0;
        each_of_row(d, [&](int64_t j, int n) {
            wide<REAL> out = load<REAL>(a.o[3], a.tile.token + q.row, q.head * d + j, n);
            wide<REAL> d_out = load<REAL>(a.o[4], a.tile.token + q.row, q.head * d + j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                delta += out.v[l] * d_out.v[l];
        });
        combine<plus, 1>(&delta);
        each_of_row(scores.cols, [&](int64_t j, int n) {
            wide<REAL> p = load<REAL>(scores, i, j, n), ds = load<REAL>(dp, i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++) {
                p.v[l] = j + l < q.seen ? exp(p.v[l] - lse) : 0;
                ds.v[l] = j + l < q.seen ? p.v[l] * (ds.v[l] - delta) * scale : 0;
            }
            store(a.o[5], i, j, n, p);
            store(a.o[6], i, j, n, ds);
        });
    }
}

S4D_KERNEL(softmax, S4D_SPAN_ROWS, 0, 8, false);
S4D_KERNEL(softmax_backward, S4D_SPAN_ROWS, 0, 8, false);
