/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d plot FIGURE: simulates the points of a published figure and draws it, with a user's own
 * records over it.
 *
 * Every finished point is a line of records.jsonl at once, so an interrupted run goes on where it
 * was. A record counts as finished for this very program and these very inputs: its key is a hash
 * of machine, workload and options, of the model version and of the program file. Figures beside
 * each other (the output's folders) take such records over from one another. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/plot.h"
#include "cli/stop.h"
#include "plots/experiment.h"
#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "plots/published.h"
#include "plots/records.h"
#include "plots/report.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/option.h"
#include "support/quote.h"
#include "support/record.h"

static const struct s4d_option figure_table[] = {
    {.name = "draw-only",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct figure_options, draw_only),
     .help = "draw from the records that are there, and say which are old; simulate nothing"},
    {.name = "add",
     .argument = "FILE",
     .type = S4D_OPT_LIST,
     .offset = offsetof(struct figure_options, add),
     .help = "draw the records of FILE, too (simulate --json, sweep, scale4d-run train --json); "
             "LABEL=FILE: named so in the legend; may be repeated"},
    {.name = "accept",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct figure_options, accept),
     .help = "write expected.tsv instead of comparing with it"},
    S4D_OPTION_WORKERS(offsetof(struct figure_options, workers)),
    {.name = "output",
     .argument = "FOLDER",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct figure_options, output),
     .help = "where the figures' folders are made (default build/figures)"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = figure_table},
                                                 {.options = NULL}};
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

static int fail_unknown(const char *name, struct s4d_error *err)
{
    glob_t found = {0};
    char *pattern = s4d_asprintf("%s/paper-figures/*/*/experiment.yaml", s4d_data_folder());
    size_t n = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    const char **names = s4d_calloc(n + 1, sizeof *names);
    for (size_t i = 0; i < n; i++) {
        *strrchr(found.gl_pathv[i], '/') = '\0';
        names[i] = strrchr(found.gl_pathv[i], '/') + 1;
    }
    s4d_fail(err, S4D_EXIT_DATA, "FIGURE", "unknown figure, and no such folder: %s",
             s4d_quote(name).text);
    s4d_hint_nearest(err, name, names, (int)n);
    free(names);
    globfree(&found);
    free(pattern);
    return -1;
}

/* A folder, or one of the project's figures: NAME where only one has it, or PAPER/NAME. Caller
 * frees; NULL: several have the name, or none. */
static char *folder_of(const char *name, struct s4d_error *err)
{
    char *folder = NULL;
    char *pattern = s4d_asprintf("%s/paper-figures/%s%s", s4d_data_folder(),
                                 strchr(name, '/') == NULL ? "*/" : "", name);
    glob_t found = {0};
    if (access(name, F_OK) == 0) {
        folder = s4d_strdup(name);
    } else if (glob(pattern, 0, NULL, &found) != 0) {
        fail_unknown(name, err);
    } else if (found.gl_pathc == 1) {
        folder = s4d_strdup(found.gl_pathv[0]);
    } else {
        s4d_fail(err, S4D_EXIT_USAGE, "FIGURE", "%zu figures have the name %s", found.gl_pathc,
                 name);
        s4d_hint(err, "name its folder: %s or %s", found.gl_pathv[0], found.gl_pathv[1]);
    }
    globfree(&found);
    free(pattern);
    return folder;
}

static int load_experiment(struct figure *f, const char *name, struct s4d_error *err)
{
    static const char *const own[] = {"machine", "workload", "gpus", "set", NULL};
    char *folder = folder_of(name, err);
    if (folder == NULL)
        return -1;
    char **keys = s4d_run_keys(own);
    int rc = s4d_experiment_read(&f->e, folder, (const char *const *)keys, err);
    s4d_run_keys_free(keys);
    free(folder);
    return rc || s4d_sweep_make(&f->sweep, f->e.root, err) ? -1 : 0;
}

