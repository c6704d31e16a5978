/* SPDX-License-Identifier: Apache-2.0 */
/* A series against another one of the same figure (its key against), beside what was published:
 * how much less time, 100 (1 - t / t of the other), and how much faster, 100 (t of the other / t -
 * 1), in %. */
#ifndef S4D_PLOTS_RATIOS_H
#define S4D_PLOTS_RATIOS_H

#include <stdbool.h>
#include <stdio.h>

#include "plots/experiment.h"
#include "plots/published.h"
#include "plots/records.h"

/* Whether another series is compared with this one: it is no reproduction of what was published. */
bool s4d_ratios_is_reference(const struct s4d_experiment *e, const struct s4d_series *series);

/* A line a point of each series that names another; nothing where none does. Points without a
 * record are left out. */
void s4d_ratios_print(const struct s4d_experiment *e, const struct s4d_records *records,
                      const struct s4d_published_list *published, FILE *out);

#endif
