/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"

struct s4d_verdict_options s4d_verdict_defaults(void)
{
    return (struct s4d_verdict_options){
        .night = S4D_LAST_NIGHT, .window = 60, .retired = 14, .change = s4d_change_defaults()};
}

/* --- findings ------------------------------------------------------------------------------- */

struct s4d_finding *s4d_finding_add(struct s4d_verdict *verdict, enum s4d_finding_kind kind,
                                    enum s4d_standing standing, const struct s4d_series *series)
{
    s4d_push(verdict->v, verdict->n, verdict->cap,
             (struct s4d_finding){.kind = kind,
                                  .standing = standing,
                                  .series = series,
                                  .before = -1,
                                  .of = -1,
                                  .lower = NAN,
                                  .upper = NAN});
    return &verdict->v[verdict->n - 1];
}

static void finding_free(struct s4d_finding *f)
{
    char *text[] = {f->commit_before, f->commit_since, f->differs,
                    f->model_before,  f->text,         f->environment};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        free(text[i]);
    for (int i = 0; i < f->n; i++)
        free(f->v[i].name);
    free(f->v);
    json_decref(f->cause);
}

bool s4d_series_but_model(const struct s4d_series *a, const struct s4d_series *b)
{
    return strcmp(a->host_class, b->host_class) == 0 && strcmp(a->backend, b->backend) == 0 &&
           strcmp(a->kind, b->kind) == 0 && strcmp(a->workload, b->workload) == 0 &&
           strcmp(a->grid, b->grid) == 0 && strcmp(a->options, b->options) == 0 &&
           a->gpus == b->gpus;
}

/* --- series that are not there -------------------------------------------------------------- */

/* What runs the same experiment this night under another name: a newer model_version, or a record
 * that says why there is no other. */
static const struct s4d_series *instead(const struct s4d_verdict *verdict,
                                        const struct s4d_series *s, bool failure)
{
    for (int i = 0; i < verdict->list.n; i++) {
        const struct s4d_series *o = &verdict->list.v[i];
        bool same = failure ? strcmp(o->kind, "failure") == 0 && !strcmp(o->backend, s->backend) &&
                                  !strcmp(o->host_class, s->host_class) &&
                                  !strcmp(o->workload, s->workload) && !strcmp(o->grid, s->grid)
                            : o != s && s4d_series_but_model(o, s);
        if (same && o->first <= verdict->night && o->last >= verdict->night)
            return o;
    }
    return NULL;
}

static int last_line(void *to, const struct s4d_stored *stored)
{
    char **line = to;
    free(*line);
    *line = s4d_strdup(stored->line);
    return 0;
}

/* The words of the failure of this night, or NULL; caller frees. */
static int failure_of(struct s4d_verdict *verdict, struct s4d_store *store,
                      const struct s4d_series *s, char **words, struct s4d_error *err)
{
    const struct s4d_series *failed = instead(verdict, s, true);
    char *line = NULL;
    *words = NULL;
    if (!failed)
        return 0;
    if (s4d_store_records(store, failed->id, verdict->night, verdict->night, last_line, &line, err))
        return -1;
    json_t *record = line ? json_loads(line, 0, NULL) : NULL;
    const char *message = json_string_value(json_object_get(record, "message"));
    if (message)
        *words = s4d_strdup(message);
    json_decref(record);
    free(line);
    return 0;
}

/* Two nights make a habit: a series that ran once is not missed. */
static int missing(struct s4d_verdict *verdict, struct s4d_store *store, const struct s4d_series *s,
                   const struct s4d_history *h, struct s4d_error *err)
{
    const struct s4d_points *points = &h->v[0];
    const struct s4d_night *last = &points->v[points->n - 1];
    char *words;
    if (points->n < 2 || instead(verdict, s, false) || strcmp(s->kind, "rates") == 0)
        return 0; /* rates are missing with what they were measured for */
    if (failure_of(verdict, store, s, &words, err))
        return -1;
    struct s4d_finding *f = s4d_finding_add(verdict, S4D_FINDING_MISSING, S4D_STANDING_MISSING, s);
    f->since = last->day + 1;
    f->before = last->day;
    f->commit_before = s4d_strdup(last->commit);
    f->commit_since = s4d_strdup("");
    f->record_before = last->record;
    f->differs = words;
    s4d_finding_say(f);
    return 1;
}

/* Whether a run of the experiment that failed is spoken of without it: it has a record of this
 * night, or is missing. */
