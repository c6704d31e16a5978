/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's MLP: gate and up fused in one layer h to 2 ffn (normal), silu(gate) up on the x-split
 * part, ffn to h (transposed). No biases. */
#include <math.h>

#include "schedule/layer.h"
#include "schedule/layers/linear.h"

struct mlp {
    struct s4d_linear up, down;
    int hidden; /* gate | up; its gradient takes its place */
};

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    return s4d_axis_divides(g, S4D_X, m->ffn_hidden_size, "ffn_hidden_size", m, err);
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct mlp *f = l->state = s4d_arena_alloc(&b->p->memory, sizeof *f);
    const struct s4d_model *m = b->model;
    struct s4d_linear_shape up = {
        .name = s4d_name(b, l->name, ".up"),
        .label = "mlp.up",
        .hf = s4d_name(b, l->hf_name, ".gate_up_proj"),
        .hf_part = {s4d_name(b, l->hf_name, ".gate_proj"), s4d_name(b, l->hf_name, ".up_proj")},
        .hf_transposed = true,
        .k = m->hidden_size,
        .part_cols = {m->ffn_hidden_size, m->ffn_hidden_size},
        .parts = 2,
        .init_std = m->init_std};
    struct s4d_linear_shape down = {.name = s4d_name(b, l->name, ".down"),
                                    .label = "mlp.down",
                                    .hf = s4d_name(b, l->hf_name, ".down_proj"),
                                    .hf_transposed = true,
                                    .k = m->ffn_hidden_size,
                                    .part_cols = {m->hidden_size},
                                    .parts = 1,
                                    .transposed = true,
                                    .init_std = m->init_std / sqrt(2.0 * m->num_layers)};
    s4d_linear_declare(b, &f->up, &up);
    s4d_linear_declare(b, &f->down, &down);
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct mlp *f = l->state;
    f->hidden = s4d_linear_forward(b, &f->up, x);
    b->label.name = "mlp.swiglu";
    const struct s4d_tensor *hidden = &b->p->tensors[f->hidden];
    int active = s4d_new(b, "mlp.swiglu", S4D_ROLE_ACTIVATION, hidden->type, hidden->shape[0],
                         hidden->shape[1] / 2);
    S4D_COMPUTE(b, S4D_OP_GATED_FORWARD, f->hidden, active)->c.activation.function = S4D_SILU;
    return s4d_linear_forward(b, &f->down, active);
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct mlp *f = l->state;
    int d = s4d_linear_backward(b, &f->down, dy);
    b->label.name = "mlp.swiglu";
    S4D_COMPUTE(b, S4D_OP_GATED_BACKWARD, f->hidden, d, f->hidden)->c.activation.function =
        S4D_SILU;
    return s4d_linear_backward(b, &f->up, f->hidden);
}

static double parameters(const struct s4d_model *m)
{
    return 3.0 * m->hidden_size * m->ffn_hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    return 6.0 * m->seq_length * m->hidden_size * m->ffn_hidden_size;
}

const struct s4d_layer_kind s4d_layer_swiglu = {
    .name = "swiglu-mlp",
    .slot = S4D_SLOT_MLP,
    .summary = "gate and up fused in one linear layer, silu(gate) up, and down; no biases",
    .tensors = "up (h, ffn | ffn) normal, down (ffn, h) transposed",
    .source = "arXiv 2002.05202; Llama, arXiv 2302.13971",
    .divides = divides,
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
