/* SPDX-License-Identifier: Apache-2.0 */
/* The communication model that arXiv 2502.08145 sec. V-B prints, with its authors' bandwidths.
 *
 * Every operation of a fully connected layer is counted once, whatever is recomputed or hidden:
 *
 *     t_AG,z    = (Gz-1)/beta    kn/(Gx Gy Gz)      t_AR,y = 2/beta (Gy-1)/Gy T n/Gx
 *     t_RS,z    = (Gz-1)/Gz/beta kn/(Gx Gy)         t_AR,x = 2/beta (Gx-1)/Gx T k/Gy
 *     t_AR,data = 2/beta (Gdata-1)/Gdata kn/(Gx Gy Gz)
 *
 * of a normal layer (k, n); x and y swap in a transposed one. T: tokens of a rank and iteration;
 * sizes in bytes, 2 a weight or activation, 4 a gradient on its way over data (design: as the
 * options say). Each call adds latency times group size. The tables are the authors' own and serve
 * this model alone: nothing that is simulated reads them. */
#ifndef S4D_SIM_TUNE_PUBLISHED_H
#define S4D_SIM_TUNE_PUBLISHED_H

#include "schedule/grid.h"
#include "schedule/op.h"
#include "support/machine.h"

/* Bandwidth of a group inside a node by the product of the inner axes and its size. */
struct s4d_published_bandwidth {
    int inner, members;
    double Bps;
};
enum { S4D_PUBLISHED_ROWS = 8 };
struct s4d_published_machine {
    const char *machine; /* its name in sim/machines */
    const char *source;
    enum s4d_tag tag;
    int devices_per_node;
    struct s4d_published_bandwidth in_node[S4D_PUBLISHED_ROWS]; /* ends with members 0 */
    /* Of a node to the network, by operation. An all-reduce is a reduce-scatter and an all-gather.
     */
    double all_gather_Bps, reduce_scatter_Bps;
    double all_gather_latency_s, reduce_scatter_latency_s; /* a GPU of the group */
};
extern const struct s4d_published_machine s4d_published_machines[]; /* ends with NULL */
const struct s4d_published_machine *s4d_published_machine_find(const char *name); /* NULL: none */

/* Seconds of `calls` operations of the axis over `bytes` in all, as nccl-tests counts them (of a
 * gather the whole result). NAN where the tables have no such group: none of its size and inner
 * axes inside a node, or one that straddles nodes unevenly. */
double s4d_published_time_s(const struct s4d_published_machine *m, const struct s4d_grid *grid,
                            enum s4d_axis axis, enum s4d_op_kind kind, double bytes, double calls);

#endif
