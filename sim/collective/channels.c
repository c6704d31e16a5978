/* SPDX-License-Identifier: Apache-2.0 */
/* Members by node, edges and paths of channels. */
#include "sim/collective/channels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fabric.h"
#include "support/memory.h"

void s4d_layout_create(struct s4d_layout *layout, const struct s4d_cluster *c, const int *devices,
                       int n)
{
    int per = c->machine->node.devices, nodes = 0;
    int *number = s4d_malloc((size_t)c->n_nodes * sizeof *number); /* of a node in the group */
    memset(number, -1, (size_t)c->n_nodes * sizeof *number);
    int *count = s4d_calloc((size_t)n, sizeof *count);
    for (int i = 0; i < n; i++) {
        int node = devices[i] / per;
        if (number[node] < 0)
            number[node] = nodes++;
        count[number[node]]++;
    }
    layout->nodes = nodes;
    layout->fewest = n;
    layout->first = s4d_malloc((size_t)(nodes + 1) * sizeof(int));
    layout->member = s4d_malloc((size_t)n * sizeof(int));
    layout->first[0] = 0;
    for (int k = 0; k < nodes; k++) {
        layout->first[k + 1] = layout->first[k] + count[k];
        layout->fewest = count[k] < layout->fewest ? count[k] : layout->fewest;
        count[k] = 0;
    }
    for (int i = 0; i < n; i++) {
        int k = number[devices[i] / per];
        layout->member[layout->first[k] + count[k]++] = devices[i];
    }
    free(number);
    free(count);
}

void s4d_layout_free(struct s4d_layout *layout)
{
    free(layout->first);
    free(layout->member);
    *layout = (struct s4d_layout){0};
}

int s4d_layout_count(const struct s4d_layout *layout, int node)
{
    return layout->first[node + 1] - layout->first[node];
}

int s4d_layout_member(const struct s4d_layout *layout, int node, int number)
{
    return layout->member[layout->first[node] + number % s4d_layout_count(layout, node)];
}

const struct s4d_rings *s4d_layout_rings(const struct s4d_cluster *c,
                                         const struct s4d_layout *layout)
{
    int n = s4d_layout_count(layout, 0);
    if (s4d_library_is_ideal(c->machine))
        return NULL;
    int *local = s4d_malloc((size_t)n * sizeof *local);
    for (int i = 0; i < n; i++)
        local[i] = layout->member[i] % c->machine->node.devices;
    int node = layout->member[0] / c->machine->node.devices;
    const struct s4d_rings *rings = s4d_rings_find(c, s4d_cluster_node(c, node), local, n);
    free(local);
    return rings->n_rings > 0 ? rings : NULL;
}

void s4d_channels_init(struct s4d_channels *ch, const struct s4d_algorithm *algorithm,
                       const struct s4d_layout *layout, int members, int n)
{
    *ch = (struct s4d_channels){.algorithm = algorithm,
                                .n = n,
                                .members = members,
                                .nodes = layout->nodes,
                                .members_per_node = layout->fewest};
    ch->channel = s4d_calloc((size_t)n, sizeof *ch->channel);
    for (int i = 0; i < n; i++)
        ch->channel[i].share = 1.0 / n;
}

int s4d_switch_end(const struct s4d_cluster *c, int node, int local)
{
    const struct s4d_node *n = &c->machine->node;
    return c->n_devices + node * n->switches + local - n->devices;
}

int s4d_end_device(int end)
{
    return end < 0 ? S4D_LEAF(end) : end;
}

/* The node of a device or switch, and its number there. */
static int place(const struct s4d_cluster *c, int end, int *local)
{
    const struct s4d_node *n = &c->machine->node;
    if (end < c->n_devices) {
        *local = end % n->devices;
        return end / n->devices;
    }
    *local = n->devices + (end - c->n_devices) % n->switches;
    return (end - c->n_devices) / n->switches;
}

void s4d_edge_path(const struct s4d_cluster *c, int from, int to, struct s4d_path *path)
{
    double latency_s; /* steps are paid by the library's rule, not by the links' */
    int a = s4d_end_device(from), b = s4d_end_device(to), local_a, local_b;
    if (a >= c->n_devices || b >= c->n_devices) {
        int node = place(c, a, &local_a);
        place(c, b, &local_b);
        s4d_cluster_route_in_node(c, node, local_a, local_b, path);
    } else if (c->fabric->rails) {
        s4d_cluster_route_via(c, a, a, b, s4d_device_on_rail(c, a), path, &latency_s);
    } else {
        s4d_cluster_route(c, a, b, path, &latency_s);
    }
}

static void add_edge(struct s4d_channel *channel, const struct s4d_cluster *c, int from, int to,
                     bool down)
{
    S4D_ASSERT(from != to, "an edge from %d to itself", from);
    s4d_edge_path(c, from, to, &channel->path);
    s4d_push(channel->edge, channel->n_edges, channel->cap_edges,
             (struct s4d_edge){from, to, down});
}

void s4d_channel_edge(struct s4d_channel *channel, const struct s4d_cluster *c, int from, int to)
{
    if (from != to)
        add_edge(channel, c, from, to, false);
}

void s4d_channel_both_ways(struct s4d_channel *channel, const struct s4d_cluster *c, int child,
                           int parent)
{
    add_edge(channel, c, child, parent, false);
    add_edge(channel, c, parent, child, true);
}

struct load {
    int link, weight;
};

static int by_link(const void *a, const void *b)
{
    const struct load *x = a, *y = b;
    return (x->link > y->link) - (x->link < y->link);
}

/* All shares are equal, so whole multiplicities are added: the sum does not depend on the order. */
double s4d_channels_s_per_B(const struct s4d_channels *ch, const struct s4d_cluster *c)
{
    int n = 0;
    for (int i = 0; i < ch->n; i++)
        n += ch->channel[i].path.n;
    struct load *load = s4d_malloc((size_t)(n + 1) * sizeof *load);
    n = 0;
    for (int i = 0; i < ch->n; i++)
        for (int k = 0; k < ch->channel[i].path.n; k++)
            load[n++] = (struct load){ch->channel[i].path.link[k], ch->channel[i].path.weight[k]};
    qsort(load, (size_t)n, sizeof *load, by_link);
    double tightest = 0;
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum = load[i].weight + (i > 0 && load[i].link == load[i - 1].link ? sum : 0);
        tightest = fmax(tightest, sum / c->links[load[i].link].capacity_Bps);
    }
    free(load);
    return tightest / ch->n;
}

bool s4d_library_is_ideal(const struct s4d_machine *m)
{
    return strcmp(m->library.name, "ideal") == 0 || strcmp(m->library.name, "mpi") == 0;
}
