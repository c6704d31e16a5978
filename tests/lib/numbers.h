/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type as doubles, and numbers that depend on nothing but their index. */
#ifndef S4D_TESTS_NUMBERS_H
#define S4D_TESTS_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule/op.h" /* for: enum s4d_type */

/* The element at `bytes` (any alignment). f16 and bf16 are exact in a double. */
double s4d_number_load(enum s4d_type type, const unsigned char *bytes);

/* Stores the value: floats are rounded to nearest even (bf16 and f16 from the value rounded to
 * fp32, as an fp32 kernel leaves it; too large becomes infinite), integers are truncated. */
void s4d_number_store(enum s4d_type type, unsigned char *bytes, double value);

bool s4d_number_is_float(enum s4d_type type);

/* splitmix64 (Steele, Lea, Flood 2014): the next number of a stream, and a hash of one number. */
uint64_t s4d_random_next(uint64_t *state);
uint64_t s4d_mix(uint64_t value);
uint64_t s4d_hash_text(const char *text); /* FNV-1a */

/* Uniform in [0, 1), and normal (Box-Muller), of counter `index` under `key`. */
double s4d_uniform_at(uint64_t key, uint64_t index);
double s4d_normal_at(uint64_t key, uint64_t index);

#endif
