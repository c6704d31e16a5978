/* SPDX-License-Identifier: Apache-2.0 */
/* What the probes of ops and of collectives share. */
#ifndef S4D_REAL_PROBE_PARTS_H
#define S4D_REAL_PROBE_PARTS_H

#include "real/probe.h"

enum { S4D_PROBE_ALIGN = 256 }; /* bytes between operands, as between storages of a plan */

/* Fills what was given to ops with their contents, so that none gets slow on what others left. */
int s4d_probe_refill(struct s4d_probe *p, struct s4d_error *err);
/* To the device, as an executor would of an op of that class; -1 (exit 70): it cannot be timed. */
int s4d_probe_enqueue(struct s4d_device *d, const struct s4d_call *call, struct s4d_error *err);
/* Seconds of `repeats` calls in a row, on the stream of the first. */
int s4d_probe_time(struct s4d_device *d, const struct s4d_call *calls, int repeats, double *t_s,
                   struct s4d_error *err);
/* Samples of one more attempt, if they are better than those that *result holds. */
void s4d_probe_keep(struct s4d_probed *result, const struct s4d_statistics *t);

#endif
