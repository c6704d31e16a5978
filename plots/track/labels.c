/* SPDX-License-Identifier: Apache-2.0 */
/* One line for a series: what everybody looks for, and of its options those that tell it from
 * another with the same words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/store_internal.h"
#include "support/memory.h"

static char *append(char *text, const char *between, const char *more)
{
    char *longer = s4d_asprintf("%s%s%s", text, between, more);
    free(text);
    return longer;
}

static char *append_option(char *text, const char *key, const json_t *value)
{
    char *dump = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    text = append(append(text, " ", key), "=", dump ? dump : "-");
    free(dump);
    return text;
}

/* "train NODES gpt-5b 64 GPUs 2x2x4x4 (cuda)"; a collective with what it moves. */
static char *base(const struct s4d_series *s, const json_t *options)
{
    static const char *const of_collective[] = {"op", "axis", "ranks", "bytes"};
    char *text = append(s4d_strdup(s->kind), " ", s->host_class), gpus[40];
    snprintf(gpus, sizeof gpus, "%lld GPUs", (long long)s->gpus);
    if (*s->workload)
        text = append(text, " ", s->workload);
    if (s->gpus)
        text = append(text, " ", gpus);
    if (*s->grid)
        text = append(text, " ", s->grid);
    for (size_t i = 0; i < sizeof of_collective / sizeof *of_collective; i++)
        if (json_object_get(options, of_collective[i]))
            text =
                append_option(text, of_collective[i], json_object_get(options, of_collective[i]));
    if (strcmp(s->backend, "simulated") != 0)
        text = append(append(text, " (", s->backend), ")", "");
    return text;
}

/* Marks the keys of a whose values b has not. */
static void mark(json_t *differ, json_t *a, const json_t *b)
{
    const char *key;
    json_t *v;
    json_object_foreach(a, key, v)
    {
        if (!json_object_get(b, key) || !json_equal(v, json_object_get(b, key)))
            json_object_set_new(differ, key, json_true());
    }
}

/* Appends " KEY=VALUE" of every option on which series of the same words differ. */
static void tell_apart(struct s4d_series_list *list, json_t *const *options, int from, int to)
{
    json_t *differ = json_object(), *v;
    const char *key;
    bool models = false;
    for (int i = from + 1; i < to; i++) {
        mark(differ, options[i], options[from]);
        mark(differ, options[from], options[i]);
        models |= strcmp(list->v[i].model_version, list->v[from].model_version) != 0;
    }
    for (int i = from; i < to; i++) {
        char *label = list->v[i].label;
        json_object_foreach(differ, key, v) label =
            append_option(label, key, json_object_get(options[i], key));
        if (models)
            label = append(label, " model=", list->v[i].model_version);
        list->v[i].label = label;
    }
    json_decref(differ);
}

/* Of a list in its order: those with the same words stand together. */
void s4d_series_labels(struct s4d_series_list *list)
{
    json_t **options = s4d_calloc((size_t)list->n + 1, sizeof(json_t *));
    for (int i = 0; i < list->n; i++) {
        options[i] = json_loads(list->v[i].options, 0, NULL);
        list->v[i].label = base(&list->v[i], options[i]);
    }
    for (int from = 0, to; from < list->n; from = to) {
        char *words = s4d_strdup(list->v[from].label);
        for (to = from; to < list->n && strcmp(list->v[to].label, words) == 0;)
            to++;
        free(words);
        if (to - from > 1)
            tell_apart(list, options, from, to);
    }
    for (int i = 0; i < list->n; i++)
        json_decref(options[i]);
    free(options);
}
