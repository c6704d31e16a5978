/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a ring's channels visit the members.
 *
 * Inside a node one channel for each ring that the search finds. Across nodes as many channels as
 * the poorest node has members: channel c enters a node of m members at number (c + 1) mod m,
 * visits all in order and leaves at number c mod m through that member's NIC, so that every NIC
 * carries its share. Where neighbours in that order have no link of their own (the GCDs of an
 * MI250X node), members are visited along a ring that the search finds, from behind number c mod m
 * on; each channel in turn takes the ring that loads links and NICs least.
 */
#include <math.h>
#include <stdlib.h>

#include "sim/collective/channels.h"
#include "support/memory.h"

static double between_Bps(const struct s4d_node *node, int a, int b)
{
    double Bps = 0;
    for (int i = 0; i < node->n_links; i++)
        if ((node->link[i].a == a && node->link[i].b == b) ||
            (node->link[i].a == b && node->link[i].b == a))
            Bps += node->link[i].bricks * node->link[i].brick_bandwidth_Bps.value;
    return Bps;
}

/* The rings to visit n local devices along; NULL: their own order is as good as any. */
static const struct s4d_rings *rings_for(const struct s4d_cluster *c, const struct s4d_node *node,
                                         const int *local, int n)
{
    bool all = true;
    for (int i = 0; i < n && all && n > 2; i++)
        all = between_Bps(node, local[i], local[(i + 1) % n]) > 0;
    if (all || s4d_library_is_ideal(c->machine))
        return NULL;
    const struct s4d_rings *rings = s4d_rings_find(c, node, local, n);
    return rings->n_rings > 0 ? rings : NULL;
}

/* Where the ring has position p. */
static int find(const int *ring, int n, int p)
{
    int i = 0;
    while (i < n && ring[i] != p)
        i++;
    return i;
}

/* Channels that cross each link between members and enter through each NIC, over its capacity. */
struct loads {
    const struct s4d_node *node;
    const int *local;  /* the members' devices */
    const int *nic_of; /* the NIC of each */
    int m;
    double *link; /* from position i to j: link[i * m + j] */
    double *nic;  /* by number */
};

/* Puts a channel that leaves at position `last` on the ring; returns how much the sum of squares
 * grows. times: 1, or -1 to take it off again. */
static double put(struct loads *l, const int *ring, int last, double times)
{
    const struct s4d_node *node = l->node;
    int at = find(ring, l->m, last), first = ring[(at + 1) % l->m];
    double *nic = &l->nic[l->nic_of[first]];
    double step = times / node->nic_bandwidth_Bps.value, grows = -*nic * *nic;
    *nic += step;
    grows += *nic * *nic;
    for (int i = 1; i < l->m; i++) {
        int from = ring[(at + i) % l->m], to = ring[(at + i + 1) % l->m];
        double *link = &l->link[from * l->m + to];
        step = times / between_Bps(node, l->local[from], l->local[to]);
        grows -= *link * *link;
        *link += step;
        grows += *link * *link;
    }
    return grows;
}

/* For each channel the ring it takes in a node of m members: one after the other, the one that adds
 * least to the sum of squared loads. */
static void choose_rings(struct loads l, const struct s4d_rings *rings, int channels, int *chosen)
{
    int m = l.m;
    l.link = s4d_calloc((size_t)m * (size_t)m, sizeof *l.link);
    l.nic = s4d_calloc((size_t)l.node->n_nics, sizeof *l.nic);
    for (int channel = 0; channel < channels; channel++) {
        double least = INFINITY;
        for (int k = 0; k < rings->n_rings; k++) {
            int r = (channel + k) % rings->n_rings;
            const int *ring = rings->order + (size_t)r * (size_t)m;
            double grows = put(&l, ring, channel % m, 1);
            put(&l, ring, channel % m, -1);
            if (grows < least * (1 - 1e-9)) {
                least = grows;
                chosen[channel] = r;
            }
        }
        put(&l, rings->order + (size_t)chosen[channel] * (size_t)m, channel % m, 1);
    }
    free(l.link);
    free(l.nic);
}

/* Node k of the group in all channels; its part of a channel's order begins at `at`. */
static void visit_node(const struct s4d_cluster *c, const struct s4d_layout *layout, int k,
                       int channels, int members, int *order)
{
    int m = s4d_layout_count(layout, k), at = layout->first[k];
    int *local = s4d_malloc((size_t)m * sizeof *local);
    int *chosen = s4d_malloc((size_t)channels * sizeof *chosen);
    int *nic = s4d_malloc((size_t)m * sizeof *nic);
    for (int i = 0; i < m; i++) {
        local[i] = layout->member[at + i] % c->machine->node.devices;
        nic[i] = s4d_cluster_nic(c, layout->member[at + i]);
    }
    const struct s4d_node *node =
        s4d_cluster_node(c, layout->member[at] / c->machine->node.devices);
    const struct s4d_rings *rings = rings_for(c, node, local, m);
    if (rings)
        choose_rings((struct loads){.node = node, .local = local, .nic_of = nic, .m = m}, rings,
                     channels, chosen);
    for (int channel = 0; channel < channels; channel++)
        for (int i = 0; i < m; i++) {
            int number = channel + 1 + i;
            if (rings) {
                const int *ring = rings->order + (size_t)chosen[channel] * (size_t)m;
                number = ring[(find(ring, m, channel % m) + 1 + i) % m];
            }
            order[(size_t)channel * (size_t)members + (size_t)(at + i)] =
                s4d_layout_member(layout, k, number);
        }
    free(local);
    free(nic);
    free(chosen);
}

int *s4d_ring_orders(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                     int *channels)
{
    const struct s4d_rings *rings = layout->nodes == 1 ? s4d_layout_rings(c, layout) : NULL;
    *channels = layout->nodes == 1                 ? (rings ? rings->n_rings : 1)
                : s4d_library_is_ideal(c->machine) ? 1
                                                   : layout->fewest;
    int *order = s4d_malloc((size_t)*channels * (size_t)members * sizeof *order);
    if (layout->nodes > 1) {
        for (int k = 0; k < layout->nodes; k++)
            visit_node(c, layout, k, *channels, members, order);
        return order;
    }
    for (int i = 0; i < *channels * members; i++)
        order[i] = layout->member[rings ? rings->order[i] : i];
    return order;
}
