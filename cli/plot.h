/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of scale4d plot: cli/plot.c loads and draws, cli/plot_points.c and, of a figure of all
 * grids, cli/plot_grids.c simulate. */
#ifndef S4D_CLI_PLOT_H
#define S4D_CLI_PLOT_H

#include <stdbool.h>

#include "cli/trial.h"
#include "plots/experiment.h"
#include "plots/overlay.h"
#include "plots/published.h"
#include "plots/records.h"

struct figure_options {
    bool draw_only, accept;
    int workers;
    char *output;
    struct s4d_texts add;
};

struct figure {
    struct figure_options options;
    struct s4d_experiment e;
    struct s4d_sweep sweep;   /* the same file: point i / n_series in series i % n_series */
    struct s4d_trials trials; /* of the sweep */
    struct s4d_published_list published;
    struct s4d_records records, others; /* of this figure, of the figures beside it */
    struct s4d_overlay overlay;
    char *folder, *records_file; /* of the output */
    struct s4d_error failed;     /* the first point that could not be simulated, or kept */
    int done, of;
};

/* Simulates every point of every series that has no record of this program and these inputs, here
 * or in the folder of another figure beside it; each is a line of records_file at once. 0, or -1.
 */
int s4d_figure_simulate(struct figure *f, struct s4d_error *err);
/* The same of every grid of every point; a grid that fits by the closed form and not by its plan is
 * warned of and left out. 0, or -1: also of inputs that grids are not ranked for (65). */
int s4d_figure_simulate_grids(struct figure *f, struct s4d_error *err);
int s4d_figure_workers(const struct figure *f); /* at once */

/* How many points have a record of other inputs, or of another build of the program; says so, and
 * notes it for the report. */
int s4d_figure_warn_stale(struct figure *f);

#endif
