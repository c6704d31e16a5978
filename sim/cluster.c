/* SPDX-License-Identifier: Apache-2.0 */
/* Links of a cluster, in this order: for each node its device pairs (both directions of link 0, of
 * link 1, ...) and its NICs (out and in of NIC 0, ...); then the fabric's. All nodes are alike, so
 * ways inside a node are found once, by sim/node.c, and again for each node that lost links. */
#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h"
#include "sim/fabric.h"
#include "sim/node.h"
#include "sim/spare.h"
#include "support/memory.h"

int s4d_cluster_add_link(struct s4d_cluster *c, double capacity_Bps, const char *kind)
{
    struct s4d_link link = {capacity_Bps, kind};
    s4d_push(c->links, c->n_links, c->cap_links, link);
    return c->n_links - 1;
}

int s4d_cluster_room(const struct s4d_cluster *c, int64_t links, struct s4d_error *err)
{
    enum { MOST_LINKS = 1 << 27 };
    if (c->n_links + links <= MOST_LINKS)
        return 0;
    return s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                    "%d nodes of it have %lld links, the most that can be simulated are %d",
                    c->n_nodes, (long long)(c->n_links + links), MOST_LINKS);
}

bool s4d_link_is_dead(const struct s4d_cluster *c, int link)
{
    return c->links[link].capacity_Bps == 0;
}

static void add_node_links(struct s4d_cluster *c)
{
    const struct s4d_node *node = &c->machine->node;
    for (int i = 0; i < node->n_links; i++) {
        double capacity = node->link[i].bricks * node->link[i].brick_bandwidth_Bps.value;
        s4d_cluster_add_link(c, capacity, "node");
        s4d_cluster_add_link(c, capacity, "node");
    }
    for (int i = 0; i < node->n_nics; i++) {
        s4d_cluster_add_link(c, node->nic_bandwidth_Bps.value, "nic-out");
        s4d_cluster_add_link(c, node->nic_bandwidth_Bps.value, "nic-in");
    }
}

static int links_per_node(const struct s4d_node *node)
{
    return 2 * (node->n_links + node->n_nics);
}

int s4d_cluster_create(struct s4d_cluster *c, const struct s4d_machine *machine, int n_nodes,
                       struct s4d_error *err)
{
    *c = (struct s4d_cluster){.machine = machine, .n_nodes = n_nodes};
    S4D_ASSERT(n_nodes >= 1, "a cluster of %d nodes", n_nodes);
    if (n_nodes > machine->fabric.nodes) {
        s4d_fail(err, S4D_EXIT_DATA, machine->name,
                 "has %d nodes of %d devices, asked for %d nodes", machine->fabric.nodes,
                 machine->node.devices, n_nodes);
        return s4d_hint(err, "at most %ld GPUs",
                        (long)machine->fabric.nodes * machine->node.devices);
    }
    if (s4d_fabric_check(machine, err) ||
        s4d_cluster_room(c, (int64_t)n_nodes * links_per_node(&machine->node), err))
        return -1;
    c->node_state =
        s4d_node_routes_create(&machine->node, machine->fabric.nodes > 1, machine->name, err);
    if (!c->node_state)
        return -1;
    c->rings = s4d_rings_cache_create();
    c->feeders = s4d_feeders_create();
    c->n_devices = n_nodes * machine->node.devices;
    for (int i = 0; i < n_nodes; i++)
        add_node_links(c);
    c->device_speed = s4d_malloc((size_t)c->n_devices * sizeof *c->device_speed);
    for (int i = 0; i < c->n_devices; i++)
        c->device_speed[i] = 1;
    s4d_rates_plain(&c->rates);
    c->fabric = s4d_fabric_find(machine->fabric.topology);
    if (c->fabric->create(c, err)) {
        s4d_cluster_destroy(c);
        return -1;
    }
    return 0;
}

void s4d_cluster_destroy(struct s4d_cluster *c)
{
    if (c->fabric && c->fabric->destroy)
        c->fabric->destroy(c);
    s4d_node_routes_free(c->node_state);
    for (int i = 0; i < c->n_altered; i++) {
        s4d_node_routes_free(c->altered[i].routes);
        free(c->altered[i].node.link);
        free(c->altered[i].node.nic);
    }
    free(c->altered);
    free(c->altered_of);
    free(c->fault);
    free((int *)c->node_of);
    s4d_rings_cache_free(c->rings);
    s4d_feeders_free(c->feeders);
    free(c->links);
    free(c->device_speed);
    *c = (struct s4d_cluster){0};
}

int s4d_links_per_node(const struct s4d_cluster *c)
{
    return links_per_node(&c->machine->node);
}

char *s4d_node_name(const struct s4d_cluster *c, int node)
{
    if (c->fabric->node_name)
        return s4d_strdup(c->fabric->node_name(c, node));
    return s4d_asprintf("n%d", node);
}

char *s4d_device_name(const struct s4d_cluster *c, int device)
{
    int per = c->machine->node.devices;
    return s4d_asprintf("n%d.gpu%d", device / per, device % per);
}

