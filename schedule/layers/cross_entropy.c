/* SPDX-License-Identifier: Apache-2.0 */
/* Language-model head and vocabulary-parallel cross entropy (arXiv 1909.08053 sec. 3).
 *
 * As a linear layer it is a normal one, hidden (k) over y, vocabulary (n) over x, with the
 * embedding's matrix, or one of its own, transposed. Not recomputed: forward and backward follow
 * each other, on one gather. logits: (T, V/Gx), all-reduced over y; then max, sum of exponentials
 * and target logit over x. The loss is a sum; the denominator comes in where its gradient is
 * formed. */
#include "schedule/layer.h"

struct head {
    int weight; /* parameter: the embedding's, or its own */
    int x, block, logits, max, sums;
};

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct head *s = l->state = s4d_arena_alloc(&b->p->memory, sizeof *s);
    const int64_t h = b->model->hidden_size;
    s->weight = b->embedding_weight;
    if (!b->model->tie_word_embeddings)
        s->weight =
            s4d_matrix(b, s4d_name(b, l->name, ".weight"), s4d_name(b, l->hf_name, ".weight"),
                       b->model->vocab_size, &h, 1, S4D_X, S4D_Y, b->model->init_std);
}

/* The formula counts the vocabulary, not its padding. */
static void count_model_flops(struct s4d_builder *b, const struct head *s, struct s4d_op *op)
{
    const struct s4d_param *q = &b->p->params[s->weight];
    op->model_flops *= (double)q->rows / (double)q->padded_rows;
}

static void set_constants(struct s4d_builder *b, const struct head *s, struct s4d_op *op)
{
    int64_t rows = s4d_block_rows(b, s->weight);
    op->c.loss.first = s4d_constant(0);
    op->c.loss.first.stride[S4D_X] = rows;
    op->c.loss.valid = s4d_constant(b->model->vocab_size);
    op->c.loss.valid.stride[S4D_X] = -rows;
    op->c.loss.valid.limit = rows;
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct head *s = l->state;
    b->label.name = l->label;
    enum s4d_type acc = s4d_accumulate_type(b);
    int64_t tokens = b->p->tokens, cols = s4d_block_rows(b, s->weight);
    s->x = x;
    s->block = s4d_use_weight(b, s->weight);
    s->logits = s4d_new(b, "head.logits", S4D_ROLE_ACTIVATION, s4d_compute_type(b), tokens, cols);
    count_model_flops(b, s, s4d_gemm(b, x, false, s->block, true, s->logits, false));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), s->logits, S4D_SUM);
    b->label.name = "loss";
    s->max = s4d_new(b, "loss.max", S4D_ROLE_ACTIVATION, acc, tokens, 1);
    s->sums = s4d_new(b, "loss.sums", S4D_ROLE_ACTIVATION, acc, tokens, 2);
    set_constants(b, s, S4D_COMPUTE(b, S4D_OP_LOSS_MAX, s->logits, s->max));
    s4d_all_reduce(b, S4D_AXIS(S4D_X), s->max, S4D_MAX);
    set_constants(b, s, S4D_COMPUTE(b, S4D_OP_LOSS_SUM, s->logits, s->max, b->targets, s->sums));
    s4d_all_reduce(b, S4D_AXIS(S4D_X), s->sums, S4D_SUM);
    return -1;
}

/* dE = transpose(d_logits) x. Tied: the embedding's backward adds the lookup's part and reduces it.
 */
static void weight_gradient(struct s4d_builder *b, struct head *s)
{
    int flat, d_weight = s4d_gradient_block(b, s->weight, &flat);
    count_model_flops(b, s, s4d_gemm(b, s->logits, true, s->x, false, d_weight, false));
    if (b->model->tie_word_embeddings)
        b->tied_gradient = flat;
    else
        s4d_reduce_gradient(b, s->weight, flat);
}

static int input_gradient(struct s4d_builder *b, struct head *s, int *reduce)
{
    int64_t width = b->p->tensors[s->x].shape[1];
    int dx = s4d_new(b, "head.dx", S4D_ROLE_ACTIVATION, s4d_compute_type(b), b->p->tokens, width);
    count_model_flops(b, s, s4d_gemm(b, s->logits, false, s->block, false, dx, false));
    *reduce = s4d_all_reduce(b, S4D_AXIS(S4D_X), dx, S4D_SUM);
    return dx;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)dy;
    (void)residual;
    struct head *s = l->state;
    b->label.name = "loss";
    set_constants(b, s,
                  S4D_COMPUTE(b, S4D_OP_LOSS_BACKWARD, s->logits, s->max, s->sums, b->targets,
                              b->p->denominator, b->p->loss_scale, b->loss_sum, s->logits));
    b->label.name = l->label;
    int reduce, dx = input_gradient(b, s, &reduce);
    if (!b->options->overlap.oar)
        s4d_order_after(b, reduce);
    weight_gradient(b, s);
    return dx;
}

static double parameters(const struct s4d_model *m)
{
    return m->tie_word_embeddings ? 0 : (double)m->vocab_size * m->hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    return 2.0 * m->seq_length * m->hidden_size * m->vocab_size;
}

const struct s4d_layer_kind s4d_layer_cross_entropy = {
    .name = "cross-entropy",
    .slot = S4D_SLOT_HEAD,
    .summary = "language-model head, tied or not, and vocabulary-parallel cross entropy",
    .tensors = "weight (V, h): V over x, h over y, shard over z; where tied the embedding's",
    .source = "arXiv 1909.08053 sec. 3",
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
