/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor knows at one instant: shared by its loop (executor.c), its starts (execute.c)
 * and by what is said when it has ended (executor_end.c); nobody else's. */
#ifndef S4D_SIM_EXECUTOR_STATE_H
#define S4D_SIM_EXECUTOR_STATE_H

#include "sim/account.h"
#include "sim/executor.h"
#include "sim/program_index.h"

enum { ITERATIONS = 2, FLOWS = 1 << 11 /* of a group, at most */ };
enum state { WAITING, RUNNING };

/* One class of ranks. */
struct rank {
    int done[S4D_STREAMS];
    enum state state[S4D_STREAMS];
    int blocked_by[S4D_STREAMS]; /* the stream whose counter must reach needed */
    int needed[S4D_STREAMS];
    struct s4d_timer *timer; /* of the running compute op; NULL while it is not set */
    double work_s, since_s, rate;
    bool computing, dirty; /* dirty: rate or timer to be settled at the end of this instant */
    int beside[2];         /* collectives it has arrived at: inside a node, across nodes */
    int ends_left[ITERATIONS];
    double end_s[ITERATIONS];
    struct s4d_account account;
};

/* What a group class pays for one size of one collective. */
struct price {
    bool known;
    struct s4d_cost cost;
    const struct s4d_group_flows *flows;
};

struct group {
    int arrived, flows_left, phase;
    int price; /* of the running collective */
    int op, iteration;
    bool across_nodes;
    struct price *prices; /* by the stream's sizes */
};

/* Another way to move a collective's data than by coupled flows: an engine of its own flows over
 * the system's links, and a call of a group, latency included (arguments: sim/stepwise.h). */
struct s4d_mover {
    struct s4d_engine *(*engine)(void *self);
    void (*start)(void *self, struct s4d_engine *e, int group, const struct s4d_group_flows *flows,
                  enum s4d_op_kind op, const struct s4d_cost *cost, s4d_callback ended,
                  void *context);
    void *self;
};

struct item {
    int rank;
    enum s4d_stream stream;
};

struct executor {
    const struct s4d_system *system;
    const struct s4d_program *program;
    const struct s4d_mover *mover; /* NULL: coupled flows */
    struct s4d_engine *engine;
    struct s4d_program_index index;
    double rate_beside[2];
    struct rank *ranks;
    struct group *groups;
    struct item *queue;
    int n_queue, cap_queue;
    int *dirty, n_dirty, cap_dirty;
    int ranks_left[ITERATIONS]; /* classes that have not ended it */
    struct s4d_run *run;
    const struct s4d_observer *observer; /* one without functions where nobody watches */
    bool rates_due;                      /* flows have begun or ended since rates were told */
};

static inline int s4d_executor_total(const struct executor *x, int stream)
{
    return ITERATIONS * x->program->stream_length[stream];
}

static inline const struct s4d_op *s4d_executor_head(const struct executor *x, int rank, int stream,
                                                     int *iteration)
{
    int length = x->program->stream_length[stream], done = x->ranks[rank].done[stream];
    *iteration = done / length;
    return x->index.order[stream][done % length];
}

/* Runs the program; of x only what s4d_execute is given is set. 0, or -1 (a deadlock). */
int s4d_executor_run(struct executor *x, const struct s4d_kernels *kernels, struct s4d_error *err);
/* A deadlock, if any: names the first op whose wait is not met, or, if there is none, the first
 * collective that a member has not come to. 0, or -1 (exit 70). */
int s4d_executor_deadlock(const struct executor *x, struct s4d_error *err);
/* Fills x->run from the rank that ends last; of ranks that end together, from the lowest. */
void s4d_executor_results(struct executor *x);

#endif
