/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of layer kinds. */
#include "schedule/layer.h"

#include <string.h>

const char *const s4d_slot_names[S4D_SLOTS] = {"embedding", "positions", "norm",  "attention",
                                               "mlp",       "head",      "linear"};

extern const struct s4d_layer_kind s4d_layer_linear, s4d_layer_embedding, s4d_layer_positions,
    s4d_layer_layernorm, s4d_layer_attention, s4d_layer_mlp_gelu, s4d_layer_cross_entropy;

const struct s4d_layer_kind *const s4d_layer_kinds[] = {
    &s4d_layer_linear,    &s4d_layer_embedding, &s4d_layer_positions,     &s4d_layer_layernorm,
    &s4d_layer_attention, &s4d_layer_mlp_gelu,  &s4d_layer_cross_entropy, NULL,
};

const struct s4d_layer_kind *s4d_layer_kind_find(const char *name)
{
    for (int i = 0; s4d_layer_kinds[i]; i++)
        if (strcmp(s4d_layer_kinds[i]->name, name) == 0)
            return s4d_layer_kinds[i];
    return NULL;
}
