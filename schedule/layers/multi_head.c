/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head causal self-attention: as many key-value heads as heads, with biases. */
#include <math.h>

#include "schedule/layers/attention.h"

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
    struct s4d_attention *a = l->state = s4d_arena_alloc(&b->p->memory, sizeof *a);
    const struct s4d_model *m = b->model;
    const int64_t h = m->hidden_size;
    struct s4d_linear_shape qkv = {.name = s4d_name(b, l->name, ".qkv"),
                                   .label = "attention.qkv",
                                   .hf = s4d_name(b, l->hf_name, ".c_attn"),
                                   .k = h,
                                   .part_cols = {h, h, h},
                                   .parts = 3,
                                   .bias = true,
                                   .init_std = m->init_std};
    struct s4d_linear_shape out = {.name = s4d_name(b, l->name, ".out"),
                                   .label = "attention.out",
                                   .hf = s4d_name(b, l->hf_name, ".c_proj"),
                                   .k = h,
                                   .part_cols = {h},
                                   .parts = 1,
                                   .transposed = true,
                                   .bias = true,
                                   .init_std = m->init_std / sqrt(2.0 * m->num_layers)};
    s4d_linear_declare(b, &a->qkv, &qkv);
    s4d_linear_declare(b, &a->out, &out);
}

static double parameters(const struct s4d_model *m)
{
    double h = m->hidden_size;
    return 4 * h * h + 4 * h;
}

const struct s4d_layer_kind s4d_layer_multi_head = {
    .name = "multi-head",
    .slot = S4D_SLOT_ATTENTION,
    .family = &s4d_hf_gpt2,
    .summary = "causal multi-head self-attention, heads over x",
    .tensors = "qkv (h, 3h) normal, out (h, h) transposed, their biases",
    .source = "arXiv 1706.03762 sec. 3.2; kernel arXiv 2307.08691",
    .divides = divides,
    .declare = declare,
    .forward = s4d_attention_forward,
    .backward = s4d_attention_backward,
    .parameters = parameters,
    .forward_flops = s4d_attention_forward_flops,
};
