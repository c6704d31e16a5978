/* SPDX-License-Identifier: Apache-2.0 */
/* The GPT MLP: h to ffn (normal), GELU in its tanh form on the x-split part, ffn to h (transposed).
 */
#include <math.h>

#include "schedule/layer.h"
#include "schedule/layers/linear.h"

struct mlp {
    struct s4d_linear up, down;
    int hidden; /* before bias and activation */
};

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    return s4d_axis_divides(g, S4D_X, m->ffn_hidden_size, "ffn_hidden_size", m, err);
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct mlp *f = l->state = s4d_arena_alloc(&b->p->memory, sizeof *f);
    const struct s4d_model *m = b->model;
    struct s4d_linear_shape up = {.name = s4d_name(b, l->name, ".up"),
                                  .label = "mlp.up",
                                  .hf = s4d_name(b, l->hf_name, ".c_fc"),
                                  .k = m->hidden_size,
                                  .part_cols = {m->ffn_hidden_size},
                                  .parts = 1,
                                  .bias = true,
                                  .init_std = m->init_std};
    struct s4d_linear_shape down = {.name = s4d_name(b, l->name, ".down"),
                                    .label = "mlp.down",
                                    .hf = s4d_name(b, l->hf_name, ".c_proj"),
                                    .k = m->ffn_hidden_size,
                                    .part_cols = {m->hidden_size},
                                    .parts = 1,
                                    .transposed = true,
                                    .bias = true,
                                    .init_std = m->init_std / sqrt(2.0 * m->num_layers)};
    s4d_linear_declare(b, &f->up, &up);
    s4d_linear_declare(b, &f->down, &down);
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct mlp *f = l->state;
    f->hidden = s4d_linear_forward(b, &f->up, x);
    b->label.name = "mlp.gelu";
    const struct s4d_tensor *hidden = &b->p->tensors[f->hidden];
    int active = s4d_new(b, "mlp.gelu", S4D_ROLE_ACTIVATION, hidden->type, hidden->shape[0],
                         hidden->shape[1]);
    S4D_COMPUTE(b, S4D_OP_ACTIVATION_FORWARD, f->hidden, s4d_linear_bias(b, &f->up), active)
        ->c.activation.function = S4D_GELU_TANH;
    int y = s4d_linear_forward(b, &f->down, active);
    l->out_bias = s4d_linear_bias(b, &f->down);
    return y;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct mlp *f = l->state;
    int d = s4d_linear_backward(b, &f->down, dy);
    b->label.name = "mlp.gelu";
    S4D_COMPUTE(b, S4D_OP_ACTIVATION_BACKWARD, f->hidden, s4d_linear_bias(b, &f->up), d, d)
        ->c.activation.function = S4D_GELU_TANH;
    return s4d_linear_backward(b, &f->up, d);
}

static double parameters(const struct s4d_model *m)
{
    double h = m->hidden_size, ffn = m->ffn_hidden_size;
    return 2 * h * ffn + ffn + h;
}

static double forward_flops(const struct s4d_model *m)
{
    return 4.0 * m->seq_length * m->hidden_size * m->ffn_hidden_size;
}

const struct s4d_layer_kind s4d_layer_mlp_gelu = {
    .name = "gelu-mlp",
    .slot = S4D_SLOT_MLP,
    .summary = "two linear layers with GELU (tanh form) between",
    .tensors = "up (h, ffn) normal, down (ffn, h) transposed, their biases",
    .source = "arXiv 1606.08415; GPT-2",
    .divides = divides,
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
