/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated series must be what it was on the night before, to the last digit: any difference is
 * said, with the commits between. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"

enum { NAMED = 4 }; /* keys that a finding names */

/* What is of the run and not of the result, and what the series' name says already. */
static const char *const beside[] = {"provenance",    "suite",      "host_class",
                                     "model_version", "experiment", "tune"};

struct kept {
    json_t *record; /* without what lies beside */
    int64_t id;
    int day;
    char *commit;
};
struct lines {
    struct kept *v;
    int n, cap;
};

static int keep(void *to, const struct s4d_stored *stored)
{
    struct lines *lines = to;
    json_t *record = json_loads(stored->line, 0, NULL);
    const char *commit = json_string_value(s4d_at_path(record, "provenance.commit"));
    struct kept kept = {.record = record,
                        .id = stored->record,
                        .day = stored->day,
                        .commit = s4d_strdup(commit ? commit : "")};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        json_object_del(record, beside[i]);
    s4d_push(lines->v, lines->n, lines->cap, kept);
    return 0;
}

static void lines_free(struct lines *lines)
{
    for (int i = 0; i < lines->n; i++) {
        json_decref(lines->v[i].record);
        free(lines->v[i].commit);
    }
    free(lines->v);
}

/* --- what differs --------------------------------------------------------------------------- */

/* Adds the paths of what is not the same in both, "machine.hash, busy_s.x", up to NAMED of them. */
static void differences(const json_t *a, const json_t *b, const char *path, char **text, int *n)
{
    if (a && b && json_equal(a, b))
        return;
    if (json_is_object(a) && json_is_object(b)) {
        const char *key;
        json_t *value, *all = json_deep_copy(a);
        json_object_update_missing(all, (json_t *)b);
        json_object_foreach(all, key, value)
        {
            char *deeper = s4d_asprintf("%s%s%s", path, *path ? "." : "", key);
            differences(json_object_get(a, key), json_object_get(b, key), deeper, text, n);
            free(deeper);
        }
        json_decref(all);
        return;
    }
    if (*n < NAMED) {
        char *longer = s4d_asprintf("%s%s%s", *text, *n ? ", " : "", path);
        free(*text);
        *text = longer;
    }
    ++*n;
}

struct value {
    const struct s4d_metric *metric;
    char name[64];
    double value;
};
struct values {
    struct value *v;
    int n, cap;
};

static void take(void *to, const struct s4d_metric *metric, const char *name, const json_t *numbers,
                 const json_t *over)
{
    struct values *values = to;
    struct value v = {.metric = metric};
    snprintf(v.name, sizeof v.name, "%s", name);
    if (json_is_array(numbers))
        numbers = json_array_get(numbers, json_array_size(numbers) - 1);
    v.value = json_number_value(numbers);
    if (over)
        v.value = json_number_value(over) / v.value;
    s4d_push(values->v, values->n, values->cap, v);
}

static void changed_metrics(struct s4d_finding *f, const struct kept *a, const struct kept *b)
{
    struct values old = {0}, new = {0};
    s4d_metrics_of(a->record, take, &old);
    s4d_metrics_of(b->record, take, &new);
    for (int i = 0; i < old.n; i++)
        for (int k = 0; k < new.n; k++) {
            double before = old.v[i].value, after = new.v[k].value;
            if (strcmp(old.v[i].name, new.v[k].name) != 0 || before == after)
                continue;
            s4d_push(f->v, f->n, f->cap,
                     (struct s4d_metric_change){.metric = old.v[i].metric,
                                                .name = s4d_strdup(old.v[i].name),
                                                .since = b->day,
                                                .nights = 1,
                                                .before = before,
                                                .after = after,
                                                .part = before > 0 ? after / before - 1 : NAN,
                                                .p = NAN,
                                                .deviations = NAN});
        }
    free(old.v);
    free(new.v);
}

static void compare(struct s4d_verdict *verdict, const struct s4d_series *series,
                    const struct s4d_series *other, const struct kept *a, const struct kept *b)
{
    int n = 0;
    char *differs = s4d_strdup("");
    bool other_model = other != series;
    differences(a->record, b->record, "", &differs, &n);
    if (n > NAMED) {
        char *longer = s4d_asprintf("%s and %d more", differs, n - NAMED);
        free(differs);
        differs = longer;
    }
    if (n == 0 && !other_model) {
        free(differs);
        return;
    }
    struct s4d_finding *f =
        s4d_finding_add(verdict, S4D_FINDING_SIMULATED,
                        other_model ? S4D_STANDING_NOTED : S4D_STANDING_WORSE, series);
    f->since = b->day;
    f->before = a->day;
    f->commit_before = s4d_strdup(a->commit);
    f->commit_since = s4d_strdup(b->commit);
    f->record_before = a->id;
    f->record_now = b->id;
    f->differs = differs;
    f->model_before = s4d_strdup(other->model_version);
    changed_metrics(f, a, b);
    s4d_finding_say(f);
}

/* --- what is compared with what ------------------------------------------------------------- */

/* The same inputs with another model_version, the last that ran up to the night; or NULL. */
static const struct s4d_series *of_another_model(const struct s4d_verdict *verdict,
                                                 const struct s4d_series *s)
{
    const struct s4d_series *best = NULL;
    for (int i = 0; i < verdict->list.n; i++) {
        const struct s4d_series *o = &verdict->list.v[i];
        if (o != s && s4d_series_but_model(o, s) && o->last <= verdict->night &&
            (!best || o->last > best->last))
            best = o;
    }
    return best;
}

/* The last record of the night before, then all of this one. */
static int read_lines(struct lines *lines, const struct s4d_verdict *verdict,
                      struct s4d_store *store, const struct s4d_series *series,
                      const struct s4d_series *other, struct s4d_error *err)
{
    int before = other->last;
    if (other == series) {
        struct s4d_history h;
        if (s4d_store_history(store, series->id, 2, verdict->night, &h, err))
            return -1;
        before = h.n && h.v[0].n > 1 ? h.v[0].v[0].day : verdict->night;
        s4d_history_free(&h);
    }
    if (before < verdict->night || other != series) {
        if (s4d_store_records(store, other->id, before, before, keep, lines, err))
            return -1;
        for (; lines->n > 1; lines->n--) { /* the last alone */
            struct kept last = lines->v[lines->n - 1];
            lines->v[lines->n - 1] = lines->v[lines->n - 2];
            lines->v[lines->n - 2] = last;
            json_decref(lines->v[lines->n - 1].record);
            free(lines->v[lines->n - 1].commit);
        }
    }
    return s4d_store_records(store, series->id, verdict->night, verdict->night, keep, lines, err);
}

int s4d_verdict_simulated(struct s4d_verdict *verdict, struct s4d_store *store,
                          const struct s4d_series *series, int *nights, struct s4d_error *err)
{
    const struct s4d_series *other =
        series->first == verdict->night ? of_another_model(verdict, series) : NULL;
    struct lines lines = {0};
    if (!other)
        other = series;
    int rc = read_lines(&lines, verdict, store, series, other, err);
    *nights = rc == 0 && lines.n > 0 ? 1 + (lines.v[0].day < verdict->night || other != series) : 0;
    for (int i = 1; rc == 0 && i < lines.n; i++)
        compare(verdict, series, i == 1 ? other : series, &lines.v[i - 1], &lines.v[i]);
    lines_free(&lines);
    return rc;
}
