/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that depend on nothing but their index: counter-based, so that any rank can make
 * any of them in any order. */
#ifndef S4D_SUPPORT_RANDOM_H
#define S4D_SUPPORT_RANDOM_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood 2014): the next number of a stream, and a hash of one number. */
uint64_t s4d_random_next(uint64_t *state);
uint64_t s4d_mix(uint64_t value);
uint64_t s4d_hash_text(const char *text); /* FNV-1a */

/* Uniform in [0, 1), and normal (Box-Muller), of counter `index` under `key`. */
double s4d_uniform_at(uint64_t key, uint64_t index);
double s4d_normal_at(uint64_t key, uint64_t index);

#endif
