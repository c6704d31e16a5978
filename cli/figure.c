/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d figure FOLDER: simulates the points of a published figure and draws it.
 *
 * Every finished point is a line of records.jsonl at once, so an interrupted run goes on where it
 * was. A record counts as finished for this very program and these very inputs: its key is a hash
 * of machine, workload and options, of the model version and of the program file. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "plots/experiment.h"
#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "plots/published.h"
#include "plots/records.h"
#include "plots/report.h"
#include "schedule/schedule_options.h"
#include "sim/simulate.h"
#include "support/memory.h"
#include "support/option.h"
#include "support/progress.h"
#include "support/record.h"
#include "support/units.h"

struct figure_options {
    bool draw_only, accept;
    int workers;
    char *output;
};

static const struct s4d_option figure_table[] = {
    {.name = "draw-only",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct figure_options, draw_only),
     .help = "draw from the records that are there; simulate nothing"},
    {.name = "accept",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct figure_options, accept),
     .help = "write expected.tsv instead of comparing with it"},
    {.name = "workers",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct figure_options, workers),
     .min = 0,
     .max = 1024,
     .help = "simulations at once; 0: one per processor"},
    {.name = "output",
     .argument = "FOLDER",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct figure_options, output),
     .help = "where the figures' folders are made (default build/figures)"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = figure_table},
                                                 {.options = NULL}};
static const struct s4d_option_group schedule_groups[] = {
    {.title = "Schedule options", .options = s4d_schedule_options}, {.options = NULL}};

struct figure {
    struct figure_options options;
    struct s4d_experiment e;
    struct s4d_machine *machine; /* by point; those of one machine share what it holds */
    struct s4d_published_list published;
    struct s4d_records records;
    char *folder, *records_file; /* of the output */
    char **schedule_keys;        /* the schedule options' names as YAML keys; ends with NULL */
    char program[17];            /* hash of this program's file */
    json_t *provenance;
};

/* Interrupted: what is finished is in the file, line by line; say so and leave. */
static char stopped[640];
static pid_t us; /* simulating children inherit the handler, and leave quietly */

static void stop(int signal_number)
{
    ssize_t written = getpid() == us ? write(STDERR_FILENO, stopped, strlen(stopped)) : 0;
    (void)written;
    _exit(128 + signal_number);
}

