/* SPDX-License-Identifier: Apache-2.0 */
/* The node that an NCCL topology file describes: who is which device or switch, and the links. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "support/machine_fields.h"
#include "support/memory.h"
#include "support/nccl_topology_parts.h"

/* A node under construction. */
struct building {
    struct s4d_nccl_reading *r;
    struct s4d_node *node;
    struct s4d_node_link link[MOST_NVLINKS + MOST_VERTICES + MOST_CPUS * MOST_CPUS];
    int n_links;
    double Bps[MOST_NVLINKS + MOST_VERTICES + MOST_CPUS * MOST_CPUS];
};

static void add_link(struct building *b, int from, int to, int bricks, double brick_Bps)
{
    for (int i = 0; i < b->n_links; i++) /* several NVSwitches are one */
        if (b->link[i].a == from && b->link[i].b == to && b->Bps[i] == brick_Bps) {
            b->link[i].bricks += bricks;
            return;
        }
    b->link[b->n_links] = (struct s4d_node_link){.a = from, .b = to, .bricks = bricks};
    b->Bps[b->n_links++] = brick_Bps;
}

static int by_dev(const void *a, const void *b)
{
    const struct gpu *x = a, *y = b;
    return x->dev != y->dev ? (x->dev > y->dev) - (x->dev < y->dev) : x->vertex - y->vertex;
}

/* GPUs by their dev, then everything else that leads somewhere. */
static void number_vertices(struct building *b)
{
    struct s4d_nccl_reading *r = b->r;
    int *link_gpu = s4d_malloc(sizeof(int) * (MOST_GPUS + 1)); /* the file's order to ours */
    struct gpu sorted[MOST_GPUS];
    memcpy(sorted, r->gpu, sizeof sorted);
    qsort(sorted, (size_t)r->n_gpus, sizeof *sorted, by_dev);
    for (int i = 0; i < r->n_gpus; i++) {
        link_gpu[r->vertex[sorted[i].vertex].gpu] = i;
        r->vertex[sorted[i].vertex].number = i;
    }
    for (int i = 0; i < r->n_gpus; i++)
        r->vertex[sorted[i].vertex].gpu = i;
    for (int i = 0; i < r->n_nvlinks; i++)
        r->nvlink[i].gpu = link_gpu[r->nvlink[i].gpu];
    memcpy(r->gpu, sorted, sizeof sorted);
    free(link_gpu);
    for (int v = 0; v < r->n_vertices; v++)
        if (r->vertex[v].number < 0)
            r->vertex[v].number = r->n_gpus + b->node->switches++;
}

static int find_busid(const struct s4d_nccl_reading *r, const char *busid)
{
    for (int v = 0; v < r->n_vertices; v++)
        if (strcasecmp(r->vertex[v].busid, busid) == 0)
            return v;
    return -1;
}

static int cpu_of(const struct s4d_nccl_reading *r, int v)
{
    while (r->vertex[v].parent >= 0)
        v = r->vertex[v].parent;
    return v;
}

/* NVLinks that GPU `from` says it has to GPU `to`. */
static int count_to(const struct s4d_nccl_reading *r, int from, const char *busid)
{
    int count = 0;
    for (int i = 0; i < r->n_nvlinks; i++)
        if (r->nvlink[i].gpu == from && strcasecmp(r->nvlink[i].target, busid) == 0)
            count += r->nvlink[i].count;
    return count;
}

static void add_peer(struct building *b, const struct nvlink *link, double Bps)
{
    struct s4d_nccl_reading *r = b->r;
    int to = find_busid(r, link->target);
    const struct gpu *from = &r->gpu[link->gpu];
    const char *own = r->vertex[from->vertex].busid;
    if (to < 0 || r->vertex[to].gpu < 0 || to == from->vertex) {
        s4d_nccl_fail(r, link->line, "target: no other GPU has this busid");
        return;
    }
    int there = count_to(r, link->gpu, link->target), back = count_to(r, r->vertex[to].gpu, own);
    if (there != back) {
        s4d_nccl_fail(r, link->line, "count: the other GPU lists another number of NVLinks back");
        return;
    }
    if (link->gpu < r->vertex[to].gpu)
        add_link(b, link->gpu, r->vertex[to].gpu, link->count, Bps);
}

/* topo.h, ncclTopoNVLinkBw. */
static double nvlink_Bps(int sm)
{
    return (sm >= 100  ? 40.1
            : sm >= 90 ? 20.6
            : sm == 86 ? 12
            : sm >= 70 ? 20
            : sm >= 60 ? 18
                       : 20) *
           1e9;
}

