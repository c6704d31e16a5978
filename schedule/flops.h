/* SPDX-License-Identifier: Apache-2.0 */
/* FLOP counts of an iteration, by formula and by a program's ops. */
#ifndef S4D_SCHEDULE_FLOPS_H
#define S4D_SCHEDULE_FLOPS_H

#include "schedule/program.h"

/* Of the whole iteration on all ranks. For a GPT with ffn = 4 h (arXiv 2104.04473 eq. 3; 2205.05198
 * for the other two):
 *
 *     full       96 B s l h^2 (1 +  s/6h + V/16lh)
 *     selective  72 B s l h^2 (1 + 2s/9h + V/12lh)
 *     none       72 B s l h^2 (1 +  s/6h + V/12lh)
 *
 * For every other shape (the papers have no form for them) the matrix products of its layer kinds,
 * forward once and backward twice, and what recompute repeats: the per-op sum by the model, which
 * the GPT forms are equal to as well. */
double s4d_formula_flops(const struct s4d_model *model, int global_batch,
                         enum s4d_recompute recompute);

/* The form that was taken: one of the three, or "sum over the program's ops". */
const char *s4d_formula_name(const struct s4d_model *model, enum s4d_recompute recompute);

/* Summed over a program's ops times ranks: by the model, and as executed. */
double s4d_program_model_flops(const struct s4d_program *program);
double s4d_program_executed_flops(const struct s4d_program *program);

/* Parameters of the whole model, as held (tied weights once, padding not counted). */
int64_t s4d_program_parameters(const struct s4d_program *program);

#endif
