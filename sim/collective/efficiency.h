/* SPDX-License-Identifier: Apache-2.0 */
/* Measured efficiency(bytes, ranks) of a collective, inside a node or across nodes: what a
 * library's constants do not explain. */
#ifndef S4D_SIM_COLLECTIVE_EFFICIENCY_H
#define S4D_SIM_COLLECTIVE_EFFICIENCY_H

#include "sim/collective.h"

struct s4d_efficiency {
    double efficiency;
    bool extrapolated;   /* outside the rows' bytes or ranks */
    double latency_part; /* part of the library's latency to pay: 0 from the smallest row on */
};

/* Linear in log2 bytes along each rank count over the rows it has, then linear in log2 ranks
 * between neighbours, clamped. bytes: of the whole group, as nccl-tests counts; compared at equal
 * bytes per channel. A group with all ranks on one node takes the rows of such groups, another the
 * other rows; the table has at least one of them. */
struct s4d_efficiency s4d_efficiency_lookup(const struct s4d_efficiency_table *table, int ranks,
                                            int members_per_node, double bytes);

/* The library's table for this operation with rows for such a group (inside a node, or not), or
 * NULL.
 */
const struct s4d_efficiency_table *s4d_efficiency_find(const struct s4d_machine *m,
                                                       const struct s4d_channels *ch,
                                                       enum s4d_op_kind op);

/* Whether measurements hold the cost: a table of the operation, or for an all-reduce without one
 * those of a reduce-scatter and an all-gather, one after the other. */
bool s4d_efficiency_applies(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op);

/* Whether the group is larger than all that were measured: the library may then choose another
 * algorithm than the tables' ring. Not where the tables are of an all-reduce's two halves. */
bool s4d_efficiency_beyond(const struct s4d_machine *m, const struct s4d_channels *ch,
                           enum s4d_op_kind op);

/* Fills *cost from the tables; false where none applies. */
bool s4d_efficiency_cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                         enum s4d_op_kind op, double bytes, double volume_B, struct s4d_cost *cost);

#endif
