/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "plots/rows.h"
#include "support/memory.h"

const char *const s4d_experiment_keys[] = {"title",  "machine", "assumed", "tolerance_percent",
                                           "rows",   "added",   "set",     "added_needs",
                                           "points", "series",  NULL};
const char *const s4d_point_keys[] = {"workload", "machine", "gpus", "set", "in_series", NULL};
const char *const s4d_series_keys[] = {"name", "title", "against", "set", NULL};

#define TEXT(n, type_, field)                                                                      \
    {                                                                                              \
        .name = n, .type = S4D_OPT_TEXT, .offset = offsetof(struct type_, field)                   \
    }

#define SET(type_)                                                                                 \
    {                                                                                              \
        .name = "set", .type = S4D_OPT_LIST, .offset = offsetof(struct type_, set)                 \
    }

static const char *const rows[] = {"merit", "parts", "machines", "grids",
                                   NULL}; /* enum s4d_figure_rows */

static const char *const added[] = {"any", "points", "none", NULL}; /* enum s4d_figure_added */

static const struct s4d_option experiment_options[] = {
    TEXT("title", s4d_experiment, title),
    TEXT("machine", s4d_experiment, machine),
    {.name = "assumed", .type = S4D_OPT_LIST, .offset = offsetof(struct s4d_experiment, assumed)},
    SET(s4d_experiment),
    {.name = "tolerance-percent",
     .type = S4D_OPT_NUMBER,
     .offset = offsetof(struct s4d_experiment, tolerance_percent),
     .min = 0,
     .max = 100},
    {.name = "rows",
     .type = S4D_OPT_CHOICE,
     .offset = offsetof(struct s4d_experiment, rows),
     .choices = rows},
    {.name = "added",
     .type = S4D_OPT_CHOICE,
     .offset = offsetof(struct s4d_experiment, added),
     .choices = added},
    {.name = "added-needs",
     .type = S4D_OPT_LIST,
     .offset = offsetof(struct s4d_experiment, added_needs)},
    {.name = NULL},
};
static const struct s4d_option point_options[] = {
    TEXT("workload", s4d_point, workload),
    TEXT("machine", s4d_point, machine),
    {.name = "gpus",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct s4d_point, gpus),
     .min = 1,
     .max = 1 << 20},
    SET(s4d_point),
    {.name = NULL},
};
static const struct s4d_option series_options[] = {
    TEXT("name", s4d_series, name),
    TEXT("title", s4d_series, title),
    TEXT("against", s4d_series, against),
    SET(s4d_series),
    {.name = NULL},
};

static const struct s4d_option_group experiment_groups[] = {
    {.title = "Experiment", .options = experiment_options}, {.options = NULL}};
static const struct s4d_option_group point_groups[] = {{.title = "Point", .options = point_options},
                                                       {.options = NULL}};
static const struct s4d_option_group series_groups[] = {
    {.title = "Series", .options = series_options}, {.options = NULL}};

/* others, and two more keys that are read by hand. */
static const char **skip_list(const char *const *others, const char *a, const char *b)
{
    int n = 0;
    while (others[n] != NULL)
        n++;
    const char **skip = s4d_calloc((size_t)n + 3, sizeof *skip);
    for (int i = 0; i < n; i++)
        skip[i] = others[i];
    skip[n] = a;
    skip[n + 1] = b;
    return skip;
}

static int required(const struct s4d_yaml_node *mapping, const char *key, struct s4d_error *err)
{
    if (s4d_yaml_get(mapping, key) != NULL)
        return 0;
    return s4d_yaml_fail(mapping, err, "the key %s is missing", key);
}

static int list_of_mappings(const struct s4d_yaml_node *root, const char *key,
                            const struct s4d_yaml_node **list, struct s4d_error *err)
{
    if (required(root, key, err))
        return -1;
    *list = s4d_yaml_get(root, key);
    if ((*list)->kind != S4D_YAML_SEQUENCE || (*list)->n == 0)
        return s4d_yaml_fail(*list, err, "expected a list of at least one mapping");
    for (int i = 0; i < (*list)->n; i++)
        if ((*list)->child[i]->kind != S4D_YAML_MAPPING)
            return s4d_yaml_fail((*list)->child[i], err, "expected a mapping");
    return 0;
}

/* A record is found by its point's model, machine and GPUs: they are the same in every series. */
static int refuse_identity(const struct s4d_yaml_node *in_series, struct s4d_error *err)
{
    static const char *const keys[] = {"workload", "machine", "gpus"};
    for (int i = 0; in_series != NULL && i < in_series->n; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const struct s4d_yaml_node *found = s4d_yaml_get(in_series->child[i], keys[k]);
            if (found != NULL)
                return s4d_yaml_fail(found, err, "belongs to the point: it is another one");
        }
    return 0;
}

static int read_point(struct s4d_point *p, const char *const *others, struct s4d_error *err)
{
    const char **skip = skip_list(others, "in_series", NULL);
    int rc = s4d_options_yaml(point_groups, p->node, skip, p, err);
    free(skip);
    return rc || required(p->node, "workload", err) || required(p->node, "gpus", err) ||
                   refuse_identity(s4d_yaml_get(p->node, "in_series"), err)
               ? -1
               : 0;
}

