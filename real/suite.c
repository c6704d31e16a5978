/* SPDX-License-Identifier: Apache-2.0 */
#include "real/suite.h"

#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/nearest.h"
#include "support/option_field.h"
#include "support/quote.h"

enum { MOST_EXPERIMENTS = 10000 };

static const char *const policies[] = {"off", "go-on", "stop", NULL};

#define LIMIT(n, type_, field)                                                                     \
    {                                                                                              \
        .name = n, .type = S4D_OPT_TIME, .offset = offsetof(struct type_, field), .min = 0,        \
        .max = 1e9                                                                                 \
    }
static const struct s4d_option suite_options[] = {
    {.name = "name", .type = S4D_OPT_TEXT, .offset = offsetof(struct s4d_suite, name)},
    LIMIT("time-limit", s4d_suite, time_limit_s),
    LIMIT("experiment-time-limit", s4d_suite, experiment_time_limit_s),
    {.name = "repeats",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct s4d_suite, repeats),
     .min = 1,
     .max = 1000},
    {.name = "preflight",
     .type = S4D_OPT_CHOICE,
     .offset = offsetof(struct s4d_suite, preflight),
     .choices = policies},
    {.name = "machine", .type = S4D_OPT_TEXT, .offset = offsetof(struct s4d_suite, machine)},
    {.name = "rates", .type = S4D_OPT_FLAG, .offset = offsetof(struct s4d_suite, rates)},
    {.name = NULL},
};
static const struct s4d_option experiment_options[] = {
    {.name = "name", .type = S4D_OPT_TEXT, .offset = offsetof(struct s4d_suite_experiment, name)},
    LIMIT("time-limit", s4d_suite_experiment, time_limit_s),
    {.name = NULL},
};
static const struct s4d_option_group suite_groups[] = {{.title = "Suite", .options = suite_options},
                                                       {.options = NULL}};
static const struct s4d_option_group experiment_groups[] = {
    {.title = "Experiment", .options = experiment_options}, {.options = NULL}};

static bool is_one_of(char **keys, const char *key)
{
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys != NULL;
}

/* The keys of tables, and one more, without those in `but` (NULL: none); ends with NULL. Free texts
 * and list with free_keys. */
static char **keys_of(const struct s4d_option_group *groups, const char *more, char **but)
{
    char **keys = NULL, key[80];
    int n = 0, cap = 0;
    for (; groups->options; groups++)
        for (const struct s4d_option *o = groups->options; o->name; o++)
            if (s4d_option_key(o, key, sizeof key) && !(but && is_one_of(but, key)))
                s4d_push(keys, n, cap, s4d_strdup(key));
    if (more)
        s4d_push(keys, n, cap, s4d_strdup(more));
    s4d_push(keys, n, cap, NULL);
    return keys;
}

static void free_keys(char **keys)
{
    for (int i = 0; keys[i]; i++)
        free(keys[i]);
    free(keys);
}

/* Every key is of one of two lists: said before either is read, so that the nearest is of both. */
static int check_keys(const struct s4d_yaml_node *mapping, char **own, char **others,
                      struct s4d_error *err)
{
    const char **all = NULL;
    int n = 0, cap = 0, rc = 0;
    for (int i = 0; own[i]; i++)
        s4d_push(all, n, cap, own[i]);
    for (int i = 0; others[i]; i++)
        s4d_push(all, n, cap, others[i]);
    for (int k = 0; k < mapping->n && !rc; k++) {
        const char *key = mapping->child[k]->key;
        if (is_one_of(own, key) || is_one_of(others, key))
            continue;
        s4d_yaml_fail(mapping->child[k], err, "unknown key %s", s4d_quote(key).text);
        rc = s4d_hint_nearest(err, key, all, n);
    }
    free(all);
    return rc;
}

static int refuse(const struct s4d_yaml_node *mapping, char **own, const char *const *refused,
                  struct s4d_error *err)
{
    for (; *refused; refused++) {
        const struct s4d_yaml_node *node = s4d_yaml_get(mapping, *refused);
        if (node && !is_one_of(own, *refused)) {
            s4d_yaml_fail(node, err, "an experiment of a suite has none");
            return s4d_hint(err, "scale4d-run train has it");
        }
    }
    return 0;
}

static int check_name(const struct s4d_suite *s, const struct s4d_suite_experiment *e,
                      struct s4d_error *err)
{
    if (!e->name)
        return s4d_yaml_fail(e->node, err, "the key name is missing");
    const struct s4d_yaml_node *node = s4d_yaml_get(e->node, "name");
    if (!e->name[0] || strpbrk(e->name, "\n\r\t") || strlen(e->name) > 200)
        return s4d_yaml_fail(node, err, "expected a line of 1 to 200 bytes");
    for (int i = 0; i < s->n; i++)
        if (&s->v[i] != e && strcmp(s->v[i].name, e->name) == 0)
            return s4d_yaml_fail(node, err, "a second experiment named %s, the first is in line %d",
                                 s4d_quote(e->name).text, s->v[i].node->line);
    return 0;
}

