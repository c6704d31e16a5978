/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes to the reader of config.json: a model that fulfils what models must, or an error that
 * names the file. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "workloads/hf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_workload w;
    struct s4d_error err;
    memset(&w, 0, sizeof w);
    if (s4d_workload_config(&w, "fuzz.json", (const char *)data, n, &err)) {
        S4D_ASSERT(strncmp(err.where, "fuzz.json", 9) == 0 && err.text[0], "%s", err.where);
    } else {
        const struct s4d_model *m = &w.model;
        S4D_ASSERT(m->num_layers > 0 && m->hidden_size > 0 && m->seq_length > 0, "%s", m->name);
        S4D_ASSERT(m->num_attention_heads % m->num_key_value_heads == 0, "%s", m->name);
        S4D_ASSERT(s4d_workload_parameters(m) > 0, "%s", m->name);
    }
    s4d_workload_free(&w);
    return 0;
}
