/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of scale4d figure: cli/figure.c loads and draws, cli/figure_jobs.c simulates. */
#ifndef S4D_CLI_FIGURE_H
#define S4D_CLI_FIGURE_H

#include <jansson.h>
#include <stdbool.h>

#include "plots/experiment.h"
#include "plots/published.h"
#include "plots/records.h"

struct figure_options {
    bool draw_only, accept;
    int workers;
    char *output;
};

struct figure {
    struct figure_options options;
    struct s4d_experiment e;
    struct s4d_published_list published;
    struct s4d_records records, others; /* of this figure, of the figures beside it */
    char *folder, *records_file;        /* of the output */
    char **schedule_keys; /* the schedule options' names as YAML keys; ends with NULL */
    char program[17];     /* hash of this program's file */
    json_t *provenance;
};

/* Simulates every point of every series that has no record of this program and these inputs, here
 * or in the folder of another figure beside it; each is a line of records_file at once. 0, or -1.
 */
int s4d_figure_simulate(struct figure *f, struct s4d_error *err);

#endif
