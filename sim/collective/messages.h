/* SPDX-License-Identifier: Apache-2.0 */
/* A collective message by message: what a coupled flow (sim/collective.h) stands for, as the check
 * of it. An edge sends its messages one after the other, each when those it depends on have
 * arrived:
 *
 * - round a ring, message k of an edge follows message k - 1 of the edge before: what a step brings
 *   the next one passes on, and NCCL's loops are not pipelined;
 * - along a chain or tree, message k of an edge follows message k of the edges that feed it (at the
 *   root the way down follows the way up), and may be WINDOW ahead of the edges it feeds: two
 *   buffers, one filled while the other is passed on;
 * - exchanges and single messages are all there at once.
 *
 * An edge of a later phase waits for all that the phase before brings to its end. The part of an
 * edge is sent in `steps` blocks (of a ring: its steps; else one), each cut into passes; all steps
 * of the first pass run before the second's. The latency that the library's rule gives for all
 * steps together is paid in equal parts by the steps of the first pass: later ones follow in their
 * wake. So alone, a ring takes what its flow takes, and a chain or tree of d edges (1 + (d - 1) /
 * passes) times its transfer, the time to fill it. */
#ifndef S4D_SIM_COLLECTIVE_MESSAGES_H
#define S4D_SIM_COLLECTIVE_MESSAGES_H

#include "sim/collective.h"
#include "sim/engine.h"

/* Message k needs k + 1 - lag messages of the other edge; S4D_LAG_ALL: all of them. */
enum { S4D_LAG_ALL = -1 };
struct s4d_need {
    int edge, lag;
};
struct s4d_message_edge {
    int from, to; /* as struct s4d_edge */
    int flow;     /* the engine's; whoever knows it fills it in */
    double share; /* of the cost's volume */
    int steps;
    int needs, users; /* where its needs, and the edges that need it, begin in the lists below */
};
struct s4d_messages {
    struct s4d_message_edge *edge; /* n of them, and one behind them that ends the lists */
    int n;
    struct s4d_need *need;
    int *user;
    int steps; /* of the longest way through all phases */
};

/* Of an operation's phases (cost->first_phase to last_phase); flows are left 0. */
void s4d_messages_create(struct s4d_messages *m, const struct s4d_channels *ch, enum s4d_op_kind op,
                         const struct s4d_cost *cost);
void s4d_messages_free(struct s4d_messages *m);

/* How an edge's blocks are cut. */
struct s4d_passes {
    int fixed;      /* 0: by chunk_B */
    double chunk_B; /* of what the cost calls volume; INFINITY: blocks stay whole */
};
/* NCCL's chunks (and RCCL's, its copy's) of the cost's protocol; 16 passes where the library has
 * none ("ideal", "mpi"). shape: of the group with the algorithm. */
struct s4d_passes s4d_library_passes(const struct s4d_machine *m, const struct s4d_channels *shape,
                                     const struct s4d_cost *cost);
/* Passes of one edge: 1 or more. */
int s4d_edge_passes(const struct s4d_message_edge *e, const struct s4d_cost *cost,
                    const struct s4d_passes *passes);
/* All messages of a call. */
double s4d_messages_count(const struct s4d_messages *m, const struct s4d_cost *cost,
                          const struct s4d_passes *passes);

/* A call under way, in storage of the caller's. */
struct s4d_sending {
    const struct s4d_messages *messages;
    struct s4d_engine *engine;
    double volume_B, latency_s; /* of a step */
    struct s4d_edge_state *state;
    int left; /* edges that have not sent everything */
    s4d_callback ended;
    void *context;
    int tag;
};
/* Starts it now: ended(context, tag) when the last message has arrived. Until then m must live; the
 * same sending may start again in the callback. */
void s4d_sending_start(struct s4d_sending *s, struct s4d_engine *e, const struct s4d_messages *m,
                       const struct s4d_cost *cost, const struct s4d_passes *passes,
                       s4d_callback ended, void *context, int tag);
void s4d_sending_free(struct s4d_sending *s);

#endif
