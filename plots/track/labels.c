/* SPDX-License-Identifier: Apache-2.0 */
/* One line for a series: what everybody looks for, and of its options those that tell it from
 * another with the same words. */
#include <stdlib.h>
#include <string.h>

#include "plots/track/store_internal.h"
#include "support/memory.h"

static char *base(const struct s4d_series *s)
{
    char *gpus = s->gpus ? s4d_asprintf(" %lld GPUs", (long long)s->gpus) : s4d_strdup("");
    char *text =
        s4d_asprintf("%s %s%s%s%s%s%s (%s)", s->kind, s->host_class, *s->workload ? " " : "",
                     s->workload, gpus, *s->grid ? " " : "", s->grid, s->backend);
    free(gpus);
    return text;
}

/* Appends " KEY=VALUE" of every option on which series of the same words differ. */
static void tell_apart(struct s4d_series_list *list, json_t *const *options, int from, int to)
{
    json_t *differ = json_object();
    const char *key;
    json_t *v;
    for (int i = from; i < to; i++)
        json_object_foreach(options[i], key, v) for (int k = from; k < to; k++)
        {
            const json_t *other = json_object_get(options[k], key);
            if (!other || !json_equal(v, other))
                json_object_set_new(differ, key, json_true());
        }
    for (int i = from; i < to; i++) {
        json_object_foreach(differ, key, v)
        {
            const json_t *own = json_object_get(options[i], key);
            char *value = own ? json_dumps(own, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
            char *longer = s4d_asprintf("%s %s=%s", list->v[i].label, key, value ? value : "-");
            free(value);
            free(list->v[i].label);
            list->v[i].label = longer;
        }
        if (*list->v[i].model_version) {
            char *longer = s4d_asprintf("%s model %s", list->v[i].label, list->v[i].model_version);
            free(list->v[i].label);
            list->v[i].label = longer;
        }
    }
    json_decref(differ);
}

/* Of a list in its order: those with the same words stand together. */
void s4d_series_labels(struct s4d_series_list *list)
{
    json_t **options = s4d_calloc((size_t)list->n + 1, sizeof(json_t *));
    for (int i = 0; i < list->n; i++) {
        list->v[i].label = base(&list->v[i]);
        options[i] = json_loads(list->v[i].options, 0, NULL);
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
