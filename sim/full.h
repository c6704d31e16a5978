/* SPDX-License-Identifier: Apache-2.0 */
/* Every rank, group, flow and link of a grid on a cluster, and the graph between them that folding
 * works on. */
#ifndef S4D_SIM_FULL_H
#define S4D_SIM_FULL_H

#include "sim/spare.h" /* for: struct s4d_crossing */
#include "sim/system.h"

struct s4d_full_flow {
    int algorithm,
        phase; /* of a message S4D_ALGORITHMS, + 1 across nodes; its peer (schedule/op.h) */
    double share;
};
/* What a rank sends a peer on the pipe. */
struct s4d_full_message {
    int from, to, peer; /* ranks; the difference of their stages */
};
/* The ranks that differ in one of the axis sets alone. */
struct s4d_full_group {
    int set, n_ranks;
    int first_flow;            /* its flows lie side by side, algorithm by algorithm */
    int shape[S4D_ALGORITHMS]; /* index into shapes, -1: not used, or not possible here */
    unsigned used;             /* bit a: it has flows with s4d_algorithms[a]; the ring's shape is
                                  there without flows too */
};

/* Nodes of the graph: ranks, then groups (set by set, by lowest rank), flows (group by group), and
 * the links that some flow crosses (ascending), but for those that are spare (sim/spare.h). Flows
 * of messages come after those of all groups. Edges: a rank and its group of each set, then its
 * messages' flows, with weight 1 where it sends and 2 where it receives; a group and its ranks,
 * then its flows; a flow and its group or its two ranks, then the links it crosses, with its weight
 * there. */
struct s4d_full {
    s4d_axes set[S4D_STREAMS];      /* distinct axes of the streams that have collectives */
    int set_of_stream[S4D_STREAMS]; /* -1: no collectives */
    int n_sets;
    int n_ranks, n_groups, n_flows, n_links;
    struct s4d_full_group *groups;
    struct s4d_full_flow *flows;
    struct s4d_full_message *messages; /* by sender; message i has flow n_flows - n_messages + i */
    int n_messages;
    int *stage;                  /* by rank, where stages have programs of their own; else all 0 */
    struct s4d_channels *shapes; /* distinct; channel = NULL */
    int n_shapes, cap_shapes;
    int *links;               /* their numbers in the cluster; after them those of n_spare others */
    int *start, *to, *weight; /* as in struct s4d_graph */
    int n_spare;              /* links that flows cross, and that never limit them */
    int *spare_start;         /* spare link i: from spare[spare_start[i]] on, in order of flows */
    struct s4d_crossing *spare;
};
static inline int s4d_full_group_node(const struct s4d_full *f, int group)
{
    return f->n_ranks + group;
}
static inline int s4d_full_flow_node(const struct s4d_full *f, int flow)
{
    return f->n_ranks + f->n_groups + flow;
}
static inline int s4d_full_link_node(const struct s4d_full *f, int link)
{
    return f->n_ranks + f->n_groups + f->n_flows + link;
}
static inline int s4d_full_nodes(const struct s4d_full *f)
{
    return f->n_ranks + f->n_groups + f->n_flows + f->n_links;
}

/* Arguments and errors as s4d_system_create; fold: for folding, with spare links apart. Free with
 * s4d_full_free, also after an error. */
int s4d_full_create(struct s4d_full *f, const struct s4d_cluster *c, const struct s4d_program *p,
                    unsigned allowed, bool fold, struct s4d_error *err);
void s4d_full_free(struct s4d_full *f);

/* The class of every node, numbered by lowest member, by colour refinement, verified to be
 * equitable; returns how many, or -1 (exit 70). The nodes of a class are of one kind. */
int s4d_fold(const struct s4d_full *f, const struct s4d_cluster *c, int *class_of,
             struct s4d_error *err);

#endif
