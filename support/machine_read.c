/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's tools, the whole file, and its fabric section. */
#include "support/machine_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/units.h"

static const char *const kind_names[] = {"a value", "a list", "a mapping"};

int s4d_read_child(const struct s4d_yaml_node *mapping, const char *key, enum s4d_yaml_kind kind,
                   const struct s4d_yaml_node **child, struct s4d_error *err)
{
    *child = s4d_yaml_get(mapping, key);
    if (!*child)
        return s4d_yaml_fail(mapping, err, "missing key '%s'", key);
    if ((*child)->kind == kind)
        return 0;
    s4d_yaml_fail(*child, err, "expected %s, found %s", kind_names[kind],
                  kind_names[(*child)->kind]);
    if (kind == S4D_YAML_MAPPING && (*child)->kind == S4D_YAML_SCALAR)
        s4d_hint(err, "every number says where it comes from: "
                      "{ value: ..., tag: read, source: \"...\" }");
    return -1;
}

int s4d_read_only(const struct s4d_yaml_node *mapping, const char *const *known, int n,
                  struct s4d_error *err)
{
    for (int i = 0; i < mapping->n; i++) {
        const struct s4d_yaml_node *child = mapping->child[i];
        bool found = false;
        for (int j = 0; j < n && !found; j++)
            found = strcmp(known[j], child->key) == 0;
        if (!found) {
            s4d_yaml_fail(child, err, "unknown key");
            return s4d_hint_nearest(err, child->key, known, n);
        }
    }
    return 0;
}

int s4d_read_origin(const struct s4d_yaml_node *mapping, enum s4d_tag *tag, char **source,
                    struct s4d_error *err)
{
    const struct s4d_yaml_node *t, *s;
    if (s4d_read_child(mapping, "tag", S4D_YAML_SCALAR, &t, err) ||
        s4d_read_child(mapping, "source", S4D_YAML_SCALAR, &s, err))
        return -1;
    if (s->text[0] == '\0')
        return s4d_yaml_fail(s, err, "is empty: where does the number come from?");
    for (int i = 0; i < S4D_TAGS; i++) {
        if (strcmp(t->text, s4d_tag_names[i]) == 0) {
            *tag = (enum s4d_tag)i;
            free(*source);
            *source = s4d_strdup(s->text);
            return 0;
        }
    }
    s4d_yaml_fail(t, err,
                  "expected read, secondary, derived, measured, fitted or assumed; found %s",
                  s4d_quote(t->text).text);
    return -1;
}

/* A parser's complaint, with the node's place. */
static int relay(const struct s4d_yaml_node *node, const struct s4d_error *inner,
                 struct s4d_error *err)
{
    s4d_yaml_fail(node, err, "%s", inner->text);
    return inner->hint[0] ? s4d_hint(err, "%s", inner->hint) : -1;
}

int s4d_read_int(const struct s4d_yaml_node *scalar, int64_t min, int64_t max, int *value,
                 struct s4d_error *err)
{
    int64_t v;
    struct s4d_error inner = {0};
    if (scalar->kind != S4D_YAML_SCALAR)
        return s4d_yaml_fail(scalar, err, "expected a whole number, found %s",
                             kind_names[scalar->kind]);
    if (s4d_parse_int(scalar->text, min, max, &v, &inner))
        return relay(scalar, &inner, err);
    *value = (int)v;
    return 0;
}

int s4d_read_value(const struct s4d_yaml_node *list, int i, const char *key, double *value,
                   struct s4d_error *err)
{
    const struct s4d_yaml_node *scalar = list->child[i];
    struct s4d_error inner = {0};
    if (scalar->kind != S4D_YAML_SCALAR)
        return s4d_yaml_fail(list, err, "expected values, found %s", kind_names[scalar->kind]);
    return s4d_parse_quantity(key, scalar->text, value, &inner) ? relay(list, &inner, err) : 0;
}

