/* SPDX-License-Identifier: Apache-2.0 */
/* Efficiency of scaling: FLOP/s a GPU of a point as a part of those of a smallest one, in %. Weak
 * scaling, where the model grows with the machine: of its machine's. Strong scaling, where a model
 * is there at several sizes: of its machine's and model's. */
#ifndef S4D_PLOTS_SCALING_H
#define S4D_PLOTS_SCALING_H

#include <stdbool.h>
#include <stdio.h>

#include "plots/experiment.h"
#include "plots/published.h"
#include "plots/records.h"

/* The point of p's machine, and of its model where that is there at several sizes, with the fewest
 * GPUs. */
const struct s4d_point *s4d_scaling_first(const struct s4d_experiment *e,
                                          const struct s4d_point *p);
/* Of the simulated points, %; NAN where a record is missing. */
double s4d_scaling_simulated(const struct s4d_experiment *e, const struct s4d_records *records,
                             const struct s4d_series *series, const struct s4d_point *p);
/* Of the published sustained FLOP/s, %; NAN where a number is missing. *verified (or NULL): both
 * numbers are. */
double s4d_scaling_published(const struct s4d_experiment *e,
                             const struct s4d_published_list *published, const struct s4d_point *p,
                             bool *verified);
/* The table of a report: every point but the smallest, published and simulated, and the
 * difference in points. Nothing where no point has another to be measured by. */
void s4d_scaling_report(const struct s4d_experiment *e, const struct s4d_records *records,
                        const struct s4d_published_list *published, FILE *out);

#endif
