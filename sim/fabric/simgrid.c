/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a SimGrid platform file: a host of it is a node, whose NICs all hang on it.
 * Routes, bandwidths and latencies are those that SimGrid gives (Host::route_to); sharing is ours,
 * max-min without SimGrid's bandwidth and latency factors.
 *
 * A FATPIPE link gives every flow its bandwidth: here every host that sends over it has one of its
 * own, which is the same for one flow a host and less for several. Routes are asked for when first
 * needed and kept. */
#include <stdlib.h>

#include <uthash.h>

#include "sim/fabric.h"
#include "sim/platform.h"
#include "sim/platform_child.h"
#include "support/memory.h"

struct way {
    int64_t key; /* host a * hosts + host b */
    int n, *link;
    double latency_s;
    UT_hash_handle hh;
};

struct simgrid {
    struct s4d_platform *platform;
    struct way *ways;
    int first; /* link index of the platform's link 0, then 1, ... */
    int *own;  /* by platform link: of a FATPIPE its copy for host 0, then host 1, ...; else -1 */
};

static int create(struct s4d_cluster *c, struct s4d_error *err)
{
    const struct s4d_fabric *f = &c->machine->fabric;
    if (!f->file) {
        s4d_fail(err, S4D_EXIT_DATA, c->machine->name,
                 "the topology simgrid needs a platform file");
        return s4d_hint(err, "--machine platform.xml --device MACHINE");
    }
    struct s4d_platform *p = s4d_platform_open(f->file, f->hosts, err);
    if (!p)
        return -1;
    struct simgrid *s = s4d_calloc(1, sizeof *s);
    *s = (struct simgrid){.platform = p, .first = c->n_links};
    c->fabric_state = s;
    c->fault = s4d_calloc(1, sizeof *c->fault);
    int64_t links = p->n_links;
    for (int i = 0; i < p->n_links; i++)
        links += p->link[i].shared ? 0 : p->n_hosts;
    if (s4d_cluster_room(c, links, err))
        return -1;
    s->own = s4d_malloc(((size_t)p->n_links + 1) * sizeof *s->own);
    for (int i = 0; i < p->n_links; i++) {
        s4d_cluster_add_link(c, p->link[i].bandwidth_Bps, "platform");
        s->own[i] = -1;
    }
    for (int i = 0; i < p->n_links; i++) {
        if (p->link[i].shared)
            continue;
        s->own[i] = c->n_links;
        for (int host = 0; host < p->n_hosts; host++)
            s4d_cluster_add_link(c, p->link[i].bandwidth_Bps, "fatpipe");
    }
    return 0;
}

static void destroy(struct s4d_cluster *c)
{
    struct simgrid *s = c->fabric_state;
    struct way *way, *next;
    if (!s)
        return;
    HASH_ITER(hh, s->ways, way, next)
    {
        HASH_DEL(s->ways, way);
        free(way->link);
        free(way);
    }
    s4d_platform_close(s->platform);
    free(s->own);
    free(s);
}

/* The way from host a to host b; without a route, n = 0. */
static const struct way *find(struct simgrid *s, int a, int b)
{
    struct way *way;
    int64_t key = (int64_t)a * s->platform->n_hosts + b;
    HASH_FIND(hh, s->ways, &key, sizeof key, way);
    if (way)
        return way;
    int links[S4D_PLATFORM_LINKS];
    way = s4d_calloc(1, sizeof *way);
    way->key = key;
    int n = s4d_platform_route(s->platform, a, b, links, S4D_PLATFORM_LINKS, &way->latency_s);
    way->n = n > 0 ? n : 0;
    way->link = s4d_malloc((size_t)way->n * sizeof *way->link + 1);
    for (int i = 0; i < way->n; i++)
        way->link[i] = s->own[links[i]] < 0 ? s->first + links[i] : s->own[links[i]] + a;
    HASH_ADD(hh, s->ways, key, sizeof key, way);
    return way;
}

static void route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path)
{
    int nics = c->machine->node.n_nics;
    const struct way *way = find(c->fabric_state, a / nics, b / nics);
    if (way->n == 0 && !c->fault->found)
        *c->fault = (struct s4d_fault){true, a / nics * c->machine->node.devices,
                                       b / nics * c->machine->node.devices, -1};
    for (int i = 0; i < way->n; i++)
        s4d_path_add(path, way->link[i], 1);
}

static double latency_s(const struct s4d_cluster *c, int a, int b)
{
    int nics = c->machine->node.n_nics;
    return find(c->fabric_state, a / nics, b / nics)->latency_s;
}

static const char *node_name(const struct s4d_cluster *c, int node)
{
    const struct simgrid *s = c->fabric_state;
    return s->platform->host[node];
}

static char *link_name(const struct s4d_cluster *c, int link)
{
    const struct simgrid *s = c->fabric_state;
    const struct s4d_platform *p = s->platform;
    if (link < s->first + p->n_links)
        return s4d_asprintf("net.%s", p->link[link - s->first].name);
    int copy = link - s->first - p->n_links, i = -1;
    for (int k = 0; k < p->n_links; k++)
        if (s->own[k] >= 0 && s->own[k] <= link)
            i = k;
    return s4d_asprintf("net.%s@%s", p->link[i].name, p->host[copy % p->n_hosts]);
}

const struct s4d_fabric_kind s4d_fabric_simgrid = {
    .name = "simgrid",
    .summary = "the network of a SimGrid platform file (XML)",
    .description =
        "Given as --machine FILE.xml --device MACHINE: hosts of the platform (--platform-hosts) "
        "are "
        "nodes of MACHINE, all NICs of a node hang on its host, links and routes are as SimGrid "
        "reads them. A FATPIPE link is one link for each host that sends over it.",
    .create = create,
    .destroy = destroy,
    .route = route,
    .latency_s = latency_s,
    .node_name = node_name,
    .link_name = link_name,
};
