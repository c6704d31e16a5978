/* SPDX-License-Identifier: Apache-2.0 */
/* A figure whose points are all grids of one job each (rows: grids): what models say of a grid
 * against its simulation.
 *
 * A record of such a figure is of one grid. Its "experiment" names the point, its "tune" holds
 * "estimate_s" (the iteration by the tuner's model), "published_s" and "links_s" (communication
 * alone by the model of arXiv 2502.08145, with its authors' bandwidths and with those of the links;
 * null where the authors print none for such a group). */
#ifndef S4D_PLOTS_GRIDS_H
#define S4D_PLOTS_GRIDS_H

#include <stdio.h>

#include "plots/rows.h"

/* For plots/rows.h. A row for each record of the point in the series, by the sizes of the grid: of
 * the three models and simulated, in seconds. */
void s4d_grids_rows(const struct s4d_tables *t, const struct s4d_series *series,
                    const struct s4d_point *point, const json_t *last, FILE *out);
/* A line of Markdown for each point and series: how many grids, Spearman's rank correlation of each
 * model with the simulation, the place of the simulated best in the tuner's ranking. */
void s4d_grids_summary(const struct s4d_tables *t, FILE *out);
/* The sections of report.md: the series, that summary, and every grid, the fastest first. */
void s4d_grids_report(const struct s4d_tables *t, FILE *out);

#endif
