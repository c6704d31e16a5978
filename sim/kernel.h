/* SPDX-License-Identifier: Apache-2.0 */
/* How long one op takes on one device, alone. One rule a class of ops:
 *
 *     gemm       launch + max(2 m n k / rate + output bytes / output rate, traffic)
 *     attention  launch + max(FLOPs / rate(head_dim, causal, pass, seq), traffic)
 *     kernel     launch + traffic
 *     copy       launch + bytes / host bandwidth
 *     host       0: the loader works ahead of the devices
 *
 * Where the machine has measured them: a gemm launch + 2 m n k / rate(m, n, k, transposes), from
 * the table of shapes; a kind of kernel with a curve of its own launch + bytes / curve(bytes).
 *
 * Where fewer devices than a node has can compute at once (processes that share cores), all times
 * but the copies' are multiplied by devices in use / compute_units: the ranks of a program do the
 * same at the same time, so all of them compute while one does.
 *
 * traffic = bytes read and written / (memory bandwidth * part(bytes)). The first two rules are
 * fitted to measured kernels (the machine file names them); memory-bound kernels overlap nothing.
 * Attention FLOPs, as FlashAttention counts them (arXiv 2307.08691 sec. 4): 4 b heads s^2 head_dim
 * forward, half of it causal, the backward 2.5 times that (it computes the scores again). */
#ifndef S4D_SIM_KERNEL_H
#define S4D_SIM_KERNEL_H

#include "schedule/program.h"
#include "support/machine.h"

struct s4d_kernels {
    const struct s4d_machine *machine;
};

/* Whether the machine's rates are of the program's working type (options.precision), and its kinds
 * of kernels are ours. 0, or -1 (exit 65). */
int s4d_kernels_check(const struct s4d_kernels *k, const struct s4d_options *options,
                      struct s4d_error *err);

/* Seconds of a compute, copy or host op on a device of speed 1; not for collectives. */
double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op);
/* The part of its rate that computing keeps while a collective of this stream runs: inside one
 * node, or across nodes. */
double s4d_kernel_rate_beside(const struct s4d_kernels *k, bool across_nodes);

#endif
