/* SPDX-License-Identifier: Apache-2.0 */
/* Rail-optimised network (NVIDIA DGX SuperPOD reference architecture, RA-10001; "rail-only" of
 * arXiv 2307.12169 is this without a spine): NIC i of every node of a scalable unit hangs on leaf i
 * of that unit, so NICs of one number are one switch apart; all leaves have uplinks to one spine.
 *
 * A way crosses nothing inside a leaf, else the leaf's pooled uplinks out and the other leaf's in.
 * Uplinks are pooled as in the fat tree with adaptive routing. Libraries keep to a rail: see
 * `rails` of sim/fabric.h. */
#include <math.h>
#include <stdlib.h>

#include "sim/fabric.h"
#include "support/memory.h"

struct rails {
    int nics, unit; /* NICs of a node, nodes of a unit */
    int first;      /* link index of the first leaf's out */
};

static double room(const struct s4d_machine *m)
{
    return s4d_fabric_value(m, "units") * s4d_fabric_value(m, "nodes_per_unit");
}

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    double unit = s4d_fabric_value(m, "nodes_per_unit");
    double up_Bps =
        unit * m->node.nic_bandwidth_Bps.value / s4d_fabric_value(m, "oversubscription");
    struct rails r = {.nics = m->node.n_nics, .unit = (int)unit, .first = c->n_links};
    int leaves = (c->n_nodes + r.unit - 1) / r.unit * r.nics;
    if (s4d_cluster_room(c, 2 * (int64_t)leaves, err))
        return -1;
    for (int i = 0; i < leaves; i++) {
        s4d_cluster_add_link(c, up_Bps, "leaf-out");
        s4d_cluster_add_link(c, up_Bps, "leaf-in");
    }
    c->fabric_state = s4d_malloc(sizeof r);
    *(struct rails *)c->fabric_state = r;
    return 0;
}

static void destroy(struct s4d_cluster *c)
{
    free(c->fabric_state);
}

static int leaf_of(const struct rails *r, int nic)
{
    return nic / r->nics / r->unit * r->nics + nic % r->nics;
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    const struct rails *r = c->fabric_state;
    int from = leaf_of(r, a), to = leaf_of(r, b);
    if (from == to)
        return;
    s4d_path_add(path, r->first + 2 * from, 1);
    s4d_path_add(path, r->first + 2 * to + 1, 1);
}

static char *link_name(const struct s4d_cluster *c, int link)
{
    const struct rails *r = c->fabric_state;
    int i = link - r->first, leaf = i / 2;
    return s4d_asprintf("unit%d.rail%d.%s", leaf / r->nics, leaf % r->nics, i % 2 ? "in" : "out");
}

const struct s4d_fabric_kind s4d_fabric_rail_optimised = {
    .name = "rail-optimised",
    .summary = "NIC i of all nodes of a scalable unit on leaf i, a spine above; oversubscription",
    .description =
        "NVIDIA's DGX SuperPOD layout: NICs of one number are one switch apart inside a unit. The "
        "uplinks of a leaf are one pooled link out and one in. Collectives keep to a rail: they "
        "enter a node through the NIC of the number that they left the last through.",
    .example = "topology=rail-optimised,nodes_per_unit=32,oversubscription=2",
    .parameter =
        {
            S4D_REQUIRED("nodes_per_unit", "nodes of a scalable unit: NICs on a leaf", 1, 1 << 16),
            S4D_OPTIONAL("units", "scalable units of the machine (as many as its nodes need)", 1,
                         1e6, INFINITY),
            S4D_RATIO("oversubscription", "bandwidth of a leaf's NICs over that of its uplinks",
                      0.01, 1000, 1),
        },
    .room = room,
    .create = create,
    .destroy = destroy,
    .route = route,
    .rails = true,
    .link_name = link_name,
};
