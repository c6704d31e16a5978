/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/format/outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "plots/track/intake.h"
#include "plots/track/metrics.h"
#include "plots/track/store_internal.h" /* for: s4d_series_labels */
#include "support/memory.h"
#include "support/statistics.h"

static struct s4d_value *value_named(struct s4d_outcome *o, const struct s4d_metric *metric,
                                     const char *name)
{
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->v[i].name, name) == 0)
            return &o->v[i];
    struct s4d_value new = {.name = s4d_strdup(name),
                            .unit = metric->unit,
                            .direction = metric->direction,
                            .reference = NAN,
                            .lower = NAN,
                            .upper = NAN};
    s4d_push(o->v, o->n, o->cap, new);
    return &o->v[o->n - 1];
}

static void take_sample(struct s4d_outcome *o, const struct s4d_metric *metric, const char *name,
                        const json_t *number, const json_t *over)
{
    double x = json_number_value(number), sample = over ? json_number_value(over) / x : x;
    if (!isfinite(sample)) /* of a time of 0 */
        return;
    struct s4d_value *v = value_named(o, metric, name);
    s4d_push(v->samples, v->n, v->cap, sample);
}

static void take(void *to, const struct s4d_metric *metric, const char *name, const json_t *numbers,
                 const json_t *over)
{
    size_t i;
    json_t *one;
    if (!json_is_array(numbers))
        take_sample(to, metric, name, numbers, over);
    else
        json_array_foreach((json_t *)numbers, i, one) take_sample(to, metric, name, one, over);
}

static char *failure_of(const json_t *record)
{
    const char *where = json_string_value(json_object_get(record, "where")),
               *message = json_string_value(json_object_get(record, "message"));
    if (strcmp(json_string_value(json_object_get(record, "kind")), "failure") == 0)
        return s4d_asprintf("%s%s%s", where ? where : "", where && *where ? ": " : "",
                            message ? message : "it failed");
    if (json_is_true(json_object_get(record, "interrupted")))
        return s4d_asprintf("interrupted after %lld iterations",
                            (long long)json_integer_value(json_object_get(record, "completed")));
    return NULL;
}

struct s4d_outcome_index {
    char *key; /* night and series */
    int at;
    UT_hash_handle hh;
};

static struct s4d_outcome *outcome_of(struct s4d_outcomes *outcomes, const struct s4d_intake *in)
{
    struct s4d_outcome_index *found;
    char *key = s4d_asprintf("%d %s", in->night, in->key);
    HASH_FIND_STR(outcomes->index, key, found);
    if (found) {
        free(key);
        return &outcomes->v[found->at];
    }
    found = s4d_calloc(1, sizeof *found);
    *found = (struct s4d_outcome_index){.key = key, .at = outcomes->n};
    HASH_ADD_KEYPTR(hh, outcomes->index, found->key, strlen(found->key), found);
    struct s4d_outcome new = {.key = s4d_strdup(in->key), .night = in->night};
    s4d_push(outcomes->v, outcomes->n, outcomes->cap, new);
    return &outcomes->v[outcomes->n - 1];
}

