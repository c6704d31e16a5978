/* SPDX-License-Identifier: Apache-2.0 */
/* Layer kinds: one file and one row each. A model's YAML names a kind in each slot; a new kind
 * changes no other module (arXiv 2507.05411 counts this). */
#ifndef S4D_SCHEDULE_LAYER_H
#define S4D_SCHEDULE_LAYER_H

#include "schedule/builder.h"

enum s4d_slot {
    S4D_SLOT_EMBEDDING,
    S4D_SLOT_POSITIONS,
    S4D_SLOT_NORM,
    S4D_SLOT_ATTENTION,
    S4D_SLOT_MLP,
    S4D_SLOT_HEAD,
    S4D_SLOT_LINEAR,
    S4D_SLOTS
};
extern const char *const s4d_slot_names[S4D_SLOTS];

/* One layer of a model: its parameters, and the tensors of the running micro-batch that its
 * backward reads. The same forward run again (recompute) replaces them. */
enum { S4D_LAYER_PARAMS = 8, S4D_LAYER_TENSORS = 8 };
struct s4d_layer {
    const struct s4d_layer_kind *kind;
    const char *name;    /* "norm1", "attention", "head": the prefix of its parameters and labels */
    const char *hf_name; /* "h.3.ln_1" */
    int index;           /* transformer layer, -1 outside */
    int param[S4D_LAYER_PARAMS];
    int saved[S4D_LAYER_TENSORS];
};

struct s4d_layer_kind {
    const char *name, *summary, *tensors, *source; /* source: paper and equation */
    enum s4d_slot slot;
    /* Divisibility of its own; NULL: none. 0, or -1 with *err. */
    int (*divides)(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err);
    void (*declare)(struct s4d_builder *b, struct s4d_layer *l);
    /* x (T, h/Gy) to the tensor it makes of it. */
    int (*forward)(struct s4d_builder *b, struct s4d_layer *l, int x);
    /* The gradient of what forward returned, to the gradient of x. `residual`: a gradient to add to
     * the result, or -1; norms fuse it, others are given -1. */
    int (*backward)(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual);
    /* Of the whole model, for s4d_layers: parameters of one such layer, and forward FLOPs per
     * sequence. */
    double (*parameters)(const struct s4d_model *m);
    double (*forward_flops)(const struct s4d_model *m);
};

extern const struct s4d_layer_kind *const s4d_layer_kinds[];        /* ends with NULL */
const struct s4d_layer_kind *s4d_layer_kind_find(const char *name); /* NULL: unknown */

#endif
