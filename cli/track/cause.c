/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/cause.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/track/attribution.h"
#include "support/machine.h"
#include "support/memory.h"
#include "support/statistics.h"

#define FIELD(name) offsetof(struct s4d_cause_options, name)
const struct s4d_option s4d_cause_table[] = {
    {.name = "machine",
     .argument = "M",
     .type = S4D_OPT_TEXT,
     .offset = FIELD(replay.machine),
     .help = "what causes are simulated on: a name (scale4d machines), a .yaml file, or "
             "synthetic:...; default: what the record names, else made of the nights' rates"},
    {.name = "workload",
     .argument = "FILE",
     .type = S4D_OPT_LIST,
     .offset = FIELD(replay.workloads),
     .help = "a model that the records train and the workloads folder lacks; may be repeated"},
    {.name = "causes",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 0,
     .max = 1000000,
     .offset = FIELD(most),
     .help = "of how many findings, the worst first, the causes are looked for; a few simulations "
             "each"},
    {.name = NULL},
};

struct s4d_cause_options s4d_cause_defaults(void)
{
    return (struct s4d_cause_options){
        .nights = 7, .replay = {.workers = (int)sysconf(_SC_NPROCESSORS_ONLN)}, .most = 20};
}

/* --- records of some nights ------------------------------------------------------------------ */

/* What a record says of one night, of either kind. */
struct entry {
    int day;
    struct s4d_night_rates rates;
    struct s4d_exposed exposed;
};
struct window {
    bool of_rates;
    struct entry *v; /* oldest first */
    int n, cap;
};

static bool read_exposed(const json_t *record, struct s4d_exposed *e)
{
    const json_t *parts = json_object_get(record, "exposed_s"),
                 *time = json_object_get(record, "iteration_time_s");
    if (!json_is_number(time) || !json_is_object(parts))
        return false;
    *e = (struct s4d_exposed){.records = 1, .iteration_s = json_number_value(time)};
    for (int i = 0; i < S4D_EXPOSED; i++)
        e->part_s[i] = json_number_value(json_object_get(parts, s4d_exposed_names[i]));
    return true;
}

static int take(void *to, const struct s4d_stored *stored)
{
    struct window *w = to;
    struct entry e = {.day = stored->day};
    json_t *record = json_loads(stored->line, 0, NULL);
    bool said = w->of_rates;
    if (w->of_rates)
        e.rates = s4d_night_rates_of(record);
    else
        said = read_exposed(record, &e.exposed);
    if (said)
        s4d_push(w->v, w->n, w->cap, e);
    json_decref(record);
    return 0;
}

/* Whether a night's rates were measured of what the series trains: no input of both differs. */
static bool same_inputs(const struct s4d_series *a, const struct s4d_series *rates)
{
    bool same =
        strcmp(rates->kind, "rates") == 0 && strcmp(a->host_class, rates->host_class) == 0 &&
        strcmp(a->backend, rates->backend) == 0 && strcmp(a->workload, rates->workload) == 0 &&
        strcmp(a->grid, rates->grid) == 0 && a->gpus == rates->gpus;
    if (!same)
        return false;
    json_t *one = json_loads(a->options, 0, NULL), *other = json_loads(rates->options, 0, NULL), *v;
    const char *key;
    json_object_foreach(one, key, v)
    {
        const json_t *w = json_object_get(other, key);
        same = same && (!w || json_equal(v, w));
    }
    json_decref(one);
    json_decref(other);
    return same;
}

static int by_day(const void *a, const void *b)
{
    return ((const struct entry *)a)->day - ((const struct entry *)b)->day;
}

/* The last `nights` of the days [from, until]. */
static void keep_last(struct window *w, int nights)
{
    int i = w->n;
    for (; i > 0; i--)
        if ((i == w->n || w->v[i - 1].day != w->v[i].day) && nights-- == 0)
            break;
    w->n -= i;
    if (w->n > 0)
        memmove(w->v, w->v + i, (size_t)w->n * sizeof *w->v);
}