static int read_points(struct s4d_experiment *e, const char *const *others, struct s4d_error *err)
{
    const struct s4d_yaml_node *list;
    if (list_of_mappings(e->root, "points", &list, err))
        return -1;
    for (int i = 0; i < list->n; i++) {
        s4d_push(e->point, e->n_points, e->cap_points, (struct s4d_point){.node = list->child[i]});
        struct s4d_point *p = &e->point[i];
        if (read_point(p, others, err))
            return -1;
        if (p->machine == NULL)
            p->machine = s4d_strdup(e->machine);
        e->several_machines = e->several_machines || strcmp(p->machine, e->point[0].machine) != 0;
        for (int j = 0; j < i; j++)
            if (strcmp(e->point[j].workload, p->workload) == 0 &&
                strcmp(e->point[j].machine, p->machine) == 0 && e->point[j].gpus == p->gpus)
                return s4d_yaml_fail(p->node, err, "%s on %d GPUs is a point twice", p->workload,
                                     p->gpus);
    }
    return 0;
}

static int check_against(const struct s4d_experiment *e, struct s4d_error *err)
{
    for (int i = 0; i < e->n_series; i++) {
        const struct s4d_series *s = &e->series[i];
        bool found = s->against == NULL;
        for (int j = 0; j < e->n_series; j++)
            found = found || (j != i && strcmp(e->series[j].name, s->against) == 0);
        if (!found)
            return s4d_yaml_fail(s4d_yaml_get(s->node, "against"), err,
                                 "expected the name of another series");
    }
    return 0;
}

static int read_series(struct s4d_experiment *e, const char *const *others, struct s4d_error *err)
{
    const struct s4d_yaml_node *list;
    if (list_of_mappings(e->root, "series", &list, err))
        return -1;
    for (int i = 0; i < list->n; i++) {
        s4d_push(e->series, e->n_series, e->cap_series,
                 (struct s4d_series){.node = list->child[i]});
        struct s4d_series *s = &e->series[i];
        if (s4d_options_yaml(series_groups, s->node, others, s, err) ||
            required(s->node, "name", err) || required(s->node, "title", err))
            return -1;
        if (strpbrk(s->name, " \t\"'\\") != NULL || strcmp(s->name, "published") == 0)
            return s4d_yaml_fail(s4d_yaml_get(s->node, "name"), err,
                                 "expected one word other than published");
        for (int j = 0; j < i; j++)
            if (strcmp(e->series[j].name, s->name) == 0)
                return s4d_yaml_fail(s->node, err, "a second series named %s", s->name);
    }
    return check_against(e, err);
}

/* The last component of path is cut off and returned. */
static char *last_component(char *path)
{
    char *slash = strrchr(path, '/');
    char *name = s4d_strdup(slash != NULL ? slash + 1 : path);
    if (slash != NULL)
        *slash = '\0';
    return name;
}

static int name_by_folder(struct s4d_experiment *e, const char *folder, struct s4d_error *err)
{
    char *whole = realpath(folder, NULL);
    if (whole == NULL)
        return s4d_fail(err, S4D_EXIT_DATA, folder, "there is no such folder");
    e->folder = s4d_strdup(folder);
    size_t n = strlen(e->folder);
    while (n > 1 && e->folder[n - 1] == '/')
        e->folder[--n] = '\0';
    e->name = last_component(whole);
    e->paper = last_component(whole);
    free(whole);
    return 0;
}

int s4d_experiment_read(struct s4d_experiment *e, const char *folder, const char *const *others,
                        struct s4d_error *err)
{
    memset(e, 0, sizeof *e);
    if (name_by_folder(e, folder, err))
        return -1;
    char *file = s4d_asprintf("%s/experiment.yaml", e->folder);
    int rc = s4d_yaml_read(file, &e->root, err);
    free(file);
    if (rc)
        return -1;
    if (e->root->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(e->root, err, "expected a mapping");
    const char **skip = skip_list(others, "points", "series");
    rc = s4d_options_yaml(experiment_groups, e->root, skip, e, err) ||
         required(e->root, "title", err) || required(e->root, "machine", err) ||
         required(e->root, "tolerance_percent", err) || read_points(e, others, err) ||
         read_series(e, others, err);
    free(skip);
    if (s4d_rows_kinds[e->rows].record == NULL)
        e->added = S4D_ADDED_NONE;
    return rc ? -1 : 0;
}

void s4d_experiment_free(struct s4d_experiment *e)
{
    for (int i = 0; i < e->n_points; i++)
        s4d_options_free(point_groups, &e->point[i]);
    for (int i = 0; i < e->n_series; i++)
        s4d_options_free(series_groups, &e->series[i]);
    s4d_options_free(experiment_groups, e);
    free(e->point);
    free(e->series);
    free(e->folder);
    free(e->note);
    free(e->paper);
    free(e->name);
    s4d_yaml_free(e->root);
    memset(e, 0, sizeof *e);
}