int s4d_read_name(const struct s4d_yaml_node *mapping, const char *key, char *text, size_t size,
                  struct s4d_error *err)
{
    const struct s4d_yaml_node *node;
    if (s4d_read_child(mapping, key, S4D_YAML_SCALAR, &node, err))
        return -1;
    if (node->text[0] == '\0' || strlen(node->text) >= size)
        return s4d_yaml_fail(node, err, "expected 1 to %zu characters", size - 1);
    snprintf(text, size, "%s", node->text);
    return 0;
}

static const char *const quantity_keys[] = {"value", "tag", "source"};

int s4d_read_quantity(const struct s4d_yaml_node *mapping, const char *key, struct s4d_quantity *q,
                      struct s4d_error *err)
{
    const struct s4d_yaml_node *value;
    struct s4d_error inner = {0};
    if (s4d_read_only(mapping, quantity_keys, 3, err) ||
        s4d_read_child(mapping, "value", S4D_YAML_SCALAR, &value, err))
        return -1;
    if (s4d_parse_quantity(key, value->text, &q->value, &inner))
        return relay(mapping, &inner, err);
    return s4d_read_origin(mapping, &q->tag, &q->source, err);
}

static int read_list(const struct s4d_yaml_node *mapping, const struct s4d_machine_field *field,
                     struct s4d_quantity *q, struct s4d_error *err)
{
    const struct s4d_yaml_node *list;
    if (s4d_read_only(mapping, quantity_keys, 3, err) ||
        s4d_read_child(mapping, "value", S4D_YAML_SEQUENCE, &list, err))
        return -1;
    if (list->n != field->count)
        return s4d_yaml_fail(list, err, "expected %d values, [LL, LL128, Simple]; found %d",
                             field->count, list->n);
    for (int i = 0; i < field->count; i++) {
        if (s4d_read_value(list, i, field->key, &q[i].value, err) ||
            s4d_read_origin(mapping, &q[i].tag, &q[i].source, err))
            return -1;
    }
    return 0;
}

int s4d_read_fields(struct s4d_machine *m, const char *section, const struct s4d_yaml_node *mapping,
                    struct s4d_error *err)
{
    for (const struct s4d_machine_field *f = s4d_machine_fields; f->key; f++) {
        const struct s4d_yaml_node *node;
        struct s4d_quantity *q = s4d_field_quantity(m, f);
        struct s4d_error inner = {0};
        if (strcmp(f->section, section) != 0 || !s4d_field_used(m, f))
            continue;
        if (f->absent && !s4d_yaml_get(mapping, f->key)) {
            s4d_quantity_set(q, INFINITY, S4D_TAG_DERIVED, f->absent);
            continue;
        }
        if (s4d_read_child(mapping, f->key, S4D_YAML_MAPPING, &node, err) ||
            (f->count == 1 ? s4d_read_quantity(node, f->key, q, err) : read_list(node, f, q, err)))
            return -1;
        for (int i = 0; i < f->count; i++) {
            if (s4d_field_check(f, q[i].value, &inner))
                return relay(node, &inner, err);
        }
    }
    return 0;
}

int s4d_read_curve(const struct s4d_yaml_node *mapping, const char *key_x, const char *key_y,
                   struct s4d_curve *curve, struct s4d_error *err)
{
    const struct s4d_yaml_node *x, *y;
    if (s4d_read_origin(mapping, &curve->tag, &curve->source, err) ||
        s4d_read_child(mapping, key_x, S4D_YAML_SEQUENCE, &x, err) ||
        s4d_read_child(mapping, key_y, S4D_YAML_SEQUENCE, &y, err))
        return -1;
    if (x->n != y->n)
        return s4d_yaml_fail(y, err, "expected %d values, as many as %s; found %d", x->n, key_x,
                             y->n);
    curve->x = s4d_calloc((size_t)x->n + 1, sizeof *curve->x);
    curve->y = s4d_calloc((size_t)x->n + 1, sizeof *curve->y);
    curve->n = x->n;
    for (int i = 0; i < x->n; i++) {
        if (s4d_read_value(x, i, key_x, &curve->x[i], err) ||
            s4d_read_value(y, i, key_y, &curve->y[i], err))
            return -1;
        if (!(curve->x[i] > (i ? curve->x[i - 1] : 0)) || isinf(curve->x[i]))
            return s4d_yaml_fail(x, err, "expected values above 0, each above the last");
        if (!(curve->y[i] > 0) || isinf(curve->y[i]))
            return s4d_yaml_fail(y, err, "expected values above 0");
    }
    return 0;
}

