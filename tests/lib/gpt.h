/* SPDX-License-Identifier: Apache-2.0 */
/* The serial GPT-2 behind tests/lib/reference.h (Radford et al. 2019; Hugging Face
 * GPT2LMHeadModel): token and position embedding, blocks x += attention(norm1(x)), x +=
 * mlp(norm2(x)) with LayerNorm, a fused q|k|v projection, causal softmax attention scaled by
 * 1/sqrt(head size), GELU in its tanh form, a last LayerNorm and a head that is the transposed
 * token embedding or, untied, a matrix of its own. */
#ifndef S4D_TESTS_GPT_H
#define S4D_TESTS_GPT_H

#include "tests/lib/reference.h"

void s4d_gpt_declare(struct s4d_reference *r);
/* Summed cross entropy of one sequence of inputs and targets (below zero: none). factor: what the
 * loss is multiplied by in the gradient, which is added to every g; 0: no gradient. */
double s4d_gpt_sequence(struct s4d_reference *r, const int32_t *inputs, const int32_t *targets,
                        double factor);

#endif