/* Records of the series (of_rates: of rates that were measured for it). */
static int read_window(struct window *w, struct s4d_store *store, const struct s4d_series_list *all,
                       const struct s4d_series *series, int from, int until, int nights,
                       struct s4d_error *err)
{
    for (int i = 0; i < all->n; i++) {
        const struct s4d_series *s = &all->v[i];
        if (w->of_rates ? !same_inputs(series, s) : s != series)
            continue;
        if (s4d_store_records(store, s->id, from, until, take, w, err))
            return -1;
    }
    if (w->n > 0)
        qsort(w->v, (size_t)w->n, sizeof *w->v, by_day);
    keep_last(w, nights);
    return 0;
}

static struct s4d_night_rates rates_of(const struct window *w)
{
    struct s4d_night_rates *v = s4d_calloc((size_t)w->n + 1, sizeof *v), median = v[0];
    for (int i = 0; i < w->n; i++)
        v[i] = w->v[i].rates;
    if (w->n > 0)
        median = s4d_night_rates_median(v, w->n);
    free(v);
    return median;
}

static double median_at(const struct window *w, size_t offset)
{
    double *v = s4d_calloc((size_t)w->n + 1, sizeof *v);
    for (int i = 0; i < w->n; i++)
        memcpy(&v[i], (const char *)&w->v[i].exposed + offset, sizeof v[i]);
    double median = s4d_statistics(v, w->n).median;
    free(v);
    return median;
}

static struct s4d_exposed exposed_of(const struct window *w)
{
    struct s4d_exposed e = {.records = w->n};
    if (w->n == 0)
        return e;
    e.iteration_s = median_at(w, offsetof(struct s4d_exposed, iteration_s));
    for (int i = 0; i < S4D_EXPOSED; i++)
        e.part_s[i] =
            median_at(w, offsetof(struct s4d_exposed, part_s) + (size_t)i * sizeof(double));
    return e;
}

/* --- a finding ------------------------------------------------------------------------------- */

/* The change of FLOP/s, else of the iteration's time. */
static const struct s4d_metric_change *of_time(const struct s4d_finding *f,
                                               enum s4d_time_metric *metric)
{
    static const char *const names[] = {"flops_per_s", "iteration_time_s"};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < f->n; i++)
            if (strcmp(f->v[i].name, names[k]) == 0 && f->v[i].before > 0 && f->v[i].after > 0) {
                *metric = k == 0 ? S4D_IS_RATE : S4D_IS_TIME;
                return &f->v[i];
            }
    return NULL;
}

/* The first night at the level before the change, and the last at that since: up to other changes
 * of the series, and from where its history starts again. */
struct days {
    int from, until;
};

static int find_days(struct days *d, const struct s4d_finding *f, const struct s4d_verdict *verdict,
                     struct s4d_store *store, int nights, struct s4d_error *err)
{
    /* More days than nights: not every night has a record. */
    *d = (struct days){f->before - 4 * nights, verdict->night};
    for (int i = 0; i < verdict->n; i++) {
        const struct s4d_finding *g = &verdict->v[i];
        if (g->series != f->series || g->kind != S4D_FINDING_CHANGE)
            continue;
        if (g->since < f->since && g->since > d->from)
            d->from = g->since;
        if (g->since > f->since && g->since <= d->until)
            d->until = g->since - 1;
    }
    struct s4d_points points;
    if (s4d_store_points(store, f->series->id, "iteration_time_s", verdict->options.window,
                         verdict->night, &points, err))
        return -1;
    for (int i = 0; i < points.n; i++)
        if (points.v[i].restart && points.v[i].day <= f->before && points.v[i].day > d->from)
            d->from = points.v[i].day;
    s4d_points_free(&points);
    return 0;
}