static bool spoken_of(const struct s4d_verdict *verdict, const struct s4d_series *failed)
{
    for (int i = 0; i < verdict->list.n; i++) {
        const struct s4d_series *o = &verdict->list.v[i];
        if (strcmp(o->kind, "train") != 0 || strcmp(o->backend, failed->backend) != 0 ||
            strcmp(o->host_class, failed->host_class) != 0 ||
            strcmp(o->workload, failed->workload) != 0 || strcmp(o->grid, failed->grid) != 0 ||
            o->first > verdict->night)
            continue;
        if (o->last >= verdict->night ||
            (o->nights >= 2 && verdict->night - o->last <= verdict->options.retired))
            return true;
    }
    return false;
}

/* --- one series ----------------------------------------------------------------------------- */

static bool ran(const struct s4d_history *h, int night)
{
    for (int i = 0; i < h->n; i++)
        if (h->v[i].v[h->v[i].n - 1].day == night)
            return true;
    return false;
}

static void row_add(struct s4d_verdict *verdict, const struct s4d_series *s, int from, int nights)
{
    struct s4d_series_standing row = {.series = s, .nights = nights, .text = s4d_strdup("")};
    const struct s4d_finding *worst = NULL;
    for (int i = from; i < verdict->n; i++)
        if (!worst || verdict->v[i].standing > worst->standing)
            worst = &verdict->v[i];
    int least = strcmp(s->backend, "simulated") == 0 ? 2 : verdict->least_nights;
    if (worst) {
        row.standing = worst->standing;
        free(row.text);
        row.text = s4d_strdup(worst->text);
    } else if (nights < least) {
        row.standing = S4D_STANDING_TOO_FEW;
        free(row.text);
        row.text = s4d_asprintf("%d night%s of the %d that a verdict needs", nights,
                                nights == 1 ? "" : "s", least);
    }
    verdict->row[verdict->n_rows++] = row;
    verdict->count[row.standing]++;
}

/* What fails every night has no series that could be missing. */
static int failed_alone(struct s4d_verdict *verdict, struct s4d_store *store,
                        const struct s4d_series *s, struct s4d_error *err)
{
    char *words = NULL;
    if (spoken_of(verdict, s))
        return 0;
    if (failure_of(verdict, store, s, &words, err))
        return -1;
    if (!words)
        return 0;
    int from = verdict->n;
    struct s4d_finding *f = s4d_finding_add(verdict, S4D_FINDING_MISSING, S4D_STANDING_MISSING, s);
    f->since = verdict->night;
    f->commit_before = s4d_strdup("");
    f->commit_since = s4d_strdup("");
    f->differs = words;
    s4d_finding_say(f);
    row_add(verdict, s, from, 0);
    return 0;
}

static int look_at(struct s4d_verdict *verdict, struct s4d_store *store, const struct s4d_series *s,
                   struct s4d_references *references, struct s4d_error *err)
{
    struct s4d_history h;
    bool simulated = strcmp(s->backend, "simulated") == 0;
    int from = verdict->n, nights = 0, rc = 0;
    if (s->first > verdict->night || verdict->night - s->last > verdict->options.retired)
        return 0;
    if (strcmp(s->kind, "failure") == 0)
        return failed_alone(verdict, store, s, err);
    if (s4d_store_history(store, s->id, simulated ? 2 : verdict->options.window, verdict->night, &h,
                          err))
        return -1;
    bool shown = h.n > 0;
    if (shown && !ran(&h, verdict->night)) {
        rc = missing(verdict, store, s, &h, err);
        shown = rc == 1;
        nights = h.v[0].n;
        rc = rc < 0 ? -1 : 0;
    } else if (shown) {
        rc = simulated ? s4d_verdict_simulated(verdict, store, s, &nights, err)
                       : s4d_verdict_changes(verdict, s, &h, &nights, err);
        s4d_verdict_references(verdict, references, s, &h);
        for (int i = from; rc == 0 && i < verdict->n; i++)
            rc = s4d_verdict_environment(&verdict->v[i], store, err);
    }
    if (rc == 0 && shown)
        row_add(verdict, s, from, nights);
    s4d_history_free(&h);
    return rc;
}

/* --- the whole ------------------------------------------------------------------------------ */

static int one_is_enough(void *to, const struct s4d_stored *stored)
{
    (void)to;
    (void)stored;
    return 1;
}

static int choose_night(struct s4d_verdict *v, struct s4d_store *store, struct s4d_error *err)
{
    int last = INT_MIN;
    const char *file = s4d_store_file(store);
    for (int i = 0; i < v->list.n; i++)
        last = v->list.v[i].last > last ? v->list.v[i].last : last;
    if (v->list.n == 0) {
        s4d_fail(err, S4D_EXIT_DATA, file, "there is no record in this store");
        return s4d_hint(err, "scale4d track add FILE puts a night's records there");
    }
    v->night = v->options.night == S4D_LAST_NIGHT ? last : v->options.night;
    int found = s4d_store_records(store, 0, v->night, v->night, one_is_enough, NULL, err);
    if (found == 0) {
        s4d_fail(err, S4D_EXIT_DATA, file, "there is no record of the night of %s",
                 s4d_date(v->night).text);
        return s4d_hint(err, "the last night with one is that of %s", s4d_date(last).text);
    }
    return found < 0 ? -1 : 0;
}

