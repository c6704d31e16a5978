/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a YAML mapping: keys are option names with '_' for '-'. */
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/option_field.h"
#include "support/quote.h"

struct binder {
    const struct s4d_option **option;
    void **field;
    int n;
    struct s4d_error *err;
};

/* The place of a key in the tables, or -1. */
static int find_key(const struct binder *b, const char *key)
{
    for (int i = 0; i < b->n; i++) {
        char name[80];
        if (strcmp(s4d_option_key(b->option[i], name, sizeof name), key) == 0)
            return i;
    }
    return -1;
}

static int fail_unknown(const struct binder *b, const struct s4d_yaml_node *node)
{
    s4d_yaml_fail(node, b->err, "unknown key %s", s4d_quote(node->key).text);
    const char **keys = s4d_calloc((size_t)b->n + 1, sizeof *keys);
    char(*text)[80] = s4d_calloc((size_t)b->n + 1, sizeof *text);
    for (int i = 0; i < b->n; i++)
        keys[i] = s4d_option_key(b->option[i], text[i], sizeof text[i]);
    s4d_hint_nearest(b->err, node->key, keys, b->n);
    free(keys);
    free(text);
    return -1;
}

static int set_scalar(const struct binder *b, int i, const struct s4d_yaml_node *node,
                      const struct s4d_yaml_node *named)
{
    if (node->kind != S4D_YAML_SCALAR)
        return s4d_yaml_fail(named, b->err, "expected one value, found a collection");
    struct s4d_error found = {.exit = S4D_EXIT_DATA};
    if (s4d_option_set(b->option[i], b->field[i], node->text, S4D_FROM_YAML, &found) == 0)
        return 0;
    /* A parser that names a place of its own ("other.yaml:3") knows better; one that names an
     * option does not: there is none here. */
    if (found.where[0] == '\0' || found.where[0] == '-')
        s4d_yaml_fail(node->key ? node : named, b->err, "%s", found.text);
    else
        s4d_fail(b->err, S4D_EXIT_DATA, found.where, "%s", found.text);
    return found.hint[0] ? s4d_hint(b->err, "%s", found.hint) : -1;
}

static int set_node(const struct binder *b, int i, const struct s4d_yaml_node *node)
{
    if (b->option[i]->type != S4D_OPT_LIST || node->kind == S4D_YAML_SCALAR)
        return set_scalar(b, i, node, node);
    if (node->kind == S4D_YAML_MAPPING)
        return s4d_yaml_fail(node, b->err, "expected a list of values, found keys");
    for (int k = 0; k < node->n; k++) {
        if (set_scalar(b, i, node->child[k], node))
            return -1;
    }
    return 0;
}

static bool is_skipped(const char *const *skip, const char *key)
{
    for (; skip && *skip; skip++) {
        if (strcmp(*skip, key) == 0)
            return true;
    }
    return false;
}

int s4d_options_yaml(const struct s4d_option_group *groups, const struct s4d_yaml_node *mapping,
                     const char *const *skip, void *config, struct s4d_error *err)
{
    if (mapping->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(mapping, err, "expected keys and values, found a %s",
                             mapping->kind == S4D_YAML_SEQUENCE ? "list" : "single value");
    struct binder b = {.err = err};
    b.n = s4d_option_flatten(groups, config, &b.option, &b.field);
    int rc = 0;
    for (int k = 0; k < mapping->n && !rc; k++) {
        const struct s4d_yaml_node *node = mapping->child[k];
        if (is_skipped(skip, node->key))
            continue;
        int i = find_key(&b, node->key);
        rc = i < 0 ? fail_unknown(&b, node) : set_node(&b, i, node);
    }
    free(b.option);
    free(b.field);
    return rc;
}
