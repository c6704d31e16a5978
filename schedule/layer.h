/* SPDX-License-Identifier: Apache-2.0 */
/* Layer kinds: one file and one row each. A model's YAML names a kind in each slot; a new kind
 * changes no other module (arXiv 2507.05411 counts this). */
#ifndef S4D_SCHEDULE_LAYER_H
#define S4D_SCHEDULE_LAYER_H

#include "schedule/builder.h" /* for: struct s4d_builder */
#include "support/option.h"   /* for: struct s4d_option */

enum s4d_slot {
    S4D_SLOT_EMBEDDING,
    S4D_SLOT_POSITIONS,
    S4D_SLOT_NORM,
    S4D_SLOT_ATTENTION,
    S4D_SLOT_MLP,
    S4D_SLOT_HEAD,
    S4D_SLOT_LINEAR, /* the building block of the others; no model slot */
    S4D_SLOTS
};
extern const char *const s4d_slot_names[S4D_SLOTS];

/* One layer of a model. state is its kind's own: parameters, and the tensors of the running
 * micro-batch that its backward reads. The same forward run again (recompute) replaces the tensors.
 */
struct s4d_layer {
    const struct s4d_layer_kind *kind;
    const char *name;    /* "layers.3.norm1": the prefix of its parameters */
    const char *label;   /* "norm1": the prefix of its ops' labels */
    const char *hf_name; /* "h.3.ln_1" */
    int index;           /* transformer layer, -1 outside */
    int out_bias; /* a bias (1, h/Gy) that the caller must still add to what forward returned; -1:
                     none */
    void *state;
};

/* What Hugging Face calls the parts of a model family: blocks "h." makes the first norm
 * "h.3.ln_1". */
struct s4d_hf_family {
    const char *embedding, *positions, *blocks, *norm1, *attention, *norm2, *mlp, *norm, *head;
};
extern const struct s4d_hf_family s4d_hf_gpt2, s4d_hf_llama;

struct s4d_layer_kind {
    const char *name, *summary;
    const char *tensors; /* parameters with their shapes and how they are split */
    const char *source;  /* paper and equation */
    enum s4d_slot slot;
    const struct s4d_hf_family *family; /* of an attention kind: the model's; NULL otherwise */
    /* Keys of a workload that only this kind has, over struct s4d_model: those it needs, and those
     * that may be left out (then the field is 0). Kinds with keys in common share the table. NULL:
     * none. */
    const struct s4d_option *needs, *takes;
    /* Divisibility of its own; NULL: none. 0, or -1 with *err (exit 64). */
    int (*divides)(const struct s4d_model *m, const struct s4d_grid *g, struct s4d_error *err);
    /* Declares the parameters and allocates state from the program's arena. */
    void (*declare)(struct s4d_builder *b, struct s4d_layer *l);
    /* x to the tensor it makes of it; the embedding is given -1 and reads the micro-batch's tokens,
     * the head returns -1. NULL: x itself. */
    int (*forward)(struct s4d_builder *b, struct s4d_layer *l, int x);
    /* The gradient of what forward returned, to the gradient of x. residual: a gradient to add to
     * the result, or -1 (norms fuse it; others are given -1). The head is given -1, the embedding
     * returns -1. NULL: dy itself. */
    int (*backward)(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual);
    /* Positions only: turns the first `heads` heads of head_dim columns of every row of qkv, or
     * turns their gradient back. NULL: these positions leave queries and keys alone. */
    void (*turn)(struct s4d_builder *b, const struct s4d_layer *l, int qkv, int64_t heads,
                 int64_t head_dim, bool back);
    /* Heads only: the targets (rows, s) of the iteration's tokens (rows, s + 1). NULL: the tokens
     * shifted by one. */
    int (*targets)(struct s4d_builder *b, const struct s4d_layer *l, int tokens);
    /* Of one such layer: parameters, and forward FLOPs of one sequence (attention as the full
     * square). */
    double (*parameters)(const struct s4d_model *m);
    double (*forward_flops)(const struct s4d_model *m);
};

/* For a kind's divides: 0 if the axis' size divides n ("attention heads"), else -1 (exit 64) with
 * the nearest sizes that fit. */
int s4d_axis_divides(const struct s4d_grid *g, enum s4d_axis axis, int64_t n, const char *what,
                     const struct s4d_model *m, struct s4d_error *err);

/* Rows of needs and takes: a whole number, a number. */
#define S4D_MODEL_INT(key, field, least, most, text)                                               \
    {                                                                                              \
        .name = key, .type = S4D_OPT_INT, .offset = offsetof(struct s4d_model, field),             \
        .min = least, .max = most, .help = text                                                    \
    }
#define S4D_MODEL_NUMBER(key, field, least, most, text)                                            \
    {                                                                                              \
        .name = key, .type = S4D_OPT_NUMBER, .offset = offsetof(struct s4d_model, field),          \
        .min = least, .max = most, .help = text                                                    \
    }

extern const struct s4d_layer_kind *const s4d_layer_kinds[];        /* ends with NULL */
const struct s4d_layer_kind *s4d_layer_kind_find(const char *name); /* NULL: unknown */

#endif
