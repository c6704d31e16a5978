/* SPDX-License-Identifier: Apache-2.0 */
/* A closed-form estimate of an iteration, good enough to say which grids are worth simulating. */
#ifndef S4D_SIM_ESTIMATE_H
#define S4D_SIM_ESTIMATE_H

#include "schedule/model.h"
#include "schedule/options.h"
#include "sim/simulate.h"

/* Seconds of an iteration. The communication model is that of arXiv 2502.08145 sec. V-B (its terms
 * t_AG,z, t_RS,z, t_AR,y, t_AR,x and t_AR,data, each with the bandwidth of its axis: the node's
 * links for a group inside a node, else the node's NICs shared by the groups that run side by
 * side), plus latency times group size a call. Computing is the formula's FLOPs at the machine's
 * sustained GEMM rate. Communication that an overlap option hides counts only beyond the computing
 * it hides behind. micro_batch 0: the largest that a rough count of activations lets into the
 * memory. */
double s4d_estimate_s(const struct s4d_simulation *s, const struct s4d_grid *grid);

/* Bytes a device cannot do without: its shard of master weights, two moments and gradients. Never
 * more than the program's persistent storages, which have 16-bit weights beside them. */
double s4d_least_memory_bytes(const struct s4d_model *model, const struct s4d_grid *grid,
                              const struct s4d_options *options);

#endif
