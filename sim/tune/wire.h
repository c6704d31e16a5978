/* SPDX-License-Identifier: Apache-2.0 */
/* How long a collective of one axis takes, without events: the library's cost for such a group,
 * over what the links give while all groups of the axis move at once.
 *
 * The groups of an axis are laid out on the first nodes, as many as show the pattern, with their
 * real channels; the loads of all of them on each link give the bandwidth. Members and nodes are
 * then those of the whole group. Beyond those nodes the fabric counts as wide enough. */
#ifndef S4D_SIM_TUNE_WIRE_H
#define S4D_SIM_TUNE_WIRE_H

#include "sim/collective.h"

struct s4d_wires;
struct s4d_wires *s4d_wires_create(const struct s4d_machine *m, int gpus, struct s4d_error *err);
void s4d_wires_free(struct s4d_wires *w);

/* Groups of `members` ranks that are `inner` ranks apart (the product of the axes inside). */
struct s4d_wire {
    int inner, members;
    double bus_Bps;    /* bus bandwidth of one group while all of them move */
    bool across_nodes; /* some edge of a group leaves a node */
    struct s4d_channels shape;
};
/* Kept by w; NULL for groups of one. */
const struct s4d_wire *s4d_wires_find(struct s4d_wires *w, int inner, int members);
const struct s4d_wire *s4d_wires_axis(struct s4d_wires *w, const struct s4d_grid *grid,
                                      enum s4d_axis axis);

/* Seconds of a collective of `bytes` as nccl-tests counts them; 0 for a NULL wire. */
double s4d_wire_time_s(struct s4d_wires *w, const struct s4d_wire *wire, enum s4d_op_kind kind,
                       double bytes);

#endif
