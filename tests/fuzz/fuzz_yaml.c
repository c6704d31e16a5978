/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes to the YAML reader; what it takes goes to the binder with a workload's keys. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support/option.h"
#include "workloads/workload.h"

static void visit(const struct s4d_yaml_node *node, int depth)
{
    S4D_ASSERT(depth <= 64 && node->line >= 1 && strcmp(node->file, "fuzz.yaml") == 0, "depth %d",
               depth);
    S4D_ASSERT((node->text != NULL) == (node->kind == S4D_YAML_SCALAR), "kind %d", node->kind);
    for (int i = 0; i < node->n; i++) {
        const struct s4d_yaml_node *child = node->child[i];
        S4D_ASSERT((child->key != NULL) == (node->kind == S4D_YAML_MAPPING), "key");
        if (child->key)
            S4D_ASSERT(s4d_yaml_get(node, child->key) == child, "key %s", child->key);
        visit(child, depth + 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_yaml_node *root;
    struct s4d_error err;
    if (s4d_yaml_parse("fuzz.yaml", (const char *)data, n, &root, &err)) {
        S4D_ASSERT(root == NULL && strncmp(err.where, "fuzz.yaml", 9) == 0, "%s", err.where);
        return 0;
    }
    visit(root, 0);
    struct s4d_workload w = {.file = NULL};
    if (s4d_options_yaml(s4d_workload_keys(), root, NULL, &w, &err))
        S4D_ASSERT(strncmp(err.where, "fuzz.yaml:", 10) == 0, "%s", err.where);
    s4d_workload_free(&w);
    s4d_yaml_free(root);
    return 0;
}
