/* SPDX-License-Identifier: Apache-2.0 */
/* A fully connected layer of the 4D algorithm: I (T, k) times W (k, n), the building block of
 * attention and MLP.
 *
 * Normal: k over y, n over x; forward all-reduce over y, backward over x. Transposed: k over x, n
 * over y, all-reduces swapped. They alternate, so that no re-layout is needed between layers
 * (2305.13525 sec. 3; 2502.08145 alg. 1). */
#ifndef S4D_SCHEDULE_LAYERS_LINEAR_H
#define S4D_SCHEDULE_LAYERS_LINEAR_H

#include "schedule/builder.h"

struct s4d_linear {
    const char *label;     /* "attention.qkv" */
    int weight, bias;      /* parameters; bias -1: none */
    int in_axis, out_axis; /* the axis of k, of n */
    int input, block;      /* tensors of the running micro-batch */
};

/* W is (k, parts side by side); the bias has the parts' columns. */
struct s4d_linear_shape {
    const char *name;               /* "layers.3.attention.qkv" */
    const char *label;              /* "attention.qkv" */
    const char *hf;                 /* "h.3.attn.c_attn" */
    const char *hf_part[S4D_PARTS]; /* parts that Hugging Face keeps apart; NULL: they are one */
    bool hf_transposed;             /* the weights are (n, k) there */
    int64_t k, part_cols[S4D_PARTS];
    int parts;
    bool transposed, bias;
    double init_std;
};
void s4d_linear_declare(struct s4d_builder *b, struct s4d_linear *l,
                        const struct s4d_linear_shape *shape);
/* input (T, k/Gin) to (T, n/Gout), all-reduced; the bias is the caller's to add (never before the
 * all-reduce). */
int s4d_linear_forward(struct s4d_builder *b, struct s4d_linear *l, int input);
/* dO (T, n/Gout) to dI (T, k/Gin), all-reduced; dW and the bias gradient go to their gradients. */
int s4d_linear_backward(struct s4d_builder *b, struct s4d_linear *l, int d_output);
/* The bias (1, n/Gout); -1: none. */
int s4d_linear_bias(const struct s4d_builder *b, const struct s4d_linear *l);

#endif
