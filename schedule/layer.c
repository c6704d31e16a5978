/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of layer kinds. */
#include "schedule/layer.h"

#include <string.h>

const char *const s4d_slot_names[S4D_SLOTS] = {"embedding", "positions", "norm",  "attention",
                                               "mlp",       "head",      "linear"};

const struct s4d_hf_family s4d_hf_gpt2 = {
    .embedding = "wte",
    .positions = "wpe",
    .blocks = "h.",
    .norm1 = "ln_1",
    .attention = "attn",
    .norm2 = "ln_2",
    .mlp = "mlp",
    .norm = "ln_f",
    .head = "lm_head",
};

const struct s4d_hf_family s4d_hf_llama = {
    .embedding = "model.embed_tokens",
    .positions = "model.embed_positions",
    .blocks = "model.layers.",
    .norm1 = "input_layernorm",
    .attention = "self_attn",
    .norm2 = "post_attention_layernorm",
    .mlp = "mlp",
    .norm = "model.norm",
    .head = "lm_head",
};

/* One row a kind: KIND(x) is the s4d_layer_x of its file. */
#define S4D_LAYER_KINDS(KIND)                                                                      \
    KIND(linear)                                                                                   \
    KIND(embedding)                                                                                \
    KIND(positions)                                                                                \
    KIND(rotary)                                                                                   \
    KIND(layernorm)                                                                                \
    KIND(rmsnorm)                                                                                  \
    KIND(multi_head)                                                                               \
    KIND(grouped_query)                                                                            \
    KIND(mlp_gelu)                                                                                 \
    KIND(swiglu)                                                                                   \
    KIND(cross_entropy)                                                                            \
    KIND(goldfish)

#define DECLARE(kind) extern const struct s4d_layer_kind s4d_layer_##kind;
#define ROW(kind)     &s4d_layer_##kind,
S4D_LAYER_KINDS(DECLARE)
const struct s4d_layer_kind *const s4d_layer_kinds[] = {S4D_LAYER_KINDS(ROW) NULL};

const struct s4d_layer_kind *s4d_layer_kind_find(const char *name)
{
    for (int i = 0; s4d_layer_kinds[i]; i++)
        if (strcmp(s4d_layer_kinds[i]->name, name) == 0)
            return s4d_layer_kinds[i];
    return NULL;
}
