/* SPDX-License-Identifier: Apache-2.0 */
/* A measured series: the changes of all its metrics that stand, as few findings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"

enum {
    TOGETHER = 2,    /* days apart at most: one change */
    OVERALL_ROWS = 2 /* of the table of metrics: what a whole iteration takes */
};

static const double LEAST_OF_WHOLE = 0.005;

/* A change of one metric, not yet in a finding. */
struct item {
    struct s4d_metric_change change;
    enum s4d_standing standing;
    const struct s4d_night *before, *since, *last;
    bool taken;
};
struct items {
    struct item *v;
    int n, cap;
};

int s4d_worse(const struct s4d_metric *metric, double before, double after)
{
    return after > before ? -metric->direction : after < before ? metric->direction : 0;
}

int s4d_levels(const struct s4d_points *points, struct s4d_level *levels, int *first)
{
    *first = 0;
    for (int i = 0; i < points->n; i++)
        if (points->v[i].restart)
            *first = i;
    for (int i = *first; i < points->n; i++) {
        const struct s4d_night *night = &points->v[i];
        bool repeated = night->n_repeats > 1;
        int n = repeated ? night->n_repeats : night->n;
        double *samples = s4d_malloc((size_t)n * sizeof *samples);
        memcpy(samples, repeated ? night->repeats : night->samples, (size_t)n * sizeof *samples);
        levels[i - *first] = s4d_level_of(samples, n);
        free(samples);
    }
    return points->n - *first;
}

static void add(struct items *items, const struct s4d_points *points, int first,
                const struct s4d_change *c, enum s4d_standing standing)
{
    const struct s4d_night *nights = points->v + first;
    struct item item = {.standing = standing,
                        .before = &nights[c->at - 1],
                        .since = &nights[c->at],
                        .last = &points->v[points->n - 1]};
    item.change = (struct s4d_metric_change){.metric = points->metric,
                                             .name = points->name,
                                             .since = item.since->day,
                                             .nights = points->n - first - c->at,
                                             .before = c->before,
                                             .after = c->after,
                                             .part = c->part,
                                             .p = c->p,
                                             .deviations = c->deviations};
    s4d_push(items->v, items->n, items->cap, item);
}

/* The least change of a metric that is a part of another, in its unit; 0: any. */
static double least_of_whole(const struct s4d_history *history, const struct s4d_metric *metric)
{
    for (int i = 0; metric->whole && i < history->n; i++)
        if (strcmp(history->v[i].name, metric->whole) == 0)
            return LEAST_OF_WHOLE * history->v[i].v[history->v[i].n - 1].median;
    return 0;
}

static int changes_of(struct items *items, const struct s4d_history *history,
                      const struct s4d_points *points, const struct s4d_change_options *common,
                      int *judged, struct s4d_error *err)
{
    double least = least_of_whole(history, points->metric);
    struct s4d_change_options options = *common;
    options.magnitude = fmax(options.magnitude, points->metric->magnitude);
    struct s4d_level *levels = s4d_malloc((size_t)points->n * sizeof *levels);
    struct s4d_change *v = s4d_malloc((size_t)points->n * sizeof *v), last;
    int first, n = s4d_levels(points, levels, &first);
    int found = s4d_change_points(levels, n, &options, v, err);
    for (int i = 0; i < found; i++)
        if (s4d_change_stands(levels, v, found, i, &options) &&
            fabs(v[i].after - v[i].before) >= least)
            add(items, points, first, &v[i],
                s4d_worse(points->metric, v[i].before, v[i].after) > 0 ? S4D_STANDING_WORSE
                                                                       : S4D_STANDING_BETTER);
    int from = found > 0 ? v[found - 1].at : 0;
    if (found >= 0 && n - 1 - from >= S4D_NIGHTS_SETTLED &&
        s4d_night_stands_out(levels, from, n, &options, &last) &&
        fabs(last.after - last.before) >= least &&
        s4d_worse(points->metric, last.before, last.after) > 0)
        add(items, points, first, &last, S4D_STANDING_WATCH);
    *judged = n;
    free(levels);
    free(v);
    return found < 0 ? -1 : 0;
}

/* The first in the table's order that is not in a finding yet; but where that is no figure of the
 * whole iteration, one that got worse leads. */
static struct item *lead(struct items *items)
{
    struct item *first = NULL;
    for (int i = 0; i < items->n; i++) {
        struct item *item = &items->v[i];
        if (item->taken)
            continue;
        if (!first)
            first = item;
        if (first->change.metric < s4d_metrics + OVERALL_ROWS)
            return first;
        if (item->standing == S4D_STANDING_WORSE)
            return item;
    }
    return first;
}

