/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a figure: every simulated point of every series, beside the published number; as TSV
 * for gnuplot, and compared with the rows that the project keeps (expected.tsv). */
#ifndef S4D_PLOTS_FIGURE_H
#define S4D_PLOTS_FIGURE_H

#include "plots/experiment.h"
#include "plots/overlay.h"
#include "plots/published.h"
#include "plots/records.h"

/* Whether the record's "experiment" object names this series and this point. */
bool s4d_figure_is_of(const json_t *record, const struct s4d_series *series,
                      const struct s4d_point *point);
/* The record of a point in a series: the last one whose "experiment" object names both. NULL: none.
 */
json_t *s4d_figure_record(const struct s4d_records *records, const struct s4d_series *series,
                          const struct s4d_point *point);

/* data.tsv. Rows of merit: series, workload, gpus, sustained PFLOP/s, % of the advertised peak,
 * grid, micro-batch, iteration s, provenance; of parts: series, workload, gpus, iteration s, its
 * parts in s (compute, exposed x, y, z, data, other: they sum to it), machine, grid, micro-batch,
 * provenance; of machines: those of merit, and behind the advertised peak's % that of the measured
 * peak, the efficiency of scaling (plots/scaling.h) and the machine; of grids: plots/grids.h.
 * Series in the experiment's order, then "published" rows; points by GPUs, then workload. 0, or -1:
 * a point without a record (65), cannot be written (74). */
int s4d_figure_data(const struct s4d_experiment *e, const struct s4d_records *records,
                    const struct s4d_published_list *published, const struct s4d_overlay *overlay,
                    const char *file, struct s4d_error *err);

/* The published row of a metric for a point, or NULL. */
const struct s4d_published *s4d_figure_published(const struct s4d_experiment *e,
                                                 const struct s4d_published_list *published,
                                                 const char *metric, const struct s4d_point *p);

/* Compares the simulated rows of a data file with FOLDER/expected.tsv: texts exactly, numbers
 * within the experiment's tolerance. accept: writes expected.tsv instead. 0; -1: differs (exit 1,
 * the first difference is named), no such file (65), cannot be written (74). */
int s4d_figure_expected(const struct s4d_experiment *e, const char *data, bool accept,
                        struct s4d_error *err);

/* Part by which simulated is off, in %: 100 (simulated / published - 1); NAN where either is
 * missing. */
double s4d_figure_error(const struct s4d_published *published, const json_t *record);

#endif
