/* SPDX-License-Identifier: Apache-2.0 */
/* What is simulated: classes of ranks, groups, flows and links. Unfolded, every class has one
 * member; folded (sim/fold.c), members of a class behave alike and one stands for all (design:
 * quotient of an equitable partition). The executor does not know which it is given. */
#ifndef S4D_SIM_SYSTEM_H
#define S4D_SIM_SYSTEM_H

#include "schedule/program.h"
#include "sim/collective.h"

struct s4d_flow_class {
    int *link, *weight, n; /* link classes and the total multiplicity of this flow class on one link
                              of them, gcd not yet divided */
    double share;          /* part of the collective's data */
    int members;
};
/* A group class with one algorithm: its flow classes. */
struct s4d_group_flows {
    const struct s4d_algorithm *algorithm; /* NULL: not built */
    struct s4d_channels shape; /* of a representative: members, nodes, members_per_node, no paths */
    int *flow, n;              /* indices into flows */
};
enum { S4D_ALGORITHMS = 4 };
struct s4d_group_class {
    enum s4d_stream stream;
    int *member, n_members;                              /* the rank classes it has, each once */
    int groups;                                          /* how many groups are in the class */
    struct s4d_group_flows by_algorithm[S4D_ALGORITHMS]; /* in the order of s4d_algorithms */
};
struct s4d_rank_class {
    int representative; /* the lowest rank of the class */
    int members;
    double speed;           /* of its device */
    int group[S4D_STREAMS]; /* its group class on that stream, -1: none */
};
struct s4d_system {
    const struct s4d_cluster *cluster;
    struct s4d_rank_class *ranks;
    int n_ranks;
    struct s4d_group_class *groups;
    int n_groups;
    struct s4d_flow_class *flows;
    int n_flows;
    double *link_capacity_Bps; /* of each link class */
    int *link_representative;  /* a link of the cluster */
    int n_links;
    int *class_of_rank; /* by rank */
};

/* The system in which every rank of the program's grid is simulated, for the algorithms whose bit
 * is set in `algorithms` (bit i: s4d_algorithms[i]). Only streams with collectives in the program
 * get groups. */
int s4d_system_create(struct s4d_system *s, const struct s4d_cluster *c,
                      const struct s4d_program *p, unsigned algorithms, struct s4d_error *err);
/* Its quotient by colour refinement of the union of all axes; verified to be equitable after
 * hashing (else exit 70). */
int s4d_system_fold(struct s4d_system *folded, const struct s4d_system *full,
                    const struct s4d_program *p, struct s4d_error *err);
void s4d_system_free(struct s4d_system *s);

#endif
