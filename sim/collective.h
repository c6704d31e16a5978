/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as coupled flows: one per channel (a ring, or one tree), which crosses every link its
 * edges cross, in proportion to the volume each edge carries. A collective ends with its slowest
 * channel. Algorithms whose parts follow one another (first in the nodes, then between them) have
 * channels of several phases: those of a phase start when those of the one before have ended. The
 * latency of all steps is a delay before the flows. */
#ifndef S4D_SIM_COLLECTIVE_H
#define S4D_SIM_COLLECTIVE_H

#include "schedule/op.h" /* for: S4D_OP_ALL_REDUCE and the others */
#include "sim/cluster.h"

/* What a single collective may be: an op of programs (schedule/op.h), or one of three that no
 * program has, as nccl-tests defines them: broadcast from the first member, all-to-all, every
 * member sends to the next. */
#define S4D_BROADCAST  ((enum s4d_op_kind)(S4D_OP_KINDS))
#define S4D_ALL_TO_ALL ((enum s4d_op_kind)(S4D_OP_KINDS + 1))
#define S4D_SEND_RECV  ((enum s4d_op_kind)(S4D_OP_KINDS + 2))
enum { S4D_COLLECTIVE_OPS = S4D_OP_KINDS + 3 };
const char *s4d_collective_name(enum s4d_op_kind op); /* "all-reduce", "broadcast" */
/* s4d_bus_factor of these too: (p-1)/p of an all-to-all, 1 of the other two. */
double s4d_collective_bus_factor(enum s4d_op_kind op, int members);

/* One hop of a channel, from one end to another (sim/collective/channels.h says what ends are).
 * down: in a tree, away from the root. */
struct s4d_edge {
    int from, to;
    bool down;
};

struct s4d_channel {
    struct s4d_path
        path; /* each link once; weight: how many times the channel's volume crosses it */
    double
        share; /* part of the cost's volume this channel carries; those of ring and tree sum to 1 */
    int phase; /* ascending from 0, none left out */
    struct s4d_edge *edge; /* the edges whose paths make up `path`; each carries the share */
    int n_edges, cap_edges;
};

/* How messages follow one another along a channel's edges (sim/collective/messages.h): round a
 * ring, down a chain or up and down a tree, or all edges at once. */
enum s4d_order { S4D_AROUND, S4D_ALONG, S4D_AT_ONCE };

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
    double node_bus_Bps; /* of the ring's shape: the same of the first node's members alone; bus_Bps
                            where there is one node, or one member on it */
    double alone_s_per_B; /* of tree and NVLS: what the paths take for a byte of volume, nothing
                             else running */
    double nvls_s_per_B;  /* of the ring's shape: what the switch's sums alone take for a byte of an
                             all-reduce; 0: not possible here */
};

/* What one call costs: wait latency_s, then move volume_B * share of each channel along its path.
 */
struct s4d_cost {
    double latency_s;
    double fill_s; /* of latency_s: until the pipeline of chunks is full, which messages one by one
                      (sim/collective/messages.h) show by themselves */
    double volume_B;
    double efficiency;           /* already in volume_B; below 1: a protocol's cap, or a table */
    enum s4d_protocol protocol;  /* S4D_PROTOCOLS: none (an ideal library, or a table) */
    bool measured;               /* by the library's efficiency table */
    bool extrapolated;           /* outside its rows */
    int first_phase, last_phase; /* the phases of the channels that this operation has */
};

struct s4d_algorithm {
    const char *name, *summary, *source;
    bool (*supports)(enum s4d_op_kind op);
    enum s4d_order order;
    /* Fills channels for n >= 2 devices in ring order; 0, or -1 (not possible on this machine). */
    int (*channels)(const struct s4d_cluster *c, const int *devices, int n,
                    struct s4d_channels *out);
    /* bytes > 0 as nccl-tests counts them: the buffer of an all-reduce or a broadcast, the whole
     * result of an all-gather, the whole input of a reduce-scatter or (of a member) an all-to-all,
     * what a member sends. */
    struct s4d_cost (*cost)(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes);
};
extern const struct s4d_algorithm s4d_ring, s4d_tree, s4d_nvls, s4d_hierarchical, s4d_recursive,
    s4d_chain, s4d_pairwise, s4d_shift;
enum { S4D_ALGORITHMS = 8 };
extern const struct s4d_algorithm *const s4d_algorithms[]; /* ring first; ends with NULL */

/* The library's choice of ring, tree and NVLS for these bytes: NCCL's own time estimate where the
 * machine has its constants; the ring where an efficiency table holds the measured result (of
 * groups up to the largest that was measured), or the library is ideal. Of other ops the one
 * algorithm that does them. ring: the group's channels (or their shape) for s4d_ring. */
const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m,
                                                 const struct s4d_channels *ring,
                                                 enum s4d_op_kind op, double bytes);
const struct s4d_algorithm *s4d_algorithm_find(const char *name); /* NULL: unknown */

void s4d_channels_free(struct s4d_channels *ch);

#endif
