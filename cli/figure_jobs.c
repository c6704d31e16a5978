/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/figure.h"
#include "cli/scenario.h"
#include "plots/figure.h"
#include "schedule/schedule_options.h"
#include "sim/simulate.h"
#include "support/memory.h"
#include "support/progress.h"
#include "support/record.h"
#include "support/units.h"

static const struct s4d_option_group schedule_groups[] = {
    {.title = "Schedule options", .options = s4d_schedule_options}, {.options = NULL}};

/* The texts of the schedule keys of a mapping, into options: what a later one says stands. */
static void note_options(const struct figure *f, const struct s4d_yaml_node *mapping,
                         json_t *options)
{
    for (int i = 0; f->schedule_keys[i] != NULL; i++) {
        const struct s4d_yaml_node *node = s4d_yaml_get(mapping, f->schedule_keys[i]);
        if (node != NULL && node->text != NULL)
            json_object_set_new(options, f->schedule_keys[i], json_string(node->text));
    }
}

/* One simulation: a point in a series. */
struct job {
    const struct s4d_point *point;
    const struct s4d_series *series;
    struct s4d_texts set; /* of the machine: the experiment's, the series', the point's */
    bool has_machine;
    struct s4d_machine machine;
    struct s4d_scenario scenario;
    struct s4d_workload workload;
    struct s4d_simulation simulation;
    char key[17];
};

static void add_all(struct s4d_texts *to, const struct s4d_texts *from)
{
    for (int i = 0; i < from->n; i++)
        s4d_texts_add(to, from->v[i]);
}

/* The list that a setting stands in; the point's, else the series', else the experiment's. */
static const struct s4d_yaml_node *set_of(const struct figure *f, const struct job *job)
{
    const struct s4d_yaml_node *at = s4d_yaml_get(job->point->node, "set");
    if (at == NULL)
        at = s4d_yaml_get(job->series->node, "set");
    return at != NULL ? at : s4d_yaml_get(f->e.root, "set");
}

/* Names of links that there are not are found later: they are faults of the experiment's file. */
static void place_differences(const struct figure *f, struct job *job)
{
    struct s4d_error at;
    for (int i = 0; i < job->scenario.differences.n; i++) {
        struct s4d_difference *d = &job->scenario.differences.v[i];
        s4d_yaml_fail(set_of(f, job), &at, "%s", "");
        free(d->where);
        d->where = s4d_asprintf("%s: %s", at.where, d->name);
        d->exit = S4D_EXIT_DATA;
    }
}

/* A fault that names no file of its own is at the experiment's line. */
static int load_machine(const struct figure *f, struct job *job, struct s4d_error *err)
{
    static const struct s4d_scenario_options no_options;
    struct s4d_error why = {0};
    add_all(&job->set, &f->e.set);
    add_all(&job->set, &job->series->set);
    add_all(&job->set, &job->point->set);
    if (s4d_scenario_load(&job->machine, &job->scenario, job->point->machine, &job->set,
                          &no_options, &why) == 0) {
        job->has_machine = true;
        place_differences(f, job);
        return 0;
    }
    bool of_set = strncmp(why.where, "--set", 5) == 0;
    const struct s4d_yaml_node *at =
        of_set ? set_of(f, job) : s4d_yaml_get(job->point->node, "machine");
    if (at == NULL)
        at = s4d_yaml_get(f->e.root, "machine");
    if (why.where[0] != '\0' && why.where[0] != '-') {
        *err = why;
        return -1;
    }
    s4d_yaml_fail(at, err, "%s%s%s", of_set ? why.where + 2 : "", of_set ? ": " : "", why.text);
    return why.hint[0] != '\0' ? s4d_hint(err, "%s", why.hint) : -1;
}

static void make_key(const struct figure *f, struct job *job)
{
    json_t *options = json_object();
    note_options(f, f->e.root, options);
    note_options(f, job->series->node, options);
    note_options(f, job->point->node, options);
    for (int i = 0; i < job->set.n; i++) {
        char *name = s4d_asprintf("set %d", i);
        json_object_set_new(options, name, json_string(job->set.v[i]));
        free(name);
    }
    char *text = json_dumps(options, JSON_SORT_KEYS | JSON_COMPACT);
    char *all =
        s4d_asprintf("%s %s %s %s %d %s %s %s", job->simulation.machine->name,
                     job->simulation.machine->hash, job->point->workload, job->workload.hash,
                     job->point->gpus, text, s4d_model_version, f->program);
    s4d_hash(all, strlen(all), job->key);
    free(all);
    free(text);
    json_decref(options);
}

static int prepare(struct figure *f, struct job *job, struct s4d_error *err)
{
    struct s4d_schedule_options options = s4d_schedule_options_default();
    if (s4d_options_yaml(schedule_groups, f->e.root, s4d_experiment_keys, &options, err) ||
        s4d_options_yaml(schedule_groups, job->series->node, s4d_series_keys, &options, err) ||
        s4d_options_yaml(schedule_groups, job->point->node, s4d_point_keys, &options, err))
        return -1;
    struct s4d_simulation *s = &job->simulation;
    if (load_machine(f, job, err))
        return -1;
    *s = (struct s4d_simulation){.machine = &job->machine,
                                 .scenario = &job->scenario,
                                 .workload = &job->workload,
                                 .gpus = job->point->gpus,
                                 .fold = true,
                                 .workers = f->options.workers};
    if (s->workers == 0)
        s->workers = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (s4d_schedule_options_resolve(&options, s->gpus, &s->grid, &s->grid_auto, err))
        return -1;
    s->options = options.options;
    if (s4d_workload_load(&job->workload, job->point->workload, err))
        return -1;
    make_key(f, job);
    return 0;
}

