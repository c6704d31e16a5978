/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/sweep.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/quote.h"

/* What describes the file or its parts; from title on, a figure's. */
static const char *const top_keys[] = {
    "points", "series", "product",     "title", "assumed", "tolerance_percent",
    "rows",   "added",  "added_needs", NULL};
static const char *const point_keys[] = {"name", "in_series", NULL};
static const char *const series_keys[] = {"name", "title", "against", NULL};
static const char *const no_keys[] = {NULL};

struct s4d_sweep_made {
    struct s4d_arena arena;
};

/* The three lists; NULL where the file has none, which counts as one empty member. */
struct lists {
    const struct s4d_yaml_node *root, *points, *series, *product;
};

static int check_list(const struct s4d_yaml_node *list, struct s4d_error *err)
{
    if (list == NULL)
        return 0;
    if (list->kind != S4D_YAML_SEQUENCE || list->n == 0)
        return s4d_yaml_fail(list, err, "expected a list of at least one mapping");
    for (int i = 0; i < list->n; i++)
        if (list->child[i]->kind != S4D_YAML_MAPPING)
            return s4d_yaml_fail(list->child[i], err, "expected a mapping");
    return 0;
}

static int refuse_twice(const struct s4d_yaml_node *value, const struct s4d_yaml_node *list,
                        struct s4d_error *err)
{
    for (int i = 0; list != NULL && i < list->n; i++) {
        const struct s4d_yaml_node *other = s4d_yaml_get(list->child[i], value->key);
        if (other != NULL)
            return s4d_yaml_fail(other, err, "stands in product, in line %d, too", value->line);
    }
    return 0;
}

static int check_product(const struct lists *l, struct s4d_error *err)
{
    const struct s4d_yaml_node *p = l->product;
    if (p == NULL)
        return 0;
    if (p->kind != S4D_YAML_MAPPING || p->n == 0)
        return s4d_yaml_fail(p, err, "expected keys, each with a list of values");
    for (int i = 0; i < p->n; i++) {
        const struct s4d_yaml_node *list = p->child[i];
        if (list->kind != S4D_YAML_SEQUENCE || list->n == 0) {
            s4d_yaml_fail(list, err, "expected a list of at least one value");
            return s4d_hint(err, "what is the same everywhere stands at the top of the file");
        }
        if (refuse_twice(list, l->points, err) || refuse_twice(list, l->series, err))
            return -1;
    }
    return 0;
}

static const struct s4d_yaml_node *series_named(const struct lists *l, const char *name)
{
    for (int i = 0; l->series != NULL && i < l->series->n; i++) {
        const struct s4d_yaml_node *own = s4d_yaml_get(l->series->child[i], "name");
        if (own != NULL && own->kind == S4D_YAML_SCALAR && strcmp(own->text, name) == 0)
            return l->series->child[i];
    }
    return NULL;
}

/* What a point says of one series alone: in_series: {NAME: {KEY: VALUE}}. */
static int check_in_series(const struct lists *l, const struct s4d_yaml_node *point,
                           struct s4d_error *err)
{
    const struct s4d_yaml_node *all = s4d_yaml_get(point, "in_series");
    if (all == NULL)
        return 0;
    if (all->kind != S4D_YAML_MAPPING || all->n == 0)
        return s4d_yaml_fail(all, err, "expected names of series, each with keys and values");
    for (int i = 0; i < all->n; i++) {
        const struct s4d_yaml_node *one = all->child[i];
        if (series_named(l, one->key) == NULL)
            return s4d_yaml_fail(one, err, "there is no series named %s", s4d_quote(one->key).text);
        if (one->kind != S4D_YAML_MAPPING || one->n == 0)
            return s4d_yaml_fail(one, err, "expected keys and values");
        for (int k = 0; k < one->n; k++)
            if (l->product != NULL && s4d_yaml_get(l->product, one->child[k]->key) != NULL)
                return s4d_yaml_fail(one->child[k], err, "stands in product, too");
    }
    return 0;
}

