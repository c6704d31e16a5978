/* SPDX-License-Identifier: Apache-2.0 */
/* Which grids a simulation may choose from. */
#ifndef S4D_SIM_AUTO_GRID_H
#define S4D_SIM_AUTO_GRID_H

#include "sim/simulate.h"
#include "sim/tune/space.h"

struct s4d_candidate {
    struct s4d_grid grid;
    double estimate_s; /* of an iteration: sim/tune/estimate.h */
    double distance;   /* from s->grid: sum over the axes of |log2 of the ratio of sizes| */
    int rank;          /* in the order of the estimates, from 0 */
};

/* Every grid of s->gpus ranks, in s->grid's rank order, that divides model and batch and fits by
 * the closed form; *divide is how many divide. micro_batch 0: with the largest that fits. Ascending
 * by estimate, or, near, by distance from s->grid. Returns how many, or -1 as s4d_space_rank; the
 * caller frees *list in either case. */
int s4d_candidates(const struct s4d_simulation *s, bool near, struct s4d_candidate **list,
                   int *divide, struct s4d_error *err);

/* Walks down the ranking and simulates until ten that fit have been, s->workers at once; *result is
 * the fastest. 0, or -1: no grid divides (64), none fits (65). */
int s4d_simulate_auto(const struct s4d_simulation *s, struct s4d_result *result,
                      struct s4d_error *err);

#endif
