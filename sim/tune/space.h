/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to train a model on so many devices, ranked: grids (all divisors), micro-batches,
 * recompute, cached layers.
 *
 * A configuration is in the list where its grid divides model and batch and its memory, by
 * sim/tune/footprint.h, fits the device. */
#ifndef S4D_SIM_TUNE_SPACE_H
#define S4D_SIM_TUNE_SPACE_H

#include "schedule/program.h"
#include "sim/scenario.h"
#include "support/machine.h"
#include "workloads/workload.h"

/* Which grids a system can have. */
struct s4d_strategy {
    const char *name, *summary;
    bool (*allows)(const struct s4d_grid *g);
};
extern const struct s4d_strategy s4d_strategies[]; /* 4d first; ends with a NULL name */

struct s4d_space {
    const struct s4d_machine *machine;
    const struct s4d_workload *workload;
    const struct s4d_scenario *scenario; /* of rates and devices alone; NULL: plain */
    int gpus;
    struct s4d_grid order;      /* its rank order alone */
    struct s4d_options options; /* micro_batch 0: as below; what is not varied is as given */
    bool largest_micro_batch;   /* of each grid only the largest that fits; else every divisor */
    bool vary_recompute;
    bool vary_cache; /* no layer, a quarter, half, three quarters, all */
    const struct s4d_strategy *strategy;
};

struct s4d_choice {
    struct s4d_grid grid;
    int micro_batch, cached_layers;
    enum s4d_recompute recompute;
    double estimate_s, memory_bytes; /* reserve included */
};
struct s4d_options s4d_choice_options(const struct s4d_space *s, const struct s4d_choice *c);

struct s4d_ranking {
    struct s4d_choice *v; /* those that fit, ascending by estimate; equal ones by sizes */
    int n, cap;
    int grids, divide;         /* of so many GPUs; of those, that divide model and batch */
    long configurations;       /* of the grids that divide */
    struct s4d_choice nearest; /* of those too large the one with the least memory; if any */
    double ranking_s;          /* processor time */
};
/* 0, or -1: nothing divides (64: which sizes must divide what, and the nearest numbers of GPUs that
 * work), nothing fits (65: what comes nearest and what it lacks); a machine that cannot be laid out
 * (65); a scenario of single links or nodes (64). Free v in every case. */
int s4d_space_rank(const struct s4d_space *s, struct s4d_ranking *r, struct s4d_error *err);
void s4d_ranking_free(struct s4d_ranking *r);

#endif
