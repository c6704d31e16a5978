/* SPDX-License-Identifier: Apache-2.0 */
/* One published figure's experiment.yaml: what is simulated (points times series), and how close
 * to expected.tsv a result must be. How a point is trained (grid, batch, overlap) are keys of the
 * schedule options, at the top (for all), in a series or in a point; they belong to whoever runs
 * it, and are only passed over here. */
#ifndef S4D_PLOTS_EXPERIMENT_H
#define S4D_PLOTS_EXPERIMENT_H

#include <stdbool.h>

#include "support/error.h"
#include "support/option.h" /* for: struct s4d_texts */
#include "support/yaml.h"

struct s4d_point {
    char *workload;
    char *machine; /* the experiment's where the file names none */
    int gpus;
    struct s4d_texts set; /* "KEY=VALUE" of the machine, as --set takes them */
    const struct s4d_yaml_node *node;
};

struct s4d_series {
    char *name, *title;
    char *against; /* NULL, or the series whose times this one's are compared with */
    struct s4d_texts set;
    const struct s4d_yaml_node *node;
};

/* What a row of data.tsv tells of a simulation: its merit, the parts of its iteration, its merit
 * with the machine, or what models say of it, of all grids of a point (plots/grids.h). */
enum s4d_figure_rows { S4D_ROWS_MERIT, S4D_ROWS_PARTS, S4D_ROWS_MACHINES, S4D_ROWS_GRIDS };

/* Which records of a user's a figure draws beside its own: any, at its GPUs; those of its points;
 * none, since its axes are others. */
enum s4d_figure_added { S4D_ADDED_ANY, S4D_ADDED_POINTS, S4D_ADDED_NONE };

struct s4d_experiment {
    char *folder;       /* where experiment.yaml lies: "paper-figures/2502.08145/weak-scaling" */
    char *paper, *name; /* its last two components */
    char *title, *machine;
    struct s4d_texts assumed; /* inputs that the paper does not print */
    struct s4d_texts set;     /* of every machine, before those of a series, then of a point */
    double tolerance_percent; /* of expected.tsv */
    int rows;                 /* enum s4d_figure_rows */
    int added;                /* enum s4d_figure_added */
    struct s4d_texts
        added_needs; /* keys of a record that the figure draws, besides GPUs and rates */
    char *note;      /* NULL, or what a reader of the report must know of the records; owned */
    struct s4d_point *point;
    int n_points, cap_points;
    bool several_machines; /* a point names another one: published numbers are told apart by it */
    struct s4d_series *series;
    int n_series, cap_series;
    struct s4d_yaml_node *root;
};

/* Keys that experiment.yaml may have at its top, in a point and in a series, besides those of the
 * schedule options; each list ends with NULL. */
extern const char *const s4d_experiment_keys[], *const s4d_point_keys[], *const s4d_series_keys[];

/* Reads FOLDER/experiment.yaml. others (ends with NULL): the keys of the schedule options. 0, or
 * -1 (exit 65): no such file, a missing or unknown key, an empty list, two points or two series
 * that are the same. Free with s4d_experiment_free, also after a failure. */
int s4d_experiment_read(struct s4d_experiment *e, const char *folder, const char *const *others,
                        struct s4d_error *err);
void s4d_experiment_free(struct s4d_experiment *e);

#endif
