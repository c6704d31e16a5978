/* SPDX-License-Identifier: Apache-2.0 */
/* Links of the fabric that can never be the limit, whatever flows run at once. Max-min rates do not
 * depend on them, so folding need not tell apart what differs in them alone.
 *
 * A cover of link L is a set S of other links such that every flow crosses the links of S together
 * at least as often as L: w(f, L) <= sum over S of w(f, M). Then, whatever the rates r,
 *
 *     load(L) = sum_f w(f, L) r(f) <= sum_S load(M) <= sum_S capacity(M).
 *
 * If the last sum is at most L's capacity, rates that respect S respect L: L is spare. The feasible
 * rates are the same without it, and max-min fair rates are a function of the set of feasible rates
 * (the one whose sorted vector is largest), so they are the same too. Covers are made of NICs,
 * which are never spare themselves, so all spare links may be left out together.
 *
 * The cover that is tried is the natural one: what enters L has come out of a NIC, and what leaves
 * it goes into one. The NICs are noted while ways are found; that they do cover L is then checked
 * flow by flow. */
#ifndef S4D_SIM_SPARE_H
#define S4D_SIM_SPARE_H

#include "sim/cluster.h"

/* A flow crosses a link of the cluster. */
struct s4d_crossing {
    int flow, link, weight;
};

struct s4d_feeders *s4d_feeders_create(void);
void s4d_feeders_free(struct s4d_feeders *f);
/* Forgets what was noted; notes from now on, or no longer. */
void s4d_feeders_watch(const struct s4d_cluster *c, bool on);
/* A way between nodes comes out of NIC link `out`, crosses n links of the fabric and goes into NIC
 * link `in`; for the cluster. */
void s4d_feeders_note(const struct s4d_cluster *c, int out, int in, const int *links, int n);

/* spare[link of the cluster], from what was noted while the crossings' ways were found. Crossings
 * in the order of flows. Returns how many. */
int s4d_spare_links(const struct s4d_cluster *c, const struct s4d_crossing *crossings, int n,
                    int n_flows, bool *spare);

#endif
