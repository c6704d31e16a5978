/* SPDX-License-Identifier: Apache-2.0 */
/* What the health check computes with: whole numbers whose products and sums are exact in any
 * order.
 */
#ifndef S4D_REAL_PREFLIGHT_VALUES_H
#define S4D_REAL_PREFLIGHT_VALUES_H

#include "schedule/op.h"

/* Element i of a matrix, or a vector: -4 to 4, so that sums of 8192 products are whole numbers of
 * fp32, and with all bits of a device's inputs at work. */
int s4d_preflight_element(int64_t i);
/* A value as element i of an array of that type, rounded to nearest. */
void s4d_preflight_store(enum s4d_type type, void *at, int64_t i, double value);
/* Element (i, j) of the product of two n x n matrices, which have the elements from 0 and n n. */
double s4d_preflight_product(int64_t n, int64_t i, int64_t j);
/* Element i of the sum over n members, whose vectors have the elements from their ranks on. */
double s4d_preflight_sum(const int *members, int n, int64_t i);

#endif