char *s4d_link_name(const struct s4d_cluster *c, int link)
{
    const struct s4d_node *node = &c->machine->node;
    int per_node = links_per_node(node);
    S4D_ASSERT(link >= 0 && link < c->n_links, "link %d of %d", link, c->n_links);
    if (link >= c->n_nodes * per_node)
        return c->fabric->link_name(c, link);
    int n = link / per_node, local = link % per_node, pair = local / 2;
    if (pair >= node->n_links)
        return s4d_asprintf("n%d.nic%d.%s", n, pair - node->n_links, local % 2 ? "in" : "out");
    const struct s4d_node_link *l = &node->link[pair];
    int ends[2] = {local % 2 ? l->b : l->a, local % 2 ? l->a : l->b};
    char text[2][24];
    for (int i = 0; i < 2; i++)
        if (ends[i] < node->devices)
            snprintf(text[i], sizeof text[i], "gpu%d", ends[i]);
        else
            snprintf(text[i], sizeof text[i], "switch%d", ends[i] - node->devices);
    return s4d_asprintf("n%d.%s->%s", n, text[0], text[1]);
}

void s4d_path_add(struct s4d_path *path, int link, int weight)
{
    if (path->n == path->cap) {
        int cap = path->cap;
        path->link = s4d_grow(path->link, &cap, sizeof *path->link);
        path->weight = s4d_grow(path->weight, &path->cap, sizeof *path->weight);
    }
    path->link[path->n] = link;
    path->weight[path->n++] = weight;
}

