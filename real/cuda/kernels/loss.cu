// SPDX-License-Identifier: Apache-2.0
/* Cross entropy of logits whose columns are split between ranks (arXiv 1909.08053 sec. 3), and
 * which targets count. */
#include "real/cuda/kernels/block.cuh"

/* As s4d_goldfish_hash (schedule/op.h). */
static __device__ uint64_t hash_of(const int32_t *tokens, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325;
    for (int64_t i = 0; i < n; i++)
        h = (h ^ (uint32_t)tokens[i]) * 0x100000001b3;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
}

/* Target j of a row is token j + 1, or -1 where the hash of the tokens before it says so. */
template <typename REAL> static __global__ void goldfish(const s4d_cuda_args a)
{
    int64_t k = a.c.goldfish.k, context = a.c.goldfish.context;
    each(a.o[1].rows, a.o[1].cols, [&](int64_t i, int64_t first, int n) {
        const int32_t *from = (const int32_t *)a.o[0].data + i * a.o[0].stride;
        int32_t *to = (int32_t *)a.o[1].data + i * a.o[1].stride;
        for (int64_t j = first; j < first + n; j++) {
            bool dropped =
                j + 1 >= context && hash_of(from + j + 1 - context, context) % (uint64_t)k == 0;
            to[j] = dropped ? -1 : from[j + 1];
        }
    });
}

/* out = number of targets >= 0 */
template <typename REAL> static __global__ void token_count(const s4d_cuda_args a)
{
    int64_t kept = 0;
    for (int64_t t = threadIdx.x; t < a.o[0].rows * a.o[0].cols; t += blockDim.x)
        kept += token_at(a.o[0], t) >= 0;
    combine<plus, 1>(&kept);
    if (threadIdx.x == 0 && blockIdx.x == 0)
        store_one(a.o[1], 0, 0, (REAL)kept);
}

/* max = the largest valid logit of a row; minus infinity where none is valid */
template <typename REAL> static __global__ void loss_max(const s4d_cuda_args a)
{
    for (int64_t t = blockIdx.x; t < a.o[0].rows; t += gridDim.x) {
        REAL most = -(REAL)INFINITY;
        each_of_row(a.valid, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(a.o[0], t, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                most = l < n ? larger::of(x.v[l], most) : most;
        });
        combine<larger, 1>(&most);
        if (threadIdx.x == 0)
            store_at(a.o[1], t, most);
    }
}

/* sums = [sum over valid exp(logit - max), the target's logit if held, else 0] */
template <typename REAL> static __global__ void loss_sum(const s4d_cuda_args a)
{
    for (int64_t t = blockIdx.x; t < a.o[0].rows; t += gridDim.x) {
        REAL max = load_at<REAL>(a.o[1], t), sum = 0;
        each_of_row(a.valid, [&](int64_t j, int n) {
            wide<REAL> x = load<REAL>(a.o[0], t, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                sum += l < n ? exp(x.v[l] - max) : 0;
        });
        combine<plus, 1>(&sum);
        int64_t at = token_at(a.o[2], t) - a.first;
        REAL own = at >= 0 && at < a.valid ? load_one<REAL>(a.o[0], t, at) : 0;
        if (threadIdx.x == 0)
            store(a.o[3], t, 0, 2, wide<REAL>{{sum, own}});
    }
}

/* d = (exp(logit - max) / S0 - [column is the target]) loss_scale / denominator, 0 for padding
 * columns and for targets that are not kept; scratch[t] = log S0 + max - S1 for kept targets */
template <typename REAL> static __global__ void loss_backward(const s4d_cuda_args a)
{
    REAL factor = scalar<REAL>(a.o[5], 1) / scalar<REAL>(a.o[4], 1);
    each(a.o[7].rows, a.o[7].cols, [&](int64_t t, int64_t j, int n) {
        int64_t target = token_at(a.o[3], t), at = target - a.first - j;
        REAL max = load_at<REAL>(a.o[1], t);
        wide<REAL> s = load<REAL>(a.o[2], t, 0, 2), x = load<REAL>(a.o[0], t, j, n);
        REAL scale = target >= 0 ? factor / s.v[0] : 0;
#pragma unroll
        for (int l = 0; l < WIDE; l++) {
            bool live = target >= 0 && j + l < a.valid;
            x.v[l] = live ? exp(x.v[l] - max) * scale - (l == at ? factor : 0) : 0;
        }
        store(a.o[7], t, j, n, x);
        if (j == 0)
            ((double *)a.scratch)[t] = target >= 0 ? (double)(log(s.v[0]) + max - s.v[1]) : 0;
    });
}

/* loss += the sum of scratch */
template <typename REAL> static __global__ void loss_backward_end(const s4d_cuda_args a)
{
    double sum = 0;
    for (int64_t t = threadIdx.x; t < a.o[7].rows; t += blockDim.x)
        sum += ((const double *)a.scratch)[t];
    combine<plus, 1>(&sum);
    if (threadIdx.x == 0 && blockIdx.x == 0)
        store_one(a.o[6], 0, 0, (REAL)((double)load_one<REAL>(a.o[6], 0, 0) + sum));
}

/* loss = sum / denominator */
template <typename REAL> static __global__ void loss_mean(const s4d_cuda_args a)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        store_one(a.o[2], 0, 0, scalar<REAL>(a.o[0], 0) / scalar<REAL>(a.o[1], 1));
}

S4D_KERNEL(goldfish, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(token_count, S4D_SPAN_BLOCK, 0, 8, false);
S4D_KERNEL(loss_max, S4D_SPAN_ROWS, 0, 8, false);
S4D_KERNEL(loss_sum, S4D_SPAN_ROWS, 0, 8, false);
S4D_KERNEL(loss_backward, S4D_SPAN_ELEMENTS, 7, 0, false);
S4D_KERNEL(loss_backward_end, S4D_SPAN_BLOCK, 0, 8, false);
S4D_KERNEL(loss_mean, S4D_SPAN_THREAD, 0, 0, false);
