/* SPDX-License-Identifier: Apache-2.0 */
/* Dragonfly (Kim et al., ISCA 2008; Slingshot, arXiv 2008.08886): groups of switches, all-to-all
 * inside a group, every pair of groups joined. Nodes are placed in order, a group at a time.
 *
 * adaptive (default): spreads traffic packet by packet over whatever is free, so links that it
 * spreads over are pooled: a switch's links to the other switches of its group are one link out and
 * one in, and a group's global links are one out and one in. A way crosses same switch:  nothing
 *     same group:   local out of a's switch, local in of b's
 *     other group:  local out of a's switch, global out of a's group, global in of b's group,
 *                   local in of b's switch.
 * Detours over a third group are what fills the pool of a pair that talks alone; the capacity they
 * take from that group is not charged, so the model is an upper bound for one pair and exact for
 * traffic spread evenly over all groups.
 *
 * minimal: the shortest way alone. Two switches of a group share local_links_per_switch / (switches
 * - 1) links, pooled. Of the n = floor(global_links_per_group / (groups - 1)) bundles between
 * groups g and h, bundle k joins switch (h n + k) mod switches of g to switch (g n + k) mod
 * switches of h, and the destination's switch chooses k. A way is: local to that switch, the
 * bundle, local to the destination's switch. A dead bundle is replaced by the next of the pair, a
 * dead local link by two over a third switch. With one bundle a pair, this is SimGrid's dragonfly
 * of one chassis a group. */
#include <math.h>
#include <stdlib.h>

#include "sim/fabric.h"
#include "support/memory.h"

enum { ADAPTIVE, MINIMAL };
static const char *const routings[] = {"adaptive", "minimal", NULL};

struct dragonfly {
    bool minimal;
    int nodes_per_group, switches, spread; /* switches of a group; those a node's NICs go to */
    int first_group, first_switch;         /* link index of group 0's out, switch 0's out; minimal:
                                              of the first bundle, of the first local link */
    int groups, bundles;                   /* minimal: those in use, those of a pair */
};

static int parameter(const struct s4d_machine *m, const char *key)
{
    return (int)s4d_fabric_value(m, key);
}

static double room(const struct s4d_machine *m)
{
    return s4d_fabric_value(m, "groups") * s4d_fabric_value(m, "nodes_per_group");
}

static void add_pooled(struct s4d_cluster *c, struct dragonfly *d, double local_Bps,
                       double global_Bps)
{
    d->first_group = c->n_links;
    for (int g = 0; g < d->groups; g++) {
        s4d_cluster_add_link(c, global_Bps, "group-out");
        s4d_cluster_add_link(c, global_Bps, "group-in");
    }
    d->first_switch = c->n_links;
    for (int s = 0; s < d->groups * d->switches; s++) {
        s4d_cluster_add_link(c, local_Bps, "switch-out");
        s4d_cluster_add_link(c, local_Bps, "switch-in");
    }
}

static int bundles(const struct s4d_machine *m)
{
    int pairs = parameter(m, "groups") - 1, global = parameter(m, "global_links_per_group");
    return pairs > 0 && global > pairs ? global / pairs : 1;
}

/* Bundle k from group g to h is link first_group + (g groups + h) bundles + k, the local link from
 * switch s (counted over all groups) to switch t of its group first_switch + s switches + t. */
static void add_single(struct s4d_cluster *c, struct dragonfly *d, double local_Bps,
                       double global_Bps)
{
    int pairs = parameter(c->machine, "groups") - 1;
    d->bundles = bundles(c->machine);
    d->first_group = c->n_links;
    for (int i = 0; i < d->groups * d->groups * d->bundles; i++)
        s4d_cluster_add_link(c, global_Bps / fmax(1, (double)pairs * d->bundles), "global");
    d->first_switch = c->n_links;
    for (int i = 0; i < d->groups * d->switches * d->switches; i++)
        s4d_cluster_add_link(c, local_Bps / fmax(1, d->switches - 1), "local");
}

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_machine *m = c->machine;
    double link_Bps = s4d_fabric_value(m, "link_bandwidth_Bps");
    struct dragonfly d = {.minimal = s4d_fabric_value(m, "routing") == MINIMAL,
                          .nodes_per_group = parameter(m, "nodes_per_group"),
                          .switches = parameter(m, "switches_per_group"),
                          .spread = parameter(m, "switches_per_node")};
    if (d.switches % d.spread != 0)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "fabric.switches_per_group: %d is no multiple of switches_per_node, %d",
                        d.switches, d.spread);
    d.groups = (c->n_nodes - 1) / d.nodes_per_group + 1;
    int64_t groups = d.groups, links = 2 * groups * (1 + d.switches);
    if (d.minimal)
        links = groups * ((int64_t)d.switches * d.switches + groups * bundles(m));
    if (s4d_cluster_room(c, links, err))
        return -1;
    (d.minimal ? add_single : add_pooled)(c, &d,
                                          link_Bps * s4d_fabric_value(m, "local_links_per_switch"),
                                          link_Bps * s4d_fabric_value(m, "global_links_per_group"));
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

