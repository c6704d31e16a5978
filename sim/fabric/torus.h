/* SPDX-License-Identifier: Apache-2.0 */
/* A router for every node in up to three dimensions, each joined to its neighbours: what the torus
 * and the ring share. Router r is at x = r mod X, y = r / X mod Y, z = r / X / Y. */
#ifndef S4D_SIM_FABRIC_TORUS_H
#define S4D_SIM_FABRIC_TORUS_H

#include "sim/fabric.h"

/* Adds the links of X * Y * Z routers, link_Bps each way, and sets c->fabric_state. 0, or -1 (exit
 * 65): too many. */
int s4d_torus_create(struct s4d_cluster *c, const int size[3], bool wrapped, double link_Bps,
                     struct s4d_error *err);
void s4d_torus_destroy(struct s4d_cluster *c);
/* As in struct s4d_fabric_kind. */
void s4d_torus_route(const struct s4d_cluster *c, int a, int b, struct s4d_path *path);
char *s4d_torus_link_name(const struct s4d_cluster *c, int link);

#endif
