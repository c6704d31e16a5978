// SPDX-License-Identifier: Apache-2.0
/* LayerNorm and RMSNorm over a width that is split between ranks, and sums over rows.
 *
 * Gradients of gains and biases are sums over tokens: a thread sums WIDE columns of one of `parts`
 * parts of the rows into scratch (parts x cols of d_gain, then of d_bias), and a second kernel adds
 * the parts in order. */
#include "real/cuda/kernels/block.cuh"

/* x = xhat / r + mean, with mean = S0 / width, 1 / r^2 = S1 / width - mean^2 + epsilon. RMSNorm has
 * S1 alone, and no mean. */
template <typename REAL> struct moments {
    REAL mean, r;
};

template <typename REAL, bool RMS>
static __device__ __forceinline__ moments<REAL> moments_of(const s4d_cuda_args &a, int64_t i)
{
    REAL width = (REAL)a.c.norm.width, epsilon = (REAL)a.c.norm.epsilon;
    if (RMS)
        return {0, 1 / sqrt(load_at<REAL>(a.o[1], i) / width + epsilon)};
    wide<REAL> s = load<REAL>(a.o[1], i, 0, 2);
    REAL mean = s.v[0] / width;
    return {mean, 1 / sqrt(s.v[1] / width - mean * mean + epsilon)};
}

template <typename REAL, bool RMS>
static __device__ __forceinline__ void store_sums(const s4d_buffer &sums, int64_t i, const REAL *s)
{
    if (threadIdx.x != 0)
        return;
    if (RMS) {
        store_at(sums, i, s[1]);
        return;
    }
    store(sums, i, 0, 2, wide<REAL>{{s[0], s[1]}});
}

/* sums = [sum x, sum x^2] of each row; RMSNorm: [sum x^2]. */
template <typename REAL, bool RMS> static __device__ void partial(const s4d_cuda_args &a)
{
    for (int64_t i = blockIdx.x; i < a.o[0].rows; i += gridDim.x) {
        REAL s[2] = {0, 0};
        each_of_row(a.o[0].cols, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(a.o[0], i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++) {
                s[0] += x.v[l];
                s[1] += x.v[l] * x.v[l];
            }
        });
        combine<plus, 2>(s);
        store_sums<REAL, RMS>(a.o[1], i, s);
    }
}

/* y = xhat gain [+ bias] */
template <typename REAL, bool RMS> static __device__ void apply(const s4d_cuda_args &a)
{
    const s4d_buffer &y = a.o[RMS ? 3 : 4];
    each(y.rows, y.cols, [&](int64_t i, int64_t j, int n) {
        moments<REAL> m = moments_of<REAL, RMS>(a, i);
        wide<REAL> x = load<REAL>(a.o[0], i, j, n), gain = load<REAL>(a.o[2], 0, j, n);
        wide<REAL> bias = RMS ? wide<REAL>{} : load<REAL>(a.o[3], 0, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            x.v[l] = (x.v[l] - m.mean) * m.r * gain.v[l] + bias.v[l];
        store(y, i, j, n, x);
    });
}

/* dxhat = dy gain; back_sums = [sum dxhat, sum dxhat xhat]; RMSNorm: the second. */
template <typename REAL, bool RMS> static __device__ void backward_rows(const s4d_cuda_args &a)
{
    for (int64_t i = blockIdx.x; i < a.o[0].rows; i += gridDim.x) {
        moments<REAL> m = moments_of<REAL, RMS>(a, i);
        REAL s[2] = {0, 0};
        each_of_row(a.o[0].cols, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(a.o[0], i, j, n), gain = load<REAL>(a.o[2], 0, j, n);
            wide<REAL> dy = load<REAL>(a.o[3], i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++) {
                REAL d = dy.v[l] * gain.v[l];
                s[0] += d;
                s[1] += d * ((x.v[l] - m.mean) * m.r);
            }
        });
        combine<plus, 2>(s);
        store_sums<REAL, RMS>(a.o[4], i, s);
    }
}

/* Where parts lie: row p is part p of the first sum, row parts + p of the second. */
template <typename REAL> static __device__ s4d_buffer parts_of(const s4d_cuda_args &a, int64_t cols)
{
    int64_t stride = (cols + WIDE - 1) / WIDE * WIDE;
    return {a.scratch, sizeof(REAL) == 8 ? S4D_F64 : S4D_F32, 2 * a.parts, cols, stride};
}

/* body(part, first row, one past the last, j, n) */
template <typename BODY>
static __device__ __forceinline__ void each_part(const s4d_cuda_args &a, const s4d_buffer &x,
                                                 BODY body)
{
    int64_t per = (x.rows + a.parts - 1) / a.parts;
    each(a.parts, x.cols, [&](int64_t part, int64_t j, int n) {
        int64_t first = part * per, last = first + per < x.rows ? first + per : x.rows;
        body(part, first, last, j, n);
    });
}

/* sum_T dy xhat; sum_T dy */
template <typename REAL, bool RMS> static __device__ void backward_parts(const s4d_cuda_args &a)
{
    s4d_buffer room = parts_of<REAL>(a, a.o[0].cols);
    each_part(a, a.o[0], [&](int64_t part, int64_t first, int64_t last, int64_t j, int n) {
        wide<REAL> d_gain = {}, d_bias = {};
        for (int64_t i = first; i < last; i++) {
            moments<REAL> m = moments_of<REAL, RMS>(a, i);
            wide<REAL> x = load<REAL>(a.o[0], i, j, n), dy = load<REAL>(a.o[3], i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++) {
                d_gain.v[l] += dy.v[l] * ((x.v[l] - m.mean) * m.r);
                d_bias.v[l] += dy.v[l];
            }
        }
        store(room, part, j, n, d_gain);
        if (!RMS)
            store(room, a.parts + part, j, n, d_bias);
    });
}