static int local_link(const struct dragonfly *d, int s, int t)
{
    return d->first_switch + s * d->switches + t % d->switches;
}

/* From switch s to switch t of its group, over a third where that link is dead. */
static void add_local(const struct s4d_cluster *c, const struct dragonfly *d, int s, int t,
                      struct s4d_path *path)
{
    int first = s / d->switches * d->switches;
    if (s == t)
        return;
    for (int u = first; s4d_link_is_dead(c, local_link(d, s, t)) && u < first + d->switches; u++) {
        if (u == s || u == t || s4d_link_is_dead(c, local_link(d, s, u)) ||
            s4d_link_is_dead(c, local_link(d, u, t)))
            continue;
        s4d_path_add(path, local_link(d, s, u), 1);
        s4d_path_add(path, local_link(d, u, t), 1);
        return;
    }
    s4d_path_add(path, local_link(d, s, t), 1);
}

static void route_minimal(const struct s4d_cluster *c, const struct dragonfly *d, int sa, int sb,
                          struct s4d_path *path)
{
    int ga = sa / d->switches, gb = sb / d->switches, n = d->bundles;
    if (ga == gb) {
        add_local(c, d, sa, sb, path);
        return;
    }
    int k = sb % n, bundles = d->first_group + (ga * d->groups + gb) * n;
    for (int try = 1; try < n && s4d_link_is_dead(c, bundles + k); try++)
        k = (sb + try) % n;
    add_local(c, d, sa, ga * d->switches + (gb * n + k) % d->switches, path);
    s4d_path_add(path, bundles + k, 1);
    add_local(c, d, gb * d->switches + (ga * n + k) % d->switches, sb, path);
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    const struct dragonfly *d = c->fabric_state;
    int sa = switch_of(c, d, a), sb = switch_of(c, d, b);
    if (sa == sb)
        return;
    if (d->minimal) {
        route_minimal(c, d, sa, sb, path);
        return;
    }
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
    int i = link - d->first_switch, n = d->switches;
    if (d->minimal && i >= 0)
        return s4d_asprintf("group%d.switch%d->switch%d", i / n / n, i / n % n, i % n);
    if (i >= 0)
        return s4d_asprintf("group%d.switch%d.%s", i / 2 / d->switches, i / 2 % d->switches,
                            i % 2 ? "in" : "out");
    i = link - d->first_group;
    n = d->bundles;
    if (d->minimal)
        return s4d_asprintf("group%d->group%d.%d", i / n / d->groups, i / n % d->groups, i % n);
    return s4d_asprintf("group%d.%s", i / 2, i % 2 ? "in" : "out");
}

const struct s4d_fabric_kind s4d_fabric_dragonfly = {
    .name = "dragonfly",
    .summary = "groups of all-to-all switches, adaptive (pooled links) or minimal routing",
    .description =
        "Kim et al. 2008; Slingshot. adaptive: a switch's links to its group are one pooled link "
        "out "
        "and one in, a group's global links too; detours over third groups take nothing from them. "
        "minimal: links on their own and the shortest way, by the destination.",
    .example = "topology=dragonfly,groups=8,nodes_per_group=8,switches_per_group=8,"
               "switches_per_node=1,local_links_per_switch=7,global_links_per_group=28,"
               "link_bandwidth_Bps=25GB/s",
    .parameter =
        {
            S4D_REQUIRED("groups", "groups of the machine", 1, 1 << 16),
            S4D_REQUIRED("nodes_per_group", "nodes of a group", 1, 1 << 20),
            S4D_REQUIRED("switches_per_group", "switches of a group", 1, 1 << 16),
            S4D_REQUIRED("switches_per_node", "different switches that a node's NICs go to", 1, 64),
            S4D_REQUIRED("local_links_per_switch", "links of a switch to others of its group", 1,
                         1 << 16),
            S4D_REQUIRED("global_links_per_group", "links of a group to all other groups", 1,
                         1 << 20),
            S4D_REQUIRED("link_bandwidth_Bps", "of one link between switches, per direction", 1,
                         1e15),
            S4D_WORD("routing", "adaptive: links pooled; minimal: the shortest way alone",
                     routings),
        },
    .room = room,
    .create = create,
    .destroy = destroy,
    .route = route,
    .link_name = link_name,
};
