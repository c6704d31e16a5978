/* SPDX-License-Identifier: Apache-2.0 */
/* All nodes of the machine on one ring, links both ways: the torus of one dimension. */
#include "sim/fabric/torus.h"

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    return s4d_torus_create(c, (int[]){m->fabric.nodes, 1, 1}, true,
                            s4d_fabric_value(m, "link_bandwidth_Bps"), err);
}

const struct s4d_fabric_kind s4d_fabric_ring = {
    .name = "ring",
    .summary = "a router a node, joined to one ring both ways, the shorter way round",
    .description = "All nodes of the machine in order, also those that a job leaves idle. Exactly "
                   "half way round, even nodes go up and odd ones down.",
    .example = "topology=ring,link_bandwidth_Bps=50GB/s",
    .parameter =
        {
            S4D_REQUIRED("link_bandwidth_Bps", "between two neighbours, per direction", 1, 1e15),
        },
    .create = create,
    .destroy = s4d_torus_destroy,
    .route = s4d_torus_route,
    .link_name = s4d_torus_link_name,
};
