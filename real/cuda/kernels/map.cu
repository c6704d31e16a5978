// SPDX-License-Identifier: Apache-2.0
/* Activations, biases, residuals, positions, types: everything that maps element to element. */
#include "real/cuda/kernels/block.cuh"

template <typename REAL> static __device__ __forceinline__ REAL sigmoid(REAL x)
{
    return 1 / (1 + exp(-x));
}

/* 0.5 x (1 + tanh u) = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3): without cancellation. */
template <typename REAL> static __device__ __forceinline__ REAL inner(s4d_function f, REAL x)
{
    const REAL a = (REAL)1.5957691216057308, b = (REAL)0.044715;
    return f == S4D_GELU_TANH ? a * (x + b * x * x * x) : x;
}
template <typename REAL> static __device__ __forceinline__ REAL inner_slope(s4d_function f, REAL x)
{
    const REAL a = (REAL)1.5957691216057308, b = (REAL)0.134145;
    return f == S4D_GELU_TANH ? a * (1 + b * x * x) : 1;
}
template <typename REAL> static __device__ __forceinline__ REAL value(s4d_function f, REAL x)
{
    return x * sigmoid(inner(f, x));
}
/* Of x sigmoid(v(x)) it is p + x p (1 - p) v'(x). */
template <typename REAL> static __device__ __forceinline__ REAL slope(s4d_function f, REAL x)
{
    REAL p = sigmoid(inner(f, x));
    return p + x * p * (1 - p) * inner_slope(f, x);
}

/* y = f(x + bias) */
template <typename REAL> static __global__ void activation_forward(const s4d_cuda_args a)
{
    each(a.o[2].rows, a.o[2].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> x = load<REAL>(a.o[0], i, j, n), bias = load_or_zero<REAL>(a.o[1], 0, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            x.v[l] = value(a.c.activation.function, x.v[l] + bias.v[l]);
        store(a.o[2], i, j, n, x);
    });
}

/* dx = dy f'(x + bias) */
template <typename REAL> static __global__ void activation_backward(const s4d_cuda_args a)
{
    each(a.o[3].rows, a.o[3].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> x = load<REAL>(a.o[0], i, j, n), bias = load_or_zero<REAL>(a.o[1], 0, j, n);
        wide<REAL> d = load<REAL>(a.o[2], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            d.v[l] *= slope(a.c.activation.function, x.v[l] + bias.v[l]);
        store(a.o[3], i, j, n, d);
    });
}

