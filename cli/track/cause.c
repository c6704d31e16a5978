/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/cause.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/window.h"
#include "support/processors.h"

#define FIELD(name) offsetof(struct s4d_cause_options, name)
const struct s4d_option s4d_cause_table[] = {
    S4D_REPLAY_OPTIONS(FIELD(replay)),
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
        .nights = 7, .replay = {.workers = s4d_processors()}, .most = 20};
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
        struct s4d_window w = {.of_rates = i >= 2};
        rc = s4d_window_read(&w, store, &verdict->list, f->series, before ? days.from : f->since,
                             before ? f->before : days.until, nights, err);
        if (rc == 0 && w.of_rates)
            *(before ? &a->before : &a->after) = s4d_window_rates(&w);
        else if (rc == 0)
            a->exposed[i] = s4d_window_exposed(&w);
        s4d_window_free(&w);
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

int s4d_causes_find(struct s4d_verdict *verdict, struct s4d_store *store,
                    const struct s4d_cause_options *options, struct s4d_error *err)
{
    if (s4d_replay_options_check(&options->replay, err))
        return -1;
    int n = 0;
    for (int i = 0; i < verdict->n; i++) {
        struct s4d_finding *f = &verdict->v[i];
        if (!is_asked(f))
            continue;
        n += f->of < 0; /* one under another goes with it */
        if (n > options->most)
            leave_out(f, options->most);
        else if (find(f, verdict, store, options, err))
            return -1;
    }
    return 0;
}
