/* SPDX-License-Identifier: Apache-2.0 */
/* How fast computing and communicating go on all of a machine, as parts of what its model says: the
 * same machine on a worse night.
 *
 * Of computing: an op of the class takes 1 / part of its time, launch included. Of a stream's
 * collectives: a call alone takes 1 / part of its time, so that its bus bandwidth is that part of
 * what it was: latency and volume are divided by the part, the library's choice of algorithm and
 * protocol stays. All ranks and groups are treated alike, so that folding is as exact as without.
 */
#ifndef S4D_SIM_RATES_H
#define S4D_SIM_RATES_H

#include "schedule/program.h" /* for: S4D_STREAMS, S4D_CLASS_HOST */

struct s4d_rates {
    double op_class[S4D_CLASS_HOST + 1]; /* enum s4d_op_class; of those that compute */
    double stream[S4D_STREAMS];          /* of those that communicate */
};

enum { S4D_RATE_NAMES = 12 };
/* gemm, attention, kernel (a class each), compute (the three); x, y, z-gather, z-scatter, data,
 * z-data, x-y-z (a stream each), z (the two of z). */
extern const char *const s4d_rate_names[S4D_RATE_NAMES];

void s4d_rates_plain(struct s4d_rates *r); /* 1 each */
bool s4d_rates_know(const char *name);
/* Multiplies what the name stands for. */
void s4d_rates_apply(struct s4d_rates *r, const char *name, double part);

#endif