static int by_link(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

void s4d_path_merge(struct s4d_path *path)
{
    int(*pair)[2] = s4d_malloc((size_t)(path->n + 1) * sizeof *pair);
    for (int i = 0; i < path->n; i++) {
        pair[i][0] = path->link[i];
        pair[i][1] = path->weight[i];
    }
    qsort(pair, (size_t)path->n, sizeof *pair, by_link);
    int n = 0;
    for (int i = 0; i < path->n; i++) {
        if (n > 0 && path->link[n - 1] == pair[i][0]) {
            path->weight[n - 1] += pair[i][1];
        } else {
            path->link[n] = pair[i][0];
            path->weight[n++] = pair[i][1];
        }
    }
    path->n = n;
    free(pair);
}

void s4d_path_free(struct s4d_path *path)
{
    free(path->link);
    free(path->weight);
    *path = (struct s4d_path){0};
}

const struct s4d_node *s4d_cluster_node(const struct s4d_cluster *c, int node)
{
    int altered = c->altered_of ? c->altered_of[node] : -1;
    return altered < 0 ? &c->machine->node : &c->altered[altered].node;
}

static const struct s4d_node_routes *routes_of(const struct s4d_cluster *c, int node)
{
    int altered = c->altered_of ? c->altered_of[node] : -1;
    return altered < 0 ? c->node_state : c->altered[altered].routes;
}

void s4d_cluster_route_in_node(const struct s4d_cluster *c, int n, int from, int to,
                               struct s4d_path *path)
{
    const int *hop;
    int hops = s4d_node_route(routes_of(c, n), from, to, &hop);
    int base = n * links_per_node(&c->machine->node);
    for (int i = 0; i < hops; i++)
        s4d_path_add(path, base + hop[i], 1);
}

void s4d_cluster_place(struct s4d_cluster *c, int *nodes, int n)
{
    free((int *)c->node_of);
    c->node_of = nodes;
    c->n_used = n;
}

/* Whether one of the node's own links is dead, 0 or 1 for each direction. */
static bool is_altered(const struct s4d_cluster *c, int node)
{
    int per_node = links_per_node(&c->machine->node);
    for (int i = 0; i < per_node; i++)
        if (s4d_link_is_dead(c, node * per_node + i))
            return true;
    return false;
}

/* The node without what is dead, in one direction or both. */
static int alter(struct s4d_cluster *c, int number, bool needs_nic, struct s4d_error *err)
{
    const struct s4d_node *node = &c->machine->node;
    const struct s4d_link *link = &c->links[number * links_per_node(node)];
    struct s4d_altered *a = &c->altered[c->n_altered];
    c->altered_of[number] = c->n_altered++;
    *a = (struct s4d_altered){.node = *node};
    a->node.link = s4d_malloc(((size_t)node->n_links + 1) * sizeof *node->link);
    a->node.nic = s4d_malloc(((size_t)node->n_nics + 1) * sizeof *node->nic);
    for (int i = 0; i < node->n_links; i++, link += 2) {
        a->node.link[i] = node->link[i];
        if (link[0].capacity_Bps == 0 || link[1].capacity_Bps == 0)
            a->node.link[i].bricks = 0;
    }
    for (int i = 0; i < node->n_nics; i++, link += 2) {
        a->node.nic[i] = node->nic[i];
        if (link[0].capacity_Bps == 0 || link[1].capacity_Bps == 0)
            a->node.nic[i].device = -1;
    }
    char *name = s4d_node_name(c, number);
    a->routes = s4d_node_routes_create(&a->node, needs_nic, name, err);
    free(name);
    return a->routes ? 0 : -1;
}

int s4d_cluster_settle(struct s4d_cluster *c, struct s4d_error *err)
{
    int used = c->node_of ? c->n_used : c->n_nodes;
    c->fault = s4d_realloc(c->fault, sizeof *c->fault);
    *c->fault = (struct s4d_fault){.found = false};
    c->altered_of = s4d_malloc((size_t)c->n_nodes * sizeof *c->altered_of);
    memset(c->altered_of, -1, (size_t)c->n_nodes * sizeof *c->altered_of);
    for (int i = 0; i < used; i++) {
        int node = c->node_of ? c->node_of[i] : i;
        if (!is_altered(c, node))
            continue;
        c->altered = s4d_realloc(c->altered, ((size_t)c->n_altered + 1) * sizeof *c->altered);
        if (alter(c, node, used > 1, err))
            return -1;
    }
    return 0;
}

/* Remembers the first way over a dead link: links from path->link[begin]. */
static void note_dead(const struct s4d_cluster *c, int a, int b, const struct s4d_path *path,
                      int begin)
{
    for (int i = begin; i < path->n && !c->fault->found; i++)
        if (s4d_link_is_dead(c, path->link[i]))
            *c->fault = (struct s4d_fault){true, a, b, path->link[i]};
}

int s4d_cluster_check_ways(const struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_fault *f = c->fault;
    if (!f || !f->found)
        return 0;
    if (f->link < 0) {
        char *from = s4d_node_name(c, f->a / c->machine->node.devices),
             *to = s4d_node_name(c, f->b / c->machine->node.devices);
        s4d_fail(err, S4D_EXIT_DATA, c->machine->file, "no way from %s to %s", from, to);
        free(from);
        free(to);
        return -1;
    }
    char *a = s4d_device_name(c, f->a), *b = s4d_device_name(c, f->b),
         *link = s4d_link_name(c, f->link);
    s4d_fail(err, S4D_EXIT_DATA, c->machine->name, "no way from %s to %s: %s is dead", a, b, link);
    free(a);
    free(b);
    free(link);
    return s4d_hint(err,
                    "a %s has no other way here; part of the bandwidth, as 0.5, slows a link "
                    "instead",
                    c->fabric->name);
}

void s4d_cluster_route_via(const struct s4d_cluster *c, int a, int out, int b, int in,
                           struct s4d_path *path, double *latency_s)
{
    const struct s4d_node *node = &c->machine->node;
    int per = node->devices, na = a / per, nb = b / per;
    S4D_ASSERT(a != b && a >= 0 && b >= 0 && a < c->n_devices && b < c->n_devices,
               "route %d to %d of %d devices", a, b, c->n_devices);
    if (na == nb) {
        s4d_cluster_route_in_node(c, na, a % per, b % per, path);
        *latency_s = node->latency_s.value;
        return;
    }
    int begin = path->n;
    int nic_a = s4d_node_nic(routes_of(c, na), out % per),
        nic_b = s4d_node_nic(routes_of(c, nb), in % per);
    int nics = 2 * node->n_links, per_node = links_per_node(node);
    s4d_cluster_route_in_node(c, na, a % per, node->nic[nic_a].device, path);
    int leaf_out = na * per_node + nics + 2 * nic_a, leaf_in = nb * per_node + nics + 2 * nic_b + 1;
    s4d_path_add(path, leaf_out, 1);
    int behind = path->n;
    c->fabric->route(c, na * node->n_nics + nic_a, nb * node->n_nics + nic_b, path);
    s4d_feeders_note(c, leaf_out, leaf_in, path->link + behind, path->n - behind);
    s4d_path_add(path, leaf_in, 1);
    s4d_cluster_route_in_node(c, nb, node->nic[nic_b].device, b % per, path);
    if (c->fault)
        note_dead(c, a, b, path, begin);
    *latency_s = c->fabric->latency_s
                     ? c->fabric->latency_s(c, na * node->n_nics + nic_a, nb * node->n_nics + nic_b)
                     : c->machine->fabric.latency_s.value;
}

void s4d_cluster_route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path,
                       double *latency_s)
{
    s4d_cluster_route_via(c, a, a, b, b, path, latency_s);
}

int s4d_cluster_nic(const struct s4d_cluster *c, int a)
{
    int per = c->machine->node.devices;
    return s4d_node_nic(routes_of(c, a / per), a % per);
}

int s4d_device_on_rail(const struct s4d_cluster *c, int a)
{
    const struct s4d_node *node = &c->machine->node;
    int nic = s4d_node_nic(routes_of(c, a / node->devices), a % node->devices);
    for (int i = 0; i < node->devices && nic >= 0; i++)
        if (s4d_node_nic(c->node_state, i) == nic)
            return i;
    return a % node->devices;
}

int s4d_device_of_rank(const struct s4d_cluster *c, int rank)
{
    const struct s4d_node *node = &c->machine->node;
    int job_node = rank / node->devices;
    S4D_ASSERT(!c->node_of || job_node < c->n_used, "rank %d on %d nodes", rank, c->n_used);
    return (c->node_of ? c->node_of[job_node] : job_node) * node->devices +
           node->rank_to_device[rank % node->devices];
}