/* out += the parts from row `first` of the room on, in order */
template <typename REAL>
static __device__ void add_parts(const s4d_cuda_args &a, const s4d_buffer &out, int64_t first)
{
    s4d_buffer room = parts_of<REAL>(a, out.cols);
    each(1, out.cols, [&](int64_t, int64_t j, int n) {
        wide<REAL> sum = load<REAL>(out, 0, j, n);
        for (int64_t p = 0; p < a.parts; p++) {
            wide<REAL> x = load<REAL>(room, first + p, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                sum.v[l] += x.v[l];
        }
        store(out, 0, j, n, sum);
    });
}

/* dx = r (dxhat - B0/width - xhat B1/width) [+ residual]; RMSNorm: without B0 */
template <typename REAL, bool RMS> static __device__ void backward_apply(const s4d_cuda_args &a)
{
    REAL width = (REAL)a.c.norm.width;
    each(a.o[6].rows, a.o[6].cols, [&](int64_t i, int64_t j, int n) {
        moments<REAL> m = moments_of<REAL, RMS>(a, i);
        REAL b0 = RMS ? 0 : load_one<REAL>(a.o[4], i, 0) / width;
        REAL b1 = (RMS ? load_at<REAL>(a.o[4], i) : load_one<REAL>(a.o[4], i, 1)) / width;
        wide<REAL> x = load<REAL>(a.o[0], i, j, n), gain = load<REAL>(a.o[2], 0, j, n);
        wide<REAL> dy = load<REAL>(a.o[3], i, j, n), more = load_or_zero<REAL>(a.o[5], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++) {
            REAL xhat = (x.v[l] - m.mean) * m.r;
            x.v[l] = m.r * (dy.v[l] * gain.v[l] - b0 - xhat * b1) + more.v[l];
        }
        store(a.o[6], i, j, n, x);
    });
}

template <typename REAL> static __global__ void column_sum_parts(const s4d_cuda_args a)
{
    s4d_buffer room = parts_of<REAL>(a, a.o[0].cols);
    each_part(a, a.o[0], [&](int64_t part, int64_t first, int64_t last, int64_t j, int n) {
        wide<REAL> sum = {};
        for (int64_t i = first; i < last; i++) {
            wide<REAL> x = load<REAL>(a.o[0], i, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                sum.v[l] += x.v[l];
        }
        store(room, part, j, n, sum);
    });
}
template <typename REAL> static __global__ void column_sum_end(const s4d_cuda_args a)
{
    add_parts<REAL>(a, a.o[1], 0);
}

#define NORM(name, body)                                                                           \
    template <typename REAL> static __global__ void name(const s4d_cuda_args a)                    \
    {                                                                                              \
        body;                                                                                      \
    }
NORM(norm_partial, (partial<REAL, false>(a)))
NORM(rms_partial, (partial<REAL, true>(a)))
NORM(norm_apply, (apply<REAL, false>(a)))
NORM(rms_apply, (apply<REAL, true>(a)))
NORM(norm_backward_rows, (backward_rows<REAL, false>(a)))
NORM(rms_backward_rows, (backward_rows<REAL, true>(a)))
NORM(norm_backward_parts, (backward_parts<REAL, false>(a)))
NORM(rms_backward_parts, (backward_parts<REAL, true>(a)))
NORM(norm_backward_end, add_parts<REAL>(a, a.o[5], 0); add_parts<REAL>(a, a.o[6], a.parts))
NORM(rms_backward_end, add_parts<REAL>(a, a.o[5], 0))
NORM(norm_backward_apply, (backward_apply<REAL, false>(a)))
NORM(rms_backward_apply, (backward_apply<REAL, true>(a)))

S4D_KERNEL(norm_partial, S4D_SPAN_ROWS, 0, 16, false);
S4D_KERNEL(rms_partial, S4D_SPAN_ROWS, 0, 16, false);
S4D_KERNEL(norm_apply, S4D_SPAN_ELEMENTS, 4, 0, false);
S4D_KERNEL(rms_apply, S4D_SPAN_ELEMENTS, 3, 0, false);
S4D_KERNEL(norm_backward_rows, S4D_SPAN_ROWS, 0, 16, false);
S4D_KERNEL(rms_backward_rows, S4D_SPAN_ROWS, 0, 16, false);
S4D_KERNEL(norm_backward_parts, S4D_SPAN_COLUMNS, 0, 0, false);
S4D_KERNEL(rms_backward_parts, S4D_SPAN_COLUMNS, 0, 0, false);
S4D_KERNEL(norm_backward_end, S4D_SPAN_ELEMENTS, 5, 0, false);
S4D_KERNEL(rms_backward_end, S4D_SPAN_ELEMENTS, 5, 0, false);
S4D_KERNEL(norm_backward_apply, S4D_SPAN_ELEMENTS, 6, 0, false);
S4D_KERNEL(rms_backward_apply, S4D_SPAN_ELEMENTS, 6, 0, false);
S4D_KERNEL(column_sum_parts, S4D_SPAN_COLUMNS, 0, 0, false);
S4D_KERNEL(column_sum_end, S4D_SPAN_ELEMENTS, 1, 0, false);
