/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's time estimate for ring and tree and its protocols, from the constants of the machine's
 * library (facts of NCCL 2.30.7, src/graph/tuning.cc); for an ideal library the plain closed forms.
 */
#ifndef S4D_SIM_COLLECTIVE_NCCL_H
#define S4D_SIM_COLLECTIVE_NCCL_H

#include "sim/collective.h"

enum s4d_nccl_pattern { S4D_NCCL_RING, S4D_NCCL_TREE };

struct s4d_nccl_estimate {
    double latency_s; /* in fact */
    double bus_Bps;   /* what the protocol gets out of the links' bus bandwidth; 0: not available */
    double time_s;    /* what NCCL estimates, with its corrections by size: by this it chooses;
                         infinity: not available */
};
struct s4d_nccl_estimate s4d_nccl_estimate(const struct s4d_machine *m,
                                           const struct s4d_channels *ch, enum s4d_op_kind op,
                                           enum s4d_nccl_pattern pattern,
                                           enum s4d_protocol protocol, double bytes);

/* The cost of a pattern with the protocol that is estimated to be the fastest. volume_B: without
 * the protocol's loss. */
struct s4d_cost s4d_nccl_cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                              enum s4d_op_kind op, enum s4d_nccl_pattern pattern, double bytes,
                              double volume_B);

/* The least latency of a call of no bytes, over the patterns that do this operation and the
 * protocols. */
double s4d_nccl_least_latency_s(const struct s4d_machine *m, const struct s4d_channels *ch,
                                enum s4d_op_kind op);

/* Sets bus_Bps and library_channels from the paths of a ring's channels. */
void s4d_nccl_shape(const struct s4d_cluster *c, struct s4d_channels *ring);

#endif
