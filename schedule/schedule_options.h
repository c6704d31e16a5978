/* SPDX-License-Identifier: Apache-2.0 */
/* The options of every command that builds a program: one table for the command line, YAML and
 * records. */
#ifndef S4D_SCHEDULE_SCHEDULE_OPTIONS_H
#define S4D_SCHEDULE_SCHEDULE_OPTIONS_H

#include "schedule/grid.h"
#include "schedule/options.h"
#include "support/option.h"

/* What the table fills. Start from s4d_schedule_options_default, finish with
 * s4d_schedule_options_resolve. */
struct s4d_schedule_options {
    struct s4d_grid_option {
        bool given, automatic; /* automatic: "auto" */
        struct s4d_grid grid;  /* sizes; the order is rank_order's */
    } grid;
    int pipeline;
    struct s4d_grid rank_order; /* its order alone */
    struct s4d_options options; /* global_batch 0: not given; micro_batch 0: the largest that fits
                                   (simulate), 1 (schedule) */
    int gradient_type;          /* 0: f32 (f64 in f64 programs); 1: the compute type */
    int loss_scaling;           /* 0: where the precision is f16; 1: off; 2: on */
};

extern const struct s4d_option s4d_schedule_options[];

struct s4d_schedule_options s4d_schedule_options_default(void);

/* Completes s->options (types and loss scaling that depend on the precision) and gives the grid on
 * `gpus` ranks with its rank order; sizes are left at 1 where *automatic. 0, or -1 (exit 64): no
 * grid, no global batch, a product that is not gpus, a pipeline other than 1. */
int s4d_schedule_options_resolve(struct s4d_schedule_options *s, int gpus, struct s4d_grid *grid,
                                 bool *automatic, struct s4d_error *err);

#endif
