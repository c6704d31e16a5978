/* SPDX-License-Identifier: Apache-2.0 */
/* What the ring's shape and the choice need to know of sums made by the node's switch. */
#ifndef S4D_SIM_COLLECTIVE_NVLS_H
#define S4D_SIM_COLLECTIVE_NVLS_H

#include "sim/collective.h"

/* Seconds for each byte of an all-reduce that the paths take when nothing else runs; 0 where the
 * machine has no NVLS or the group cannot use it. */
double s4d_nvls_s_per_B(const struct s4d_cluster *c, const int *devices, int n);

/* The library's estimate for a group whose ring has this shape; infinity where it is not possible.
 */
double s4d_nvls_estimate_s(const struct s4d_machine *m, const struct s4d_channels *ring,
                           double bytes);

/* What one channel moves for one head at a time, of channel_B in all: less of small messages, so
 * that there is more than one chunk to follow another. */
double s4d_nvls_chunk_B(const struct s4d_channels *ch, double channel_B);

#endif
