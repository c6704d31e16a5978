/* SPDX-License-Identifier: Apache-2.0 */
/* From model, grid and options to a program. */
#ifndef S4D_SCHEDULE_BUILD_H
#define S4D_SCHEDULE_BUILD_H

#include "schedule/program.h"

/* Whether model, grid and options fit together: every divisibility, with a message that names the
 * option and the nearest values that fit. 0, or -1 (exit 64). */
int s4d_divides(const struct s4d_model *model, const struct s4d_grid *grid,
                const struct s4d_options *options, struct s4d_error *err);

/* Builds the iteration's program, waits included; the memory plan is s4d_plan's. 0, or -1 with *err
 * as s4d_divides. Free with s4d_program_free. */
int s4d_build(struct s4d_program *program, const struct s4d_model *model,
              const struct s4d_grid *grid, const struct s4d_options *options,
              struct s4d_error *err);

/* The same list of ops without positions and waits, for those who only count. */
int s4d_build_list(struct s4d_program *program, const struct s4d_model *model,
                   const struct s4d_grid *grid, const struct s4d_options *options,
                   struct s4d_error *err);

/* The most micro-batches of an iteration that a program of this model may have. */
int s4d_most_micro_batches(const struct s4d_model *model);
/* The most sequences of a micro-batch: beyond, bytes would not fit 64 bits. */
int s4d_largest_micro_batch(const struct s4d_model *model);

#endif
