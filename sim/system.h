/* SPDX-License-Identifier: Apache-2.0 */
/* What is simulated: classes of ranks, groups, flows and links. Unfolded, every class has one
 * member; folded (sim/fold.c), members of a class behave alike and one stands for all (design:
 * quotient of an equitable partition). The executor does not know which it is given.
 *
 * Classes are numbered by their lowest member, streams in order, so the same input gives the same
 * numbers. All int arrays of a system live in one block that the system owns. */
#ifndef S4D_SIM_SYSTEM_H
#define S4D_SIM_SYSTEM_H

#include "schedule/program.h"
#include "sim/collective.h"

/* Ready for s4d_engine_flow. A flow that crosses a link class puts `weight` of its rate on the one
 * link that stands for the class: the total multiplicity of the flow class on one link of it,
 * divided by the divisor of that link class. Groups of two streams over the same axes share flows
 * (each may run while the other does). */
struct s4d_flow_class {
    const int *link, *weight; /* link classes, ascending, each once; n of them, of which the first
                                 n_limiting may limit it */
    int n, n_limiting;
    double share; /* part of the collective's data that each member carries */
    int members;
    int phase; /* of its collective: starts when those of the phase before have ended */
};
/* A group class with one algorithm: its flow classes. A collective starts each of those of its
 * phases once. */
struct s4d_group_flows {
    const struct s4d_algorithm *algorithm; /* NULL: no collective of the program uses it here */
    struct s4d_channels shape; /* for the cost function: that of every group in the class, with
                                  channel = NULL. The ring's is always there, for the choice */
    const int *flow;           /* indices into flows, each once; n of them; none in a group of 1 */
    int n;
};
struct s4d_group_class {
    enum s4d_stream stream;
    const int *member; /* the rank classes it has, each once; n_members of them: a collective has
                          all its members when each of these has arrived */
    int n_members;
    int groups;                                          /* how many groups are in the class */
    double rate;                                         /* of its stream's collectives */
    struct s4d_group_flows by_algorithm[S4D_ALGORITHMS]; /* in the order of s4d_algorithms */
};
/* What a rank class sends another, of a later or an earlier stage: member by member. */
struct s4d_message_class {
    int from, to, flow; /* rank classes; index into flows */
    bool across_nodes;
};
struct s4d_rank_class {
    int representative; /* the lowest rank of the class */
    int members;
    double speed;           /* of its device */
    int group[S4D_STREAMS]; /* its group class on that stream, -1: none */
};
/* One link for each class of links that some flow crosses. Those that never limit a flow, or that a
 * link which is full no later makes needless (sim/link_classes.h), come after all others. */
struct s4d_link_class {
    double capacity_Bps; /* of a link of the class, divided by `divisor` */
    int divisor;         /* gcd of the multiplicities of all flow classes on a link of the class */
    int representative;  /* the lowest link of the class, in the cluster */
    int members;
};
struct s4d_system {
    const struct s4d_cluster *cluster;
    struct s4d_rank_class *ranks;
    int n_ranks;
    struct s4d_group_class *groups;
    int n_groups;
    struct s4d_flow_class *flows;
    int n_flows;
    struct s4d_message_class *messages; /* by sender */
    int n_messages;
    struct s4d_link_class *links;
    int n_links, n_limiting;
    int *class_of_rank; /* by rank */
    int *class_of_link; /* by link of the cluster; -1: no flow crosses it */
    int *block;         /* what the classes point into */
};

/* The system of the program's grid on the cluster; of a pipe's, with the programs of all its
 * stages. Only streams with collectives in the program get groups, and these the algorithms that
 * the library would choose for the program's sizes, out of those whose bit is set in `allowed` (bit
 * i: s4d_algorithms[i]; ~0u: all). fold: its quotient by colour refinement of the union of all
 * axes, verified to be equitable exactly after hashing (else exit 70). 0, or -1: a cluster with
 * fewer devices than the grid has ranks (65), a group for which no allowed algorithm has channels
 * (65). Free with s4d_system_free. */
int s4d_system_create(struct s4d_system *s, const struct s4d_cluster *c,
                      const struct s4d_program *p, unsigned allowed, bool fold,
                      struct s4d_error *err);
void s4d_system_free(struct s4d_system *s);

/* A fresh engine with the system's flows and those of its links that may limit, numbered as they
 * are here, sealed. rates: with what s4d_system_use asks for. */
struct s4d_engine *s4d_system_engine(const struct s4d_system *s, bool rates);
/* Of a watcher's call (s4d_engine_watch): the part of every link class that flows use; use: by link
 * class. */
void s4d_system_use(const struct s4d_system *s, const struct s4d_engine *e, double *use);

/* What a call costs at the group class's rate, along the flows chosen for it. */
struct s4d_cost s4d_group_cost(const struct s4d_machine *m, const struct s4d_group_class *g,
                               const struct s4d_group_flows *flows, enum s4d_op_kind op,
                               double bytes);

/* The flows that a collective of these bytes (as nccl-tests counts them) takes in a group of two or
 * more: the library's choice, or, where that is not allowed or not possible, the first that is. */
const struct s4d_group_flows *s4d_group_choice(const struct s4d_machine *m,
                                               const struct s4d_group_class *g, enum s4d_op_kind op,
                                               double bytes);

#endif
