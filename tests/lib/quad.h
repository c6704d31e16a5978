/* SPDX-License-Identifier: Apache-2.0 */
/* Machines for tests of collectives. */
#ifndef S4D_TESTS_QUAD_H
#define S4D_TESTS_QUAD_H

#include "sim/collective.h"

/* Loads a machine that must exist. */
void load_machine(struct s4d_machine *m, const char *line);

/* Nodes of four devices, four links of 20 GB/s between each pair and a NIC of 25 GB/s each, on a
 * single switch; NCCL's constants for Ampere (facts of NCCL 2.30.7), no efficiency tables. */
void load_quad(struct s4d_machine *m, int nodes);

/* The shape, without the channels, of the group of the n devices 0, stride, 2 stride, ... on the
 * quad. */
struct s4d_channels quad_shape(const struct s4d_machine *m, const struct s4d_algorithm *a, int n,
                               int stride);

#endif
