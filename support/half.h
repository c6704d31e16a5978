/* SPDX-License-Identifier: Apache-2.0 */
/* The two 16-bit floats, by their bits. */
#ifndef S4D_SUPPORT_HALF_H
#define S4D_SUPPORT_HALF_H

#include <stdint.h>
#include <string.h> /* for: memcpy */

/* bf16: the top half of an fp32. Rounded to nearest even; a NaN stays one. Inline, without a
 * branch, so that loops over them are vectorised. */
static inline uint16_t s4d_bf16_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? bits >> 16 | 0x40 : nearest);
}
static inline float s4d_bf16_value(uint16_t bits)
{
    uint32_t whole = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &whole, sizeof value);
    return value;
}

/* IEEE binary16: 1 sign, 5 exponent, 10 mantissa bits. Rounded to nearest even, too large becomes
 * infinite; subnormals are kept. */
uint16_t s4d_f16_of(float value);
double s4d_f16_value(uint16_t bits);

#endif