static int load(struct figure *f, const char *name, int argc, char **argv, struct s4d_error *err)
{
    if (load_experiment(f, name, err) ||
        s4d_trials_load(&f->trials, &f->sweep, s4d_provenance(argc, argv), err))
        return -1;
    char *file = s4d_asprintf("%s/published.csv", f->e.folder);
    int rc = s4d_published_read(&f->published, file, err);
    free(file);
    for (int i = 0; i < f->options.add.n && rc == 0; i++)
        rc = s4d_overlay_add(&f->overlay, &f->e, f->options.add.v[i], err);
    if (rc)
        return -1;
    f->folder = s4d_asprintf("%s/%s/%s", f->options.output ? f->options.output : "build/figures",
                             f->e.paper, f->e.name);
    f->records_file = s4d_asprintf("%s/records.jsonl", f->folder);
    if (make_folders(f->folder, err))
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
    char *statements = s4d_overlay_gnuplot(&f->overlay);
    int rc = s4d_figure_data(&f->e, &f->records, &f->published, &f->overlay, data, err) ||
             s4d_report(&f->e, &f->records, &f->published, report, err) ||
             s4d_gnuplot_with(statements, script, data, stem, err);
    if (rc == 0) {
        printf("%s.png, .svg, .pdf; %s\n", stem, report);
        if (f->overlay.n > 0)
            printf("%d records of yours are drawn, and in %s\n", f->overlay.n, data);
        s4d_report_summary(&f->e, &f->records, &f->published, stdout);
        rc = s4d_figure_expected(&f->e, data, f->options.accept, err);
        if (rc == 0 && f->options.accept)
            printf("%s/expected.tsv is written; review the diff\n", f->e.folder);
    }
    free(data);
    free(report);
    free(stem);
    free(script);
    free(statements);
    return rc ? -1 : 0;
}

static void release(struct figure *f)
{
    s4d_options_free(groups, &f->options);
    s4d_trials_free(&f->trials);
    s4d_sweep_free(&f->sweep);
    s4d_experiment_free(&f->e);
    s4d_published_free(&f->published);
    s4d_records_free(&f->records);
    s4d_records_free(&f->others);
    s4d_overlay_free(&f->overlay);
    free(f->folder);
    free(f->records_file);
}

/* By enum s4d_figure_rows. */
static int (*const simulators[])(struct figure *f, struct s4d_error *err) = {
    [S4D_ROWS_MERIT] = s4d_figure_simulate,
    [S4D_ROWS_PARTS] = s4d_figure_simulate,
    [S4D_ROWS_MACHINES] = s4d_figure_simulate,
    [S4D_ROWS_GRIDS] = s4d_figure_simulate_grids,
};

static int make(struct figure *f, struct s4d_error *err)
{
    s4d_stop_keeps(f->records_file);
    if (f->options.draw_only)
        s4d_figure_warn_stale(f);
    else if (simulators[f->e.rows](f, err))
        return -1;
    return draw(f, err);
}

static int plot(int argc, char **argv)
{
    struct figure f = {.folder = NULL};
    struct s4d_texts name = {.usage = "FIGURE"};
    struct s4d_error err = {0};
    int rc =
        s4d_options_argv(groups,
                         "Simulates and draws a published figure, and a user's own records "
                         "over it. FIGURE is its name (weak-scaling) or its folder, which holds "
                         "experiment.yaml, published.csv, plot.gp and expected.tsv.",
                         argc, argv, &f.options, &name, &err);
    bool help = rc == 1;
    if (rc == 0 && name.n != 1)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected one figure's name or folder, got %d",
                      name.n);
    if (rc == 0)
        rc = load(&f, name.v[0], argc, argv, &err);
    if (rc == 0)
        rc = make(&f, &err);
    s4d_texts_free(&name);
    release(&f);
    return rc && !help ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_plot = {
    .name = "plot",
    .also = "figure",
    .summary = "simulate and draw a published figure, your own records over it",
    .run = plot,
    .options = groups,
};
