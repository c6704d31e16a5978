/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/units.h"

static const char *const series_keys[] = {"kind", "backend", "workload", "gpus", "grid"};

/* Every metric's units, by that of the table. */
static const struct {
    const char *unit, *also;
    int (*parse)(const char *text, double *value, struct s4d_error *err);
} units[] = {
    {"FLOP/s", "GFLOP/s, TFLOP/s, PFLOP/s, ...", s4d_parse_flops},
    {"s", "s, ms, us, ns", s4d_parse_time},
    {"B/s", "MB/s, GB/s, Gb/s, ...", s4d_parse_bandwidth},
    {"B", "B, MB, GB, MiB, GiB, ...", s4d_parse_bytes},
};

static const char *text_of(const struct s4d_yaml_node *node)
{
    return node->kind == S4D_YAML_SCALAR ? node->text : "a list or mapping";
}

static bool is_null(const struct s4d_yaml_node *node)
{
    return node->kind == S4D_YAML_SCALAR &&
           (strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0);
}

static int parse_value(const struct s4d_yaml_node *list, const struct s4d_metric *metric,
                       double *value, struct s4d_error *err)
{
    const struct s4d_yaml_node *number = list->child[0], *unit = list->child[3];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(units[i].unit, metric->unit) != 0)
            continue;
        char *text = s4d_asprintf("%s %s", text_of(number), text_of(unit));
        struct s4d_error inner = {0};
        int rc = units[i].parse(text, value, &inner);
        if (rc || !(*value > 0))
            rc = s4d_yaml_fail(list, err, "expected a number above 0 and a unit of %s, got %s",
                               units[i].also, s4d_quote(text).text);
        free(text);
        return rc;
    }
    return s4d_yaml_fail(list, err, "expected a metric with a direction; this is shown only");
}

/* A fraction with its sign, or null. sign: -1 lower, +1 upper. */
static int parse_fraction(const struct s4d_yaml_node *node, int sign, double *fraction,
                          struct s4d_error *err)
{
    *fraction = NAN;
    if (is_null(node))
        return 0;
    const char *text = text_of(node), *digits = text + (*text == '-' || *text == '+');
    struct s4d_error inner = {0};
    double size;
    if (s4d_parse_number(digits, 0, sign < 0 ? 1 : 1000, &size, &inner) ||
        (size > 0 && (*text == '-') != (sign < 0))) {
        return s4d_yaml_fail(node, err, "expected the %s, null or a part %s, got %s",
                             sign < 0 ? "lower fraction" : "upper fraction",
                             sign < 0 ? "from -1 to 0 as -0.05" : "of at least 0 as 0.10",
                             s4d_quote(text).text);
    }
    *fraction = sign * size;
    return 0;
}

static int parse_limits(const struct s4d_yaml_node *list, struct s4d_reference *r,
                        struct s4d_error *err)
{
    const struct s4d_metric *metric = s4d_metric_named(r->metric);
    if (metric == NULL) {
        const char *names[64];
        int n = 0;
        for (; s4d_metrics[n].name && n < 64; n++)
            names[n] = s4d_metrics[n].name;
        s4d_yaml_fail(list, err, "expected a metric, got %s", s4d_quote(r->metric).text);
        return s4d_hint_nearest(err, r->metric, names, n);
    }
    if (list->kind != S4D_YAML_SEQUENCE || list->n != 4)
        return s4d_yaml_fail(list, err,
                             "expected [value, lower, upper, unit], as "
                             "[412, -0.05, null, TFLOP/s]");
    if (parse_value(list, metric, &r->value, err) ||
        parse_fraction(list->child[1], -1, &r->lower, err) ||
        parse_fraction(list->child[2], 1, &r->upper, err))
        return -1;
    if (isnan(r->lower) && isnan(r->upper))
        return s4d_yaml_fail(list, err, "expected a lower or an upper fraction, got null twice");
    return 0;
}

