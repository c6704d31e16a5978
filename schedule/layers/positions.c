/* SPDX-License-Identifier: Apache-2.0 */
/* Learned positions, added to the embedding after its all-reduce. */
#include "schedule/layer.h"

struct positions {
    int weight;
};

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct positions *p = l->state = s4d_arena_alloc(&b->p->memory, sizeof *p);
    const int64_t h = b->model->hidden_size;
    p->weight = s4d_vector(b, s4d_name(b, l->name, ".weight"), s4d_name(b, l->hf_name, ".weight"),
                           b->model->seq_length, &h, 1, S4D_Y, S4D_INIT_NORMAL, true);
    b->p->params[p->weight].init_std = b->model->init_std;
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct positions *p = l->state;
    b->label.name = l->label;
    S4D_COMPUTE(b, S4D_OP_POSITION_FORWARD, b->p->params[p->weight].master, x);
    return x;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct positions *p = l->state;
    b->label.name = l->label;
    S4D_COMPUTE(b, S4D_OP_POSITION_BACKWARD, dy, b->p->params[p->weight].gradient);
    return dy;
}

static double parameters(const struct s4d_model *m)
{
    return (double)m->seq_length * m->hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    (void)m; /* an addition */
    return 0;
}

const struct s4d_layer_kind s4d_layer_positions = {
    .name = "learned",
    .slot = S4D_SLOT_POSITIONS,
    .summary = "learned positions, added to the embedding",
    .tensors = "weight (s, h): h over y, replicated over x and z",
    .source = "GPT-2",
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