static void note_entry(void *context, const char *key, enum s4d_tag tag, const char *source,
                       double value)
{
    if (tag != S4D_TAG_FITTED && tag != S4D_TAG_ASSUMED)
        return;
    json_t *entry = json_pack("{s:s, s:s, s:s}", "key", key, "tag", s4d_tag_names[tag], "source",
                              source != NULL ? source : "");
    if (isinf(value))
        json_object_set_new(entry, "value", json_string("unlimited"));
    else if (isfinite(value))
        json_object_set_new(entry, "value", json_real(value));
    json_array_append_new(context, entry);
}

/* The simulation's record, and in "figure" what drawing it needs. */
static json_t *record_of(const struct figure *f, const struct job *job,
                         const struct s4d_result *result)
{
    json_t *entries = json_array();
    s4d_machine_visit(job->simulation.machine, note_entry, entries);
    char grid[64];
    json_t *record = s4d_simulation_record(&job->simulation, result);
    json_object_set_new(
        record, "figure",
        json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:i, s:s, s:s, s:o}", "key", job->key, "paper",
                  f->e.paper, "series", job->series->name, "workload", job->point->workload, "gpus",
                  job->point->gpus, "grid", s4d_grid_text(&result->grid, grid, sizeof grid),
                  "micro_batch", result->micro_batch, "machine", job->point->machine,
                  "machine_hash", job->simulation.machine->hash, "machine_entries", entries));
    json_object_set(record, "provenance", f->provenance);
    return record;
}

static const char *key_of(const json_t *record)
{
    const char *key = json_string_value(json_object_get(json_object_get(record, "figure"), "key"));
    return key != NULL ? key : "";
}

static bool is_finished(const struct figure *f, const struct job *job)
{
    const json_t *r = s4d_figure_record(&f->records, job->series, job->point);
    return strcmp(key_of(r), job->key) == 0;
}

static void say_finished(const struct job *job, const json_t *record)
{
    const json_t *figure = json_object_get(record, "figure");
    char time[32], rate[32];
    s4d_progress_end();
    printf("%-8s %5d GPUs  %-12s grid %-12s  %s an iteration, %s\n", job->point->workload,
           job->point->gpus, job->series->name, json_string_value(json_object_get(figure, "grid")),
           s4d_format_time(json_number_value(json_object_get(record, "iteration_time_s")), time,
                           sizeof time),
           s4d_format_flops(json_number_value(json_object_get(record, "flops_per_s")), rate,
                            sizeof rate));
    fflush(stdout);
}

/* What another figure has simulated of the same inputs, in the words of this one; new reference, or
 * NULL. */
static json_t *taken_over(const struct figure *f, const struct job *job)
{
    for (int i = 0; i < f->others.n; i++) {
        if (strcmp(key_of(f->others.v[i]), job->key) != 0)
            continue;
        json_t *record = json_deep_copy(f->others.v[i]),
               *figure = json_object_get(record, "figure");
        json_object_set_new(figure, "paper", json_string(f->e.paper));
        json_object_set_new(figure, "series", json_string(job->series->name));
        return record;
    }
    return NULL;
}

static int run_job(struct figure *f, struct job *job, struct s4d_error *err)
{
    struct s4d_result result;
    json_t *record = taken_over(f, job);
    if (!record && s4d_simulate(&job->simulation, &result, err))
        return -1;
    if (!record)
        record = record_of(f, job, &result);
    /* A signal waits until the line is whole. */
    sigset_t stops, before;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &before);
    int rc = s4d_records_append(&f->records, f->records_file, record, err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        say_finished(job, record);
    return rc;
}

/* Only records of these inputs and this program stay. */
static int keep_finished(struct figure *f, const struct job *jobs, int n, struct s4d_error *err)
{
    struct s4d_records kept = {0};
    for (int i = 0; i < n; i++)
        if (is_finished(f, &jobs[i])) {
            json_t *r = s4d_figure_record(&f->records, jobs[i].series, jobs[i].point);
            s4d_push(kept.v, kept.n, kept.cap, json_incref(r));
        }
    s4d_records_free(&f->records);
    f->records = kept;
    return s4d_records_write(&kept, f->records_file, err);
}

static void release(struct job *job)
{
    s4d_workload_free(&job->workload);
    s4d_texts_free(&job->set);
    if (!job->has_machine)
        return;
    s4d_machine_free(&job->machine);
    s4d_scenario_free(&job->scenario);
}

int s4d_figure_simulate(struct figure *f, struct s4d_error *err)
{
    int n = f->e.n_points * f->e.n_series, rc = 0;
    struct job *jobs = s4d_calloc((size_t)n, sizeof *jobs);
    for (int i = 0; i < n && rc == 0; i++) {
        jobs[i].point = &f->e.point[i / f->e.n_series];
        jobs[i].series = &f->e.series[i % f->e.n_series];
        rc = prepare(f, &jobs[i], err);
    }
    if (rc == 0)
        rc = keep_finished(f, jobs, n, err);
    if (rc == 0 && f->records.n > 0)
        printf("%d of %d points are finished already, in %s\n", f->records.n, n, f->records_file);
    for (int i = 0; i < n && rc == 0; i++) {
        if (is_finished(f, &jobs[i]))
            continue;
        s4d_progress("simulating", i, n);
        rc = run_job(f, &jobs[i], err);
    }
    s4d_progress_end();
    for (int i = 0; i < n; i++)
        release(&jobs[i]);
    free(jobs);
    return rc;
}
