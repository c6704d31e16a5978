/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights, from a seed and the element's place in the whole tensor: the same on every grid.
 */
#ifndef S4D_SCHEDULE_INITIAL_H
#define S4D_SCHEDULE_INITIAL_H

#include "schedule/program.h"

/* The weight of element `index` (as s4d_param_global_index gives it) of a whole parameter: 0, 1, or
 * init_std times a normal number of its own. `perturb` times a normal number is added to zeros and
 * ones: tests want no weight, and so no gradient, to be alike; training has 0. */
double s4d_initial_weight(const struct s4d_param *param, uint64_t seed, double perturb,
                          int64_t index);

#endif
