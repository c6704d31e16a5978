/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of any float type as REALs, WIDE of them at a time: in 16-byte accesses where they are
 * all there and lie so, else one by one. */
#ifndef S4D_REAL_CUDA_KERNELS_ELEMENT_CUH
#define S4D_REAL_CUDA_KERNELS_ELEMENT_CUH

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif
#include <math.h>
#include <string.h>

#include "real/cuda/kernels/kernels.h"

enum { WIDE = S4D_CUDA_WIDE };

struct bf16 {
    uint16_t bits;
};
struct f16 {
    uint16_t bits;
};

template <typename REAL> struct wide {
    REAL v[WIDE];
};

static __device__ __forceinline__ double value_of(double x)
{
    return x;
}
static __device__ __forceinline__ float value_of(float x)
{
    return x;
}
/* The top half of an fp32. */
static __device__ __forceinline__ float value_of(bf16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static __device__ __forceinline__ float value_of(f16 x)
{
    return __half2float(__ushort_as_half(x.bits));
}

static __device__ __forceinline__ void convert(float value, float *to)
{
    *to = value;
}
static __device__ __forceinline__ void convert(double value, float *to)
{
    *to = (float)value;
}
template <typename REAL> static __device__ __forceinline__ void convert(REAL value, double *to)
{
    *to = (double)value;
}
/* To nearest even; a NaN stays one. */
template <typename REAL> static __device__ __forceinline__ void convert(REAL value, bf16 *to)
{
    float rounded = (float)value;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    to->bits = (uint16_t)(rounded != rounded ? bits >> 16 | 0x40 : nearest);
}
template <typename REAL> static __device__ __forceinline__ void convert(REAL value, f16 *to)
{
    to->bits = __half_as_ushort(__float2half_rn((float)value));
}

template <typename T> struct alignas(16) packet {
    T v[16 / sizeof(T)];
};

static __device__ __forceinline__ bool is_aligned(const void *p)
{
    return ((uintptr_t)p & 15) == 0;
}

template <typename T, typename REAL>
static __device__ __forceinline__ void read(const void *from, int n, REAL *to)
{
    enum { PER = 16 / sizeof(T) };
    if (n == WIDE && is_aligned(from)) {
#pragma unroll
        for (int i = 0; i < WIDE / PER; i++) {
            packet<T> p = ((const packet<T> *)from)[i];
#pragma unroll
            for (int l = 0; l < PER; l++)
                to[i * PER + l] = (REAL)value_of(p.v[l]);
        }
        return;
    }
#pragma unroll
    for (int l = 0; l < WIDE; l++)
        to[l] = l < n ? (REAL)value_of(((const T *)from)[l]) : 0;
}

template <typename T, typename REAL>
static __device__ __forceinline__ void write(void *to, int n, const REAL *from)
{
    enum { PER = 16 / sizeof(T) };
    if (n == WIDE && is_aligned(to)) {
#pragma unroll
        for (int i = 0; i < WIDE / PER; i++) {
            packet<T> p;
#pragma unroll
            for (int l = 0; l < PER; l++)
                convert(from[i * PER + l], &p.v[l]);
            ((packet<T> *)to)[i] = p;
        }
        return;
    }
#pragma unroll
    for (int l = 0; l < WIDE; l++)
        if (l < n)
            convert(from[l], &((T *)to)[l]);
}

static __device__ __forceinline__ unsigned char *element(const s4d_buffer &b, int64_t i, int64_t j,
                                                         int bytes)
{
    return (unsigned char *)b.data + (i * b.stride + j) * bytes;
}

/* n <= WIDE elements of row i from column j on; zeros after them. Where arithmetic is in fp64 all
 * floats are, elsewhere none (work.c asserts it). */
template <typename REAL>
static __device__ __forceinline__ wide<REAL> load(const s4d_buffer &b, int64_t i, int64_t j, int n)
{
    wide<REAL> x;
    if (sizeof(REAL) == 8)
        read<double>(element(b, i, j, 8), n, x.v);
    else if (b.type == S4D_F32)
        read<float>(element(b, i, j, 4), n, x.v);
    else if (b.type == S4D_BF16)
        read<bf16>(element(b, i, j, 2), n, x.v);
    else
        read<f16>(element(b, i, j, 2), n, x.v);
    return x;
}

template <typename REAL>
static __device__ __forceinline__ void store(const s4d_buffer &b, int64_t i, int64_t j, int n,
                                             const wide<REAL> &x)
{
    if (sizeof(REAL) == 8)
        write<double>(element(b, i, j, 8), n, x.v);
    else if (b.type == S4D_F32)
        write<float>(element(b, i, j, 4), n, x.v);
    else if (b.type == S4D_BF16)
        write<bf16>(element(b, i, j, 2), n, x.v);
    else
        write<f16>(element(b, i, j, 2), n, x.v);
}

/* An operand that may be absent. */
template <typename REAL>
static __device__ __forceinline__ wide<REAL> load_or_zero(const s4d_buffer &b, int64_t i, int64_t j,
                                                          int n)
{
    return b.data ? load<REAL>(b, i, j, n) : wide<REAL>{};
}

template <typename REAL>
static __device__ __forceinline__ REAL load_one(const s4d_buffer &b, int64_t i, int64_t j)
{
    return load<REAL>(b, i, j, 1).v[0];
}
template <typename REAL>
static __device__ __forceinline__ void store_one(const s4d_buffer &b, int64_t i, int64_t j,
                                                 REAL value)
{
    wide<REAL> x = {};
    x.v[0] = value;
    store(b, i, j, 1, x);
}

template <typename REAL>
static __device__ __forceinline__ REAL scalar(const s4d_buffer &b, REAL absent)
{
    return b.data ? load_one<REAL>(b, 0, 0) : absent;
}

/* A vector's element i, whether it lies as a row or as a column. */
template <typename REAL>
static __device__ __forceinline__ REAL load_at(const s4d_buffer &b, int64_t i)
{
    return b.rows == 1 ? load_one<REAL>(b, 0, i) : load_one<REAL>(b, i / b.cols, i % b.cols);
}
template <typename REAL>
static __device__ __forceinline__ void store_at(const s4d_buffer &b, int64_t i, REAL value)
{
    b.rows == 1 ? store_one(b, 0, i, value) : store_one(b, i / b.cols, i % b.cols, value);
}

/* Token t of (b, s) tokens, whose rows may lie further apart than s. */
static __device__ __forceinline__ int32_t token_at(const s4d_buffer &tokens, int64_t t)
{
    return ((const int32_t *)tokens.data)[t / tokens.cols * tokens.stride + t % tokens.cols];
}

static __device__ __forceinline__ int at_most_wide(int64_t n)
{
    return n < WIDE ? (int)n : (int)WIDE;
}

#endif