/* The windows before and since. */
static int read_sides(struct s4d_attribution *a, const struct s4d_finding *f,
                      const struct s4d_verdict *verdict, struct s4d_store *store, int nights,
                      struct s4d_error *err)
{
    struct days days;
    int rc = find_days(&days, f, verdict, store, nights, err);
    for (int i = 0; i < 4 && rc == 0; i++) {
        bool before = i % 2 == 0;
        struct window w = {.of_rates = i >= 2};
        rc = read_window(&w, store, &verdict->list, f->series, before ? days.from : f->since,
                         before ? f->before : days.until, nights, err);
        if (rc == 0 && w.of_rates)
            *(before ? &a->before : &a->after) = rates_of(&w);
        else if (rc == 0)
            a->exposed[i] = exposed_of(&w);
        free(w.v);
    }
    return rc;
}

static bool is_asked(const struct s4d_finding *f)
{
    if (f->record_now == 0 || !f->series)
        return false;
    if (f->kind == S4D_FINDING_REFERENCE)
        return strcmp(f->series->kind, "train") == 0;
    if (f->kind == S4D_FINDING_SIMULATED)
        return strcmp(f->series->kind, "simulate") == 0;
    return f->kind == S4D_FINDING_CHANGE &&
           (strcmp(f->series->kind, "train") == 0 || strcmp(f->series->kind, "rates") == 0);
}

static int find(struct s4d_finding *f, const struct s4d_verdict *verdict, struct s4d_store *store,
                const struct s4d_cause_options *o, struct s4d_error *err)
{
    struct s4d_attribution a = {.ratio = NAN};
    enum s4d_time_metric metric = S4D_IS_TIME;
    const struct s4d_metric_change *change = of_time(f, &metric);
    char *line;
    if (read_sides(&a, f, verdict, store, o->nights, err) ||
        s4d_store_record(store, f->record_now, &line, err))
        return -1;
    if (change && f->kind != S4D_FINDING_REFERENCE) /* whose value is of no night */
        a.ratio =
            metric == S4D_IS_RATE ? change->before / change->after : change->after / change->before;
    if (!isnan(a.ratio) && change->deviations > 0)
        a.ratio_error = fabs(a.ratio - 1) / change->deviations;
    json_t *record = json_loads(line, 0, NULL);
    s4d_attribute(&a, record, &o->replay);
    if (!isnan(a.ratio) || a.after.records) {
        json_decref(f->cause);
        f->cause = s4d_attribution_record(&a, metric);
    }
    json_decref(record);
    free(line);
    return 0;
}

static void leave_out(struct s4d_finding *f, int most)
{
    char text[80];
    snprintf(text, sizeof text, "causes were looked for of the first %d findings", most);
    json_decref(f->cause);
    f->cause = most > 0 ? json_pack("{s:n, s:s, s:s}", "by", "note", text, "text", text) : NULL;
}

/* What is named must be there, whether it is needed or not. */
static int check(const struct s4d_replay_options *o, struct s4d_error *err)
{
    struct s4d_machine machine;
    struct s4d_workload workload;
    for (int i = 0; i < o->workloads.n; i++) {
        if (s4d_workload_load(&workload, o->workloads.v[i], err))
            return -1;
        s4d_workload_free(&workload);
    }
    if (!o->machine)
        return 0;
    if (s4d_machine_load(&machine, o->machine, NULL, 0, err))
        return -1;
    s4d_machine_free(&machine);
    return 0;
}

int s4d_causes_find(struct s4d_verdict *verdict, struct s4d_store *store,
                    const struct s4d_cause_options *options, struct s4d_error *err)
{
    if (check(&options->replay, err))
        return -1;
    int n = 0;
    for (int i = 0; i < verdict->n; i++) {
        struct s4d_finding *f = &verdict->v[i];
        if (!is_asked(f))
            continue;
        if (n++ >= options->most)
            leave_out(f, options->most);
        else if (find(f, verdict, store, options, err))
            return -1;
    }
    return 0;
}