/* What a mapping says of the suite or of an experiment, but not of what is run. */
static int read_own(const struct s4d_option_group *groups, const struct s4d_yaml_node *mapping,
                    const char *more, void *own, const struct s4d_suite_options *o,
                    struct s4d_error *err)
{
    if (mapping->kind != S4D_YAML_MAPPING)
        return s4d_yaml_fail(mapping, err, "expected keys and values");
    char **keys = keys_of(groups, more, NULL), **others = keys_of(o->groups, more, keys);
    int rc = check_keys(mapping, keys, others, err) || refuse(mapping, keys, o->refused, err) ||
             s4d_options_yaml(groups, mapping, (const char *const *)others, own, err);
    free_keys(keys);
    free_keys(others);
    return rc ? -1 : 0;
}

/* The options of all, then its own. */
static int read_config(struct s4d_suite *s, struct s4d_suite_experiment *e,
                       const struct s4d_suite_options *o, struct s4d_error *err)
{
    char **top = keys_of(suite_groups, "experiments", NULL),
         **own = keys_of(experiment_groups, NULL, NULL);
    e->config = s4d_malloc(o->bytes);
    memcpy(e->config, o->defaults, o->bytes);
    int rc = s4d_options_yaml(o->groups, s->root, (const char *const *)top, e->config, err) ||
             s4d_options_yaml(o->groups, e->node, (const char *const *)own, e->config, err);
    free_keys(top);
    free_keys(own);
    return rc ? -1 : 0;
}

static int read_experiment(struct s4d_suite *s, const struct s4d_yaml_node *node,
                           const struct s4d_suite_options *o, struct s4d_error *err)
{
    s4d_push(
        s->v, s->n, s->cap,
        (struct s4d_suite_experiment){.time_limit_s = s->experiment_time_limit_s, .node = node});
    struct s4d_suite_experiment *e = &s->v[s->n - 1];
    return read_own(experiment_groups, node, NULL, e, o, err) || check_name(s, e, err) ||
                   read_config(s, e, o, err)
               ? -1
               : 0;
}

static int read_list(struct s4d_suite *s, const struct s4d_suite_options *o, struct s4d_error *err)
{
    const struct s4d_yaml_node *list = s4d_yaml_get(s->root, "experiments");
    if (!list)
        return s4d_yaml_fail(s->root, err, "the key experiments is missing");
    if (list->kind != S4D_YAML_SEQUENCE || list->n == 0 || list->n > MOST_EXPERIMENTS)
        return s4d_yaml_fail(list, err, "expected a list of 1 to %d experiments", MOST_EXPERIMENTS);
    for (int i = 0; i < list->n; i++)
        if (read_experiment(s, list->child[i], o, err))
            return -1;
    return 0;
}

int s4d_suite_make(struct s4d_suite *s, struct s4d_yaml_node *root, const char *name,
                   const struct s4d_suite_options *options, struct s4d_error *err)
{
    *s = (struct s4d_suite){.repeats = 1,
                            .preflight = S4D_SUITE_PREFLIGHT_STOP,
                            .rates = true,
                            .groups = options->groups,
                            .root = root};
    if (read_own(suite_groups, root, "experiments", s, options, err))
        return -1;
    const struct s4d_yaml_node *named = s4d_yaml_get(root, "name");
    if (!s->name)
        s->name = s4d_strdup(name);
    if (!s->name[0] || strpbrk(s->name, "\n\r\t"))
        return s4d_yaml_fail(named ? named : root, err, "expected a name of one line");
    return read_list(s, options, err);
}

int s4d_suite_read(struct s4d_suite *s, const char *file, const struct s4d_suite_options *options,
                   struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    *s = (struct s4d_suite){.groups = options->groups};
    if (s4d_yaml_read(file, &root, err))
        return -1;
    const char *slash = strrchr(file, '/');
    char *name = s4d_strdup(slash ? slash + 1 : file), *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = '\0';
    int rc = s4d_suite_make(s, root, name, options, err);
    free(name);
    return rc;
}

void s4d_suite_free(struct s4d_suite *s)
{
    for (int i = 0; i < s->n; i++) {
        s4d_options_free(experiment_groups, &s->v[i]);
        if (s->v[i].config)
            s4d_options_free(s->groups, s->v[i].config);
        free(s->v[i].config);
    }
    free(s->v);
    s4d_options_free(suite_groups, s);
    s4d_yaml_free(s->root);
    *s = (struct s4d_suite){0};
}