static void add_nvlinks(struct building *b)
{
    struct s4d_nccl_reading *r = b->r;
    int nvswitch = -1;
    for (int i = 0; i < r->n_nvlinks && !r->failed; i++) {
        const struct nvlink *link = &r->nvlink[i];
        double Bps = nvlink_Bps(r->gpu[link->gpu].sm);
        if (strncmp(link->tclass, "0x03", 4) == 0) {
            add_peer(b, link, Bps);
        } else if (strncmp(link->tclass, "0x0680", 6) == 0) {
            if (nvswitch < 0)
                nvswitch = r->n_gpus + b->node->switches++;
            add_link(b, link->gpu, nvswitch, link->count, Bps);
        } else {
            int cpu = cpu_of(r, r->gpu[link->gpu].vertex);
            add_link(b, link->gpu, r->vertex[cpu].number, link->count, Bps);
        }
    }
}

static void add_tree(struct building *b)
{
    struct s4d_nccl_reading *r = b->r;
    for (int v = 0; v < r->n_vertices; v++)
        if (r->vertex[v].parent >= 0)
            add_link(b, r->vertex[v].number, r->vertex[r->vertex[v].parent].number, 1,
                     r->vertex[v].up_Bps);
    for (int v = 0; v < r->n_vertices; v++) /* every two processors */
        for (int w = 0; w < v; w++)
            if (r->vertex[v].parent < 0 && r->vertex[w].parent < 0)
                add_link(b, r->vertex[w].number, r->vertex[v].number, 1, r->vertex[v].cpu_Bps);
}

/* Links by their bandwidth: those of one are a kind. */
static void take_links(struct building *b, const char *source)
{
    struct s4d_node *node = b->node;
    int kind = 0;
    node->link = s4d_calloc((size_t)b->n_links + 1, sizeof *node->link);
    for (int i = 0; i < b->n_links; i++) {
        if (b->link[i].kind < 0)
            continue;
        double Bps = b->Bps[i];
        for (int j = i; j < b->n_links; j++) {
            if (b->link[j].kind < 0 || b->Bps[j] != Bps)
                continue;
            struct s4d_node_link *link = &node->link[node->n_links++];
            *link = b->link[j];
            link->kind = kind;
            s4d_quantity_set(&link->brick_bandwidth_Bps, Bps, S4D_TAG_READ, source);
            b->link[j].kind = -1;
        }
        kind++;
    }
}

static void take_ports(struct building *b, const char *source)
{
    struct s4d_nccl_reading *r = b->r;
    struct s4d_node *node = b->node;
    double fastest = 0;
    int slower = 0;
    for (int i = 0; i < r->n_ports; i++)
        fastest = r->port[i].Bps > fastest ? r->port[i].Bps : fastest;
    node->nic = s4d_calloc((size_t)r->n_ports + 1, sizeof *node->nic);
    for (int i = 0; i < r->n_ports; i++) {
        if (r->port[i].Bps == fastest)
            node->nic[node->n_nics++].device = r->vertex[r->port[i].vertex].number;
        else
            slower++;
    }
    if (slower > 0)
        s4d_warn("%s: %d network port%s slower than the fastest left out", r->file, slower,
                 slower == 1 ? "" : "s");
    if (fastest > 0)
        s4d_quantity_set(&node->nic_bandwidth_Bps, fastest, S4D_TAG_READ, source);
}

/* By the ranks in the file, where every GPU has one of 0, 1, ...; else in order. */
static void take_ranks(struct building *b)
{
    const struct s4d_nccl_reading *r = b->r;
    int n = r->n_gpus;
    int *map = s4d_malloc((size_t)n * sizeof *map);
    bool whole = true;
    for (int i = 0; i < n; i++)
        map[i] = -1;
    for (int i = 0; i < n && whole; i++) {
        whole = r->gpu[i].rank >= 0 && r->gpu[i].rank < n && map[r->gpu[i].rank] < 0;
        if (whole)
            map[r->gpu[i].rank] = i;
    }
    for (int i = 0; i < n && !whole; i++)
        map[i] = i;
    b->node->rank_to_device = map;
}

int s4d_nccl_build(struct s4d_machine *m, struct s4d_nccl_reading *r)
{
    if (r->n_gpus == 0)
        return s4d_fail(r->err, S4D_EXIT_DATA, r->file, "no GPU in this topology");
    struct building *b = s4d_calloc(1, sizeof *b);
    char *source = s4d_asprintf("%s, by NCCL's table (src/graph/topo.h)", r->file);
    s4d_node_clear(&m->node);
    b->r = r;
    b->node = &m->node;
    b->node->devices = r->n_gpus;
    number_vertices(b);
    add_nvlinks(b);
    add_tree(b);
    if (!r->failed) {
        take_links(b, source);
        take_ports(b, source);
    }
    take_ranks(b);
    b->node->layout = (struct s4d_origin){S4D_TAG_READ, s4d_strdup(r->file)};
    free(source);
    free(b);
    return r->failed ? -1 : 0;
}
