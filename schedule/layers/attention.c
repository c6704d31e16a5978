/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/layers/attention.h"

#include <math.h>

static int64_t heads_of(const struct s4d_builder *b)
{
    return b->model->num_attention_heads / b->grid->size[S4D_X];
}

static int64_t kv_heads_of(const struct s4d_builder *b)
{
    return b->model->num_key_value_heads / b->grid->size[S4D_X];
}

/* passes: how many forward passes the formula counts; executed: how many the kernel runs. */
static void set_constants(struct s4d_builder *b, struct s4d_op *op, double passes, double executed)
{
    const struct s4d_model *m = b->model;
    int64_t heads = heads_of(b), dim = s4d_head_dim(m);
    op->c.attention.batch = b->options->micro_batch;
    op->c.attention.seq = m->seq_length;
    op->c.attention.heads = heads;
    op->c.attention.kv_heads = kv_heads_of(b);
    op->c.attention.head_dim = dim;
    op->c.attention.scale = 1 / sqrt((double)dim);
    op->c.attention.causal = true;
    double square = 4.0 * b->options->micro_batch * (double)m->seq_length * m->seq_length *
                    (double)(heads * dim);
    op->model_flops = passes * square / b->grid->size[S4D_Y]; /* replicated over y: counted once */
    op->flops = executed * square / 2;                        /* causal: half the square */
}

static void turn(struct s4d_builder *b, int qkv, bool back)
{
    const struct s4d_layer *positions = b->positions;
    if (positions->kind->turn)
        positions->kind->turn(b, positions, qkv, heads_of(b) + kv_heads_of(b),
                              s4d_head_dim(b->model), back);
}

static void core_forward(struct s4d_builder *b, struct s4d_attention *a)
{
    int64_t heads = heads_of(b), width = heads * s4d_head_dim(b->model);
    b->label.name = "attention.core";
    a->core =
        s4d_new(b, "attention.core", S4D_ROLE_ACTIVATION, s4d_compute_type(b), b->p->tokens, width);
    a->lse = s4d_new(b, "attention.lse", S4D_ROLE_ACTIVATION, s4d_accumulate_type(b),
                     b->options->micro_batch * heads, b->model->seq_length);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_ATTENTION_FORWARD, a->fused, a->core, a->lse), 1, 1);
}

int s4d_attention_forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct s4d_attention *a = l->state;
    a->fused = s4d_linear_forward(b, &a->qkv, x);
    if (a->qkv.bias >= 0)
        S4D_COMPUTE(b, S4D_OP_BIAS, s4d_linear_bias(b, &a->qkv), a->fused);
    turn(b, a->fused, false);
    core_forward(b, a);
    int y = s4d_linear_forward(b, &a->out, a->core);
    l->out_bias = s4d_linear_bias(b, &a->out);
    return y;
}

/* Selective recompute runs the core again instead of keeping its output (arXiv 2205.05198 sec. 5).
 */
static void core_again(struct s4d_builder *b, struct s4d_attention *a)
{
    b->label.phase = S4D_PHASE_RECOMPUTE;
    core_forward(b, a);
    b->label.phase = S4D_PHASE_BACKWARD;
    a->out.input = a->core;
}

int s4d_attention_backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct s4d_attention *a = l->state;
    if (b->options->recompute == S4D_RECOMPUTE_SELECTIVE)
        core_again(b, a);
    int d_core = s4d_linear_backward(b, &a->out, dy);
    b->label.name = "attention.core";
    const struct s4d_tensor *fused = &b->p->tensors[a->fused];
    int d_fused = s4d_new(b, "attention.d_qkv", S4D_ROLE_ACTIVATION, fused->type, fused->shape[0],
                          fused->shape[1]);
    /* The flash backward computes the scores again: 5 products to the forward's 2. */
    set_constants(
        b, S4D_COMPUTE(b, S4D_OP_ATTENTION_BACKWARD, a->fused, a->core, a->lse, d_core, d_fused), 2,
        2.5);
    turn(b, d_fused, true);
    return s4d_linear_backward(b, &a->qkv, d_fused);
}

double s4d_attention_forward_flops(const struct s4d_model *m)
{
    double s = m->seq_length, d = s4d_head_dim(m), q = m->num_attention_heads * d,
           kv = m->num_key_value_heads * d;
    return 2 * s * m->hidden_size * (2 * q + 2 * kv) + 4 * s * s * q;
}
