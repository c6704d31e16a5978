/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as coupled flows: one per channel (a ring, or one tree), which crosses every link its
 * edges cross, in proportion to the volume each edge carries. A collective ends with its slowest
 * channel. */
#ifndef S4D_SIM_COLLECTIVE_H
#define S4D_SIM_COLLECTIVE_H

#include "schedule/op.h" /* for: S4D_OP_ALL_REDUCE and the others */
#include "sim/cluster.h"

/* The channels of one group of devices for one algorithm, whatever the bytes. */
struct s4d_channel {
    struct s4d_path path; /* weights: relative volumes, divided by their gcd */
    double share;         /* part of the data this channel carries; shares sum to 1 */
};
struct s4d_channels {
    const struct s4d_algorithm *algorithm;
    int n;
    struct s4d_channel *channel;
    int members, nodes, members_per_node; /* members_per_node: the smallest over the nodes */
};

/* What one call costs: wait latency_s, then move bytes[c] on channel c. */
struct s4d_cost {
    double latency_s;
    double volume_B;   /* of one unit of share: channel c moves volume_B * share_c */
    double efficiency; /* already in volume_B */
    bool extrapolated; /* the efficiency table was used outside its rows */
};

struct s4d_algorithm {
    const char *name, *summary, *source;
    bool (*supports)(enum s4d_op_kind op);
    /* Fills channels for the devices in ring order; 0, or -1 (not possible on this machine). */
    int (*channels)(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out);
    /* bytes as nccl-tests counts them. */
    struct s4d_cost (*cost)(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes);
};
extern const struct s4d_algorithm *const s4d_algorithms[]; /* ends with NULL */

/* The library's choice for these bytes: NCCL's own time estimate where the machine has its
 * constants, else the ring. */
const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m, enum s4d_op_kind op,
                                                 double bytes, int members, int nodes,
                                                 int members_per_node);
void s4d_channels_free(struct s4d_channels *ch);

#endif
