/* SPDX-License-Identifier: Apache-2.0 */
/* The link classes of a partition, and which of them the engine needs.
 *
 * The partition holds the links that may limit a flow. Links that never do (sim/spare.h) are put
 * into classes afterwards, by what they carry of each flow class, so that their use can be told.
 *
 * A class A is dominated by another, B, if every flow class loads B at least as much, for its
 * capacity, as A: w(f, A) / C(A) <= w(f, B) / C(B). B is full no later than A, whatever runs, so A
 * limits nothing that B does not. The engine is given neither. */
#ifndef S4D_SIM_LINK_CLASSES_H
#define S4D_SIM_LINK_CLASSES_H

#include "sim/full.h"

/* How much of a flow class one link of a link class carries. */
struct s4d_load {
    int flow, link, weight; /* classes, counted from 0 for flows and for links */
};
struct s4d_link_classes {
    struct s4d_link_class *link; /* those that limit first; of either kind by lowest member */
    int n, n_limiting;
    int *class_of_link;    /* by link of the cluster; -1: no flow crosses it */
    struct s4d_load *load; /* ascending links */
    int n_loads;
};

/* class_of: by node of f, numbered by lowest member; flow classes begin at first_flow, link classes
 * at first_link, and n_classes is the number of all. drop: leave out what is dominated. */
void s4d_link_classes_make(struct s4d_link_classes *l, const struct s4d_full *f,
                           const struct s4d_cluster *c, const int *class_of, int first_flow,
                           int first_link, int n_classes, bool drop);

#endif
