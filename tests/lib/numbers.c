/* SPDX-License-Identifier: Apache-2.0 */
/* Element types by conversion to and from double. */
#include "tests/lib/numbers.h"

#include <string.h>

#include "support/half.h"

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
        return (double)s4d_bf16_value(half);
    case S4D_F16:
        memcpy(&half, bytes, sizeof half);
        return s4d_f16_value(half);
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
        half = type == S4D_BF16 ? s4d_bf16_of((float)value) : s4d_f16_of((float)value);
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
