/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions: nothing is added to the residual stream; the attention's queries and keys are
 * turned by an angle that grows with the position, and their gradients turned back. */
#include "schedule/layer.h"

static int divides(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err)
{
    (void)g; /* heads are whole */
    if (s4d_head_dim(m) % 2)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "rotary positions turn pairs: expected an even head_dim, found %d",
                        s4d_head_dim(m));
    bool scaled = m->rope_scaling_factor > 0;
    bool whole = m->rope_low_freq_factor > 0 &&
                 m->rope_high_freq_factor > m->rope_low_freq_factor &&
                 m->rope_original_max_position_embeddings > 0;
    bool none = m->rope_low_freq_factor == 0 && m->rope_high_freq_factor == 0 &&
                m->rope_original_max_position_embeddings == 0;
    if (scaled ? !whole : !none)
        return s4d_fail(err, S4D_EXIT_DATA, m->name,
                        "expected rope_scaling_factor, rope_low_freq_factor, a greater "
                        "rope_high_freq_factor and rope_original_max_position_embeddings, or none "
                        "of them");
    return 0;
}

static void declare(struct s4d_builder *b, struct s4d_layer *l)
{
    (void)b; /* no parameters, no state */
    (void)l;
}

static void turn(struct s4d_builder *b, const struct s4d_layer *l, int qkv, int64_t heads,
                 int64_t head_dim, bool back)
{
    const struct s4d_model *m = b->model;
    int64_t tokens = b->p->tensors[qkv].shape[0], row = b->p->tensors[qkv].stride[0];
    b->label.name = l->label;
    struct s4d_op *op =
        S4D_COMPUTE(b, S4D_OP_ROTARY, s4d_view(b, qkv, 0, tokens, heads * head_dim, row));
    op->c.rotary.seq = m->seq_length;
    op->c.rotary.heads = heads;
    op->c.rotary.head_dim = head_dim;
    op->c.rotary.theta = m->rope_theta;
    op->c.rotary.factor = m->rope_scaling_factor;
    op->c.rotary.low = m->rope_low_freq_factor;
    op->c.rotary.high = m->rope_high_freq_factor;
    op->c.rotary.original = m->rope_original_max_position_embeddings;
    op->c.rotary.inverse = back;
}

static double nothing(const struct s4d_model *m)
{
    (void)m;
    return 0;
}

static const struct s4d_option needs[] = {
    S4D_MODEL_NUMBER("rope-theta", rope_theta, 1, 1e12, "base of the rotary frequencies"),
    {.name = NULL},
};
static const struct s4d_option takes[] = {
    S4D_MODEL_NUMBER("rope-scaling-factor", rope_scaling_factor, 1, 1e6,
                     "Llama-3's frequency scaling: what the lowest frequencies are divided by"),
    S4D_MODEL_NUMBER("rope-low-freq-factor", rope_low_freq_factor, 1e-3, 1e6,
                     "turns in the original context below which a frequency is low"),
    S4D_MODEL_NUMBER("rope-high-freq-factor", rope_high_freq_factor, 1e-3, 1e6,
                     "turns in the original context above which a frequency is kept"),
    S4D_MODEL_INT("rope-original-max-position-embeddings", rope_original_max_position_embeddings, 1,
                  1 << 24, "the original context, tokens"),
    {.name = NULL},
};

const struct s4d_layer_kind s4d_layer_rotary = {
    .name = "rotary",
    .slot = S4D_SLOT_POSITIONS,
    .summary = "rotary positions of queries and keys, half-split as Hugging Face's Llama",
    .tensors = "none",
    .source = "arXiv 2104.09864; frequency scaling: Llama 3.1 (arXiv 2407.21783), "
              "huggingface/transformers modeling_rope_utils.py",
    .needs = needs,
    .takes = takes,
    .divides = divides,
    .declare = declare,
    .turn = turn,
    .parameters = nothing,
    .forward_flops = nothing, /* the formulas count matrix products only */
};
