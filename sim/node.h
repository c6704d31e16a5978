/* SPDX-License-Identifier: Apache-2.0 */
/* Ways inside one node: which of its links lead from a device to another, and which NIC a device
 * uses. Local links: 2i is link i of the machine from its a to its b, 2i + 1 the way back. */
#ifndef S4D_SIM_NODE_H
#define S4D_SIM_NODE_H

#include <stdbool.h>

#include "support/machine.h" /* for: struct s4d_node */

struct s4d_node_routes;

/* NULL with *err (exit 65): a device that no link reaches, or without a way to a NIC where the
 * machine has several nodes. machine: its name, for the message. */
struct s4d_node_routes *s4d_node_routes_create(const struct s4d_node *node, bool needs_nic,
                                               const char *machine, struct s4d_error *err);
void s4d_node_routes_free(struct s4d_node_routes *r);

/* The fewest links from one local device or switch to another, among those the ones whose narrowest
 * is the widest, then the lowest numbers. Returns how many; *links is valid while r is. */
int s4d_node_route(const struct s4d_node_routes *r, int from, int to, const int **links);
/* The NIC a local device uses: that of the fewest links away (its own, of none), of several the
 * first; of several on switches the one that fewest devices of lower numbers use. */
int s4d_node_nic(const struct s4d_node_routes *r, int device);

#endif
