/* SPDX-License-Identifier: Apache-2.0 */
/* report.md of a figure: simulated, published and error of every point; what was run; where every
 * published number was seen; which assumed and fitted machine entries entered. */
#ifndef S4D_PLOTS_REPORT_H
#define S4D_PLOTS_REPORT_H

#include <stdio.h>

#include "plots/rows.h"

/* Every point has a record. 0, or -1 (exit 74). */
int s4d_report(const struct s4d_experiment *e, const struct s4d_records *records,
               const struct s4d_published_list *published, const char *file, struct s4d_error *err);
/* Lines for people at a terminal, by the kind of the figure (plots/rows.h). */
void s4d_report_summary(const struct s4d_experiment *e, const struct s4d_records *records,
                        const struct s4d_published_list *published, FILE *out);

/* For plots/rows.h, of figures of points. The mean of |error| over the verified published numbers:
 * a line a series, and one a point of a series that is compared with another. */
void s4d_report_errors(const struct s4d_tables *t, FILE *out);
/* The sections of report.md: simulated and published, scaling, runs. */
void s4d_report_points(const struct s4d_tables *t, FILE *out);
/* The section that says what each series is. */
void s4d_report_series(const struct s4d_experiment *e, FILE *out);

#endif
