/* SPDX-License-Identifier: Apache-2.0 */
/* A Hugging Face config.json in place of a workload's YAML.
 *
 * model_type gpt2, llama or mistral. A key that is absent or null takes the default of that
 * model_type's configuration class in huggingface/transformers (the tables of hf_config.c). What
 * such a model may have and ours have not (sliding windows, biases of Llama's projections, other
 * activations or rope types) is refused; dropout and keys that are not known are named in a warning
 * and ignored. The sequence length is the longest the model takes (max_position_embeddings,
 * n_positions), unless a key seq_length, which is ours, says another one. The model's name is the
 * end of _name_or_path, or else the model_type. */
#ifndef S4D_WORKLOADS_HF_CONFIG_H
#define S4D_WORKLOADS_HF_CONFIG_H

#include <stddef.h>

#include "workloads/workload.h"

/* text: n bytes read from `file`. 0, or -1 (exit 65): no JSON (file:line:column), an unknown
 * model_type, a bad value, something we have not. */
int s4d_workload_config(struct s4d_workload *w, const char *file, const char *text, size_t n,
                        struct s4d_error *err);

#endif
