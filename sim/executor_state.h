/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor knows at one instant: shared by its loop (executor.c), what it begins with
 * (executor_set_up.c), collectives (executor_collectives.c), messages (executor_messages.c), its
 * starts (execute.c) and by what is said when it has ended (executor_end.c); nobody else's. */
#ifndef S4D_SIM_EXECUTOR_STATE_H
#define S4D_SIM_EXECUTOR_STATE_H

#include "sim/account.h"
#include "sim/executor.h"
#include "sim/program_index.h"

enum { ITERATIONS = 2 };
enum state { WAITING, RUNNING };

/* One class of ranks. */
struct rank {
    const struct s4d_program *program; /* of its stage */
    const struct s4d_program_index *index;
    int done[S4D_STREAMS];
    enum state state[S4D_STREAMS];
    int left[S4D_STREAMS];       /* ops of the running post that have not ended */
    bool told[S4D_STREAMS];      /* that it has started */
    int first_post[S4D_STREAMS]; /* of its messages that wait for their peers, oldest first; -1 */
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

/* A message, from when one of its ranks has come to it; its entry is used again. */
struct message {
    int rank, peer, op, iteration; /* of who came first */
    bool sends;                    /* which */
    int next;                      /* that waits, of the same rank and stream; -1 */
    enum s4d_stream stream;
    const struct s4d_message_class *class;
    double bytes;
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
    const struct s4d_program *program; /* of a pipe one of its stages' */
    const struct s4d_mover *mover;     /* NULL: coupled flows */
    struct s4d_engine *engine;
    struct s4d_program_index *index; /* by stage, or one */
    int n_indices;
    double rate_beside[2];
    struct rank *ranks;
    struct group *groups;
    struct message *messages;
    int n_messages, cap_messages, free_message; /* free_message: first of those not in use; -1 */
    struct item *queue;
    int n_queue, cap_queue;
    int *dirty, n_dirty, cap_dirty;
    int ranks_left[ITERATIONS]; /* classes that have not ended it */
    struct s4d_run *run;
    const struct s4d_observer *observer; /* one without functions where nobody watches */
    bool rates_due;                      /* flows have begun or ended since rates were told */
};

static inline int s4d_executor_total(const struct executor *x, int rank, int stream)
{
    return ITERATIONS * x->ranks[rank].program->stream_length[stream];
}

static inline const struct s4d_op *s4d_executor_head(const struct executor *x, int rank, int stream,
                                                     int *iteration)
{
    const struct rank *r = &x->ranks[rank];
    int length = r->program->stream_length[stream], done = r->done[stream];
    *iteration = done / length;
    return r->index->order[stream][done % length];
}

static inline int s4d_op_index(const struct rank *r, const struct s4d_op *op)
{
    return (int)(op - r->program->ops);
}

/* executor_collectives.c: a rank has come to a collective, of a post that is running. */
void s4d_executor_collective(struct executor *x, int rank, const struct s4d_op *op, int iteration);
/* executor_messages.c: 0, or -1 (exit 65): what cannot be simulated. And a rank has come to a send
 * or a receive, of a post that is running; it takes one flow from when both have. */
int s4d_executor_check(const struct executor *x, struct s4d_error *err);
void s4d_executor_message(struct executor *x, int rank, const struct s4d_op *op, int iteration);
/* executor.c, for these two. An op of a rank's running post has started, or ended; with the last
 * all have. Computing beside it is slower, from now on or no longer (by: 1 or -1). What all that
 * makes possible. */
void s4d_executor_started(struct executor *x, int rank, const struct s4d_op *op, int iteration);
void s4d_executor_ended(struct executor *x, int rank, enum s4d_stream stream);
void s4d_executor_beside(struct executor *x, int rank, bool across_nodes, int by);
void s4d_executor_work_off(struct executor *x);

/* Runs the program; of x only what s4d_execute is given is set. 0, or -1 (a deadlock). */
int s4d_executor_run(struct executor *x, const struct s4d_kernels *kernels, struct s4d_error *err);
/* executor_set_up.c: of what s4d_execute is given, all but the engine, which is let go with it. */
void s4d_executor_set_up(struct executor *x, const struct s4d_kernels *kernels);
void s4d_executor_tear_down(struct executor *x);
/* A deadlock, if any: names the first message that one rank alone has come to, the first op whose
 * wait is not met, or, if there are none, the first collective that a member has not come to. 0, or
 * -1 (exit 70). */
int s4d_executor_deadlock(const struct executor *x, struct s4d_error *err);
/* Fills x->run from the rank that ends last; of ranks that end together, from the lowest. */
void s4d_executor_results(struct executor *x);

#endif
