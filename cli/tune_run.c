/* SPDX-License-Identifier: Apache-2.0 */
/* A finished simulation is a line of the records' file at once; a rerun takes it from there. Its
 * key is a hash of machine, workload, options, model version and program, as a figure's. */
#include "cli/tune_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stop.h"
#include "plots/gnuplot.h"
#include "sim/fabric.h"
#include "support/file.h" /* for: s4d_data_folder */
#include "support/memory.h"
#include "support/processors.h"
#include "support/progress.h"
#include "support/record.h"

/* --- records -------------------------------------------------------------------------------- */

static void make_key(const struct s4d_tune_run *t, const struct s4d_choice *c, char key[17])
{
    const struct s4d_space *s = &t->now.space;
    struct s4d_options o = s4d_choice_options(s, c);
    char grid[64], overlap[128];
    s4d_overlap_format(&o.overlap, overlap, sizeof overlap);
    json_t *scenario = s4d_scenario_record(s->scenario);
    const char *differs = json_string_value(json_object_get(scenario, "hash"));
    char *text = s4d_asprintf(
        "%s %s %d %s %d%d%d%d%d B%d b%d r%d c%d %s p%d g%d %d s%d n%g %s %s%s%s", t->machine.hash,
        t->workload.hash, s->gpus, s4d_grid_text(&c->grid, grid, sizeof grid), c->grid.order[0],
        c->grid.order[1], c->grid.order[2], c->grid.order[3], c->grid.order[4], o.global_batch,
        o.micro_batch, (int)o.recompute, o.cached_layers, overlap, o.precision, o.gradient_type,
        (int)o.gradient_reduce, o.loss_scaling, o.clip_norm, s4d_model_version, t->program,
        differs ? " " : "", differs ? differs : "");
    json_decref(scenario);
    s4d_hash(text, strlen(text), key);
    free(text);
}

static const json_t *find_record(const struct s4d_tune_run *t, const char *key)
{
    for (int i = 0; i < t->records.n; i++) {
        const json_t *tune = json_object_get(t->records.v[i], "tune");
        const char *have = json_string_value(json_object_get(tune, "key"));
        if (have && strcmp(have, key) == 0)
            return t->records.v[i];
    }
    return NULL;
}

/* What an earlier run finished. */
static int take_finished(struct s4d_tune_run *t)
{
    int taken = 0;
    for (int i = 0; i < t->now.n; i++) {
        struct s4d_tuned *tuned = &t->now.tuned[i];
        char key[17];
        make_key(t, &tuned->choice, key);
        const json_t *record = find_record(t, key);
        if (!record)
            continue;
        tuned->time_s = json_number_value(json_object_get(record, "iteration_time_s"));
        tuned->memory_bytes = json_number_value(json_object_get(record, "memory_peak_bytes"));
        taken++;
    }
    return taken;
}