/* x = [gate | up]: y = f(gate) up */
template <typename REAL> static __global__ void gated_forward(const s4d_cuda_args a)
{
    int64_t h = a.o[1].cols;
    each(a.o[1].rows, h, [&](int64_t i, int64_t j, int n) {
        wide<REAL> gate = load<REAL>(a.o[0], i, j, n), up = load<REAL>(a.o[0], i, h + j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            up.v[l] *= value(a.c.activation.function, gate.v[l]);
        store(a.o[1], i, j, n, up);
    });
}

/* dx = [dy up f'(gate) | dy f(gate)]; dx may be x */
template <typename REAL> static __global__ void gated_backward(const s4d_cuda_args a)
{
    int64_t h = a.o[1].cols;
    each(a.o[1].rows, h, [&](int64_t i, int64_t j, int n) {
        wide<REAL> gate = load<REAL>(a.o[0], i, j, n), up = load<REAL>(a.o[0], i, h + j, n);
        wide<REAL> d = load<REAL>(a.o[1], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++) {
            REAL x = gate.v[l];
            gate.v[l] = d.v[l] * up.v[l] * slope(a.c.activation.function, x);
            up.v[l] = d.v[l] * value(a.c.activation.function, x);
        }
        store(a.o[2], i, j, n, gate);
        store(a.o[2], i, h + j, n, up);
    });
}

/* y += bias on every row */
template <typename REAL> static __global__ void bias(const s4d_cuda_args a)
{
    each(a.o[1].rows, a.o[1].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> b = load<REAL>(a.o[0], 0, j, n), y = load<REAL>(a.o[1], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            y.v[l] += b.v[l];
        store(a.o[1], i, j, n, y);
    });
}

/* out = a + b [+ bias] */
template <typename REAL> static __global__ void residual(const s4d_cuda_args a)
{
    each(a.o[3].rows, a.o[3].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> x = load<REAL>(a.o[0], i, j, n), y = load<REAL>(a.o[1], i, j, n);
        wide<REAL> b = load_or_zero<REAL>(a.o[2], 0, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            x.v[l] = x.v[l] + y.v[l] + b.v[l];
        store(a.o[3], i, j, n, x);
    });
}

/* x[t] += p[t mod s] */
template <typename REAL> static __global__ void position_forward(const s4d_cuda_args a)
{
    each(a.o[1].rows, a.o[1].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> p = load<REAL>(a.o[0], i % a.o[0].rows, j, n), x = load<REAL>(a.o[1], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            x.v[l] += p.v[l];
        store(a.o[1], i, j, n, x);
    });
}

/* d_p[t mod s] += dx[t], in the order of t */
template <typename REAL> static __global__ void position_backward(const s4d_cuda_args a)
{
    each(a.o[1].rows, a.o[1].cols, [&](int64_t i, int64_t j, int n) {
        wide<REAL> p = load<REAL>(a.o[1], i, j, n);
        for (int64_t t = i; t < a.o[0].rows; t += a.o[1].rows) {
            wide<REAL> d = load<REAL>(a.o[0], t, j, n);
#pragma unroll
            for (int l = 0; l < WIDE; l++)
                p.v[l] += d.v[l];
        }
        store(a.o[1], i, j, n, p);
    });
}

/* body(x's row and column, out's, n) for all elements of two shapes of as many. */
template <typename BODY>
static __device__ __forceinline__ void each_pair(const s4d_buffer &x, const s4d_buffer &out,
                                                 BODY body)
{
    bool alike = x.cols == out.cols;
    each(out.rows, out.cols, [&](int64_t i, int64_t j, int n) {
        for (int l = 0; l < n; l += alike ? n : 1) {
            int64_t at = i * out.cols + j + l;
            body(alike ? i : at / x.cols, alike ? j : at % x.cols, i, j + l, alike ? n : 1);
        }
    });
}

/* out += x, converting */
template <typename REAL> static __global__ void add(const s4d_cuda_args a)
{
    each_pair(a.o[0], a.o[1], [&](int64_t xi, int64_t xj, int64_t i, int64_t j, int n) {
        wide<REAL> x = load<REAL>(a.o[0], xi, xj, n), out = load<REAL>(a.o[1], i, j, n);
#pragma unroll
        for (int l = 0; l < WIDE; l++)
            out.v[l] += x.v[l];
        store(a.o[1], i, j, n, out);
    });
}

static __device__ __forceinline__ int bytes_of(s4d_type type)
{
    return type == S4D_F64 || type == S4D_I64                       ? 8
           : type == S4D_F32 || type == S4D_I32                     ? 4
           : type == S4D_BF16 || type == S4D_F16 || type == S4D_U16 ? 2
                                                                    : 1;
}

/* n elements as they are; where `from` is NULL, zeros. */
template <typename T>
static __device__ __forceinline__ void copy_of(const void *from, void *to, int n)
{
    enum { PER = 16 / sizeof(T) };
    if (n % PER == 0 && is_aligned(from) && is_aligned(to))
        for (int i = 0; i < n / PER; i++)
            ((packet<T> *)to)[i] = from ? ((const packet<T> *)from)[i] : packet<T>{};
    else
        for (int i = 0; i < n; i++)
            ((T *)to)[i] = from ? ((const T *)from)[i] : 0;
}
static __device__ __forceinline__ void copy(const void *from, void *to, int bytes, int n)
{
    if (bytes == 8)
        copy_of<uint64_t>(from, to, n);
    else if (bytes == 4)
        copy_of<uint32_t>(from, to, n);
    else if (bytes == 2)
        copy_of<uint16_t>(from, to, n);
    else
        copy_of<uint8_t>(from, to, n);
}

/* out = x, converting; of the same type, integers too, as it is. */
template <typename REAL> static __global__ void cast(const s4d_cuda_args a)
{
    bool same = a.o[0].type == a.o[1].type;
    int size = bytes_of(a.o[0].type);
    each_pair(a.o[0], a.o[1], [&](int64_t xi, int64_t xj, int64_t i, int64_t j, int n) {
        if (same)
            copy(element(a.o[0], xi, xj, size), element(a.o[1], i, j, size), size, n);
        else
            store(a.o[1], i, j, n, load<REAL>(a.o[0], xi, xj, n));
    });
}

/* out = 0 */
template <typename REAL> static __global__ void zero(const s4d_cuda_args a)
{
    int size = bytes_of(a.o[0].type);
    each(a.o[0].rows, a.o[0].cols,
         [&](int64_t i, int64_t j, int n) { copy(NULL, element(a.o[0], i, j, size), size, n); });
}

S4D_KERNEL(activation_forward, S4D_SPAN_ELEMENTS, 2, 0, false);
S4D_KERNEL(activation_backward, S4D_SPAN_ELEMENTS, 3, 0, false);
S4D_KERNEL(gated_forward, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(gated_backward, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(bias, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(residual, S4D_SPAN_ELEMENTS, 3, 0, false);
S4D_KERNEL(position_forward, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(position_backward, S4D_SPAN_ELEMENTS, 1, 0, false);
S4D_KERNEL(add, S4D_SPAN_ELEMENTS, 1, 0, true);
S4D_KERNEL(cast, S4D_SPAN_ELEMENTS, 1, 0, true);
S4D_KERNEL(zero, S4D_SPAN_ELEMENTS, 0, 0, true);
