/* SPDX-License-Identifier: Apache-2.0 */
/* report.md of a figure: simulated, published and error of every point; what was run; where every
 * published number was seen; which assumed and fitted machine entries entered. */
#ifndef S4D_PLOTS_REPORT_H
#define S4D_PLOTS_REPORT_H

#include <stdio.h>

#include "plots/experiment.h"
#include "plots/published.h"
#include "plots/records.h"

/* Every point has a record. 0, or -1 (exit 74). */
int s4d_report(const struct s4d_experiment *e, const struct s4d_records *records,
               const struct s4d_published_list *published, const char *file, struct s4d_error *err);
/* The mean of |error| over the verified published numbers, for people at a terminal: a line a
 * series on out, and one a point of a series that is compared with another; of a figure of grids
 * how models and simulation agree. */
void s4d_report_summary(const struct s4d_experiment *e, const struct s4d_records *records,
                        const struct s4d_published_list *published, FILE *out);

#endif