static int read_parameter(struct s4d_fabric *f, const struct s4d_yaml_node *child,
                          struct s4d_error *err)
{
    struct s4d_parameter *p = &f->parameter[f->n_parameters++];
    if (strlen(child->key) >= sizeof p->key)
        return s4d_yaml_fail(child, err, "unknown key");
    if (child->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(child, err, "expected { value: ..., tag: ..., source: ... }");
    const struct s4d_yaml_node *value;
    struct s4d_error inner = {0};
    enum s4d_tag tag;
    char *source = NULL;
    snprintf(p->key, sizeof p->key, "%s", child->key);
    p->line = child->line;
    if (s4d_read_only(child, quantity_keys, 3, err) ||
        s4d_read_child(child, "value", S4D_YAML_SCALAR, &value, err) ||
        s4d_read_origin(child, &tag, &source, err))
        return -1;
    int rc = s4d_parameter_set(p, value->text, tag, source, &inner);
    free(source);
    return rc ? relay(child, &inner, err) : 0;
}

/* topology, nodes, latency_s; every other key is a parameter of the topology, checked by the
 * registry of fabrics. */
static int read_fabric(struct s4d_machine *m, const struct s4d_yaml_node *section,
                       struct s4d_error *err)
{
    struct s4d_fabric *f = &m->fabric;
    const struct s4d_yaml_node *nodes, *value;
    f->line = section->line;
    if (s4d_read_name(section, "topology", f->topology, sizeof f->topology, err) ||
        s4d_read_child(section, "nodes", S4D_YAML_MAPPING, &nodes, err) ||
        s4d_read_only(nodes, quantity_keys, 3, err) ||
        s4d_read_child(nodes, "value", S4D_YAML_SCALAR, &value, err) ||
        s4d_read_int(value, 1, 1 << 20, &f->nodes, err) ||
        s4d_read_origin(nodes, &f->nodes_origin.tag, &f->nodes_origin.source, err) ||
        s4d_read_fields(m, "fabric", section, err))
        return -1;
    f->parameter = s4d_calloc((size_t)section->n + 1, sizeof *f->parameter);
    for (int i = 0; i < section->n; i++) {
        const struct s4d_yaml_node *child = section->child[i];
        if (strcmp(child->key, "topology") != 0 && strcmp(child->key, "nodes") != 0 &&
            strcmp(child->key, "latency_s") != 0 && read_parameter(f, child, err))
            return -1;
    }
    return 0;
}

static int read_root(struct s4d_machine *m, const struct s4d_yaml_node *root, struct s4d_error *err)
{
    static const char *const keys[] = {"description", "device", "node", "fabric", "library"};
    const struct s4d_yaml_node *description, *device, *node, *fabric, *library;
    if (root->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(root, err, "expected a mapping, found %s", kind_names[root->kind]);
    if (s4d_read_only(root, keys, 5, err) ||
        s4d_read_child(root, "description", S4D_YAML_SCALAR, &description, err) ||
        s4d_read_child(root, "device", S4D_YAML_MAPPING, &device, err) ||
        s4d_read_child(root, "node", S4D_YAML_MAPPING, &node, err) ||
        s4d_read_child(root, "fabric", S4D_YAML_MAPPING, &fabric, err) ||
        s4d_read_child(root, "library", S4D_YAML_MAPPING, &library, err))
        return -1;
    m->description = s4d_strdup(description->text);
    return s4d_read_device(m, device, err) || s4d_read_node(m, node, err) ||
                   read_fabric(m, fabric, err) || s4d_read_library(m, library, err)
               ? -1
               : 0;
}

int s4d_machine_read(struct s4d_machine *m, const char *file, const char *text, size_t n,
                     struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    if (s4d_yaml_parse(file, text, n, &root, err))
        return -1;
    int rc = read_root(m, root, err);
    s4d_yaml_free(root);
    return rc;
}