static void take(struct s4d_finding *f, struct item *item)
{
    item->taken = true;
    item->change.name = s4d_strdup(item->change.name);
    s4d_push(f->v, f->n, f->cap, item->change);
}

static void group(struct s4d_verdict *verdict, const struct s4d_series *series, struct items *items)
{
    for (struct item *first; (first = lead(items)) != NULL;) {
        struct s4d_finding *f =
            s4d_finding_add(verdict, S4D_FINDING_CHANGE, first->standing, series);
        f->since = first->since->day;
        f->before = first->before->day;
        f->commit_before = s4d_strdup(first->before->commit);
        f->commit_since = s4d_strdup(first->since->commit);
        f->environment_before = first->before->environment;
        f->environment_since = first->since->environment;
        f->record_before = first->before->record;
        f->record_now = first->last->record;
        take(f, first);
        for (int i = 0; i < items->n; i++)
            if (!items->v[i].taken && abs(items->v[i].change.since - f->since) <= TOGETHER)
                take(f, &items->v[i]);
        s4d_finding_say(f);
    }
}

int s4d_verdict_changes(struct s4d_verdict *verdict, const struct s4d_series *series,
                        const struct s4d_history *history, int *nights, struct s4d_error *err)
{
    struct items items = {0};
    int rc = 0;
    *nights = 0;
    for (int i = 0; rc == 0 && i < history->n; i++) {
        const struct s4d_points *points = &history->v[i];
        int judged = 0;
        /* A metric that this night's record does not have says nothing of this night. */
        if (points->metric->direction == 0 || points->v[points->n - 1].day != verdict->night)
            continue;
        rc = changes_of(&items, history, points, &verdict->options.change, &judged, err);
        if (judged > *nights)
            *nights = judged;
    }
    if (rc == 0)
        group(verdict, series, &items);
    free(items.v);
    return rc;
}

/* --- references ----------------------------------------------------------------------------- */

static bool outside(const struct s4d_reference *r, double value)
{
    return (!isnan(r->lower) && value < r->value * (1 + r->lower)) ||
           (!isnan(r->upper) && value > r->value * (1 + r->upper));
}

static void compare(struct s4d_verdict *verdict, const struct s4d_reference *r,
                    const struct s4d_series *series, const struct s4d_points *points)
{
    struct s4d_level *levels = s4d_malloc((size_t)points->n * sizeof *levels);
    int first, n = s4d_levels(points, levels, &first), at = n;
    while (at > 0 && outside(r, levels[at - 1].value))
        at--;
    if (at < n) {
        const struct s4d_night *nights = points->v + first;
        double now = levels[n - 1].value;
        struct s4d_finding *f =
            s4d_finding_add(verdict, S4D_FINDING_REFERENCE, S4D_STANDING_WORSE, series);
        f->since = nights[at].day;
        f->before = at > 0 ? nights[at - 1].day : -1;
        f->commit_before = s4d_strdup(at > 0 ? nights[at - 1].commit : "");
        f->commit_since = s4d_strdup(nights[at].commit);
        f->environment_before = at > 0 ? nights[at - 1].environment : nights[at].environment;
        f->environment_since = nights[at].environment;
        f->record_before = at > 0 ? nights[at - 1].record : 0;
        f->record_now = nights[n - 1].record;
        f->lower = r->lower;
        f->upper = r->upper;
        s4d_push(f->v, f->n, f->cap,
                 (struct s4d_metric_change){.metric = points->metric,
                                            .name = s4d_strdup(points->name),
                                            .since = f->since,
                                            .nights = n - at,
                                            .before = r->value,
                                            .after = now,
                                            .part = now / r->value - 1,
                                            .p = NAN,
                                            .deviations = NAN});
        s4d_finding_say(f);
    }
    free(levels);
}

void s4d_verdict_references(struct s4d_verdict *verdict, struct s4d_references *references,
                            const struct s4d_series *series, const struct s4d_history *history)
{
    for (int i = 0; i < references->n; i++) {
        struct s4d_reference *r = &references->v[i];
        if (!s4d_reference_is_of(r, series))
            continue;
        for (int k = 0; k < history->n; k++) {
            const struct s4d_points *points = &history->v[k];
            if (strcmp(points->name, r->metric) != 0)
                continue;
            r->used = true;
            if (points->v[points->n - 1].day == verdict->night)
                compare(verdict, r, series, points);
        }
    }
}
