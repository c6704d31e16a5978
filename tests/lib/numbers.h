/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type as doubles. */
#ifndef S4D_TESTS_NUMBERS_H
#define S4D_TESTS_NUMBERS_H

#include <stdint.h>

#include "schedule/op.h"    /* for: enum s4d_type */
#include "support/random.h" /* for: random numbers by index */

/* The element at `bytes` (any alignment). f16 and bf16 are exact in a double. */
double s4d_number_load(enum s4d_type type, const unsigned char *bytes);

/* Stores the value: floats are rounded to nearest even (bf16 and f16 from the value rounded to
 * fp32, as an fp32 kernel leaves it; too large becomes infinite), integers are truncated. */
void s4d_number_store(enum s4d_type type, unsigned char *bytes, double value);

#endif
