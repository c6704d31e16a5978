/* SPDX-License-Identifier: Apache-2.0 */
/* The model that is trained: shapes and the layer kind in each slot. Filled by workloads/. Field
 * names are Megatron's and Hugging Face's. A layer is norm, attention, residual, norm, mlp,
 * residual (pre-norm). */
#ifndef S4D_SCHEDULE_MODEL_H
#define S4D_SCHEDULE_MODEL_H

#include <stdbool.h>

struct s4d_model {
    char name[64];
    int num_layers;
    int hidden_size;
    int num_attention_heads;
    int num_key_value_heads;
    int head_dim; /* columns of a head; 0: hidden_size / num_attention_heads */
    int ffn_hidden_size;
    int vocab_size;
    int seq_length;
    double norm_epsilon;
    double init_std; /* normal initialiser of matrices; output projections use init_std / sqrt(2
                        num_layers) */
    bool tie_word_embeddings;
    double rope_theta;          /* base of the rotary frequencies */
    double rope_scaling_factor; /* Llama-3's frequency scaling (schedule/op.h); 0: none */
    double rope_low_freq_factor, rope_high_freq_factor;
    int rope_original_max_position_embeddings;
    int goldfish_k, goldfish_h; /* one token in k is dropped, chosen by the h tokens before it */
    /* Names of rows of the layer registry (schedule/layer.h), one a slot. */
    char embedding[32], positions[32], norm[32], attention[32], mlp[32], head[32];
};

static inline int s4d_head_dim(const struct s4d_model *m)
{
    return m->head_dim ? m->head_dim : m->hidden_size / m->num_attention_heads;
}

#endif
