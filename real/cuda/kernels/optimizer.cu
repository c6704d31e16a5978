// SPDX-License-Identifier: Apache-2.0
/* Gradient norm, clipping, AdamW, loss scale. Sums over many elements are in fp64. */
#include "real/cuda/kernels/block.cuh"

/* scratch[2 p], scratch[2 p + 1]: of the elements of part p, the sum of squares, and 1 if one of
 * them is not finite. */
template <typename REAL> static __global__ void squared_norm_parts(const s4d_cuda_args a)
{
    const s4d_buffer &x = a.o[0];
    for (int64_t p = blockIdx.x; p < a.parts; p += gridDim.x) {
        double s[2] = {0, 0};
        int64_t step = a.parts * blockDim.x * WIDE;
        for (int64_t at = (p * blockDim.x + threadIdx.x) * WIDE; at < a.valid; at += step) {
            int n = at_most_wide(a.valid - at);
            wide<REAL> v = {};
            if (x.rows == 1)
                v = load<REAL>(x, 0, at, n);
            else
#pragma unroll
                for (int l = 0; l < WIDE; l++)
                    v.v[l] = l < n ? load_at<REAL>(x, at + l) : 0;
            REAL sum = 0;
#pragma unroll
            for (int l = 0; l < WIDE; l++) {
                sum += v.v[l] * v.v[l];
                s[1] += isfinite(v.v[l]) ? 0 : 1;
            }
            s[0] += (double)sum;
        }
        combine<plus, 2>(s);
        if (threadIdx.x == 0) {
            ((double *)a.scratch)[2 * p] = s[0];
            ((double *)a.scratch)[2 * p + 1] = s[1];
        }
    }
}

/* out = [the parts' sum / loss_scale^2, 1 if any of them is not finite], added to what it holds if
 * so asked */
template <typename REAL> static __global__ void squared_norm_end(const s4d_cuda_args a)
{
    double s[2] = {0, 0}, scale = (double)scalar<REAL>(a.o[1], 1);
    for (int64_t p = threadIdx.x; p < a.parts; p += blockDim.x) {
        s[0] += ((const double *)a.scratch)[2 * p];
        s[1] += ((const double *)a.scratch)[2 * p + 1];
    }
    combine<plus, 2>(s);
    if (threadIdx.x != 0 || blockIdx.x != 0)
        return;
    wide<REAL> before = {};
    if (a.c.norm2.accumulate)
        before = load<REAL>(a.o[2], 0, 0, 2);
    REAL found = s[1] != 0 ? 1 : before.v[1];
    store(a.o[2], 0, 0, 2, wide<REAL>{{(REAL)((double)before.v[0] + s[0] / scale / scale), found}});
}

/* norm = sqrt(sum of parts[i][0]); found_inf = any parts[i][1]; clip = min(1, clip_norm / (norm +
 * 1e-6)), 1 where clip_norm is 0 */
template <typename REAL> static __global__ void clip_factor(const s4d_cuda_args a)
{
    if (threadIdx.x != 0 || blockIdx.x != 0)
        return;
    double clip_norm = a.c.clip.clip_norm, norm = 0;
    REAL found = 0;
    for (int64_t i = 0; i < a.o[0].rows * a.o[0].cols / 2; i++) {
        norm += (double)load_at<REAL>(a.o[0], 2 * i);
        found = load_at<REAL>(a.o[0], 2 * i + 1) != 0 ? 1 : found;
    }
    norm = sqrt(norm);
    store_one(a.o[1], 0, 0, (REAL)norm);
    store_one(a.o[2], 0, 0, found);
    store_one(a.o[3], 0, 0, clip_norm != 0 ? (REAL)fmin(1.0, clip_norm / (norm + 1e-6)) : (REAL)1);
}

/* step += 1 unless found_inf */
template <typename REAL> static __global__ void step(const s4d_cuda_args a)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        store_one(a.o[1], 0, 0,
                  scalar<REAL>(a.o[1], 0) + (scalar<REAL>(a.o[0], 0) != 0 ? (REAL)0 : (REAL)1));
}

/* g = gradient factor; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * master -= lr ((m / (1 - b1^step)) / (sqrt(v / (1 - b2^step)) + epsilon) + weight_decay master) */
template <typename REAL> static __global__ void adamw(const s4d_cuda_args a)
{
    extern __shared__ double s4d_shared[];
    if (threadIdx.x == 0) {
        double at = (double)scalar<REAL>(a.o[5], 0);
        s4d_shared[0] = 1 / (1 - pow(a.c.adamw.beta1, at));
        s4d_shared[1] = 1 / (1 - pow(a.c.adamw.beta2, at));
    }
    __syncthreads();
    REAL factor = scalar<REAL>(a.o[2], 1) / scalar<REAL>(a.o[1], 1), lr = scalar<REAL>(a.o[4], 0);
    REAL b1 = (REAL)a.c.adamw.beta1, b2 = (REAL)a.c.adamw.beta2;
    REAL a1 = (REAL)(1 - a.c.adamw.beta1), a2 = (REAL)(1 - a.c.adamw.beta2);
    REAL fix1 = (REAL)s4d_shared[0], fix2 = (REAL)s4d_shared[1];
    REAL epsilon = (REAL)a.c.adamw.epsilon, decay = (REAL)a.c.adamw.weight_decay;
    if (scalar<REAL>(a.o[3], 0) != 0)
        return;
    each(a.o[8].rows, a.o[8].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> gradient = load<REAL>(a.o[0], i, j, n), m = load<REAL>(a.o[6], i, j, n);
        wide<REAL> v = load<REAL>(a.o[7], i, j, n), master = load<REAL>(a.o[8], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++) {
            REAL g = gradient.v[l] * factor, w = master.v[l];
            m.v[l] = b1 * m.v[l] + a1 * g;
            v.v[l] = b2 * v.v[l] + a2 * g * g;
            master.v[l] = w - lr * (m.v[l] * fix1 / (sqrt(v.v[l] * fix2) + epsilon) + decay * w);
        }
        store(a.o[6], i, j, n, m);
        store(a.o[7], i, j, n, v);
        store(a.o[8], i, j, n, master);
        if (a.o[9].data)
            store(a.o[9], i, j, n, master);
    });
}

/* On found_inf: scale = max(scale / 2, 1), good = 0. Else good += 1, and after `interval` good
 * steps scale *= 2, good = 0. */
template <typename REAL> static __global__ void scale_update(const s4d_cuda_args a)
{
    if (threadIdx.x != 0 || blockIdx.x != 0)
        return;
    REAL scale = scalar<REAL>(a.o[1], 1), good = scalar<REAL>(a.o[2], 0) + 1;
    if (scalar<REAL>(a.o[0], 0) != 0) {
        scale = scale / 2 > 1 ? scale / 2 : 1;
        good = 0;
    } else if (good >= (REAL)a.c.scale.interval) {
        scale *= 2;
        good = 0;
    }
    store_one(a.o[1], 0, 0, scale);
    store_one(a.o[2], 0, 0, good);
}

S4D_KERNEL(squared_norm_parts, S4D_SPAN_PARTS, 0, 16, true);
S4D_KERNEL(squared_norm_end, S4D_SPAN_BLOCK, 0, 16, false);
S4D_KERNEL(clip_factor, S4D_SPAN_THREAD, 0, 0, false);
S4D_KERNEL(step, S4D_SPAN_THREAD, 0, 0, false);
S4D_KERNEL(adamw, S4D_SPAN_ELEMENTS, 8, 16, true);
S4D_KERNEL(scale_update, S4D_SPAN_THREAD, 0, 0, false);
