/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm (arXiv 1607.06450) over a hidden width that lies over y: per-token partial sums,
 * all-reduced over y, forward and backward. */
#include "schedule/layer.h"

struct layernorm {
    int gain, bias;
    int x, sums;
};

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct layernorm *n = l->state = s4d_arena_alloc(&b->p->memory, sizeof *n);
    const int64_t h = b->model->hidden_size;
    n->gain = s4d_vector(b, s4d_name(b, l->name, ".weight"), s4d_name(b, l->hf_name, ".weight"), 1,
                         &h, 1, S4D_Y, S4D_INIT_ONE, false);
    n->bias = s4d_vector(b, s4d_name(b, l->name, ".bias"), s4d_name(b, l->hf_name, ".bias"), 1, &h,
                         1, S4D_Y, S4D_INIT_ZERO, false);
}

static void set_constants(struct s4d_builder *b, struct s4d_op *op)
{
    op->c.norm.width = b->model->hidden_size;
    op->c.norm.epsilon = b->model->norm_epsilon;
}

static int new_sums(struct s4d_builder *b, const char *name, int64_t tokens)
{
    return s4d_new(b, name, S4D_ROLE_ACTIVATION, s4d_accumulate_type(b), tokens, 2);
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct layernorm *n = l->state;
    b->label.name = l->label;
    n->x = x;
    int64_t tokens = b->p->tensors[x].shape[0], width = b->p->tensors[x].shape[1];
    n->sums = new_sums(b, s4d_name(b, l->label, ".sums"), tokens);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_NORM_PARTIAL, x, n->sums));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), n->sums, S4D_SUM);
    int y = s4d_new(b, l->label, S4D_ROLE_ACTIVATION, s4d_compute_type(b), tokens, width);
    int gain = b->p->params[n->gain].master, bias = b->p->params[n->bias].master;
    set_constants(b, S4D_COMPUTE(b, S4D_OP_NORM_APPLY, x, n->sums, gain, bias, y));
    return y;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    struct layernorm *n = l->state;
    const struct s4d_param *gain = &b->p->params[n->gain], *bias = &b->p->params[n->bias];
    b->label.name = l->label;
    int back_sums = new_sums(b, s4d_name(b, l->label, ".back_sums"), b->p->tensors[dy].shape[0]);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_NORM_BACKWARD_PARTIAL, n->x, n->sums, gain->master, dy,
                                 back_sums, gain->gradient, bias->gradient));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), back_sums, S4D_SUM);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_NORM_BACKWARD_APPLY, n->x, n->sums, gain->master, dy,
                                 back_sums, residual, dy));
    return dy;
}

static double parameters(const struct s4d_model *m)
{
    return 2.0 * m->hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    (void)m; /* the formulas count matrix products only */
    return 0;
}

const struct s4d_layer_kind s4d_layer_layernorm = {
    .name = "layernorm",
    .slot = S4D_SLOT_NORM,
    .summary = "LayerNorm; two sums a token, all-reduced over y",
    .tensors = "weight (h), bias (h): over y, replicated over x and z",
    .source = "arXiv 1607.06450",
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
