/* SPDX-License-Identifier: Apache-2.0 */
/* The morning's page: one file of HTML with everything in it (pictures, style, a little script),
 * that asks for nothing from anywhere. The verdict first, then a table of all series, then a
 * section a series: its nights, changes, reference, simulated value, and what else changed between
 * nights. */
#ifndef S4D_PLOTS_PAGE_REPORT_H
#define S4D_PLOTS_PAGE_REPORT_H

#include <stdio.h>

#include "plots/track/reference.h"
#include "plots/track/verdict.h"

struct s4d_report_options {
    int nights;   /* that are drawn: 365 */
    int sections; /* series with a section, the worst first, then in the table's order: 100 */
    const struct s4d_references *references; /* NULL: none */
};
struct s4d_report_options s4d_report_defaults(void);

/* The same verdict and store give the same bytes. 0; -1 with *err: the store's errors, 69
 * (gnuplot), 74. */
int s4d_report_write(FILE *out, struct s4d_store *store, const struct s4d_verdict *verdict,
                     const struct s4d_report_options *options, struct s4d_error *err);

#endif
