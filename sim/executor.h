/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program on a system: streams, waits, coupled collectives, computing whose rate falls
 * beside collectives. */
#ifndef S4D_SIM_EXECUTOR_H
#define S4D_SIM_EXECUTOR_H

#include "sim/engine.h"
#include "sim/kernel.h" /* for: kernel times */
#include "sim/stepwise.h"
#include "sim/system.h"

struct s4d_run {
    double iteration_time_s; /* from the end of the last adamw of iteration 0 to that of iteration
                                1, latest rank */
    double first_iteration_s;
    int slowest_rank;
    double busy_s[S4D_STREAMS];    /* of the slowest rank's class, second iteration */
    double exposed_s[S4D_STREAMS]; /* idle time of its compute stream by the stream of the wait that
                                      ended last; exposed_s[S4D_STREAM_COMPUTE] is the computing
                                      itself; the parts sum to the iteration */
    double exposed_other_s;
    double gemm_time_s, gemm_flops; /* of that rank */
    long extrapolated;              /* calls whose efficiency was extrapolated */
    long collectives;
};

/* A collective of a group class begins to move data along one of its flow classes (an index into
 * the system's flows), or has ended that; flow -1: the latency before its flows. */
struct s4d_flow_event {
    bool begins;
    int group, flow, op, iteration;
    const struct s4d_cost *cost; /* of the whole collective */
    double now_s;
};

/* Told what happens, in order of time. op: its list index, in the program of the rank's stage. Each
 * function may be NULL. Watching changes no time. */
struct s4d_observer {
    void (*ended)(void *context, int rank_class, int op, int iteration, double end_s);
    void *context;
    /* A collective starts when its last member has come to it, a message when both ranks have. */
    void (*started)(void *context, int rank_class, int op, int iteration, double start_s);
    void (*flow)(void *context, const struct s4d_flow_event *event);
    /* Time has passed since flows last began or ended: s4d_system_use of the engine (its
     * links are the system's link classes) holds from then until flows begin or end again. */
    void (*rates)(void *context, const struct s4d_engine *engine);
    /* The second iteration, as iteration_time_s measures it, opens; or has ended. */
    void (*window)(void *context, bool open, double now_s);
};

/* Of a pipe: program is any of its stages'. observer may be NULL; of messages its `flow` is not
 * told. 0, or -1: a deadlock (exit 70) with rank, stream, op and wait; a batch of more than one
 * collective (65). */
int s4d_execute_observed(const struct s4d_system *system, const struct s4d_program *program,
                         const struct s4d_kernels *kernels, const struct s4d_observer *observer,
                         struct s4d_run *run, struct s4d_error *err);
/* Collectives message by message (of the same system): exit 65 as s4d_stepwise_check. *sent: both
 * iterations. */
int s4d_execute_stepwise(const struct s4d_system *system, const struct s4d_program *program,
                         const struct s4d_kernels *kernels, struct s4d_stepwise *stepwise,
                         struct s4d_message_count *sent, struct s4d_run *run,
                         struct s4d_error *err);
/* Coupled flows without an observer. */
int s4d_execute(const struct s4d_system *system, const struct s4d_program *program,
                const struct s4d_kernels *kernels, struct s4d_run *run, struct s4d_error *err);

#endif