static int check_points(const struct lists *l, struct s4d_error *err)
{
    int rc = check_list(l->points, err);
    for (int i = 0; rc == 0 && l->points != NULL && i < l->points->n; i++)
        rc = check_in_series(l, l->points->child[i], err);
    return rc;
}

static int count(const struct lists *l, struct s4d_error *err)
{
    double n = (l->points ? l->points->n : 1) * (l->series ? (double)l->series->n : 1);
    for (int i = 0; l->product != NULL && i < l->product->n; i++)
        n *= l->product->child[i]->n;
    if (n > S4D_SWEEP_MOST)
        return s4d_yaml_fail(l->root, err, "expected at most %d experiments, these are %.0f",
                             S4D_SWEEP_MOST, n);
    return (int)n;
}

static int find_lists(struct lists *l, const struct s4d_yaml_node *root, struct s4d_error *err)
{
    if (root->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(root, err, "expected keys: points, series, product");
    *l = (struct lists){root, s4d_yaml_get(root, "points"), s4d_yaml_get(root, "series"),
                        s4d_yaml_get(root, "product")};
    if (l->points == NULL && l->series == NULL && l->product == NULL)
        return s4d_yaml_fail(root, err, "expected points, series or product: experiments to run");
    return check_list(l->series, err) || check_points(l, err) || check_product(l, err) ? -1 : 0;
}

/* Combination `at` of the product as a mapping of single values; the last key is the fastest. */
static const struct s4d_yaml_node *combine(struct s4d_arena *a, const struct s4d_yaml_node *product,
                                           int at)
{
    struct s4d_yaml_node *mapping = s4d_arena_alloc(a, sizeof *mapping);
    *mapping = *product;
    mapping->child = s4d_arena_alloc(a, (size_t)product->n * sizeof(struct s4d_yaml_node *));
    for (int i = product->n - 1; i >= 0; i--) {
        const struct s4d_yaml_node *list = product->child[i];
        struct s4d_yaml_node *value = s4d_arena_alloc(a, sizeof *value);
        *value = *list->child[at % list->n];
        value->key = list->key;
        mapping->child[i] = value;
        at /= list->n;
    }
    return mapping;
}

static void put_value(const struct s4d_yaml_node *value, FILE *out)
{
    if (value->kind == S4D_YAML_SCALAR)
        fputs(value->text, out);
    for (int i = 0; i < value->n; i++) {
        fputs(i ? "," : "", out);
        put_value(value->child[i], out);
    }
}

/* "key=value key=value" of a mapping that has no name. */
static void put_values(const struct s4d_yaml_node *mapping, FILE *out)
{
    for (int i = 0; mapping != NULL && i < mapping->n; i++) {
        if (strcmp(mapping->child[i]->key, "in_series") == 0)
            continue;
        fprintf(out, " %s=", mapping->child[i]->key);
        put_value(mapping->child[i], out);
    }
}

static void put_name(const struct s4d_yaml_node *mapping, FILE *out)
{
    const struct s4d_yaml_node *name = mapping ? s4d_yaml_get(mapping, "name") : NULL;
    if (name != NULL && name->kind == S4D_YAML_SCALAR)
        fprintf(out, " %s", name->text);
    else
        put_values(mapping, out);
}

static char *name_of(const struct s4d_yaml_node *point, const struct s4d_yaml_node *series,
                     const struct s4d_yaml_node *product)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    S4D_ASSERT(out != NULL, "no memory for a name");
    put_name(point, out);
    put_name(series, out);
    put_values(product, out);
    if (ftell(out) == 0)
        fputs(" experiment", out); /* points: [{}] */
    fclose(out);
    memmove(text, text + 1, n); /* the space in front */
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    return text;
}

static void add_mapping(struct s4d_sweep_entry *e, const struct s4d_yaml_node *mapping,
                        const char *const *skip)
{
    if (mapping == NULL)
        return;
    e->mapping[e->n_mappings] = mapping;
    e->skip[e->n_mappings++] = skip;
}

