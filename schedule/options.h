/* SPDX-License-Identifier: Apache-2.0 */
/* How the model is trained: everything besides model and grid that shapes the program. */
#ifndef S4D_SCHEDULE_OPTIONS_H
#define S4D_SCHEDULE_OPTIONS_H

#include <stdbool.h>

#include "support/error.h"

enum s4d_recompute { S4D_RECOMPUTE_NONE, S4D_RECOMPUTE_SELECTIVE, S4D_RECOMPUTE_FULL };
enum s4d_prefetch { S4D_PREFETCH_NONE, S4D_PREFETCH_WITHIN_LAYER, S4D_PREFETCH_ACROSS_LAYERS };
enum s4d_gradient_reduce { S4D_REDUCE_AT_END, S4D_REDUCE_BUCKETS };

/* Overlap of communication with computation (2502.08145 sec. V-D). */
struct s4d_overlap {
    bool oar;                       /* backward all-reduce runs beside the dW GEMM */
    bool ors;                       /* reduce-scatters run beside the rest of the backward */
    enum s4d_prefetch oag_forward;  /* how early the weight gather is issued, forward pass */
    enum s4d_prefetch oag_backward; /* the same for backward and recompute */
};

struct s4d_options {
    int global_batch; /* sequences an iteration */
    int micro_batch;  /* sequences per rank and micro-batch; divides global_batch / (Gz Gdata) */
    enum s4d_recompute recompute;
    struct s4d_overlap overlap;
    int cached_layers; /* the gathered weights of the first N layers are kept for the whole
                          iteration */
    int precision; /* enum s4d_type of the working weights and activations: f64, f32, bf16, f16 */
    int gradient_type; /* enum s4d_type on the wire of the data all-reduce: f32, or precision */
    enum s4d_gradient_reduce gradient_reduce;
    bool loss_scaling; /* dynamic; default with f16 */
    double learning_rate, beta1, beta2, adam_epsilon, weight_decay;
    double clip_norm; /* global gradient norm; 0: no clipping */
};

/* The defaults: all overlaps, across layers; full recompute; bf16; f32 gradients; clipping at 1. */
struct s4d_options s4d_options_default(void);

/* "all", "none", "axonn-sc24", or a list of: oar, ors, oag (across layers both ways),
 * oag-forward=VALUE, oag-backward=VALUE with VALUE none, within-layer, across-layers. What a list
 * does not name is off. */
int s4d_overlap_parse(const char *text, struct s4d_overlap *overlap, struct s4d_error *err);
/* The canonical list form, into text of the given size. */
void s4d_overlap_format(const struct s4d_overlap *overlap, char *text, int size);

extern const char *const s4d_recompute_names[3]; /* "none", "selective", "full" */
extern const char *const s4d_prefetch_names[3];  /* "none", "within-layer", "across-layers" */

#endif
