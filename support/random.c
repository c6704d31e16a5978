/* SPDX-License-Identifier: Apache-2.0 */
#include "support/random.h"

#include <math.h>

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
