/* SPDX-License-Identifier: Apache-2.0 */
/* A model on one processor in plain double loops, that every program must agree with: GPT-2
 * (tests/lib/gpt.h), or with grouped-query attention Llama (tests/lib/llama.h). With the goldfish
 * head targets are dropped first (arXiv 2406.10209). Written from the models' definitions, without
 * schedule/'s layers or the interpreter. */
#ifndef S4D_TESTS_REFERENCE_H
#define S4D_TESTS_REFERENCE_H

#include <stdint.h>

#include "schedule/model.h"

struct s4d_reference_param {
    char name[64]; /* Hugging Face's: "h.0.attn.c_attn.weight" */
    int64_t rows, cols, n;
    int decay; /* weight decay applies: matrices */
    double *w, *g, *m, *v;
};

struct s4d_reference {
    struct s4d_model model;
    struct s4d_reference_param *params;
    int n_params;
    int64_t step; /* AdamW's */
};

/* All weights zero. */
struct s4d_reference *s4d_reference_create(const struct s4d_model *model);
void s4d_reference_free(struct s4d_reference *r);
/* One more parameter, zero (for tests/lib/llama.c). */
void s4d_reference_add(struct s4d_reference *r, const char *name, int64_t rows, int64_t cols,
                       int decay);
/* NULL: no such parameter. A leading "transformer." is ignored. */
struct s4d_reference_param *s4d_reference_find(struct s4d_reference *r, const char *name);

/* The targets of a sequence of s + 1 tokens, -1 where the loss drops one. */
void s4d_reference_targets(const struct s4d_model *model, const int32_t *tokens, int32_t *targets);

/* tokens: batch sequences of seq_length + 1. The mean cross entropy over kept targets (>= 0); an
 * input below zero has no token embedding. s4d_reference_gradient also sets every g. */
double s4d_reference_loss(struct s4d_reference *r, const int32_t *tokens, int batch);
double s4d_reference_gradient(struct s4d_reference *r, const int32_t *tokens, int batch);

/* One AdamW step (arXiv 1711.05101) with the gradients scaled to a global norm of at most clip_norm
 * (0: as they are). Returns their norm before that. */
struct s4d_reference_adamw {
    double learning_rate, beta1, beta2, epsilon, weight_decay, clip_norm;
};
double s4d_reference_update(struct s4d_reference *r, const struct s4d_reference_adamw *o);

#endif
