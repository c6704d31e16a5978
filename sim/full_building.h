/* SPDX-License-Identifier: Apache-2.0 */
/* An unfolded system while it is made: what its groups (full_groups.c), messages (full_messages.c),
 * and the graph of them (full_graph.c) share with what calls these (full.c); nobody else's. */
#ifndef S4D_SIM_FULL_BUILDING_H
#define S4D_SIM_FULL_BUILDING_H

#include "sim/full.h"

struct building {
    struct s4d_full *f;
    const struct s4d_cluster *c;
    const struct s4d_program *p;    /* of one of the stages */
    unsigned allowed;               /* algorithms, as s4d_full_create */
    int *group_of;                  /* [set][rank] */
    struct s4d_crossing *crossings; /* in the order of the flows; numbered as the cluster's links,
                                       and by s4d_full_links as f's */
    int n_crossings, cap_crossings, cap_flows, cap_messages;
};

/* Programs that differ: of every stage, or the one. */
static inline int s4d_full_programs(const struct s4d_program *p)
{
    return p->stages ? p->grid.size[S4D_PIPE] : 1;
}

/* Adds a flow, and what it crosses on its path. */
void s4d_full_add_flow(struct building *b, struct s4d_full_flow flow, const struct s4d_path *path);

/* full_groups.c: every group of f's sets, its shapes and flows, with the algorithms that the
 * library would choose for what the program asks of it. 0, or -1 (exit 65): no algorithm. */
int s4d_full_groups(struct building *b, struct s4d_error *err);
/* full_messages.c: a flow for what each rank sends each peer; after all groups. 0, or -1 (exit 65):
 * no way. */
int s4d_full_messages(struct building *b, struct s4d_error *err);

/* full_graph.c: after all flows. Numbers the links that they cross, with fold those apart that are
 * spare; then the edges. */
void s4d_full_links(struct building *b, bool fold);
void s4d_full_graph(struct building *b);

#endif
