/* SPDX-License-Identifier: Apache-2.0 */
/* FLOP counts: the closed formulas of GPT, and sums over a program's ops. */
#include "schedule/flops.h"

#include "schedule/layer.h"

static double forward_flops(const struct s4d_model *m, const char *kind)
{
    const struct s4d_layer_kind *k = s4d_layer_kind_find(kind);
    S4D_ASSERT(k, "layer kind %s", kind);
    return k->forward_flops(m);
}

/* Four h x h matrices' worth of attention and eight of MLP, as GPT has. */
static bool is_gpt(const struct s4d_model *m)
{
    double s = m->seq_length, h = m->hidden_size;
    return forward_flops(m, m->attention) == 8 * s * h * h + 4 * s * s * h &&
           forward_flops(m, m->mlp) == 16 * s * h * h;
}

const char *s4d_formula_name(const struct s4d_model *model, enum s4d_recompute recompute)
{
    if (!is_gpt(model))
        return "sum over the program's ops";
    switch (recompute) {
    case S4D_RECOMPUTE_FULL:
        return "96 B s l h^2 (1 + s/6h + V/16lh)";
    case S4D_RECOMPUTE_SELECTIVE:
        return "72 B s l h^2 (1 + 2s/9h + V/12lh)";
    case S4D_RECOMPUTE_NONE:
        break;
    }
    return "72 B s l h^2 (1 + s/6h + V/12lh)";
}

static double layer_sum(const struct s4d_model *m, int global_batch, enum s4d_recompute recompute)
{
    double s = m->seq_length, attention = forward_flops(m, m->attention);
    double layer = attention + forward_flops(m, m->mlp), again = 0;
    if (recompute == S4D_RECOMPUTE_FULL)
        again = layer;
    else if (recompute == S4D_RECOMPUTE_SELECTIVE) /* the core, as the full square */
        again = 4 * s * s * m->num_attention_heads * s4d_head_dim(m);
    return global_batch * (m->num_layers * (3 * layer + again) + 3 * forward_flops(m, m->head));
}

double s4d_formula_flops(const struct s4d_model *model, int global_batch,
                         enum s4d_recompute recompute)
{
    double B = global_batch, s = model->seq_length, l = model->num_layers, h = model->hidden_size,
           V = model->vocab_size;
    double layers = B * s * l * h * h;
    if (!is_gpt(model))
        return layer_sum(model, global_batch, recompute);
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
