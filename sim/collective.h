/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as coupled flows: one per channel (a ring, or one tree), which crosses every link its
 * edges cross, in proportion to the volume each edge carries. A collective ends with its slowest
 * channel. The latency of all its steps is a delay before the flows. */
#ifndef S4D_SIM_COLLECTIVE_H
#define S4D_SIM_COLLECTIVE_H

#include "schedule/op.h" /* for: S4D_OP_ALL_REDUCE and the others */
#include "sim/cluster.h"

struct s4d_channel {
    struct s4d_path
        path;     /* each link once; weight: how many times the channel's volume crosses it */
    double share; /* part of the data this channel carries; shares sum to 1 */
};

/* The channels of one group of devices for one algorithm, whatever the bytes. All that cost and
 * choice need is here without the channels themselves: a copy with channel = NULL will do. */
struct s4d_channels {
    const struct s4d_algorithm *algorithm;
    int n;
    struct s4d_channel *channel;
    int members, nodes, members_per_node; /* members_per_node: the smallest over the nodes */
    double bus_Bps; /* bus bandwidth that the group's rings get out of the links alone (2(p-1)/p n
                       of an all-reduce in this time), nothing else running */
    int library_channels; /* channels as the library counts them: NCCL doubles fast ones */
};

/* What one call costs: wait latency_s, then move volume_B * share of each channel along its path.
 */
struct s4d_cost {
    double latency_s;
    double volume_B;
    double efficiency;          /* already in volume_B; below 1: a protocol's cap, or a table */
    enum s4d_protocol protocol; /* S4D_PROTOCOLS: none (an ideal library, or a table) */
    bool measured;              /* by the library's efficiency table */
    bool extrapolated;          /* outside its rows */
};

struct s4d_algorithm {
    const char *name, *summary, *source;
    bool (*supports)(enum s4d_op_kind op);
    /* Fills channels for n >= 2 devices in ring order; 0, or -1 (not possible on this machine). */
    int (*channels)(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out);
    /* bytes > 0 as nccl-tests counts them: the buffer of an all-reduce, the whole result of an
     * all-gather, the whole input of a reduce-scatter. */
    struct s4d_cost (*cost)(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes);
};
extern const struct s4d_algorithm s4d_ring, s4d_tree;
extern const struct s4d_algorithm *const s4d_algorithms[]; /* ring first; ends with NULL */

/* The library's choice for these bytes: NCCL's own time estimate where the machine has its
 * constants; the ring where an efficiency table holds the measured result, or the library is ideal.
 * ring: the group's channels (or their shape) for s4d_ring. */
const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m,
                                                 const struct s4d_channels *ring,
                                                 enum s4d_op_kind op, double bytes);
const struct s4d_algorithm *s4d_algorithm_find(const char *name); /* NULL: unknown */

void s4d_channels_free(struct s4d_channels *ch);

#endif
