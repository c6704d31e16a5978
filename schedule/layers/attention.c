/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head causal self-attention: fused QKV (normal), the core on this rank's heads, output
 * projection (transposed).
 *
 * Heads lie over x; the core is replicated over y, so its work divides by Gx Gz Gdata only. Each x
 * rank holds the q, k and v columns of its own heads. The core is a flash kernel (arXiv
 * 2307.08691): it keeps its output and one number a row (lse), never the s x s matrix. */
#include <math.h>

#include "schedule/layer.h"
#include "schedule/layers/linear.h"

struct attention {
    struct s4d_linear qkv, out;
    int fused, core, lse; /* tensors: q|k|v, the core's output, log-sum-exp */
};

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    if (m->num_key_value_heads != m->num_attention_heads)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "multi-head attention has as many key-value heads as heads (%d), found %d",
                        m->num_attention_heads, m->num_key_value_heads);
    return s4d_axis_divides(g, S4D_X, m->num_attention_heads, "attention heads", m, err);
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct attention *a = l->state = s4d_arena_alloc(&b->p->memory, sizeof *a);
    const struct s4d_model *m = b->model;
    const int64_t h = m->hidden_size, qkv[3] = {h, h, h};
    s4d_linear_declare(b, &a->qkv, s4d_name(b, l->name, ".qkv"), "attention.qkv",
                       s4d_name(b, l->hf_name, ".c_attn"), h, qkv, 3, false, m->init_std);
    s4d_linear_declare(b, &a->out, s4d_name(b, l->name, ".out"), "attention.out",
                       s4d_name(b, l->hf_name, ".c_proj"), h, &h, 1, true,
                       m->init_std / sqrt(2.0 * m->num_layers));
}

/* passes: how many forward passes the formula counts; executed: how many the kernel runs. */
static void set_constants(struct s4d_builder *b, struct s4d_op *op, double passes, double executed)
{
    const struct s4d_model *m = b->model;
    int64_t heads = m->num_attention_heads / b->grid->size[S4D_X],
            dim = m->hidden_size / m->num_attention_heads;
    op->c.attention.batch = b->options->micro_batch;
    op->c.attention.seq = m->seq_length;
    op->c.attention.heads = op->c.attention.kv_heads = heads;
    op->c.attention.head_dim = dim;
    op->c.attention.scale = 1 / sqrt((double)dim);
    op->c.attention.causal = true;
    double square = 4.0 * b->options->micro_batch * (double)m->seq_length * m->seq_length *
                    (double)(heads * dim);
    op->model_flops = passes * square / b->grid->size[S4D_Y]; /* replicated over y: counted once */
    op->flops = executed * square / 2;                        /* causal: half the square */
}

static void core_forward(struct s4d_builder *b, struct attention *a)
{
    int64_t heads = b->model->num_attention_heads / b->grid->size[S4D_X],
            width = b->p->tensors[a->fused].shape[1] / 3;
    b->label.name = "attention.core";
    a->core =
        s4d_new(b, "attention.core", S4D_ROLE_ACTIVATION, s4d_compute_type(b), b->p->tokens, width);
    a->lse = s4d_new(b, "attention.lse", S4D_ROLE_ACTIVATION, s4d_accumulate_type(b),
                     b->options->micro_batch * heads, b->model->seq_length);
    set_constants(b, S4D_COMPUTE(b, S4D_OP_ATTENTION_FORWARD, a->fused, a->core, a->lse), 1, 1);
}

static int forward(struct s4d_builder *b, struct s4d_layer *l, int x)
{
    struct attention *a = l->state;
    a->fused = s4d_linear_forward(b, &a->qkv, x);
    S4D_COMPUTE(b, S4D_OP_BIAS, s4d_linear_bias(b, &a->qkv), a->fused);
    core_forward(b, a);
    int y = s4d_linear_forward(b, &a->out, a->core);
    l->out_bias = s4d_linear_bias(b, &a->out);
    return y;
}

/* Selective recompute runs the core again instead of keeping its output (arXiv 2205.05198 sec. 5).
 */
static void core_again(struct s4d_builder *b, struct attention *a)
{
    b->label.phase = S4D_PHASE_RECOMPUTE;
    core_forward(b, a);
    b->label.phase = S4D_PHASE_BACKWARD;
    a->out.input = a->core;
}

static int backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual)
{
    (void)residual;
    struct attention *a = l->state;
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
    return s4d_linear_backward(b, &a->qkv, d_fused);
}

static double parameters(const struct s4d_model *m)
{
    double h = m->hidden_size;
    return 4 * h * h + 4 * h;
}

static double forward_flops(const struct s4d_model *m)
{
    double h = m->hidden_size, s = m->seq_length;
    return 8 * s * h * h + 4 * s * s * h;
}

const struct s4d_layer_kind s4d_layer_attention = {
    .name = "multi-head",
    .slot = S4D_SLOT_ATTENTION,
    .summary = "causal multi-head self-attention, heads over x",
    .tensors = "qkv (h, 3h) normal, out (h, h) transposed, their biases",
    .source = "arXiv 1706.03762 sec. 3.2; kernel arXiv 2307.08691",
    .divides = divides,
    .declare = declare,
    .forward = forward,
    .backward = backward,
    .parameters = parameters,
    .forward_flops = forward_flops,
};
