/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of experiments: refused with file:line, or experiments with names of their
 * own. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plots/sweep.h"

static void check(const struct s4d_sweep *s)
{
    S4D_ASSERT(s->n > 0 && s->n <= S4D_SWEEP_MOST, "%d", s->n);
    for (int i = 0; i < s->n; i++) {
        const struct s4d_sweep_entry *e = &s->v[i];
        S4D_ASSERT(e->name && strchr(e->name, '\n') == NULL && e->node && e->node->line >= 1,
                   "entry %d", i);
        S4D_ASSERT(e->n_mappings >= 1 && e->n_mappings <= S4D_SWEEP_MAPPINGS, "%d", e->n_mappings);
        for (int k = 0; k < e->n_mappings; k++)
            for (int c = 0; c < e->mapping[k]->n; c++)
                S4D_ASSERT(e->mapping[k]->child[c]->key != NULL, "child %d", c);
        S4D_ASSERT(i == 0 || strcmp(e->name, e[-1].name) != 0, "%s", e->name);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_yaml_node *root;
    struct s4d_error err = {0};
    if (s4d_yaml_parse("fuzz.yaml", (const char *)data, n, &root, &err))
        return 0;
    struct s4d_sweep s;
    if (s4d_sweep_make(&s, root, &err) == 0)
        check(&s);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA &&
                       strncmp(err.where, "fuzz.yaml:", 10) == 0,
                   "%s: '%s'", err.where, err.text);
    s4d_sweep_free(&s);
    s4d_yaml_free(root);
    return 0;
}
