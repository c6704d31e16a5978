/* SPDX-License-Identifier: Apache-2.0 */
/* What all causal self-attention kinds share: fused q|k|v (normal), the core on this rank's heads,
 * output projection (transposed).
 *
 * Heads lie over x; the core is replicated over y, so its work divides by Gx Gz Gdata only. Each x
 * rank holds the q, k and v columns of its own heads; Gx divides the key-value heads. The core is a
 * flash kernel (arXiv 2307.08691): it keeps its output and one number a row (lse), never the s x s
 * matrix. Positions that act on queries and keys turn them before the core. */
#ifndef S4D_SCHEDULE_LAYERS_ATTENTION_H
#define S4D_SCHEDULE_LAYERS_ATTENTION_H

#include "schedule/layer.h"
#include "schedule/layers/linear.h"

/* The state of a layer of these kinds: its declare sets the first line. */
struct s4d_attention {
    struct s4d_linear qkv, out;
    int fused, core, lse; /* tensors: q|k|v, the core's output, log-sum-exp */
};

int s4d_attention_forward(struct s4d_builder *b, struct s4d_layer *l, int x);
int s4d_attention_backward(struct s4d_builder *b, struct s4d_layer *l, int dy, int residual);
/* 2 s h (2 q + 2 kv) for the projections of q query and kv key columns, 4 s^2 q for the core. */
double s4d_attention_forward_flops(const struct s4d_model *m);

#endif
