/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated against measured iteration times: rows, a table, a report. */
#ifndef S4D_PLOTS_VALIDATE_H
#define S4D_PLOTS_VALIDATE_H

#include <stdio.h>

#include "plots/records.h"

struct s4d_validated {
    const json_t *measured, *simulated; /* borrowed */
    const char *workload, *grid;        /* of the records */
    int ranks;
    double median_s, q1_s, q3_s, least_s; /* of the measured samples */
    double simulated_s;
    double error; /* simulated / median - 1 */
};

struct s4d_validation {
    struct s4d_validated *row; /* by workload as first seen, then ranks, then as measured */
    int n, cap;
    int only_measured, only_simulated; /* records without a partner */
    double mean_error, worst_error;    /* of |error| */
};

/* A measured record (kind train) and a simulated one belong together if what shapes the program is
 * the same: workload, grid, batch, options. The lists outlive the validation. 0, or -1 (exit 65): a
 * record of another kind, without a time, or none that match. */
int s4d_validate(struct s4d_validation *v, const struct s4d_records *measured,
                 const struct s4d_records *simulated, struct s4d_error *err);
void s4d_validation_free(struct s4d_validation *v);

/* Tab-separated, for gnuplot: workload number, workload, ranks, grid, median, q1, q3, simulated
 * (all ms), error (%). 0, or -1 (exit 74), as the report. */
int s4d_validation_data(const struct s4d_validation *v, const char *file, struct s4d_error *err);
int s4d_validation_report(const struct s4d_validation *v, const char *file, struct s4d_error *err);
void s4d_validation_print(const struct s4d_validation *v, FILE *out);

#endif
