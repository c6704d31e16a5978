/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of a YAML file: every point, in every series, with every combination of the
 * product's values.
 *
 *     machine: perlmutter                              # at the top: for all
 *     global_batch: 2048
 *     points:                                          # a list ...
 *       - {workload: gpt-5b, gpus: 512, grid: auto}
 *       - {name: wide, workload: gpt-5b, gpus: 512, grid: 8x1x64x1}
 *     series:                                          # ... each in every series ...
 *       - {name: base}
 *       - {name: blocking, overlap: none}
 *     product:                                         # ... with every combination
 *       recompute: [full, selective]
 *
 * A point may say what goes for one series alone: in_series: {blocking: {grid: 8x1x64x1}}.
 * All three are optional, but one must be there. The experiment.yaml of a figure is such a file.
 * What the keys mean is the business of whoever runs the experiments: each is a list of mappings, a
 * later one goes over an earlier one. */
#ifndef S4D_PLOTS_SWEEP_H
#define S4D_PLOTS_SWEEP_H

#include "support/error.h"
#include "support/yaml.h"

enum { S4D_SWEEP_MAPPINGS = 5, S4D_SWEEP_MOST = 100000 /* experiments of a file */ };

struct s4d_sweep_entry {
    char *name;                       /* of one line, unique; "wide blocking recompute=full" */
    const char *series;               /* or NULL */
    const struct s4d_yaml_node *node; /* of the point, else the series, else the product */
    /* top, series, point, point's in_series, product */
    const struct s4d_yaml_node *mapping[S4D_SWEEP_MAPPINGS];
    const char *const *skip[S4D_SWEEP_MAPPINGS]; /* keys there that are not inputs */
    int n_mappings;
};

struct s4d_sweep {
    struct s4d_sweep_entry
        *v; /* points outermost, then series, then the product, last key fastest */
    int n;
    struct s4d_yaml_node *root;  /* of s4d_sweep_read */
    struct s4d_sweep_made *made; /* the mappings of the product's combinations */
};

/* 0, or -1 (exit 65, file:line): no such file, none of the three keys, an empty list, in_series of
 * no series, a product's
 * key that stands in a point or series too, two experiments of one name, too many. Keys that belong
 * to the experiments are not looked at. Free with s4d_sweep_free, also after a failure. */
int s4d_sweep_read(struct s4d_sweep *s, const char *file, struct s4d_error *err);
/* The same of a tree that outlives the sweep. */
int s4d_sweep_make(struct s4d_sweep *s, const struct s4d_yaml_node *root, struct s4d_error *err);
void s4d_sweep_free(struct s4d_sweep *s);

#endif