static json_t *known(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

static void on_finished(void *context, int i, const struct s4d_result *result)
{
    struct s4d_tune_run *t = context;
    struct s4d_tuned *tuned = &t->now.tuned[i];
    s4d_progress("simulating", ++t->finished, t->now.n);
    if (tuned->fault.exit != S4D_EXIT_OK) {
        char grid[64];
        s4d_progress_end();
        s4d_warn("grid %s, rank %d: %s", s4d_grid_text(&tuned->choice.grid, grid, sizeof grid),
                 tuned->rank, tuned->fault.text);
        return;
    }
    char key[17];
    make_key(t, &tuned->choice, key);
    struct s4d_simulation s = s4d_tune_simulation(&t->now.space, &tuned->choice);
    json_t *record = s4d_simulation_record(&s, result);
    json_object_set_new(record, "tune",
                        json_pack("{s:s, s:f, s:f, s:o, s:o}", "key", key, "estimate_s",
                                  tuned->choice.estimate_s, "memory_estimate_bytes",
                                  tuned->choice.memory_bytes, "published_s",
                                  known(tuned->published_s), "links_s", known(tuned->links_s)));
    if (t->experiment)
        json_object_set(record, "experiment", t->experiment);
    json_object_set(record, "provenance", t->provenance);
    if (s4d_stop_append(&t->records, t->c->records, record, &t->write_fault) != 0)
        t->write_fault.exit = S4D_EXIT_OUTPUT;
}

/* --- one number of GPUs --------------------------------------------------------------------- */

static int check_machine(const struct s4d_tune_run *t, int gpus, struct s4d_error *err)
{
    const struct s4d_machine *m = &t->machine;
    struct s4d_kernels kernels = {.machine = m};
    int64_t most = (int64_t)m->fabric.nodes * m->node.devices;
    if (s4d_fabric_check(m, err) || s4d_kernels_check(&kernels, &t->c->schedule.options, err))
        return -1;
    return gpus <= most
               ? 0
               : s4d_fail(err, S4D_EXIT_DATA, "--gpus",
                          "%s has %d nodes of %d devices, %lld in all: %d are more", m->name,
                          m->fabric.nodes, m->node.devices, (long long)most, gpus);
}

static struct s4d_space space_of(const struct s4d_tune_run *t, int gpus)
{
    const struct s4d_options *given = &t->c->schedule.options;
    struct s4d_space s = {.machine = &t->machine,
                          .workload = &t->workload,
                          .scenario = &t->scenario,
                          .gpus = gpus,
                          .order = t->c->schedule.rank_order,
                          .options = *given,
                          .strategy = &s4d_strategies[t->c->strategy]};
    s.vary_recompute = (int)given->recompute < 0;
    s.vary_cache = given->cached_layers < 0;
    if (s.vary_recompute)
        s.options.recompute = S4D_RECOMPUTE_FULL;
    if (s.vary_cache)
        s.options.cached_layers = 0;
    return s;
}

static void warn_short_list(const struct s4d_tune_run *t)
{
    if (t->c->simulate > t->now.n && t->c->simulate != S4D_TUNE_ALL)
        s4d_warn("--simulate %d: %d configurations of %d GPUs fit%s; all %d are simulated",
                 t->c->simulate, t->now.ranking.n, t->now.space.gpus,
                 t->now.n < t->now.ranking.n ? " (fewer with at most --variants of one grid)" : "",
                 t->now.n);
}

/* Before anything is simulated. */
static int check_records(const struct s4d_tune_run *t, struct s4d_error *err)
{
    FILE *out = t->now.n > 0 ? fopen(t->c->records, "a") : NULL;
    if (t->now.n > 0 && !out)
        return s4d_fail(err, S4D_EXIT_OUTPUT, t->c->records, "cannot be written: %s",
                        strerror(errno));
    if (out)
        fclose(out);
    return 0;
}

static int draw(const struct s4d_tune_run *t, struct s4d_error *err)
{
    char *table = s4d_asprintf("%s.tsv", t->c->plot);
    char *script = s4d_asprintf("%s/plots/tune.gp", s4d_data_folder());
    char *title = s4d_asprintf("title = '%s on %d GPUs of %s'", t->workload.model.name,
                               t->now.space.gpus, t->machine.name);
    int rc = s4d_tune_write(&t->now, table, err) ||
             s4d_gnuplot_with(title, script, table, t->c->plot, err);
    free(title);
    free(script);
    free(table);
    return rc ? -1 : 0;
}

/* 0, or -1 with *err: no configuration, or a file that cannot be written. */
int s4d_tune_gpus(struct s4d_tune_run *t, int gpus, struct s4d_error *err)
{
    if (check_machine(t, gpus, err))
        return -1;
    t->now = (struct s4d_tuning){.space = space_of(t, gpus), .best = -1};
    if (s4d_space_rank(&t->now.space, &t->now.ranking, err))
        return -1;
    t->now.n = s4d_tune_pick(&t->now.ranking, t->c->simulate, t->c->variants, &t->now.tuned);
    if (check_records(t, err) || s4d_tune_published(&t->now.space, t->now.tuned, t->now.n, err))
        return -1;
    warn_short_list(t);
    t->finished = t->now.resumed = take_finished(t);
    struct s4d_tune_watch watch = {on_finished, t};
    s4d_tune_simulate(&t->now.space, t->now.tuned, t->now.n,
                      t->c->workers ? t->c->workers : s4d_processors(), &watch);
    s4d_progress_end();
    if (t->write_fault.exit != S4D_EXIT_OK) {
        *err = t->write_fault;
        return -1;
    }
    t->now.best = s4d_tune_order(t->now.tuned, t->now.n);
    return t->c->plot && t->now.best >= 0 ? draw(t, err) : 0;
}

void s4d_tune_forget(struct s4d_tuning *now)
{
    s4d_ranking_free(&now->ranking);
    free(now->tuned);
    *now = (struct s4d_tuning){.best = -1};
}
