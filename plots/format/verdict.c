/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/format/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

struct taken {
    struct s4d_outcomes *outcomes;
    int64_t *series; /* of each outcome */
    int n, cap;
    struct s4d_error *err;
};

static int take(void *self, const struct s4d_stored *record)
{
    struct taken *t = self;
    int before = t->outcomes->n;
    char where[64];
    snprintf(where, sizeof where, "record %s", record->hash);
    if (s4d_outcomes_add(t->outcomes, record->line, strlen(record->line), where, t->err))
        return -1;
    if (t->outcomes->n > before)
        s4d_push(t->series, t->n, t->cap, record->series);
    return 0;
}

/* A finding that is not under another. */
static const struct s4d_finding *finding_of(const struct s4d_verdict *v, int64_t series,
                                            enum s4d_standing standing)
{
    for (int i = 0; i < v->n; i++)
        if (v->v[i].series->id == series && v->v[i].standing == standing && v->v[i].of < 0)
            return &v->v[i];
    return NULL;
}

static char *append(char *text, const char *more)
{
    char *longer = s4d_asprintf("%s; %s", text, more);
    free(text);
    return longer;
}

/* In a line, with its cause; with the rates that show it where nothing else does, or all is to be
 * said. */
static char *said(const struct s4d_verdict *v, const struct s4d_finding *f, bool all)
{
    const char *cause = s4d_finding_cause(f);
    char *text = s4d_strdup(f->text);
    int at = (int)(f - v->v);
    if (cause)
        text = append(text, cause);
    for (int i = at + 1; i < v->n && v->v[i].of == at && (all || !cause); i++)
        text = append(text, v->v[i].text);
    return text;
}

static void judge_value(struct s4d_value *value, const struct s4d_series *series,
                        const struct s4d_finding *worse, const struct s4d_verdict *v,
                        const struct s4d_references *references)
{
    for (int i = 0; references && i < references->n; i++) {
        const struct s4d_reference *r = &references->v[i];
        if (strcmp(r->metric, value->name) == 0 && s4d_reference_is_of(r, series)) {
            value->reference = r->value;
            value->lower = r->lower;
            value->upper = r->upper;
        }
    }
    if (worse && worse->n > 0 && strcmp(worse->v[0].name, value->name) == 0)
        value->worse = said(v, worse, true);
}

/* The series' own label, not one made of this night's alone; what was judged, and how. */
static void judge(struct s4d_outcome *o, const struct s4d_series_standing *row,
                  const struct s4d_verdict *v, const struct s4d_references *references)
{
    const struct s4d_finding *worse = finding_of(v, row->series->id, S4D_STANDING_WORSE);
    bool judged = row->standing != S4D_STANDING_TOO_FEW;
    free(o->label);
    o->label = s4d_strdup(row->series->label);
    for (int i = 0; i < o->n; i++) {
        judge_value(&o->v[i], row->series, worse, v, references);
        if (judged && o->v[i].direction != 0) {
            o->v[i].judged = true;
            judged = false; /* the first stands for the others: they are in its text */
        }
    }
    if (worse && worse->n == 0 && !o->failure)
        o->failure = said(v, worse, true);
}

/* A failure's own record of this night says it, under the series that has only failures. */
static bool is_told(const struct s4d_outcomes *outcomes, const struct s4d_finding *f)
{
    for (int i = 0; i < outcomes->n; i++)
        if (outcomes->v[i].failure && strcmp(outcomes->v[i].label, f->series->label) == 0 &&
            strcmp(outcomes->v[i].host_class, f->series->host_class) == 0)
            return true;
    return false;
}

static void add_missing(struct s4d_outcomes *outcomes, const struct s4d_finding *f, int night)
{
    struct s4d_outcome o = {.label = s4d_strdup(f->series->label),
                            .key = s4d_asprintf("series %lld", (long long)f->series->id),
                            .night = night,
                            .last = true,
                            .time_s = (long long)night * 86400,
                            .kind = f->series->kind,
                            .host_class = s4d_strdup(f->series->host_class),
                            .backend = s4d_strdup(f->series->backend),
                            .failure = s4d_strdup(f->text)};
    s4d_push(outcomes->v, outcomes->n, outcomes->cap, o);
}

/* The counts, then the worst finding, and how many more there are. */
static char *text_of(const struct s4d_verdict *v)
{
    int more = -1;
    for (int i = 0; i < v->n; i++)
        more += v->v[i].standing >= S4D_STANDING_WATCH && v->v[i].of < 0;
    if (more < 0)
        return s4d_strdup(v->text);
    char *worst = said(v, &v->v[0], false), *text;
    if (more > 0)
        text = s4d_asprintf("%s. %s; and %d more", v->text, worst, more);
    else
        text = s4d_asprintf("%s. %s", v->text, worst);
    free(worst);
    return text;
}

int s4d_outcomes_of_verdict(struct s4d_outcomes *outcomes, const struct s4d_verdict *v,
                            struct s4d_store *store, const struct s4d_references *references,
                            struct s4d_error *err)
{
    struct taken t = {.outcomes = outcomes, .err = err};
    int rc = s4d_store_records(store, 0, v->night, v->night, take, &t, err);
    if (rc == 0) {
        s4d_outcomes_ready(outcomes);
        for (int i = 0; i < t.n; i++)
            for (int k = 0; k < v->n_rows; k++)
                if (v->row[k].series->id == t.series[i])
                    judge(&outcomes->v[i], &v->row[k], v, references);
        for (int i = 0; i < v->n; i++)
            if (v->v[i].kind == S4D_FINDING_MISSING && !is_told(outcomes, &v->v[i]))
                add_missing(outcomes, &v->v[i], v->night);
        outcomes->text = text_of(v);
    }
    free(t.series);
    return rc;
}
