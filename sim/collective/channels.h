/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that algorithms share: a group's members by node, the search for rings inside a node, edges
 * and paths of channels. */
#ifndef S4D_SIM_COLLECTIVE_CHANNELS_H
#define S4D_SIM_COLLECTIVE_CHANNELS_H

#include "sim/collective.h"

/* The members of a group by node: nodes in the order of their first member, members in group order;
 * node k has member[first[k]] ... member[first[k + 1] - 1]. */
struct s4d_layout {
    int nodes, fewest; /* fewest: the smallest member count of a node */
    int *first, *member;
};
void s4d_layout_create(struct s4d_layout *layout, const struct s4d_cluster *c, const int *devices,
                       int n);
void s4d_layout_free(struct s4d_layout *layout);
int s4d_layout_count(const struct s4d_layout *layout, int node);
/* The member of a node with this number, taken modulo the node's member count. */
int s4d_layout_member(const struct s4d_layout *layout, int node, int number);

/* Rings of n members along direct links: ring r visits positions order[r * n] ... of the list of
 * members and returns to the first; each of its edges has `width` bricks of its own. */
struct s4d_rings {
    int n_rings, width, n;
    int *order;
};
/* The rings over n >= 2 local devices of a node with the largest n_rings * width, the widest rings
 * on ties; n_rings = 0 when no ring of direct links visits all of them. Exact for up to four
 * members, and for more until a fixed number of steps is spent (then the best found, which may be
 * none). */
void s4d_rings_search(struct s4d_rings *rings, const struct s4d_node *node, const int *local,
                      int n);
/* Of a group inside one node; NULL where there are none, or the library is ideal, which has one
 * plain channel. */
const struct s4d_rings *s4d_layout_rings(const struct s4d_cluster *c,
                                         const struct s4d_layout *layout);
void s4d_rings_free(struct s4d_rings *rings);

/* Rings that were searched before on this cluster. */
struct s4d_rings_cache *s4d_rings_cache_create(void);
void s4d_rings_cache_free(struct s4d_rings_cache *cache);
/* The rings over n >= 2 local devices of a node of the cluster; the cache keeps them. */
const struct s4d_rings *s4d_rings_find(const struct s4d_cluster *c, const struct s4d_node *node,
                                       const int *local, int n);

/* The order in which each of a ring's channels visits the group: channel i of *channels visits
 * devices order[i * members] and on, node after node. Returns the orders; caller frees. */
int *s4d_ring_orders(const struct s4d_cluster *c, const struct s4d_layout *layout, int members,
                     int *channels);

/* The double binary tree over n nodes: the parent of node i in the first tree, -1 for the root, and
 * what nodes are called in tree 0 or 1 of the pair. */
int s4d_tree_parent(int i, int n);
int s4d_tree_name(int i, int n, int tree);

/* n channels of equal shares with empty paths, and the group's shape. */
void s4d_channels_init(struct s4d_channels *ch, const struct s4d_algorithm *algorithm,
                       const struct s4d_layout *layout, int members, int n);
/* Ends of edges are devices; a switch of a node; and a device again as the leaf of a tree in which
 * it also has an inner place (S4D_LEAF of a leaf is the device). */
#define S4D_LEAF(device) (-1 - (device))
/* The switch with this number among the node's ends of links (its devices come first). */
int s4d_switch_end(const struct s4d_cluster *c, int node, int local);
/* The device of an end that is not a switch, in either place. */
int s4d_end_device(int end);
/* The way between two different ends, appended to path. On a fabric with rails it enters the second
 * one's node through the NIC of the number that it left the first one's through. */
void s4d_edge_path(const struct s4d_cluster *c, int from, int to, struct s4d_path *path);
/* Adds an edge and its path to a channel (nothing when the ends are the same); or both directions
 * of one in a tree. */
void s4d_channel_edge(struct s4d_channel *channel, const struct s4d_cluster *c, int from, int to);
void s4d_channel_both_ways(struct s4d_channel *channel, const struct s4d_cluster *c, int child,
                           int parent);
/* What the channels' paths need when nothing else runs, in seconds for each byte of the
 * collective's volume: the tightest link's share of it, over its capacity. */
double s4d_channels_s_per_B(const struct s4d_channels *ch, const struct s4d_cluster *c);

/* No constants, one channel: "ideal", "mpi". */
bool s4d_library_is_ideal(const struct s4d_machine *m);

#endif