static int parse_series(const struct s4d_yaml_node *series, struct s4d_reference *r,
                        struct s4d_error *err)
{
    char **field[] = {&r->kind, &r->backend, &r->workload, NULL, &r->grid};
    const int n_keys = sizeof series_keys / sizeof *series_keys;
    if (series->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(series, err, "expected {workload: NAME, gpus: N, ...}");
    for (int i = 0; i < series->n; i++) {
        const struct s4d_yaml_node *child = series->child[i];
        int k = 0;
        while (k < n_keys && strcmp(series_keys[k], child->key) != 0)
            k++;
        if (k == n_keys) {
            s4d_yaml_fail(child, err, "unknown key");
            return s4d_hint_nearest(err, child->key, series_keys, n_keys);
        }
        if (child->kind != S4D_YAML_SCALAR)
            return s4d_yaml_fail(child, err, "expected one value");
        struct s4d_error inner = {0};
        if (field[k])
            *field[k] = s4d_strdup(child->text);
        else if (s4d_parse_int(child->text, 1, INT32_MAX, &r->gpus, &inner))
            return s4d_yaml_fail(child, err, "%s", inner.text);
    }
    return 0;
}

static void reference_free(struct s4d_reference *r)
{
    char *text[] = {r->where, r->host_class, r->kind, r->backend, r->workload, r->grid, r->metric};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        free(text[i]);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_place(const struct s4d_reference *a, const struct s4d_reference *b)
{
    return same_text(a->host_class, b->host_class) && same_text(a->kind, b->kind) &&
           same_text(a->backend, b->backend) && same_text(a->workload, b->workload) &&
           same_text(a->grid, b->grid) && a->gpus == b->gpus && same_text(a->metric, b->metric);
}

static int parse_metric(struct s4d_references *all, const char *host_class,
                        const struct s4d_yaml_node *series, const struct s4d_yaml_node *metric,
                        struct s4d_error *err)
{
    struct s4d_reference r = {.where = s4d_asprintf("%s:%d", metric->file, metric->line),
                              .host_class = s4d_strdup(host_class),
                              .metric = s4d_strdup(metric->key)};
    int rc = series ? parse_series(series, &r, err) : 0;
    if (rc == 0)
        rc = parse_limits(metric, &r, err);
    for (int i = 0; rc == 0 && i < all->n; i++)
        if (same_place(&all->v[i], &r))
            rc = s4d_yaml_fail(metric, err, "the same metric of the same series is at %s",
                               all->v[i].where);
    if (rc == 0)
        s4d_push(all->v, all->n, all->cap, r);
    else
        reference_free(&r);
    return rc;
}

static int parse_row(struct s4d_references *all, const char *host_class,
                     const struct s4d_yaml_node *row, struct s4d_error *err)
{
    if (row->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(row, err, "expected a mapping: series and metrics");
    const struct s4d_yaml_node *series = s4d_yaml_get(row, "series");
    if (row->n == (series != NULL))
        return s4d_yaml_fail(row, err,
                             "expected a metric, as flops_per_s: [412, -0.05, null, "
                             "TFLOP/s]");
    for (int i = 0; i < row->n; i++)
        if (row->child[i] != series && parse_metric(all, host_class, series, row->child[i], err))
            return -1;
    return 0;
}

int s4d_references_make(struct s4d_references *references, const struct s4d_yaml_node *root,
                        struct s4d_error *err)
{
    int rc = 0;
    *references = (struct s4d_references){0};
    if (root->kind != S4D_YAML_MAPPING)
        rc = s4d_yaml_fail(root, err, "expected host classes, each with a list of references");
    for (int i = 0; rc == 0 && i < root->n; i++) {
        const struct s4d_yaml_node *rows = root->child[i];
        if (rows->kind != S4D_YAML_SEQUENCE)
            rc = s4d_yaml_fail(rows, err, "expected a list: - series: {...} and metrics");
        for (int k = 0; rc == 0 && k < rows->n; k++)
            rc = parse_row(references, rows->key, rows->child[k], err);
    }
    if (rc)
        s4d_references_free(references);
    return rc;
}

int s4d_references_read(struct s4d_references *references, const char *file, struct s4d_error *err)
{
    struct s4d_yaml_node *root = NULL;
    *references = (struct s4d_references){0};
    if (s4d_yaml_read(file, &root, err))
        return -1;
    int rc = s4d_references_make(references, root, err);
    s4d_yaml_free(root);
    return rc;
}

void s4d_references_free(struct s4d_references *references)
{
    for (int i = 0; i < references->n; i++)
        reference_free(&references->v[i]);
    free(references->v);
    *references = (struct s4d_references){0};
}

bool s4d_reference_is_of(const struct s4d_reference *r, const struct s4d_series *s)
{
    return strcmp(r->host_class, s->host_class) == 0 && (!r->kind || !strcmp(r->kind, s->kind)) &&
           (!r->backend || !strcmp(r->backend, s->backend)) &&
           (!r->workload || !strcmp(r->workload, s->workload)) &&
           (!r->grid || !strcmp(r->grid, s->grid)) && (!r->gpus || r->gpus == s->gpus);
}
