/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated training run: machine, workload, grid and options in; figures of merit out. */
#ifndef S4D_SIM_SIMULATE_H
#define S4D_SIM_SIMULATE_H

#include <jansson.h>

#include "schedule/program.h"
#include "sim/executor.h"
#include "sim/explain.h"
#include "sim/scenario.h"
#include "support/machine.h"
#include "workloads/workload.h"

struct s4d_simulation {
    const struct s4d_machine *machine;
    const struct s4d_workload *workload;
    int gpus;
    bool grid_auto;                      /* enumerate, rank by sim/tune, simulate the best ten */
    struct s4d_grid grid;                /* sizes and order; order alone where grid_auto */
    struct s4d_options options;          /* micro_batch 0: the largest that fits the memory */
    const struct s4d_scenario *scenario; /* where it runs, what differs there; NULL: plain */
    bool fold;
    int workers;                       /* processes at once for grid_auto */
    int stepwise;                      /* also message by message (sim/stepwise.h), as a check */
    const struct s4d_explain *explain; /* what to write of the grid's simulation; NULL: nothing */
};

/* A plain result without pointers, so that a child process can hand it back. */
struct s4d_result {
    struct s4d_grid grid;
    int micro_batch, micro_batches;
    struct s4d_run run;
    double flops_formula, flops_executed; /* of an iteration, all ranks */
    double bus_bytes[S4D_STREAMS];        /* of a rank, as nccl-tests' bus bandwidth counts them */
    int64_t memory_peak_bytes, parameters;
    int gpu_classes, group_classes, flow_classes, link_classes, n_ops;
    double stepwise_time_s;        /* of the iteration; 0: not asked for */
    struct s4d_message_count sent; /* stepwise, in both iterations */
    double wall_s;
    int candidates, feasible,
        simulated; /* grid_auto: grids that divide; less those found too large for the memory (by
                      their least need, or by their plan when their turn came); simulated */
};

/* 0, or -1: what does not divide (64), does not fit (65, by how much and the nearest grid that
 * fits), machine too small (65), more messages than stepwise can do (65). */
int s4d_simulate(const struct s4d_simulation *s, struct s4d_result *result, struct s4d_error *err);
/* The record of design's section 8 without provenance: "kind": "simulate"; new reference. */
json_t *s4d_simulation_record(const struct s4d_simulation *s, const struct s4d_result *r);

#endif
