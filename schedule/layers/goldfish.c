/* SPDX-License-Identifier: Apache-2.0 */
/* Goldfish loss against memorisation: the cross-entropy head, but about one target in k is not
 * kept, chosen by a hash of the h tokens before it, so that a repeated passage always loses the
 * same tokens. The choice depends on the sequence alone, never on grid or micro-batches; the
 * denominator counts what is kept. */
#include "schedule/layer.h"

extern const struct s4d_layer_kind s4d_layer_cross_entropy;

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    s4d_layer_cross_entropy.declare(b, l);
}

static int targets(struct s4d_builder *b, const struct s4d_layer *l, int tokens)
{
    (void)l;
    int64_t rows = b->p->tensors[tokens].shape[0];
    int kept = s4d_new(b, "targets", S4D_ROLE_INPUT, S4D_I32, rows, b->model->seq_length);
    struct s4d_op *op = S4D_COMPUTE(b, S4D_OP_GOLDFISH, tokens, kept);
    op->c.goldfish.k = b->model->goldfish_k;
    op->c.goldfish.context = b->model->goldfish_h;
    return kept;
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    return s4d_layer_cross_entropy.forward(b, l, x);
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    return s4d_layer_cross_entropy.backward(b, l, dy, residual);
}

static double parameters(const struct s4d_model *m)
{
    return s4d_layer_cross_entropy.parameters(m);
}

static double forward_flops(const struct s4d_model *m)
{
    return s4d_layer_cross_entropy.forward_flops(m);
}

static const struct s4d_option needs[] = {
    S4D_MODEL_INT("goldfish-k", goldfish_k, 2, 1 << 20, "one token in k is dropped from the loss"),
    S4D_MODEL_INT("goldfish-h", goldfish_h, 1, 1 << 10,
                  "tokens that choose whether the next is dropped"),
    {.name = NULL},
};

const struct s4d_layer_kind s4d_layer_goldfish = {
    .name = "goldfish-cross-entropy",
    .slot = S4D_SLOT_HEAD,
    .summary = "cross entropy that drops one token in k, by a hash of the h before it",
    .tensors = "as cross-entropy",
    .source = "arXiv 2406.10209",
    .needs = needs,
    .declare = declare,
    .targets = targets,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
