/* SPDX-License-Identifier: Apache-2.0 */
/* Which model is trained: one YAML each, read into schedule/model.h; or a Hugging Face config.json.
 *
 * Keys are those of the struct, and source: which paper, which table. Optional are
 * num_key_value_heads (default: num_attention_heads) and init_std (0.02). A key that only some
 * layer kinds use (rope_theta, goldfish_k, ...) may stand only with one of them. */
#ifndef S4D_WORKLOADS_WORKLOAD_H
#define S4D_WORKLOADS_WORKLOAD_H

#include <jansson.h>

#include "schedule/model.h"
#include "support/error.h"
#include "support/option.h" /* for: struct s4d_option_group */

struct s4d_workload {
    struct s4d_model model;
    char hash[17]; /* of the file's bytes */
    char *file;
    char *source; /* where its numbers are from */
};

/* NAME (of a file in the workloads folder), or a path: has a '/' or ends in .yaml or .json (which
 * is read as workloads/hf_config.h says). 0, or -1 (exit 65; *w is empty): unknown workload (names
 * the nearest), missing or extra key, bad number, an unknown layer kind, with file:line. */
int s4d_workload_load(struct s4d_workload *w, const char *name, struct s4d_error *err);
void s4d_workload_free(struct s4d_workload *w);
/* Of the workloads folder: SCALE4D_WORKLOADS in the environment, or the one of the build. Sorted;
 * returns how many; caller frees with s4d_names_free (support/file.h). */
int s4d_workload_names(char ***names);

/* Parameters of the whole model by its layer kinds' closed forms, tied weights once. */
double s4d_workload_parameters(const struct s4d_model *model);

/* Adds the model's keys and values to a record, without those of layer kinds it does not use. */
void s4d_workload_record(const struct s4d_workload *w, json_t *record);

/* The tables of the keys, over a struct s4d_workload: those of every model, and those that layer
 * kinds have. The first call makes the list. */
const struct s4d_option_group *s4d_workload_keys(void);

#endif
