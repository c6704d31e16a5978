/* SPDX-License-Identifier: Apache-2.0 */
/* SimGrid's own network zones, to hold our fabrics against. One zone in a process: SimGrid is a
 * singleton. Links are numbered in the order in which routes first cross them. */
#ifndef S4D_TESTS_ZONES_H
#define S4D_TESTS_ZONES_H

#ifdef __cplusplus
extern "C" {
#endif

/* levels numbers each: children of a node, parents of a node, cables between them. */
void zone_fat_tree(int levels, const unsigned *down, const unsigned *up, const unsigned *cables);
void zone_torus(int dimensions, const int *size);
/* One chassis a group: all switches of a group are joined. */
void zone_dragonfly(int groups, int switches, int hosts_per_switch);

/* The links from host a to host b, in order; returns how many (at most 64). */
int zone_route(int a, int b, int links[64]);

#ifdef __cplusplus
}
#endif
#endif
