/* SPDX-License-Identifier: Apache-2.0 */
/* The serial Llama behind tests/lib/reference.h: RMSNorm, rotary positions, grouped-query
 * attention, SwiGLU, no biases, a head of its own or tied.
 *
 * Written from Hugging Face's LlamaForCausalLM, without schedule/'s layers or the interpreter. The
 * parameters that the program keeps side by side (q|k|v, gate|up) are one here too, (in, out). */
#ifndef S4D_TESTS_LLAMA_H
#define S4D_TESTS_LLAMA_H

#include <stdbool.h>

#include "tests/lib/reference.h"

bool s4d_is_llama(const struct s4d_model *model); /* by its attention kind */
void s4d_llama_declare(struct s4d_reference *r);
/* Summed cross entropy of one sequence of inputs and targets (below zero: none). factor: what the
 * loss is multiplied by in the gradient, which is added to every g; 0: no gradient. */
double s4d_llama_sequence(struct s4d_reference *r, const int32_t *inputs, const int32_t *targets,
                          double factor);

#endif
