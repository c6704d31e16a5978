/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d figure FOLDER: simulates the points of a published figure and draws it.
 *
 * Every finished point is a line of records.jsonl at once, so an interrupted run goes on where it
 * was. A record counts as finished for this very program and these very inputs: its key is a hash
 * of machine, workload and options, of the model version and of the program file. Figures beside
 * each other (the output's folders) take such records over from one another. */
#include <errno.h>
#include <glob.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/figure.h"
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

/* What figures beside this one have simulated; a file that cannot be read has nothing to give. */
static void read_others(struct figure *f)
{
    glob_t found = {0};
    char *pattern = s4d_asprintf("%s/../../*/*/records.jsonl", f->folder);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++) {
            struct s4d_records one = {0};
            struct s4d_error ignored;
            if (s4d_records_read(&one, found.gl_pathv[i], &ignored) == 0)
                for (int j = 0; j < one.n; j++)
                    s4d_push(f->others.v, f->others.n, f->others.cap, json_incref(one.v[j]));
            s4d_records_free(&one);
        }
    globfree(&found);
    free(pattern);
}

static int load(struct figure *f, const char *folder, struct s4d_error *err)
{
    f->schedule_keys = schedule_keys();
    if (s4d_experiment_read(&f->e, folder, (const char *const *)f->schedule_keys, err))
        return -1;
    char *file = s4d_asprintf("%s/published.csv", f->e.folder);
    int rc = s4d_published_read(&f->published, file, err);
    free(file);
    if (rc)
        return -1;
    f->folder = s4d_asprintf("%s/%s/%s", f->options.output ? f->options.output : "build/figures",
                             f->e.paper, f->e.name);
    f->records_file = s4d_asprintf("%s/records.jsonl", f->folder);
    if (make_folders(f->folder, err) || hash_program(f->program, err))
        return -1;
    if (s4d_records_read(&f->records, f->records_file, err))
        return s4d_hint(err, "remove the line, or the file: it is made again");
    read_others(f);
    return 0;
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
    s4d_experiment_free(&f->e);
    s4d_published_free(&f->published);
    s4d_records_free(&f->records);
    s4d_records_free(&f->others);
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
            rc = (!f.options.draw_only && s4d_figure_simulate(&f, &err)) || draw(&f, &err) ? -1 : 0;
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
