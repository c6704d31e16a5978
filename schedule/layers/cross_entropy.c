/* SPDX-License-Identifier: Apache-2.0 */
/* Language-model head and vocabulary-parallel cross entropy (arXiv 1909.08053 sec. 3).
 *
 * As a linear layer it is a normal one, hidden (k) over y, vocabulary (n) over x, with the
 * embedding's matrix transposed. Not recomputed: forward and backward follow each other, on one
 * gather. logits: (T, V/Gx), all-reduced over y; then max, sum of exponentials and target logit
 * over x. The loss is a sum; the denominator comes in where its gradient is formed. */
#include "schedule/layer.h"

struct head {
    int x, block, logits, max, sums;
};

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    (void)g; /* the vocabulary is padded */
    if (m->tie_word_embeddings)
        return 0;
    return s4d_fail(
        err, S4D_EXIT_DATA, m->name,
        "the cross-entropy head is tied to the embedding: expected tie_word_embeddings: true");
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    l->state = s4d_arena_alloc(&b->p->memory, sizeof(struct head));
}

/* The formula counts the vocabulary, not its padding. */
static void count_model_flops(struct s4d_builder *b, struct s4d_op *op)
{
    const struct s4d_param *q = &b->p->params[b->embedding_weight];
    op->model_flops *= (double)q->rows / (double)q->padded_rows;
}

static void set_constants(struct s4d_builder *b, struct s4d_op *op)
{
    int64_t rows = s4d_block_rows(b, b->embedding_weight);
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
    int64_t tokens = b->p->tokens, cols = s4d_block_rows(b, b->embedding_weight);
    s->x = x;
    s->block = s4d_use_weight(b, b->embedding_weight);
    s->logits = s4d_new(b, "head.logits", S4D_ROLE_ACTIVATION, s4d_compute_type(b), tokens, cols);
    count_model_flops(b, s4d_gemm(b, x, false, s->block, true, s->logits, false));
    s4d_all_reduce(b, S4D_AXIS(S4D_Y), s->logits, S4D_SUM);
    b->label.name = "loss";
    s->max = s4d_new(b, "loss.max", S4D_ROLE_ACTIVATION, acc, tokens, 1);
    s->sums = s4d_new(b, "loss.sums", S4D_ROLE_ACTIVATION, acc, tokens, 2);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_LOSS_MAX, s->logits, s->max));
    s4d_all_reduce(b, S4D_AXIS(S4D_X), s->max, S4D_MAX);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_LOSS_SUM, s->logits, s->max, b->targets, s->sums));
    s4d_all_reduce(b, S4D_AXIS(S4D_X), s->sums, S4D_SUM);
    return -1;
}

/* dE = transpose(d_logits) x; the embedding's backward adds the lookup's part and reduces it. */
static void weight_gradient(struct s4d_builder *b, struct head *s)
{
    int d_weight = s4d_gradient_block(b, b->embedding_weight, &b->tied_gradient);
    count_model_flops(b, s4d_gemm(b, s->logits, true, s->x, false, d_weight, false));
}

static int input_gradient(struct s4d_builder *b, struct head *s, int *reduce)
{
    int64_t width = b->p->tensors[s->x].shape[1];
    int dx = s4d_new(b, "head.dx", S4D_ROLE_ACTIVATION, s4d_compute_type(b), b->p->tokens, width);
    count_model_flops(b, s4d_gemm(b, s->logits, false, s->block, false, dx, false));
    *reduce = s4d_all_reduce(b, S4D_AXIS(S4D_X), dx, S4D_SUM);
    return dx;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)dy;
    (void)residual;
    struct head *s = l->state;
    b->label.name = "loss";
    set_constants(b, S4D_COMPUTE(b, S4D_OP_LOSS_BACKWARD, s->logits, s->max, s->sums, b->targets,
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
    (void)m; /* tied: counted with the embedding */
    return 0;
}

static double forward_flops(const struct s4d_model *m)
{
    return 2.0 * m->seq_length * m->hidden_size * m->vocab_size;
}

const struct s4d_layer_kind s4d_layer_cross_entropy = {
    .name = "cross-entropy",
    .slot = S4D_SLOT_HEAD,
    .summary = "tied language-model head and vocabulary-parallel cross entropy",
    .tensors = "none of its own (the embedding's)",
    .source = "arXiv 1909.08053 sec. 3",
    .divides = divides,
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
