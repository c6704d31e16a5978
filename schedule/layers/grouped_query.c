/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped-query causal self-attention as Llama has it: every key-value head serves heads / kv_heads
 * query heads in turn; no biases. Gx divides the key-value heads. */
#include <math.h>

#include "schedule/layers/attention.h"

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    if (m->num_key_value_heads < 1 || m->num_attention_heads % m->num_key_value_heads)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "expected key-value heads that divide the %d heads, found %d",
                        m->num_attention_heads, m->num_key_value_heads);
    return s4d_axis_divides(g, S4D_X, m->num_key_value_heads, "key-value heads", m, err);
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    struct s4d_attention *a = l->state = s4d_arena_alloc(&b->p->memory, sizeof *a);
    const struct s4d_model *m = b->model;
    const int64_t q = (int64_t)m->num_attention_heads * s4d_head_dim(m),
                  kv = (int64_t)m->num_key_value_heads * s4d_head_dim(m);
    struct s4d_linear_shape qkv = {.name = s4d_name(b, l->name, ".qkv"),
                                   .label = "attention.qkv",
                                   .hf = s4d_name(b, l->hf_name, ".qkv_proj"),
                                   .hf_part = {s4d_name(b, l->hf_name, ".q_proj"),
                                               s4d_name(b, l->hf_name, ".k_proj"),
                                               s4d_name(b, l->hf_name, ".v_proj")},
                                   .hf_transposed = true,
                                   .k = m->hidden_size,
                                   .part_cols = {q, kv, kv},
                                   .parts = 3,
                                   .init_std = m->init_std};
    struct s4d_linear_shape out = {.name = s4d_name(b, l->name, ".out"),
                                   .label = "attention.out",
                                   .hf = s4d_name(b, l->hf_name, ".o_proj"),
                                   .hf_transposed = true,
                                   .k = q,
                                   .part_cols = {m->hidden_size},
                                   .parts = 1,
                                   .transposed = true,
                                   .init_std = m->init_std / sqrt(2.0 * m->num_layers)};
    s4d_linear_declare(b, &a->qkv, &qkv);
    s4d_linear_declare(b, &a->out, &out);
}

static double parameters(const struct s4d_model *m)
{
    double heads = 2.0 * m->num_attention_heads + 2.0 * m->num_key_value_heads;
    return m->hidden_size * heads * s4d_head_dim(m);
}

static const struct s4d_option takes[] = {
    S4D_MODEL_INT("head-dim", head_dim, 1, 1 << 16, "columns of a head"),
    {.name = NULL},
};

const struct s4d_layer_kind s4d_layer_grouped_query = {
    .name = "grouped-query",
    .slot = S4D_SLOT_ATTENTION,
    .family = &s4d_hf_llama,
    .takes = takes,
    .summary = "causal grouped-query self-attention, no biases, key-value heads over x",
    .tensors = "qkv (h, (heads + 2 kv_heads) head_dim) normal, out (heads head_dim, h) transposed",
    .source = "arXiv 2305.13245; Llama 2, arXiv 2307.09288; kernel arXiv 2307.08691",
    .divides = divides,
    .declare = declare,
    .forward = s4d_attention_forward,
    .backward = s4d_attention_backward,
    .parameters = parameters,
    .forward_flops = s4d_attention_forward_flops,
};
