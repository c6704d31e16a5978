/* SPDX-License-Identifier: Apache-2.0 */
#include "real/preflight_values.h"

#include "support/half.h"

int s4d_preflight_element(int64_t i)
{
    uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return (int)((h * 0xbf58476d1ce4e5b9u) >> 40) % 9 - 4;
}

void s4d_preflight_store(enum s4d_type type, void *at, int64_t i, double value)
{
    switch (type) {
    case S4D_F64:
        ((double *)at)[i] = value;
        break;
    case S4D_BF16:
        ((uint16_t *)at)[i] = s4d_bf16_of((float)value);
        break;
    case S4D_F16:
        ((uint16_t *)at)[i] = s4d_f16_of((float)value);
        break;
    default:
        ((float *)at)[i] = (float)value;
    }
}

double s4d_preflight_product(int64_t n, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += s4d_preflight_element(i * n + k) * s4d_preflight_element(n * n + k * n + j);
    return sum;
}

double s4d_preflight_sum(const int *members, int n, int64_t i)
{
    double sum = 0;
    for (int m = 0; m < n; m++)
        sum += s4d_preflight_element(members[m] + i);
    return sum;
}
