/* SPDX-License-Identifier: Apache-2.0 */
#include "support/half.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The value is scaled so that one unit is the spacing of f16 numbers at its magnitude (never below
 * 2^-24, the spacing of subnormals); nearbyint rounds to even. */
uint16_t s4d_f16_of(float value)
{
    uint16_t sign = (uint16_t)(bits_of(value) >> 16 & 0x8000);
    if (isnan(value))
        return (uint16_t)(sign | 0x7e00);
    double magnitude = fabs((double)value);
    int exponent = 0;
    if (magnitude > 0 && isfinite(magnitude))
        frexp(magnitude, &exponent); /* magnitude = f 2^exponent, f in [1/2, 1) */
    int unit = exponent - 11 > -24 ? exponent - 11 : -24;
    double units = nearbyint(ldexp(magnitude, -unit));
    if (ldexp(units, unit) >= 65536)
        return (uint16_t)(sign | 0x7c00);
    if (units < 1024)
        return (uint16_t)(sign | (unsigned)units);
    /* units = 2048 carries into the exponent as it should */
    return (uint16_t)(sign | (((unsigned)(unit + 24) << 10) + (unsigned)units));
}

double s4d_f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return mantissa != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24));
}
