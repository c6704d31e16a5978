/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates single collectives: all groups of one axis set at once, side by side, one size after
 * the other on an otherwise idle machine. */
#ifndef S4D_SIM_COLLECTIVE_MEASURE_H
#define S4D_SIM_COLLECTIVE_MEASURE_H

#include "schedule/program.h" /* for: enum s4d_stream */
#include "sim/collective.h"
#include "sim/scenario.h"
#include "sim/stepwise.h"

struct s4d_measurement {
    const struct s4d_machine *machine;
    enum s4d_op_kind op;
    struct s4d_grid grid;
    enum s4d_stream stream;                /* its axes are the groups'; groups of two or more */
    const struct s4d_algorithm *algorithm; /* NULL: the library's choice by size */
    bool fold;
    const struct s4d_scenario *scenario; /* where it runs, what differs there; NULL: plain */
    int stepwise;                        /* message by message (sim/stepwise.h); unfolded */
};

struct s4d_measured {
    double time_s; /* from the common start to the end of the slowest group */
    int algorithm; /* index into s4d_algorithms, of the slowest group, as is cost */
    struct s4d_cost cost;
    struct s4d_message_count sent; /* stepwise */
};

struct s4d_measured_system {
    int nodes;                                         /* of the machine in use */
    int groups, members;                               /* of each group */
    int group_nodes, group_members_per_node, channels; /* of the first group, with the ring */
    int flow_classes, link_classes;
};

/* bytes: n sizes as nccl-tests counts them; results: n. Creates an engine in this process. 0, or
 * -1: the machine is too small (65), the algorithm does not do this operation (64), stepwise has
 * too many messages (65). */
int s4d_measure_collective(const struct s4d_measurement *m, const double *bytes, int n,
                           struct s4d_measured *results, struct s4d_measured_system *system,
                           struct s4d_error *err);

#endif
