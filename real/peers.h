/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that measure together, without saying how they talk. */
#ifndef S4D_REAL_PEERS_H
#define S4D_REAL_PEERS_H

#include <stdbool.h>

struct s4d_peers {
    int rank, size;
    int local; /* of this rank, among those of its node */
    /* Ranks of a node that may compute at the same time at full speed: those whose local number is
     * below do, while the others sleep. */
    int active;
    bool oversubscribed; /* some node has more ranks than can */
    void *self;
    /* All three are collective, and whoever waits in them leaves the processor to others. */
    void (*barrier)(void *self);
    void (*sum)(void *self, double *values, int n); /* over the ranks, to every rank */
    void (*maximum)(void *self, double *values, int n);
};

#endif