static int fill(struct s4d_sweep_entry *e, const struct lists *l, const struct s4d_yaml_node *point,
                const struct s4d_yaml_node *series, const struct s4d_yaml_node *product,
                struct s4d_error *err)
{
    const struct s4d_yaml_node *name = series ? s4d_yaml_get(series, "name") : NULL,
                               *names[] = {point ? s4d_yaml_get(point, "name") : NULL, name};
    *e = (struct s4d_sweep_entry){.name = NULL};
    for (int i = 0; i < 2; i++)
        if (names[i] != NULL && (names[i]->kind != S4D_YAML_SCALAR || names[i]->text[0] == '\0'))
            return s4d_yaml_fail(names[i], err, "expected a name");
    *e = (struct s4d_sweep_entry){.name = name_of(point, series, product),
                                  .series = name ? name->text : NULL,
                                  .node = point    ? point
                                          : series ? series
                                                   : l->product};
    add_mapping(e, l->root, top_keys);
    add_mapping(e, series, series_keys);
    add_mapping(e, point, point_keys);
    if (point != NULL && name != NULL && (point = s4d_yaml_get(point, "in_series")) != NULL)
        add_mapping(e, s4d_yaml_get(point, name->text), no_keys);
    add_mapping(e, product, no_keys);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct s4d_sweep_entry *p = *(struct s4d_sweep_entry *const *)a,
                                 *q = *(struct s4d_sweep_entry *const *)b;
    int order = strcmp(p->name, q->name);
    return order ? order : (p > q) - (p < q);
}

static int refuse_same_name(const struct s4d_sweep *s, struct s4d_error *err)
{
    struct s4d_sweep_entry **sorted = s4d_malloc((size_t)s->n * sizeof *sorted);
    for (int i = 0; i < s->n; i++)
        sorted[i] = &s->v[i];
    qsort(sorted, (size_t)s->n, sizeof *sorted, by_name);
    int rc = 0;
    for (int i = 1; i < s->n && rc == 0; i++) {
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) != 0)
            continue;
        rc = s4d_yaml_fail(sorted[i]->node, err,
                           "a second experiment named %s; the first is in line %d",
                           s4d_quote(sorted[i]->name).text, sorted[i - 1]->node->line);
        s4d_hint(err, "name: TEXT in a point or series tells them apart");
    }
    free(sorted);
    return rc;
}

int s4d_sweep_make(struct s4d_sweep *s, const struct s4d_yaml_node *root, struct s4d_error *err)
{
    struct lists l = {root, NULL, NULL, NULL};
    *s = (struct s4d_sweep){.made = s4d_calloc(1, sizeof *s->made)};
    int n = find_lists(&l, root, err) ? -1 : count(&l, err);
    if (n < 0)
        return -1;
    int n_points = l.points ? l.points->n : 1, n_series = l.series ? l.series->n : 1,
        n_product = n / n_points / n_series;
    s->v = s4d_calloc((size_t)n, sizeof *s->v);
    for (; s->n < n; s->n++) {
        const struct s4d_yaml_node *point = l.points ? l.points->child[s->n / n_product / n_series]
                                                     : NULL,
                                   *series = l.series ? l.series->child[s->n / n_product % n_series]
                                                      : NULL,
                                   *product = l.product ? combine(&s->made->arena, l.product,
                                                                  s->n % n_product)
                                                        : NULL;
        if (fill(&s->v[s->n], &l, point, series, product, err)) {
            s->n++;
            return -1;
        }
    }
    return refuse_same_name(s, err);
}

int s4d_sweep_read(struct s4d_sweep *s, const char *file, struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    *s = (struct s4d_sweep){.n = 0};
    if (s4d_yaml_read(file, &root, err))
        return -1;
    int rc = s4d_sweep_make(s, root, err);
    s->root = root;
    return rc;
}

void s4d_sweep_free(struct s4d_sweep *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->v[i].name);
    free(s->v);
    if (s->made != NULL)
        s4d_arena_free(&s->made->arena);
    free(s->made);
    s4d_yaml_free(s->root);
    *s = (struct s4d_sweep){.n = 0};
}
