/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/plot.h"
#include "cli/stop.h"
#include "plots/figure.h"
#include "support/memory.h"
#include "support/processors.h"
#include "support/progress.h"

static const struct s4d_series *series_of(const struct figure *f, int i)
{
    return &f->e.series[i % f->e.n_series];
}

static json_t *record_of(const struct figure *f, int i)
{
    return s4d_figure_record(&f->records, series_of(f, i), &f->e.point[i / f->e.n_series]);
}

/* Only records of these inputs and this program stay. */
static int keep_finished(struct figure *f, struct s4d_error *err)
{
    struct s4d_records kept = {0};
    for (int i = 0; i < f->trials.n; i++) {
        json_t *r = s4d_trial_find(&f->trials, i, &f->records, true);
        if (r != NULL)
            s4d_push(kept.v, kept.n, kept.cap, json_incref(r));
    }
    s4d_records_free(&f->records);
    f->records = kept;
    return s4d_records_write(&kept, f->records_file, err);
}

static int keep(struct figure *f, json_t *record, struct s4d_error *err)
{
    int rc = s4d_stop_append(&f->records, f->records_file, record, err);
    if (rc == 0) {
        s4d_progress_end();
        s4d_trial_print(record, stdout);
    }
    return rc;
}

static void done(void *context, int i, json_t *record, const struct s4d_error *why)
{
    struct figure *f = context;
    struct s4d_error err = s4d_trial_error(&f->trials.v[i], why);
    f->done++;
    if ((record == NULL || keep(f, record, &err)) && f->failed.exit == S4D_EXIT_OK)
        f->failed = err;
    s4d_progress("simulating", f->done, f->of);
}

int s4d_figure_workers(const struct figure *f)
{
    return f->options.workers > 0 ? f->options.workers : s4d_processors();
}

int s4d_figure_simulate(struct figure *f, struct s4d_error *err)
{
    if (keep_finished(f, err))
        return -1;
    if (f->records.n > 0)
        printf("%d of %d points are finished already, in %s\n", f->records.n, f->trials.n,
               f->records_file);
    int *which = s4d_calloc((size_t)f->trials.n, sizeof *which), rc = 0;
    f->of = 0;
    for (int i = 0; i < f->trials.n && rc == 0; i++) {
        if (s4d_trial_find(&f->trials, i, &f->records, true) != NULL)
            continue;
        json_t *same = s4d_trial_of_others(&f->trials, i, &f->others);
        if (same != NULL)
            rc = keep(f, same, err);
        else
            which[f->of++] = i;
    }
    if (rc == 0) {
        s4d_progress("simulating", 0, f->of);
        s4d_trials_run(&f->trials, which, f->of, s4d_figure_workers(f), done, f);
        s4d_progress_end();
    }
    free(which);
    if (rc == 0 && f->failed.exit != S4D_EXIT_OK) {
        *err = f->failed;
        rc = -1;
    }
    return rc;
}

int s4d_figure_warn_stale(struct figure *f)
{
    int inputs = 0, build = 0, first = -1;
    for (int i = 0; i < f->trials.n; i++) {
        if (record_of(f, i) == NULL || s4d_trial_find(&f->trials, i, &f->records, true) != NULL)
            continue;
        if (s4d_trial_find(&f->trials, i, &f->records, false) != NULL)
            build++;
        else
            inputs++;
        first = first < 0 ? i : first;
    }
    if (first < 0)
        return 0;
    f->e.note =
        s4d_asprintf("%d of %d points are drawn from old records: %d of other inputs, %d of "
                     "another build of scale4d (%s is the first)",
                     inputs + build, f->trials.n, inputs, build, f->trials.v[first].entry->name);
    s4d_warn("%s; without --draw-only they are simulated", f->e.note);
    return inputs + build;
}
