/* SPDX-License-Identifier: Apache-2.0 */
/* One grid's simulation: what runs in a child process. */
#ifndef S4D_SIM_SIMULATE_ONE_H
#define S4D_SIM_SIMULATE_ONE_H

#include "sim/simulate.h"

/* Whether the machine's fabric and kernels are whole, and hold the job. 0, or -1: as s4d_simulate.
 */
int s4d_simulation_check(const struct s4d_simulation *s, struct s4d_error *err);

/* Plans the memory of the grid and builds its program (not itself planned); with micro_batch 0 the
 * largest divisor that fits the device's memory. *result gets grid, micro-batches, memory and
 * FLOPs. 0 (free the program), or -1: does not divide (64), too large (65, err->where is
 * s4d_memory_fault). */
int s4d_plan_grid(const struct s4d_simulation *s, const struct s4d_grid *grid,
                  struct s4d_program *program, struct s4d_result *result, struct s4d_error *err);
extern const char *const s4d_memory_fault;

/* Plans and executes (message by message, and nothing else, where s->stepwise); one engine per
 * process (sim/engine.h), so only in a child. */
int s4d_simulate_one(const struct s4d_simulation *s, const struct s4d_grid *grid,
                     struct s4d_result *result, struct s4d_error *err);

#endif
