/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by conversion to and from double; counter-based random numbers. */
#include "tests/lib/numbers.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The top half of the fp32 bits, rounded to nearest even; a NaN stays one. */
static uint16_t bf16_of(float value)
{
    uint32_t bits = bits_of(value);
    if (isnan(value))
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* 1 sign, 5 exponent, 10 mantissa bits. The value is scaled so that one unit is the spacing of f16
 * numbers at its magnitude (never below 2^-24, the spacing of subnormals); nearbyint rounds to
 * even. */
static uint16_t f16_of(float value)
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

static double f16_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return mantissa != 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(mantissa + 1024, exponent - 25) : ldexp(mantissa, -24));
}

#define LOAD(T)                                                                                    \
    do {                                                                                           \
        T value;                                                                                   \
        memcpy(&value, bytes, sizeof value);                                                       \
        return (double)value;                                                                      \
    } while (0)

double s4d_number_load(enum s4d_type type, const unsigned char *bytes)
{
    uint16_t half;
    switch (type) {
    case S4D_F64:
        LOAD(double);
    case S4D_F32:
        LOAD(float);
    case S4D_BF16:
        memcpy(&half, bytes, sizeof half);
        return (double)float_of((uint32_t)half << 16);
    case S4D_F16:
        memcpy(&half, bytes, sizeof half);
        return f16_value(half);
    case S4D_I64:
        LOAD(int64_t);
    case S4D_I32:
        LOAD(int32_t);
    case S4D_U16:
        LOAD(uint16_t);
    default:
        return *bytes;
    }
}

#define STORE(T)                                                                                   \
    do {                                                                                           \
        T stored = (T)value;                                                                       \
        memcpy(bytes, &stored, sizeof stored);                                                     \
    } while (0)

void s4d_number_store(enum s4d_type type, unsigned char *bytes, double value)
{
    uint16_t half;
    switch (type) {
    case S4D_F64:
        STORE(double);
        break;
    case S4D_F32:
        STORE(float);
        break;
    case S4D_BF16:
    case S4D_F16:
        half = type == S4D_BF16 ? bf16_of((float)value) : f16_of((float)value);
        memcpy(bytes, &half, sizeof half);
        break;
    case S4D_I64:
        STORE(int64_t);
        break;
    case S4D_I32:
        STORE(int32_t);
        break;
    case S4D_U16:
        STORE(uint16_t);
        break;
    default:
        *bytes = (unsigned char)value;
    }
}

bool s4d_number_is_float(enum s4d_type type)
{
    return type == S4D_F64 || type == S4D_F32 || type == S4D_BF16 || type == S4D_F16;
}

uint64_t s4d_mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

uint64_t s4d_random_next(uint64_t *state)
{
    return s4d_mix(*state += 0x9e3779b97f4a7c15u);
}

uint64_t s4d_hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

double s4d_uniform_at(uint64_t key, uint64_t index)
{
    uint64_t state = s4d_mix(key) + index * 0x9e3779b97f4a7c15u;
    return (double)(s4d_random_next(&state) >> 11) * 0x1p-53;
}

double s4d_normal_at(uint64_t key, uint64_t index)
{
    double radius = sqrt(-2 * log(1 - s4d_uniform_at(key, 2 * index)));
    return radius * cos(2 * 3.14159265358979323846 * s4d_uniform_at(key, 2 * index + 1));
}