static void catch_stops(const struct figure *f)
{
    snprintf(stopped, sizeof stopped,
             "\nscale4d: stopped. What is finished stays in %s\n"
             "  hint: the same command goes on from there\n",
             f->records_file);
    us = getpid();
    struct sigaction action = {.sa_handler = stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static int make_folders(const char *path, struct s4d_error *err)
{
    char *copy = s4d_strdup(path);
    int rc = 0;
    for (char *p = copy + 1; rc == 0; p++) {
        char end = *p;
        if (end != '/' && end != '\0')
            continue;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            rc = s4d_fail(err, S4D_EXIT_OUTPUT, copy, "cannot be made: %s", strerror(errno));
        *p = end;
        if (end == '\0')
            break;
    }
    free(copy);
    return rc;
}

static char **schedule_keys(void)
{
    int n = 0;
    while (s4d_schedule_options[n].name != NULL)
        n++;
    char **keys = s4d_calloc((size_t)n + 1, sizeof *keys);
    for (int i = 0; i < n; i++) {
        keys[i] = s4d_strdup(s4d_schedule_options[i].name);
        for (char *c = keys[i]; *c != '\0'; c++)
            if (*c == '-')
                *c = '_';
    }
    return keys;
}

static int hash_program(char hex[17], struct s4d_error *err)
{
    FILE *in = fopen("/proc/self/exe", "rb");
    if (in == NULL)
        return s4d_fail(err, S4D_EXIT_BUG, "/proc/self/exe", "cannot be read: %s", strerror(errno));
    char *bytes = NULL;
    size_t n = 0, size = 0;
    for (size_t got = 1; got > 0; n += got) {
        if (n == size)
            bytes = s4d_realloc(bytes, size = size ? 2 * size : 1 << 20);
        got = fread(bytes + n, 1, size - n, in);
    }
    fclose(in);
    s4d_hash(bytes, n, hex);
    free(bytes);
    return 0;
}

/* The point whose machine is loaded for point i: the first with the same. */
static int first_of(const struct figure *f, int i)
{
    int j = 0;
    while (strcmp(f->e.point[j].machine, f->e.point[i].machine) != 0)
        j++;
    return j;
}

/* The experiment's line, where the machine's loader knows no file of its own. */
static int load_machine(struct figure *f, int i, struct s4d_error *err)
{
    struct s4d_error why = {0};
    const struct s4d_point *p = &f->e.point[i];
    if (s4d_machine_load(&f->machine[i], p->machine, NULL, 0, &why) == 0)
        return 0;
    if (why.where[0] != '\0' && why.where[0] != '-') {
        *err = why;
        return -1;
    }
    const struct s4d_yaml_node *named = s4d_yaml_get(p->node, "machine");
    s4d_yaml_fail(named ? named : s4d_yaml_get(f->e.root, "machine"), err, "%s", why.text);
    return why.hint[0] != '\0' ? s4d_hint(err, "%s", why.hint) : -1;
}

static int load_machines(struct figure *f, struct s4d_error *err)
{
    f->machine = s4d_calloc((size_t)f->e.n_points, sizeof *f->machine);
    for (int i = 0; i < f->e.n_points; i++) {
        int first = first_of(f, i);
        if (first < i)
            f->machine[i] = f->machine[first];
        else if (load_machine(f, i, err))
            return -1;
    }
    return 0;
}

static int load(struct figure *f, const char *folder, struct s4d_error *err)
{
    f->schedule_keys = schedule_keys();
    if (s4d_experiment_read(&f->e, folder, (const char *const *)f->schedule_keys, err))
        return -1;
    char *file = s4d_asprintf("%s/published.csv", f->e.folder);
    int rc = s4d_published_read(&f->published, file, err);
    free(file);
    if (rc || load_machines(f, err))
        return -1;
    f->folder = s4d_asprintf("%s/%s/%s", f->options.output ? f->options.output : "build/figures",
                             f->e.paper, f->e.name);
    f->records_file = s4d_asprintf("%s/records.jsonl", f->folder);
    if (make_folders(f->folder, err) || hash_program(f->program, err))
        return -1;
    if (s4d_records_read(&f->records, f->records_file, err) == 0)
        return 0;
    return s4d_hint(err, "remove the line, or the file: it is made again");
}

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
    struct s4d_workload workload;
    struct s4d_simulation simulation;
    char key[17];
};

static void make_key(const struct figure *f, struct job *job)
{
    json_t *options = json_object();
    note_options(f, f->e.root, options);
    note_options(f, job->series->node, options);
    note_options(f, job->point->node, options);
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
    *s = (struct s4d_simulation){.machine = &f->machine[job->point - f->e.point],
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

static bool is_finished(const struct figure *f, const struct job *job)
{
    const json_t *r = s4d_figure_record(&f->records, job->series, job->point);
    const char *key = json_string_value(json_object_get(json_object_get(r, "figure"), "key"));
    return key != NULL && strcmp(key, job->key) == 0;
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

static int run_job(struct figure *f, struct job *job, struct s4d_error *err)
{
    struct s4d_result result;
    if (s4d_simulate(&job->simulation, &result, err))
        return -1;
    json_t *record = record_of(f, job, &result);
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

static int simulate_all(struct figure *f, struct s4d_error *err)
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
        s4d_workload_free(&jobs[i].workload);
    free(jobs);
    return rc;
}

static int draw(const struct figure *f, struct s4d_error *err)
{
    char *data = s4d_asprintf("%s/data.tsv", f->folder);
    char *report = s4d_asprintf("%s/report.md", f->folder);
    char *stem = s4d_asprintf("%s/%s", f->folder, f->e.name);
    char *script = s4d_asprintf("%s/plot.gp", f->e.folder);
    int rc = s4d_figure_data(&f->e, &f->records, &f->published, data, err) ||
             s4d_report(&f->e, &f->records, &f->published, report, err) ||
             s4d_gnuplot(script, data, stem, err);
    if (rc == 0) {
        printf("%s.png, .svg, .pdf; %s\n", stem, report);
        s4d_report_summary(&f->e, &f->records, &f->published, stdout);
        rc = s4d_figure_expected(&f->e, data, f->options.accept, err);
        if (rc == 0 && f->options.accept)
            printf("%s/expected.tsv is written; review the diff\n", f->e.folder);
    }
    free(data);
    free(report);
    free(stem);
    free(script);
    return rc ? -1 : 0;
}

static void release(struct figure *f)
{
    s4d_options_free(groups, &f->options);
    for (int i = 0; f->machine != NULL && i < f->e.n_points; i++)
        if (first_of(f, i) == i)
            s4d_machine_free(&f->machine[i]);
    free(f->machine);
    s4d_experiment_free(&f->e);
    s4d_published_free(&f->published);
    s4d_records_free(&f->records);
    for (int i = 0; f->schedule_keys != NULL && f->schedule_keys[i] != NULL; i++)
        free(f->schedule_keys[i]);
    free(f->schedule_keys);
    free(f->folder);
    free(f->records_file);
    json_decref(f->provenance);
}

static int figure(int argc, char **argv)
{
    struct figure f = {0};
    struct s4d_texts folder = {0};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Simulates and draws a published figure. NAME is its folder, which "
                              "holds experiment.yaml, published.csv, plot.gp and expected.tsv.",
                              argc, argv, &f.options, &folder, &err);
    if (rc == 0 && folder.n != 1)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected one figure's folder, got %d", folder.n);
    if (rc == 0) {
        f.provenance = s4d_provenance(argc, argv);
        rc = load(&f, folder.v[0], &err);
        if (rc == 0) {
            catch_stops(&f);
            rc = (!f.options.draw_only && simulate_all(&f, &err)) || draw(&f, &err) ? -1 : 0;
        }
    }
    s4d_texts_free(&folder);
    release(&f);
    if (rc == 1)
        return S4D_EXIT_OK;
    return rc ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_figure = {
    .name = "figure",
    .summary = "simulate and draw a published figure",
    .run = figure,
    .options = groups,
};
