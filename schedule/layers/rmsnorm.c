/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm over a hidden width that lies over y: one partial sum a token, all-reduced over y,
 * forward and backward. */
#include "schedule/layer.h"

struct rmsnorm {
    int gain;
    int x, sums;
};

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct rmsnorm *n = l->state = s4d_arena_alloc(&b->p->memory, sizeof *n);
    const int64_t h = b->model->hidden_size;
    n->gain = s4d_vector(b, s4d_name(b, l->name, ".weight"), s4d_name(b, l->hf_name, ".weight"), 1,
                         &h, 1, S4D_Y, S4D_INIT_ONE, false);
}

static void set_constants(struct s4d_builder *b, struct s4d_op *op)
{
    op->c.norm.width = b->model->hidden_size;
    op->c.norm.epsilon = b->model->norm_epsilon;
}

static int new_sums(struct s4d_builder *b, const char *name, int64_t tokens)
{
    return s4d_new(b, name, S4D_ROLE_ACTIVATION, s4d_accumulate_type(b), tokens, 1);
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct rmsnorm *n = l->state;
    b->label.name = l->label;
    n->x = x;
    int64_t tokens = b->p->tensors[x].shape[0], width = b->p->tensors[x].shape[1];
    n->sums = new_sums(b, s4d_name(b, l->label, ".sums"), tokens);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_RMS_PARTIAL, x, n->sums));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), n->sums, S4D_SUM);
    int y = s4d_new(b, l->label, S4D_ROLE_ACTIVATION, s4d_compute_type(b), tokens, width);
    int gain = b->p->params[n->gain].master;
    set_constants(b, S4D_COMPUTE(b, S4D_OP_RMS_APPLY, x, n->sums, gain, y));
    return y;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    struct rmsnorm *n = l->state;
    const struct s4d_param *gain = &b->p->params[n->gain];
    b->label.name = l->label;
    int back_sums = new_sums(b, s4d_name(b, l->label, ".back_sums"), b->p->tensors[dy].shape[0]);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_RMS_BACKWARD_PARTIAL, n->x, n->sums, gain->master, dy,
                                 back_sums, gain->gradient));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), back_sums, S4D_SUM);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_RMS_BACKWARD_APPLY, n->x, n->sums, gain->master, dy,
                                 back_sums, residual, dy));
    return dy;
}

static double parameters(const struct s4d_model *m)
{
    return m->hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    (void)m; /* the formulas count matrix products only */
    return 0;
}

const struct s4d_layer_kind s4d_layer_rmsnorm = {
    .name = "rmsnorm",
    .slot = S4D_SLOT_NORM,
    .summary = "RMSNorm; one sum a token, all-reduced over y",
    .tensors = "weight (h): over y, replicated over x and z",
    .source = "arXiv 1910.07467",
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
