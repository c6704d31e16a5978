/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a figure of all grids (rows: grids): of each point what scale4d tune would rank, with
 * one configuration of a grid, and all of them. */
#include <string.h>

#include "cli/plot.h"
#include "cli/tune_run.h"
#include "sim/simulate.h"
#include "support/memory.h"

/* Records of this program and these inputs; the others are of no more use. */
static int keep_finished(struct figure *f, struct s4d_error *err)
{
    struct s4d_records kept = {0};
    for (int i = 0; i < f->records.n; i++)
        for (int k = 0; k < f->trials.n; k++) {
            struct s4d_records one = {.v = &f->records.v[i], .n = 1};
            if (s4d_trial_find(&f->trials, k, &one, true) == NULL)
                continue;
            s4d_push(kept.v, kept.n, kept.cap, json_incref(f->records.v[i]));
            break;
        }
    s4d_records_free(&f->records);
    f->records = kept;
    return s4d_records_write(&kept, f->records_file, err);
}

static int check(const struct s4d_trial *trial, struct s4d_error *err)
{
    const struct s4d_scenario *scenario = &trial->in.scenario;
    if (!trial->in.simulation.grid_auto)
        return s4d_yaml_fail(trial->entry->node, err, "rows: grids needs grid: auto");
    if (trial->options.no_fold || scenario->differences.n > 0 || scenario->placement.kind != 0)
        return s4d_yaml_fail(trial->entry->node, err,
                             "rows: grids goes without placement, differences and no_fold");
    return 0;
}

/* What could not be simulated is the figure's fault: it would lack a point. */
static int first_fault(const struct s4d_tuning *t, struct s4d_error *err)
{
    for (int i = 0; i < t->n; i++)
        if (t->tuned[i].fault.exit != S4D_EXIT_OK && s4d_tuned_died(&t->tuned[i])) {
            *err = t->tuned[i].fault;
            return -1;
        }
    return 0;
}

static int simulate(struct figure *f, int i, struct s4d_error *err)
{
    const struct s4d_trial *trial = &f->trials.v[i];
    struct s4d_tune_config config = {.records = f->records_file,
                                     .simulate = S4D_TUNE_ALL,
                                     .variants = 1,
                                     .workers = s4d_figure_workers(f),
                                     .schedule = trial->options.schedule};
    struct s4d_tune_run run = {.c = &config,
                               .machine = trial->in.machine,
                               .workload = trial->in.workload,
                               .records = f->records,
                               .provenance = f->trials.provenance,
                               .experiment = s4d_trial_experiment(&f->trials, trial)};
    memcpy(run.program, f->trials.program, sizeof run.program);
    config.schedule.options = trial->in.simulation.options;
    struct s4d_error why = {0};
    int rc = s4d_tune_gpus(&run, trial->options.gpus, &why) || first_fault(&run.now, &why);
    f->records = run.records;
    if (rc)
        *err = s4d_trial_error(trial, &why);
    else
        printf("%-40s  %d grids, %d of them finished already\n", trial->entry->name, run.now.n,
               run.now.resumed);
    fflush(stdout);
    s4d_tune_forget(&run.now);
    json_decref(run.experiment);
    return rc ? -1 : 0;
}

int s4d_figure_simulate_grids(struct figure *f, struct s4d_error *err)
{
    for (int i = 0; i < f->trials.n; i++)
        if (check(&f->trials.v[i], err))
            return -1;
    if (keep_finished(f, err))
        return -1;
    for (int i = 0; i < f->trials.n; i++)
        if (simulate(f, i, err))
            return -1;
    return 0;
}
