/* SPDX-License-Identifier: Apache-2.0 */
/* A user's own records over a figure: simulated (simulate, sweep, tune) or measured (scale4d-run).
 *
 * Each becomes a row of data.tsv like the figure's own, of a series whose name starts with '+': the
 * file's name or label, the record's own series, and "measured" where it was. */
#ifndef S4D_PLOTS_OVERLAY_H
#define S4D_PLOTS_OVERLAY_H

#include "plots/experiment.h"
#include "plots/records.h"

struct s4d_added {
    char *series; /* "+mine base" */
    const json_t *record;
    const char *machine; /* of the record, or NULL: measured ones do not say */
    bool measured;
};

struct s4d_overlay {
    struct s4d_added *v; /* by series as they first come, then by GPUs */
    int n, cap;
    struct s4d_records *files;
    int n_files, cap_files;
};

/* Adds FILE, or LABEL=FILE. A record that does not fit the figure is warned of, with the reason and
 * its place: another kind, no GPUs or rate, not among the points of a figure that draws only those
 * (e->added). 0, or -1 (exit 65): a figure that takes none, no such file, none of its records fits.
 */
int s4d_overlay_add(struct s4d_overlay *o, const struct s4d_experiment *e, const char *text,
                    struct s4d_error *err);
void s4d_overlay_free(struct s4d_overlay *o);

/* gnuplot statements for plot.gp, also of an overlay without records: added (the series, as words),
 * added_title(i) of word i, added_gpus (words), the extents added_gpus_min, added_gpus_max,
 * added_pflops_min and added_pflops_max (1e99, -1e99: none), min(a, b), max(a, b), and
 * added_lines("column(4)"), the part of a plot command that draws that column of them against GPUs,
 * for a macro: own = added_lines("column(4)"), plot ..., @own ... Caller frees. */
char *s4d_overlay_gnuplot(const struct s4d_overlay *o);

#endif
