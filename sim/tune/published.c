/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/published.h"

#include <math.h>
#include <string.h>

/* The authors' unit: binary megabytes a millisecond. */
#define MIB_PER_MS(x) ((x)*1048576 / 1e-3)

const struct s4d_published_machine s4d_published_machines[] = {
    {.machine = "perlmutter",
     .source = "read from the code of the authors of arXiv 2502.08145; MiB/ms, and ms a GPU",
     .tag = S4D_TAG_READ,
     .devices_per_node = 4,
     .in_node = {{1, 2, MIB_PER_MS(76)}, {1, 4, MIB_PER_MS(225)}, {2, 2, MIB_PER_MS(76)}},
     .all_gather_Bps = MIB_PER_MS(59.52),
     .reduce_scatter_Bps = MIB_PER_MS(59.52),
     .all_gather_latency_s = 0.009e-3,
     .reduce_scatter_latency_s = 0.009e-3},
    /* Above the wire of a node, 100 GB/s, and valid only with the latency. */
    {.machine = "frontier",
     .source = "read from the code of the authors of arXiv 2502.08145; MiB/ms, and ms a GPU",
     .tag = S4D_TAG_READ,
     .devices_per_node = 8,
     .in_node = {{1, 2, MIB_PER_MS(129)},
                 {1, 4, MIB_PER_MS(52)},
                 {1, 8, MIB_PER_MS(135)},
                 {2, 2, MIB_PER_MS(50)},
                 {2, 4, MIB_PER_MS(72)},
                 {4, 2, MIB_PER_MS(36)}},
     .all_gather_Bps = MIB_PER_MS(109.98),
     .reduce_scatter_Bps = MIB_PER_MS(127.79),
     .all_gather_latency_s = 0.039e-3,
     .reduce_scatter_latency_s = 0.0298e-3},
    {.machine = NULL},
};

const struct s4d_published_machine *s4d_published_machine_find(const char *name)
{
    for (int i = 0; s4d_published_machines[i].machine; i++)
        if (strcmp(s4d_published_machines[i].machine, name) == 0)
            return &s4d_published_machines[i];
    return NULL;
}

static double in_node_Bps(const struct s4d_published_machine *m, int inner, int members)
{
    for (int i = 0; i < S4D_PUBLISHED_ROWS && m->in_node[i].members; i++)
        if (m->in_node[i].inner == inner && m->in_node[i].members == members)
            return m->in_node[i].Bps;
    return NAN;
}

/* Every group of the axis has as many members on each of its nodes. */
static bool is_even(int devices, int inner, int members)
{
    if (inner % devices == 0)
        return true;
    return devices % inner == 0 &&
           ((inner * members) % devices == 0 || devices % (inner * members) == 0);
}

double s4d_published_time_s(const struct s4d_published_machine *m, const struct s4d_grid *grid,
                            enum s4d_axis axis, enum s4d_op_kind kind, double bytes, double calls)
{
    int p = grid->size[axis], inner = 1, devices = m->devices_per_node;
    for (int i = 0; grid->order[i] != axis; i++)
        inner *= grid->size[grid->order[i]];
    if (p == 1)
        return 0;
    if (!is_even(devices, inner, p))
        return NAN;
    double gather_Bps = m->all_gather_Bps, scatter_Bps = m->reduce_scatter_Bps;
    if ((int64_t)inner * p <= devices) {
        gather_Bps = scatter_Bps = in_node_Bps(m, inner, p);
    } else {
        int sharing = inner < devices ? inner : devices;
        gather_Bps /= sharing;
        scatter_Bps /= sharing;
    }
    double moved = (p - 1.0) / p * bytes;
    double gather_s = moved / gather_Bps + calls * p * m->all_gather_latency_s;
    double scatter_s = moved / scatter_Bps + calls * p * m->reduce_scatter_latency_s;
    return kind == S4D_OP_ALL_GATHER       ? gather_s
           : kind == S4D_OP_REDUCE_SCATTER ? scatter_s
                                           : gather_s + scatter_s;
}
