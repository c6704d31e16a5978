/* SPDX-License-Identifier: Apache-2.0 */
/* Colour refinement: the coarsest equitable partition of a graph (Paige and Tarjan, SIAM J. Comput.
 * 16, 1987, state the problem; here by hashing neighbour colours, then verified exactly). */
#ifndef S4D_SIM_REFINE_H
#define S4D_SIM_REFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "support/error.h"

enum { S4D_KEY_WORDS = 3 };

/* An undirected graph: every edge is listed at both its ends, an edge between two nodes once. */
struct s4d_graph {
    int n;
    const int *start, *to, *weight; /* edges of node v: start[v] .. start[v + 1] - 1 */
    const bool *totals;             /* by node, what equal nodes have in common: true, the total
                                       weight to each class of neighbours; false, the set of
                                       (class of neighbour, weight) */
    const uint64_t *key;            /* S4D_KEY_WORDS a node: nodes of a class have equal keys */
};

/* class_of[v] for every node, classes numbered by their lowest member; returns how many. Relies on
 * 64-bit hashes: s4d_equitable tells whether it may be used. Time grows with edges times the number
 * of rounds in which their ends change class, not with the number of classes. */
int s4d_refine(const struct s4d_graph *g, int *class_of);

/* Whether nodes of a class have equal keys and the same neighbours in the sense of `totals`,
 * compared exactly. 0, or -1 (exit 70) with the two nodes that differ. */
int s4d_equitable(const struct s4d_graph *g, const int *class_of, int n_classes,
                  struct s4d_error *err);

#endif
