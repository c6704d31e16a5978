/* SPDX-License-Identifier: Apache-2.0 */
/* Dragonfly with adaptive routing (Kim et al., ISCA 2008; Slingshot, arXiv 2008.08886): groups of
 * switches, all-to-all inside a group, every pair of groups joined.
 *
 * Adaptive routing spreads traffic packet by packet over whatever is free, so links that it spreads
 * over are pooled: a switch's links to the other switches of its group are one link out and one in,
 * and a group's global links are one out and one in. A way crosses
 *     same switch:  nothing
 *     same group:   local out of a's switch, local in of b's
 *     other group:  local out of a's switch, global out of a's group, global in of b's group,
 *                   local in of b's switch.
 * Detours over a third group are what fills the pool of a pair that talks alone; the capacity they
 * take from that group is not charged, so the model is an upper bound for one pair and exact for
 * traffic spread evenly over all groups. Nodes are placed in order, a group at a time. */
#include <stdlib.h>

#include "sim/fabric.h"
#include "support/memory.h"

struct dragonfly {
    int nodes_per_group, switches, spread; /* switches of a group; those a node's NICs go to */
    int first_group, first_switch;         /* link index of group 0's out, switch 0's out */
};

static int parameter(const struct s4d_machine *m, const char *key)
{
    return (int)s4d_parameter_value(m, key, 0);
}

static double room(const struct s4d_machine *m)
{
    return s4d_parameter_value(m, "groups", 0) * s4d_parameter_value(m, "nodes_per_group", 0);
}

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    double local = s4d_parameter_value(m, "local_links_per_switch", 0),
           global = s4d_parameter_value(m, "global_links_per_group", 0),
           link = s4d_parameter_value(m, "link_bandwidth_Bps", 0);
    struct dragonfly d = {.nodes_per_group = parameter(m, "nodes_per_group"),
                          .switches = parameter(m, "switches_per_group"),
                          .spread = parameter(m, "switches_per_node")};
    if (d.switches % d.spread != 0)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "fabric.switches_per_group: %d is no multiple of switches_per_node, %d",
                        d.switches, d.spread);
    int groups = (c->n_nodes - 1) / d.nodes_per_group + 1;
    if (s4d_cluster_room(c, 2 * (int64_t)groups * (1 + d.switches), err))
        return -1;
    d.first_group = c->n_links;
    for (int g = 0; g < groups; g++) {
        s4d_cluster_add_link(c, global * link, "group-out");
        s4d_cluster_add_link(c, global * link, "group-in");
    }
    d.first_switch = c->n_links;
    for (int s = 0; s < groups * d.switches; s++) {
        s4d_cluster_add_link(c, local * link, "switch-out");
        s4d_cluster_add_link(c, local * link, "switch-in");
    }
    c->fabric_state = s4d_malloc(sizeof d);
    *(struct dragonfly *)c->fabric_state = d;
    return 0;
}

static void destroy(struct s4d_cluster *c)
{
    free(c->fabric_state);
}

/* The switch of a NIC, counted over all groups. A group's switches are divided in sets of `spread`,
 * its nodes evenly over the sets in order, a node's NICs in turn over its set. */
static int switch_of(const struct s4d_cluster *c, const struct dragonfly *d, int nic)
{
    int nics = c->machine->node.n_nics, node = nic / nics, k = nic % nics;
    int group = node / d->nodes_per_group, place = node % d->nodes_per_group;
    int sets = d->switches / d->spread;
    int set = (int)((long)place * sets / d->nodes_per_group);
    return group * d->switches + set * d->spread + k % d->spread;
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    const struct dragonfly *d = c->fabric_state;
    int sa = switch_of(c, d, a), sb = switch_of(c, d, b);
    if (sa == sb)
        return;
    int ga = sa / d->switches, gb = sb / d->switches;
    s4d_path_add(path, d->first_switch + 2 * sa, 1);
    if (ga != gb) {
        s4d_path_add(path, d->first_group + 2 * ga, 1);
        s4d_path_add(path, d->first_group + 2 * gb + 1, 1);
    }
    s4d_path_add(path, d->first_switch + 2 * sb + 1, 1);
}

static char *link_name(const struct s4d_cluster *c, int link)
{
    const struct dragonfly *d = c->fabric_state;
    int i = link - d->first_switch;
    if (i >= 0)
        return s4d_asprintf("group%d.switch%d.%s", i / 2 / d->switches, i / 2 % d->switches,
                            i % 2 ? "in" : "out");
    i = link - d->first_group;
    return s4d_asprintf("group%d.%s", i / 2, i % 2 ? "in" : "out");
}

const struct s4d_fabric_kind s4d_fabric_dragonfly = {
    .name = "dragonfly",
    .summary = "groups of all-to-all switches, adaptive routing: pooled local and global links",
    .parameter =
        {
            {"groups", "groups of the machine", 1, 1 << 16},
            {"nodes_per_group", "nodes of a group", 1, 1 << 20},
            {"switches_per_group", "switches of a group", 1, 1 << 16},
            {"switches_per_node", "different switches that a node's NICs go to", 1, 64},
            {"local_links_per_switch", "links of a switch to others of its group", 1, 1 << 16},
            {"global_links_per_group", "links of a group to all other groups", 1, 1 << 20},
            {"link_bandwidth_Bps", "of one link between switches, per direction", 1, 1e15},
        },
    .room = room,
    .create = create,
    .destroy = destroy,
    .route = route,
    .link_name = link_name,
};
