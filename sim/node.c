/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/node.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "support/memory.h"

struct s4d_node_routes {
    int vertices; /* devices, then switches */
    int *start;   /* of the way from i to j in hop: start[i * vertices + j], one more at the end */
    int *hop;
    int n_hops, cap_hops;
    int *nic; /* by device */
};

/* Widest of the shortest ways from one device to all, as the link each device is reached over. */
struct reach {
    int hops;     /* -1: not reached */
    double width; /* of the narrowest link of the way */
    int via;      /* the last local link of it */
};

static double capacity(const struct s4d_node_link *l)
{
    return l->bricks * l->brick_bandwidth_Bps.value;
}

static int link_from(const struct s4d_node_link *link, int local)
{
    return local % 2 ? link->b : link->a;
}

/* Extends the ways of `hops` links by one link each; whether any device was reached anew. */
static bool extend(const struct s4d_node *node, struct reach *reach, int hops)
{
    bool found = false;
    for (int local = 0; local < 2 * node->n_links; local++) {
        const struct s4d_node_link *link = &node->link[local / 2];
        int from = link_from(link, local), to = link_from(link, local + 1);
        if (reach[from].hops != hops || link->bricks == 0)
            continue;
        double width = fmin(reach[from].width, capacity(link));
        bool fresh = reach[to].hops < 0;
        if (fresh || (reach[to].hops == hops + 1 && width > reach[to].width)) {
            reach[to] = (struct reach){hops + 1, width, local};
            found = true;
        }
    }
    return found;
}

static void search(const struct s4d_node *node, int from, struct reach *reach)
{
    for (int i = 0; i < node->devices + node->switches; i++)
        reach[i] = (struct reach){-1, 0, -1};
    reach[from] = (struct reach){0, INFINITY, -1};
    for (int hops = 0; extend(node, reach, hops); hops++)
        ;
}

static void store(struct s4d_node_routes *r, const struct s4d_node *node, const struct reach *reach,
                  int to)
{
    int n = reach[to].hops, first = r->n_hops;
    for (int i = 0; i < n; i++)
        s4d_push(r->hop, r->n_hops, r->cap_hops, -1);
    for (int i = n - 1; i >= 0; i--) {
        int local = reach[to].via;
        r->hop[first + i] = local;
        to = link_from(&node->link[local / 2], local);
    }
}

/* The nearest NIC, of several the first; of those on switches the one that fewest devices before
 * use. -1: none. */
static int nearest_nic(const struct s4d_node *node, const struct reach *reach, const int *users)
{
    int best = -1;
    for (int i = 0; i < node->n_nics; i++) {
        if (node->nic[i].device < 0) /* dead */
            continue;
        int hops = reach[node->nic[i].device].hops;
        int least = best < 0 ? INT_MAX : reach[node->nic[best].device].hops;
        if (hops >= 0 && (hops < least || (hops == least && node->nic[i].device >= node->devices &&
                                           users[i] < users[best])))
            best = i;
    }
    return best;
}

/* Ways from `from` to all others; switches may be out of reach. */
static int fill_from(struct s4d_node_routes *r, const struct s4d_node *node,
                     const struct reach *reach, int from, const char *machine,
                     struct s4d_error *err)
{
    for (int to = 0; to < r->vertices; to++) {
        if (reach[to].hops < 0 && from < node->devices && to < node->devices)
            return s4d_fail(err, S4D_EXIT_DATA, machine,
                            "no link of the node leads from device %d to device %d", from, to);
        r->start[from * r->vertices + to] = r->n_hops;
        if (reach[to].hops > 0)
            store(r, node, reach, to);
    }
    return 0;
}

static int fill(struct s4d_node_routes *r, const struct s4d_node *node, struct reach *reach,
                bool needs_nic, const char *machine, struct s4d_error *err)
{
    int *users = s4d_calloc((size_t)node->n_nics + 1, sizeof *users), rc = 0;
    for (int i = 0; i < r->vertices && rc == 0; i++) {
        search(node, i, reach);
        rc = fill_from(r, node, reach, i, machine, err);
        if (rc != 0 || i >= node->devices)
            continue;
        r->nic[i] = nearest_nic(node, reach, users);
        if (r->nic[i] >= 0)
            users[r->nic[i]]++;
        else if (needs_nic)
            rc = s4d_fail(err, S4D_EXIT_DATA, machine,
                          "device %d of a node reaches no NIC, and the machine has several nodes",
                          i);
    }
    r->start[r->vertices * r->vertices] = r->n_hops;
    free(users);
    return rc;
}

struct s4d_node_routes *s4d_node_routes_create(const struct s4d_node *node, bool needs_nic,
                                               const char *machine, struct s4d_error *err)
{
    struct s4d_node_routes *r = s4d_calloc(1, sizeof *r);
    r->vertices = node->devices + node->switches;
    struct reach *reach = s4d_malloc((size_t)r->vertices * sizeof *reach);
    r->start = s4d_calloc((size_t)r->vertices * (size_t)r->vertices + 1, sizeof *r->start);
    r->nic = s4d_calloc((size_t)node->devices, sizeof *r->nic);
    if (fill(r, node, reach, needs_nic, machine, err)) {
        s4d_node_routes_free(r);
        r = NULL;
    }
    free(reach);
    return r;
}

void s4d_node_routes_free(struct s4d_node_routes *r)
{
    if (!r)
        return;
    free(r->start);
    free(r->hop);
    free(r->nic);
    free(r);
}

int s4d_node_route(const struct s4d_node_routes *r, int from, int to, const int **links)
{
    const int *start = &r->start[from * r->vertices + to];
    *links = r->hop ? r->hop + start[0] : NULL; /* a node of one device has no ways */
    return start[1] - start[0];
}

int s4d_node_nic(const struct s4d_node_routes *r, int device)
{
    return r->nic[device];
}