/* What people ask first is how much slower training got; a rate that was measured alone tells why.
 */
static bool tells_why(const struct s4d_finding *f)
{
    return strcmp(f->series->kind, "rates") == 0;
}

/* A part of the level; what is no number, or was 0, may be anything. */
static double size_of(const struct s4d_finding *f)
{
    if (f->n == 0)
        return 0;
    return isnan(f->v[0].part) ? INFINITY : fabs(f->v[0].part);
}

static int worst_first(const void *a, const void *b)
{
    const struct s4d_finding *f = a, *g = b;
    double f_size = size_of(f), g_size = size_of(g);
    if (f->standing != g->standing)
        return f->standing > g->standing ? -1 : 1;
    if (tells_why(f) != tells_why(g))
        return tells_why(f) ? 1 : -1;
    if (f_size != g_size)
        return f_size > g_size ? -1 : 1;
    if (f->series != g->series)
        return f->series < g->series ? -1 : 1;
    if (f->kind != g->kind)
        return f->kind < g->kind ? -1 : 1;
    return f->since > g->since ? -1 : f->since < g->since;
}

static void unused(struct s4d_verdict *v, const struct s4d_references *references)
{
    for (int i = 0; i < references->n; i++)
        if (!references->v[i].used)
            s4d_texts_add(&v->unused, references->v[i].where);
}

static void headline(struct s4d_verdict *v)
{
    static const char *const words[] = {
        "unchanged", "too short to judge", "better", "with a note", "to watch", "missing", "worse"};
    char *text = s4d_asprintf("night of %s, %d series:", s4d_date(v->night).text, v->n_rows);
    const char *between = " ";
    int told = 0;
    for (int i = S4D_STANDING_WORSE; i >= 0; i--) {
        int own = v->count[i] - v->told[i];
        told += v->told[i];
        if (own == 0 && i != S4D_STANDING_WORSE)
            continue;
        char *longer = s4d_asprintf("%s%s%d %s", text, between, own, words[i]);
        free(text);
        text = longer;
        between = ", ";
    }
    if (told > 0) {
        char *longer =
            s4d_asprintf("%s, %d of rates that show%s why", text, told, told == 1 ? "s" : "");
        free(text);
        text = longer;
    }
    v->text = text;
}

int s4d_verdict_of(struct s4d_verdict *verdict, struct s4d_store *store,
                   const struct s4d_verdict_options *options, struct s4d_error *err)
{
    struct s4d_references references = {0};
    *verdict = (struct s4d_verdict){.options = *options,
                                    .least_nights = s4d_change_least_nights(3, &options->change)};
    int rc = options->references ? s4d_references_read(&references, options->references, err) : 0;
    if (rc == 0)
        rc = s4d_store_series(store, &verdict->list, err);
    if (rc == 0)
        rc = choose_night(verdict, store, err);
    verdict->row = s4d_calloc((size_t)verdict->list.n + 1, sizeof *verdict->row);
    for (int i = 0; rc == 0 && i < verdict->list.n; i++)
        rc = look_at(verdict, store, &verdict->list.v[i], &references, err);
    if (rc == 0) {
        if (verdict->n > 1)
            qsort(verdict->v, (size_t)verdict->n, sizeof *verdict->v, worst_first);
        s4d_verdict_group(verdict);
        unused(verdict, &references);
        headline(verdict);
    }
    s4d_references_free(&references);
    if (rc)
        s4d_verdict_free(verdict);
    return rc;
}

bool s4d_verdict_failed(const struct s4d_verdict *verdict)
{
    return verdict->count[S4D_STANDING_WORSE] > 0 ||
           (verdict->options.missing_fails && verdict->count[S4D_STANDING_MISSING] > 0);
}

void s4d_verdict_free(struct s4d_verdict *verdict)
{
    for (int i = 0; i < verdict->n; i++)
        finding_free(&verdict->v[i]);
    for (int i = 0; i < verdict->n_rows; i++)
        free(verdict->row[i].text);
    free(verdict->v);
    free(verdict->row);
    free(verdict->text);
    s4d_texts_free(&verdict->unused);
    s4d_series_list_free(&verdict->list);
    *verdict = (struct s4d_verdict){0};
}
