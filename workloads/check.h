/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's values must fulfil together, wherever they were read from. */
#ifndef S4D_WORKLOADS_CHECK_H
#define S4D_WORKLOADS_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "schedule/model.h"
#include "support/error.h"

/* A text that the values were read from. Keys are s4d_workload_keys'. */
struct s4d_workload_text {
    const void *context;
    bool (*present)(const void *context, const char *key);
    void (*place)(const void *context, const char *key, char *text,
                  size_t size); /* "w.yaml:3: k" */
};

/* Every key that the model's layer kinds need is there and none that only others use; heads divide;
 * layer kinds are known and fit their slots. Sets num_key_value_heads where it was not given. 0, or
 * -1 (exit 65). */
int s4d_workload_check(struct s4d_model *m, const struct s4d_workload_text *text,
                       struct s4d_error *err);

/* Removes from a record the keys of layer kinds that the model does not use, and optional ones that
 * are not set. */
void s4d_workload_drop_unused(const struct s4d_model *m, json_t *record);

#endif
