/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that a compiler can vectorise: an exponential without a branch or a call, and the
 * permission to treat iterations as independent. */
#ifndef S4D_REAL_HOST_VECTOR_H
#define S4D_REAL_HOST_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h> /* for: memcpy */

/* Before a loop whose iteration i touches element i alone, even where input and output are one. */
#ifdef __clang__
#define S4D_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define S4D_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* exp(x) in fp32: x = n ln 2 + r with |r| <= ln 2 / 2, exp(r) by Cephes' polynomial (expf.c), times
 * 2^n. Error below 2 units in the last place; 0 where the result would be subnormal. */
static inline float s4d_expf(float x)
{
    const float rounder = 12582912; /* 1.5 * 2^23: adding it rounds to an integer */
    float y = x > 88.72f ? 88.72f : x;
    y = y > -87.33f ? y : -87.33f; /* also a NaN */
    float n = (y * 1.44269504088896341f + rounder) - rounder;
    float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    /* 2^n in two factors: n may be 128, which is no exponent */
    int32_t whole = (int32_t)n, half = whole / 2;
    uint32_t bits1 = (uint32_t)(half + 127) << 23, bits2 = (uint32_t)(whole - half + 127) << 23;
    float power1, power2;
    memcpy(&power1, &bits1, sizeof power1);
    memcpy(&power2, &bits2, sizeof power2);
    float e = p * power1 * power2;
    e = x < -87.33f ? 0 : e;
    e = x > 88.72f ? INFINITY : e;
    return x != x ? x : e;
}

#endif
