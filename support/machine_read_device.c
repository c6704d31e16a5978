/* SPDX-License-Identifier: Apache-2.0 */
/* The device section of a machine file. */
#include <math.h>
#include <string.h>

#include "support/machine_read.h"
#include "support/memory.h"
#include "support/quote.h"

static int read_bool(const struct s4d_yaml_node *mapping, const char *key, bool *value,
                     struct s4d_error *err)
{
    const struct s4d_yaml_node *node;
    if (s4d_read_child(mapping, key, S4D_YAML_SCALAR, &node, err))
        return -1;
    *value = strcmp(node->text, "true") == 0;
    if (!*value && strcmp(node->text, "false") != 0)
        return s4d_yaml_fail(node, err, "expected true or false, found %s",
                             s4d_quote(node->text).text);
    return 0;
}

static int read_attention_row(struct s4d_device *d, const struct s4d_yaml_node *row,
                              struct s4d_error *err)
{
    static const char *const keys[] = {"head_dim", "causal",     "pass",       "tag",
                                       "source",   "seq_length", "flops_per_s"};
    const struct s4d_yaml_node *head_dim;
    char pass[16];
    if (row->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(row, err, "expected a mapping with head_dim, causal, pass, ...");
    if (s4d_read_only(row, keys, 7, err) ||
        s4d_read_child(row, "head_dim", S4D_YAML_SCALAR, &head_dim, err) ||
        s4d_read_name(row, "pass", pass, sizeof pass, err))
        return -1;
    bool both = strcmp(pass, "both") == 0;
    if (!both && strcmp(pass, "forward") != 0 && strcmp(pass, "backward") != 0)
        return s4d_yaml_fail(s4d_yaml_get(row, "pass"), err,
                             "expected forward, backward or both, found %s", s4d_quote(pass).text);
    for (int i = 0; i < 1 + both; i++) {
        struct s4d_attention_row *r = &d->attention[d->n_attention++];
        r->backward = both ? i == 1 : strcmp(pass, "backward") == 0;
        if (s4d_read_int(head_dim, 1, 4096, &r->head_dim, err) ||
            read_bool(row, "causal", &r->causal, err) ||
            s4d_read_curve(row, "seq_length", "flops_per_s", &r->flops_per_s, err))
            return -1;
        if (r->flops_per_s.n == 0)
            return s4d_yaml_fail(row, err, "expected at least one seq_length");
        for (const struct s4d_attention_row *q = d->attention; q < r; q++)
            if (q->head_dim == r->head_dim && q->causal == r->causal && q->backward == r->backward)
                return s4d_yaml_fail(row, err, "head_dim %d, causal %s, %s: given twice",
                                     r->head_dim, r->causal ? "true" : "false",
                                     r->backward ? "backward" : "forward");
    }
    return 0;
}

/* [bf16, f16]: joined by spaces. */
static int read_types(struct s4d_device *d, const struct s4d_yaml_node *list, struct s4d_error *err)
{
    static const char *const types[] = {"f64", "f32", "bf16", "f16"};
    bool seen[4] = {false};
    size_t n = 0;
    for (int i = 0; i < list->n; i++) {
        const struct s4d_yaml_node *node = list->child[i];
        int type = 0;
        while (type < 4 && (node->kind != S4D_YAML_SCALAR || strcmp(node->text, types[type]) != 0))
            type++;
        if (type == 4 || seen[type])
            return s4d_yaml_fail(list, err, "expected some of f64, f32, bf16, f16, each once");
        seen[type] = true;
        n += (size_t)snprintf(d->compute_types + n, sizeof d->compute_types - n, "%s%s",
                              i ? " " : "", node->text);
    }
    return list->n > 0 ? 0 : s4d_yaml_fail(list, err, "expected at least one type");
}

static int read_gemm_row(struct s4d_gemm_row *row, const struct s4d_yaml_node *node,
                         struct s4d_error *err)
{
    static const char *const keys[] = {"shape", "transpose", "flops_per_s"};
    const struct s4d_yaml_node *shape;
    int *sizes[] = {&row->m, &row->n, &row->k};
    char transpose[4], rate[64];
    struct s4d_error inner = {0};
    if (node->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(node, err,
                             "expected { shape: [m, n, k], transpose: nn, flops_per_s: ... }");
    if (s4d_read_only(node, keys, 3, err) ||
        s4d_read_child(node, "shape", S4D_YAML_SEQUENCE, &shape, err) ||
        s4d_read_name(node, "transpose", transpose, sizeof transpose, err) ||
        s4d_read_name(node, "flops_per_s", rate, sizeof rate, err))
        return -1;
    if (shape->n != 3)
        return s4d_yaml_fail(shape, err, "expected [m, n, k], found %d numbers", shape->n);
    for (int i = 0; i < 3; i++)
        if (s4d_read_int(shape->child[i], 1, INT32_MAX, sizes[i], err))
            return -1;
    row->transpose_a = transpose[0] == 't';
    row->transpose_b = transpose[1] == 't';
    if (strlen(transpose) != 2 || !strchr("nt", transpose[0]) || !strchr("nt", transpose[1]))
        return s4d_yaml_fail(s4d_yaml_get(node, "transpose"), err,
                             "expected nn, nt, tn or tt, found %s", s4d_quote(transpose).text);
    if (s4d_parse_quantity("flops_per_s", rate, &row->flops_per_s, &inner))
        return s4d_yaml_fail(s4d_yaml_get(node, "flops_per_s"), err, "%s", inner.text);
    if (!(row->flops_per_s > 0) || isinf(row->flops_per_s))
        return s4d_yaml_fail(s4d_yaml_get(node, "flops_per_s"), err,
                             "expected more than 0, and not unlimited");
    return 0;
}

static bool same_shape(const struct s4d_gemm_row *a, const struct s4d_gemm_row *b)
{
    return a->m == b->m && a->n == b->n && a->k == b->k && a->transpose_a == b->transpose_a &&
           a->transpose_b == b->transpose_b;
}

static int read_gemm(struct s4d_gemm_table *t, const struct s4d_yaml_node *mapping,
                     struct s4d_error *err)
{
    static const char *const keys[] = {"tag", "source", "rows"};
    const struct s4d_yaml_node *rows;
    if (mapping->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(mapping, err, "expected a mapping with tag, source, rows");
    if (s4d_read_only(mapping, keys, 3, err) ||
        s4d_read_origin(mapping, &t->tag, &t->source, err) ||
        s4d_read_child(mapping, "rows", S4D_YAML_SEQUENCE, &rows, err))
        return -1;
    t->row = s4d_calloc((size_t)rows->n + 1, sizeof *t->row);
    for (; t->n < rows->n; t->n++) {
        const struct s4d_yaml_node *node = rows->child[t->n];
        if (read_gemm_row(&t->row[t->n], node, err))
            return -1;
        for (int i = 0; i < t->n; i++)
            if (same_shape(&t->row[i], &t->row[t->n]))
                return s4d_yaml_fail(node, err, "the same shape as row %d", i + 1);
    }
    return t->n > 0 ? 0 : s4d_yaml_fail(rows, err, "expected at least one row");
}

static int read_kernels(struct s4d_device *d, const struct s4d_yaml_node *rows,
                        struct s4d_error *err)
{
    static const char *const keys[] = {"kind", "tag", "source", "size_bytes", "bandwidth_Bps"};
    if (rows->kind != S4D_YAML_SEQUENCE)
        return s4d_yaml_fail(rows, err, "expected a list of kinds of kernels");
    d->kernel = s4d_calloc((size_t)rows->n + 1, sizeof *d->kernel);
    for (int i = 0; i < rows->n; i++) {
        const struct s4d_yaml_node *row = rows->child[i];
        struct s4d_kernel_row *k = &d->kernel[d->n_kernels++];
        if (row->kind != S4D_YAML_MAPPING)
            return s4d_yaml_fail(row, err, "expected a mapping with kind, size_bytes, ...");
        if (s4d_read_only(row, keys, 5, err) ||
            s4d_read_name(row, "kind", k->kind, sizeof k->kind, err) ||
            s4d_read_curve(row, "size_bytes", "bandwidth_Bps", &k->bandwidth_Bps, err))
            return -1;
        if (k->bandwidth_Bps.n == 0)
            return s4d_yaml_fail(row, err, "expected at least one size");
        for (int j = 0; j < i; j++)
            if (strcmp(d->kernel[j].kind, k->kind) == 0)
                return s4d_yaml_fail(row, err, "kind %s is given twice", k->kind);
    }
    return 0;
}

/* The two that a file need not have. */
static int read_measured(struct s4d_device *d, const struct s4d_yaml_node *section,
                         struct s4d_error *err)
{
    const struct s4d_yaml_node *gemm = s4d_yaml_get(section, "gemm"),
                               *kernels = s4d_yaml_get(section, "kernels");
    if (gemm && read_gemm(&d->gemm, gemm, err))
        return -1;
    return kernels ? read_kernels(d, kernels, err) : 0;
}

int s4d_read_device(struct s4d_machine *m, const struct s4d_yaml_node *section,
                    struct s4d_error *err)
{
    static const char *const others[] = {"name",      "compute_types", "memory_efficiency",
                                         "attention", "gemm",          "kernels"};
    static const char *const curve_keys[] = {"tag", "source", "size_bytes", "part"};
    struct s4d_device *d = &m->device;
    const char *keys[S4D_KEYS];
    const struct s4d_yaml_node *types, *curve, *rows;
    int n = s4d_known_keys(m, "device", others, 6, keys);
    if (s4d_read_only(section, keys, n, err) ||
        s4d_read_name(section, "name", d->name, sizeof d->name, err) ||
        s4d_read_child(section, "compute_types", S4D_YAML_SEQUENCE, &types, err) ||
        read_types(d, types, err) || s4d_read_fields(m, "device", section, err) ||
        s4d_read_child(section, "memory_efficiency", S4D_YAML_MAPPING, &curve, err) ||
        s4d_read_only(curve, curve_keys, 4, err) ||
        s4d_read_curve(curve, "size_bytes", "part", &d->memory_efficiency, err) ||
        s4d_read_child(section, "attention", S4D_YAML_SEQUENCE, &rows, err))
        return -1;
    for (int i = 0; i < d->memory_efficiency.n; i++) {
        if (d->memory_efficiency.y[i] > 1)
            return s4d_yaml_fail(curve, err, "expected parts of at most 1, found %g",
                                 d->memory_efficiency.y[i]);
    }
    d->attention = s4d_calloc(2 * (size_t)rows->n + 1, sizeof *d->attention);
    for (int i = 0; i < rows->n; i++) {
        if (read_attention_row(d, rows->child[i], err))
            return -1;
    }
    return read_measured(d, section, err);
}
