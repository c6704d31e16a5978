/* SPDX-License-Identifier: Apache-2.0 */
/* How long one op takes on one device, alone. */
#ifndef S4D_SIM_KERNEL_H
#define S4D_SIM_KERNEL_H

#include "schedule/program.h"
#include "support/machine.h"

struct s4d_kernels {
    const struct s4d_machine *machine;
};

/* Seconds of a compute, copy or host op on a device of speed 1; not for collectives. */
double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op);
/* The part of its rate that computing keeps while a collective of this stream runs: inside one
 * node, or across nodes. */
double s4d_kernel_rate_beside(const struct s4d_kernels *k, bool across_nodes);

#endif
