/* SPDX-License-Identifier: Apache-2.0 */
/* Latency of algorithms that the library's own rule does not know: a base, and a hop for each step.
 */
#ifndef S4D_SIM_COLLECTIVE_STEPS_H
#define S4D_SIM_COLLECTIVE_STEPS_H

#include "sim/collective.h"

/* in_node steps inside nodes and across steps between them, with the library's Simple ring: its
 * base and hops; of an ideal library the latencies of node and fabric. */
double s4d_steps_s(const struct s4d_machine *m, double in_node, double across);

/* A cost without a protocol's loss. */
struct s4d_cost s4d_steps_cost(const struct s4d_machine *m, double in_node, double across,
                               double volume_B);

#endif