int s4d_outcomes_add(struct s4d_outcomes *outcomes, const char *line, size_t n, const char *where,
                     struct s4d_error *err)
{
    struct s4d_intake in;
    if (s4d_intake(&in, line, n, where, err))
        return -1;
    struct s4d_outcome *o = outcome_of(outcomes, &in);
    json_decref(o->record);
    o->record = json_incref(in.record);
    o->time_s = in.time_s;
    char *failure = failure_of(in.record);
    if (failure) {
        free(o->failure);
        o->failure = failure;
    }
    s4d_metrics_of(in.record, take, o);
    s4d_intake_free(&in);
    return 0;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static int by_key(const void *a, const void *b)
{
    const struct s4d_outcome *x = *(struct s4d_outcome *const *)a,
                             *y = *(struct s4d_outcome *const *)b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->night - y->night;
}

/* As s4d_series_labels wants them: those with the same words stand together. */
static int by_words(const void *a, const void *b)
{
    const struct s4d_series *x = a, *y = b;
    const char *const words[][2] = {
        {x->host_class, y->host_class}, {x->backend, y->backend}, {x->kind, y->kind},
        {x->workload, y->workload},     {x->grid, y->grid},       {x->options, y->options}};
    int order = x->gpus < y->gpus ? -1 : x->gpus > y->gpus;
    for (size_t i = 0; order == 0 && i < sizeof words / sizeof *words; i++)
        order = strcmp(words[i][0], words[i][1]);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

static int by_id(const void *a, const void *b)
{
    const struct s4d_series *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* keys[i]: what series i of the list borrows its words from. */
static void list_series(struct s4d_outcome **sorted, int n, struct s4d_series_list *list,
                        json_t **keys)
{
    for (int i = 0; i < n; i++) {
        if (i > 0 && strcmp(sorted[i]->key, sorted[i - 1]->key) == 0)
            continue;
        json_t *key = keys[list->n] = json_loads(sorted[i]->key, 0, NULL);
        struct s4d_series s = {.id = list->n,
                               .kind = (char *)text_at(key, "kind"),
                               .host_class = (char *)text_at(key, "host_class"),
                               .backend = (char *)text_at(key, "backend"),
                               .workload = (char *)text_at(key, "workload"),
                               .grid = (char *)text_at(key, "grid"),
                               .model_version = (char *)text_at(key, "model_version"),
                               .options = (char *)text_at(key, "options"),
                               .gpus = json_integer_value(json_object_get(key, "gpus"))};
        s4d_push(list->v, list->n, list->cap, s);
    }
}

static void label(struct s4d_outcomes *outcomes)
{
    int n = outcomes->n;
    struct s4d_outcome **sorted = s4d_malloc(((size_t)n + 1) * sizeof(*sorted));
    json_t **keys = s4d_malloc(((size_t)n + 1) * sizeof(json_t *));
    struct s4d_series_list list = {0};
    for (int i = 0; i < n; i++)
        sorted[i] = &outcomes->v[i];
    qsort(sorted, (size_t)n, sizeof(*sorted), by_key);
    list_series(sorted, n, &list, keys);
    if (list.n > 0) {
        qsort(list.v, (size_t)list.n, sizeof *list.v, by_words);
        s4d_series_labels(&list);
        qsort(list.v, (size_t)list.n, sizeof *list.v, by_id);
    }
    for (int i = 0, s = -1; i < n; i++) {
        s += i == 0 || strcmp(sorted[i]->key, sorted[i - 1]->key) != 0;
        sorted[i]->last = i + 1 == n || strcmp(sorted[i]->key, sorted[i + 1]->key) != 0;
        sorted[i]->label = s4d_strdup(list.v[s].label);
        sorted[i]->kind = text_at(sorted[i]->record, "kind");
        sorted[i]->host_class = s4d_strdup(list.v[s].host_class);
        sorted[i]->backend = s4d_strdup(list.v[s].backend);
    }
    for (int i = 0; i < list.n; i++) {
        free(list.v[i].label);
        json_decref(keys[i]);
    }
    free(list.v);
    free(keys);
    free(sorted);
}

void s4d_outcomes_ready(struct s4d_outcomes *outcomes)
{
    label(outcomes);
    for (int i = 0; i < outcomes->n; i++)
        for (int k = 0; k < outcomes->v[i].n; k++) {
            struct s4d_value *v = &outcomes->v[i].v[k];
            struct s4d_statistics s = s4d_statistics(v->samples, v->n);
            v->value = s.median;
            v->spread = (s.q3 - s.q1) / 2;
        }
}

static void free_outcome(struct s4d_outcome *o)
{
    for (int i = 0; i < o->n; i++) {
        free(o->v[i].name);
        free(o->v[i].samples);
        free(o->v[i].worse);
    }
    json_decref(o->record);
    free(o->v);
    free(o->label);
    free(o->key);
    free(o->host_class);
    free(o->backend);
    free(o->failure);
}

void s4d_outcomes_free(struct s4d_outcomes *outcomes)
{
    for (int i = 0; i < outcomes->n; i++)
        free_outcome(&outcomes->v[i]);
    struct s4d_outcome_index *one, *next;
    HASH_ITER(hh, outcomes->index, one, next)
    {
        HASH_DEL(outcomes->index, one);
        free(one->key);
        free(one);
    }
    free(outcomes->v);
    free(outcomes->text);
    *outcomes = (struct s4d_outcomes){0};
}
