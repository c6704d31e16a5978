/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of reference values: refused with file:line, or limits that can be tested. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "plots/track/reference.h"

static void check(const struct s4d_reference *r)
{
    S4D_ASSERT(r->where && r->host_class && r->metric, "a reference without a name");
    S4D_ASSERT(strncmp(r->where, "fuzz.yaml:", 10) == 0, "%s", r->where);
    S4D_ASSERT(isfinite(r->value) && r->value > 0, "%g", r->value);
    S4D_ASSERT(isnan(r->lower) || (r->lower <= 0 && r->lower >= -1), "%g", r->lower);
    S4D_ASSERT(isnan(r->upper) || (r->upper >= 0 && isfinite(r->upper)), "%g", r->upper);
    S4D_ASSERT(!isnan(r->lower) || !isnan(r->upper), "%s has no limit", r->where);
    S4D_ASSERT(r->gpus >= 0, "%lld", (long long)r->gpus);
    const struct s4d_series other = {.host_class = r->host_class,
                                     .kind = "k",
                                     .backend = "b",
                                     .workload = "w",
                                     .grid = "g",
                                     .gpus = 1};
    s4d_reference_is_of(r, &other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_yaml_node *root;
    struct s4d_references all;
    struct s4d_error err = {0};
    if (s4d_yaml_parse("fuzz.yaml", (const char *)data, n, &root, &err))
        return 0;
    if (s4d_references_make(&all, root, &err) == 0)
        for (int i = 0; i < all.n; i++)
            check(&all.v[i]);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA &&
                       strncmp(err.where, "fuzz.yaml:", 10) == 0,
                   "%s: '%s'", err.where, err.text);
    s4d_references_free(&all);
    s4d_yaml_free(root);
    return 0;
}
