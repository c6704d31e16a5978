/* SPDX-License-Identifier: Apache-2.0 */
/* Which grids a simulation may choose from. */
#ifndef S4D_SIM_AUTO_GRID_H
#define S4D_SIM_AUTO_GRID_H

#include "sim/simulate.h"

struct s4d_candidate {
    struct s4d_grid grid;
    double estimate_s; /* s4d_estimate_s */
    double distance;   /* from s->grid: sum over the axes of |log2 of the ratio of sizes| */
};

/* Every grid of s->gpus ranks, in s->grid's rank order, that divides model and batch and whose
 * least memory fits; *divide is how many divide. Ascending by estimate, or by distance from
 * s->grid; equal ones by x, y, z. Returns how many; the caller frees *list. */
int s4d_candidates(const struct s4d_simulation *s, bool by_distance, struct s4d_candidate **list,
                   int *divide);

/* Walks down the ranking and simulates until ten that fit have been, s->workers at once; *result is
 * the fastest. 0, or -1: no grid divides (64), none fits (65). */
int s4d_simulate_auto(const struct s4d_simulation *s, struct s4d_result *result,
                      struct s4d_error *err);

#endif
