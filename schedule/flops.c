/* SPDX-License-Identifier: Apache-2.0 */
/* FLOP counts: the closed formulas of GPT, and sums over a program's ops. */
#include "schedule/flops.h"

double s4d_formula_flops(const struct s4d_model *model, int global_batch,
                         enum s4d_recompute recompute)
{
    double B = global_batch, s = model->seq_length, l = model->num_layers, h = model->hidden_size,
           V = model->vocab_size;
    double layers = B * s * l * h * h;
    switch (recompute) {
    case S4D_RECOMPUTE_FULL:
        return 96 * layers * (1 + s / (6 * h) + V / (16 * l * h));
    case S4D_RECOMPUTE_SELECTIVE:
        return 72 * layers * (1 + 2 * s / (9 * h) + V / (12 * l * h));
    case S4D_RECOMPUTE_NONE:
        break;
    }
    return 72 * layers * (1 + s / (6 * h) + V / (12 * l * h));
}

double s4d_program_model_flops(const struct s4d_program *program)
{
    double sum = 0;
    for (int i = 0; i < program->n_ops; i++)
        sum += program->ops[i].model_flops;
    return sum * s4d_grid_ranks(&program->grid);
}

double s4d_program_executed_flops(const struct s4d_program *program)
{
    double sum = 0;
    for (int i = 0; i < program->n_ops; i++)
        sum += program->ops[i].flops;
    return sum * s4d_grid_ranks(&program->grid);
}

int64_t s4d_program_parameters(const struct s4d_program *program)
{
    int64_t sum = 0;
    for (int i = 0; i < program->n_params; i++)
        sum += program->params[i].rows * s4d_param_cols(&program->params[i]);
    return sum;
}
