/* SPDX-License-Identifier: Apache-2.0 */
/* What tune prints of one number of GPUs. */
#ifndef S4D_CLI_TUNE_H
#define S4D_CLI_TUNE_H

#include <jansson.h>
#include <stdio.h>

#include "sim/tune/tune.h"

struct s4d_tuning {
    struct s4d_space space;
    struct s4d_ranking ranking;
    struct s4d_tuned *tuned; /* those simulated, in the ranking's order */
    int n, best;             /* best: index, -1: none was simulated */
    int resumed;             /* finished by an earlier run */
};

/* {"kind": "tune", inputs, "ranking", "rank_correlation", "best", "configurations"}: new reference;
 * the configurations are those that were to be simulated. */
json_t *s4d_tune_record(const struct s4d_tuning *t);
/* The first `top` of the ranking and all that were simulated, a line each; the verdict. */
void s4d_tune_print(const struct s4d_tuning *t, int top, FILE *out);
/* Those simulated as a table (TSV), a line each. 0, or -1 (exit 74). */
int s4d_tune_write(const struct s4d_tuning *t, const char *file, struct s4d_error *err);
/* Strong scaling: a line for each of an array of records. */
void s4d_tune_print_scaling(const json_t *records, FILE *out);

#endif
