/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of figures, by what a row of data.tsv tells: a row of this registry each. */
#ifndef S4D_PLOTS_ROWS_H
#define S4D_PLOTS_ROWS_H

#include <stdio.h>

#include "plots/experiment.h"
#include "plots/published.h"
#include "plots/records.h"

/* What rows and reports are made of. */
struct s4d_tables {
    const struct s4d_experiment *e;
    const struct s4d_records *records;
    const struct s4d_published_list *published;
};

struct s4d_rows_kind {
    const char *columns; /* data.tsv's first line, with its end */
    /* The rows of a simulated point in a series; r: its last record. */
    void (*simulated)(const struct s4d_tables *t, const struct s4d_series *series,
                      const struct s4d_point *p, const json_t *r, FILE *out);
    /* What a row says between "gpus" and "provenance" of what was published of a point, and of one
     * record of a user's (efficiency: of scaling, in %, or NAN); NULL: neither is drawn. */
    void (*published)(const struct s4d_tables *t, const struct s4d_point *p, FILE *out);
    void (*record)(const json_t *r, const char *machine, double efficiency, FILE *out);
    const char *needs; /* an object that a user's record must have for that; NULL: none */
    /* Lines for people at a terminal, and the sections of report.md between title and sources. */
    void (*summary)(const struct s4d_tables *t, FILE *out);
    void (*report)(const struct s4d_tables *t, FILE *out);
};
extern const struct s4d_rows_kind s4d_rows_kinds[]; /* by enum s4d_figure_rows */

#endif
