/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary-parallel token embedding: vocabulary rows over x (padded to a multiple of Gx with zero
 * rows), hidden over y. The lookup is masked to the rank's own rows and all-reduced over x. Where
 * the head is tied, its gradient block is already there and the lookup's gradient is added to it:
 * one reduce-scatter carries the sum. */
#include "schedule/layer.h"

struct embedding {
    int weight;
};

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct embedding *e = l->state = s4d_arena_alloc(&b->p->memory, sizeof *e);
    const int64_t h = b->model->hidden_size;
    e->weight = s4d_matrix(b, s4d_name(b, l->name, ".weight"), s4d_name(b, l->hf_name, ".weight"),
                           b->model->vocab_size, &h, 1, S4D_X, S4D_Y, b->model->init_std);
    b->embedding_weight = e->weight;
}

/* Only the looked-up rows of the table are touched. */
static void set_constants(struct s4d_builder *b, struct s4d_op *op, int64_t rows, int64_t cols,
                          bool writes)
{
    op->c.embedding.first = s4d_constant(0);
    op->c.embedding.first.stride[S4D_X] = rows;
    int64_t table = rows * cols * s4d_type_bytes[s4d_compute_type(b)];
    int64_t touched = b->p->tokens * cols * s4d_type_bytes[s4d_compute_type(b)];
    op->bytes_read += touched - table;
    op->bytes_written += writes ? touched - table : 0;
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    (void)x;
    struct embedding *e = l->state;
    b->label.name = l->label;
    int block = s4d_use_weight(b, e->weight);
    int64_t rows = s4d_block_rows(b, e->weight), cols = s4d_block_cols(b, e->weight);
    int out = s4d_new(b, l->label, S4D_ROLE_ACTIVATION, s4d_compute_type(b), b->p->tokens, cols);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_EMBEDDING_FORWARD, b->tokens, block, out), rows, cols,
                  false);
    s4d_all_reduce(b, S4D_AXIS(S4D_X), out, S4D_SUM);
    return out;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct embedding *e = l->state;
    b->label.name = l->label;
    int64_t rows = s4d_block_rows(b, e->weight), cols = s4d_block_cols(b, e->weight);
    int flat = b->tied_gradient;
    if (flat < 0) {
        s4d_gradient_block(b, e->weight, &flat);
        S4D_COMPUTE(b, S4D_OP_ZERO, s4d_view(b, flat, 0, rows, cols, cols));
    }
    int d_weight = s4d_view(b, flat, 0, rows, cols, cols);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_EMBEDDING_BACKWARD, b->tokens, dy, d_weight), rows, cols,
                  true);
    s4d_reduce_gradient(b, e->weight, flat);
    b->tied_gradient = -1;
    return -1;
}

static double parameters(const struct s4d_model *m)
{
    return (double)m->vocab_size * m->hidden_size;
}

static double forward_flops(const struct s4d_model *m)
{
    (void)m; /* a lookup */
    return 0;
}

const struct s4d_layer_kind s4d_layer_embedding = {
    .name = "vocabulary-parallel",
    .slot = S4D_SLOT_EMBEDDING,
    .summary = "token embedding, vocabulary over x, hidden over y",
    .tensors = "weight (V, h): V over x (padded), h over y, shard over z",
    .source = "arXiv 1909.08053 sec. 3",
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
