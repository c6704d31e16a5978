/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d sweep FILE: simulates the experiments of a file, on some processes here, or shared out
 * over the ranks of a launcher and the tasks of a Slurm array.
 *
 * Share i of n runs experiments i, i + n, i + 2n, ... and is the only writer of a file of its own,
 * NAME.partI.jsonl: nothing has to be locked or agreed on over a network file system. What any of
 * the files holds is finished, for every share of every later run. A run alone writes NAME.jsonl,
 * and at its end puts there what the parts hold, in the experiments' order. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/stop.h"
#include "cli/trial.h"
#include "plots/track/store.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/processors.h"
#include "support/progress.h"
#include "support/record.h"
#include "support/replace.h"
#include "support/share.h"

struct config {
    int workers;
    char *output, *suite, *night;
    struct s4d_share share; /* of 0: the launcher's */
    bool again;
};

#define AT(field) offsetof(struct config, field)
static const struct s4d_option options[] = {
    {.name = "workers",
     .key = 'j',
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(workers),
     .min = 0,
     .max = 4096,
     .help = "simulations at once; 0: one per processor, one in each rank of a launcher"},
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(output),
     .help = "where the records are kept (default: FILE's name with .jsonl, in this folder)"},
    {.name = "share",
     .argument = "I/N",
     .type = S4D_OPT_PARSE,
     .parse = s4d_share_parse,
     .offset = AT(share),
     .help =
         "run the I-th of N shares (default: what mpirun, srun or a Slurm array say; 1/1: all)"},
    {.name = "suite",
     .argument = "NAME",
     .type = S4D_OPT_TEXT,
     .offset = AT(suite),
     .help = "of the records, as scale4d-run nightly writes it; goes with --night"},
    {.name = "night",
     .argument = "YYYY-MM-DD",
     .type = S4D_OPT_TEXT,
     .offset = AT(night),
     .help = "which night scale4d track counts the records to; goes with --suite"},
    {.name = "again",
     .type = S4D_OPT_FLAG,
     .offset = AT(again),
     .help = "run what is finished once more"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.options = NULL}};

struct sweep {
    struct config config;
    struct s4d_sweep file;
    struct s4d_trials trials;
    struct s4d_records own, others; /* of the file written, of the other shares' */
    char *output, *stem;            /* written by this process; NAME of NAME.jsonl */
    int lock;
    int finished, done, of, failed, exit;
    struct s4d_error output_error; /* a record could not be kept */
};

/* NAME of the file of records, and the file that this share writes. */
static int name_outputs(struct sweep *s, const char *file, struct s4d_error *err)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    s->stem = s4d_strdup(s->config.output ? s->config.output : name);
    char *slash_of = strrchr(s->stem, '/'), *dot = strrchr(s->stem, '.');
    if (dot != NULL && dot > s->stem && (slash_of == NULL || dot > slash_of + 1))
        *dot = '\0';
    if (s->config.share.of > 1)
        s->output = s4d_asprintf("%s.part%d.jsonl", s->stem, s->config.share.index + 1);
    else if (s->config.output)
        s->output = s4d_strdup(s->config.output);
    else
        s->output = s4d_asprintf("%s.jsonl", s->stem);
    if (s4d_file_same(s->output, file))
        return s4d_fail(err, S4D_EXIT_USAGE, "--output", "is the file of experiments itself");
    return 0;
}

/* Takes the file that is written: nobody else may write it meanwhile. Where a file system has no
 * locks, that shares differ has to do. */
static int take_output(struct sweep *s, struct s4d_error *err)
{
    s->lock = open(s->output, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (s->lock < 0)
        return s4d_fail(err, S4D_EXIT_OUTPUT, s->output, "cannot be written: %s", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        s4d_fail(err, S4D_EXIT_OUTPUT, s->output, "another scale4d sweep is writing it");
        return s4d_hint(err, "wait for it, or write another file with --output");
    }
    return 0;
}

/* At the end of the file, of a run that was killed; once the file was read, so that nobody's notes
 * are cut. */
static int cut_half_line(struct sweep *s, struct s4d_error *err)
{
    off_t end = lseek(s->lock, 0, SEEK_END), at = end;
    for (char c = 0; at > 0 && pread(s->lock, &c, 1, at - 1) == 1 && c != '\n';)
        at--;
    if (at < end && ftruncate(s->lock, at) != 0)
        return s4d_fail(err, S4D_EXIT_OUTPUT, s->output, "cannot be written: %s", strerror(errno));
    return 0;
}

static int read_records(struct sweep *s, struct s4d_error *err)
{
    if (s4d_records_read(&s->own, s->output, err))
        return s4d_hint(err, "remove the line: its experiment runs again");
    char *whole = s4d_asprintf("%s.jsonl", s->stem),
         *parts = s4d_asprintf("%s.part*.jsonl", s->stem);
    glob_t found = {0};
    int rc = glob(whole, GLOB_NOSORT, NULL, &found);
    rc = glob(parts, rc == 0 ? GLOB_APPEND : 0, NULL, &found) && rc ? 1 : 0;
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        if (strcmp(found.gl_pathv[i], s->output) != 0 &&
            s4d_records_read(&s->others, found.gl_pathv[i], err))
            rc = s4d_hint(err, "remove the line: its experiment runs again");
    globfree(&found);
    free(whole);
    free(parts);
    return rc < 0 ? -1 : 0;
}

static json_t *find(const struct sweep *s, int i)
{
    json_t *own = s4d_trial_find(&s->trials, i, &s->own, false);
    return own ? own : s4d_trial_find(&s->trials, i, &s->others, false);
}

/* plots/RECORD.md: what belongs to a night. */
static void add_suite(const struct sweep *s, json_t *record)
{
    const json_t *name = json_object_get(json_object_get(record, "experiment"), "name");
    if (s->config.suite)
        json_object_set_new(record, "suite",
                            json_pack("{s:s, s:O, s:s}", "name", s->config.suite, "experiment",
                                      name, "night", s->config.night));
}

static int check_suite(const struct config *c, struct s4d_error *err)
{
    int day;
    if (!c->suite != !c->night)
        return s4d_fail(err, S4D_EXIT_USAGE, "--suite",
                        "goes with --night, and --night with --suite");
    if (c->night && s4d_date_parse(c->night, &day))
        return s4d_fail(err, S4D_EXIT_USAGE, "--night", "expected a date as 2026-11-30, got '%s'",
                        c->night);
    return 0;
}

static void done(void *context, int i, json_t *record, const struct s4d_error *why)
{
    struct sweep *s = context;
    s4d_progress_end();
    s->done++;
    if (record != NULL) {
        s4d_trial_print(record, stdout);
        add_suite(s, record);
        struct s4d_error err = {0};
        if (s4d_stop_append(&s->own, s->output, record, &err) && s->output_error.exit == 0)
            s->output_error = err;
    } else {
        struct s4d_error shown = s4d_trial_error(&s->trials.v[i], why);
        s4d_error_print(&shown);
        s->failed++;
        s->exit = s->exit ? s->exit : (int)shown.exit;
    }
    s4d_progress("experiments", s->done, s->of);
}

static int processors(const struct sweep *s)
{
    if (s->config.workers > 0)
        return s->config.workers;
    if (s->config.share.of > 1 && strcmp(s->config.share.from, "SLURM_ARRAY_TASK_ID") != 0 &&
        strcmp(s->config.share.from, "--share") != 0)
        return 1;
    return s4d_processors();
}

/* This share's experiments that are not finished, run. */
static void run_share(struct sweep *s)
{
    int *which = s4d_calloc((size_t)s->trials.n, sizeof *which), n = 0;
    for (int i = s->config.share.index; i < s->trials.n; i += s->config.share.of) {
        if (!s->config.again && find(s, i))
            s->finished++;
        else
            which[n++] = i;
    }
    s->of = n;
    if (s->finished > 0)
        printf("# %d of %d experiments are finished already\n", s->finished, s->finished + n);
    s4d_progress("experiments", 0, n);
    s4d_trials_run(&s->trials, which, n, processors(s), done, s);
    s4d_progress_end();
    free(which);
}

static bool is_of_the_file(const struct sweep *s, const json_t *record)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(record, "experiment"), "name"));
    for (int i = 0; name != NULL && i < s->trials.n; i++)
        if (strcmp(name, s->trials.v[i].entry->name) == 0)
            return true;
    return false;
}

/* One file, in the experiments' order; behind them the records of experiments that the file of
 * experiments no longer has. A pipe has what went through it, in the order that it did. */
static int put_in_order(struct sweep *s, struct s4d_error *err)
{
    struct s4d_records all = {0};
    char *target = s4d_link_target(s->output);
    bool is_file = target && s4d_is_replaced(target);
    free(target);
    if (!is_file)
        return 0;
    for (int i = 0; i < s->trials.n; i++) {
        json_t *r = find(s, i);
        if (r != NULL)
            s4d_push(all.v, all.n, all.cap, json_incref(r));
    }
    for (int i = 0; i < s->own.n; i++)
        if (!is_of_the_file(s, s->own.v[i]))
            s4d_push(all.v, all.n, all.cap, json_incref(s->own.v[i]));
    int rc = s4d_records_write(&all, s->output, err);
    s4d_records_free(&all);
    return rc;
}

static int finish(struct sweep *s, struct s4d_error *err)
{
    if (s->output_error.exit != 0) {
        *err = s->output_error;
        return -1;
    }
    if (s->config.share.of == 1 && s->failed == 0 && put_in_order(s, err))
        return -1;
    if (s->config.share.of > 1)
        printf("# share %d of %d (%s): ", s->config.share.index + 1, s->config.share.of,
               s->config.share.from);
    else
        printf("# ");
    printf("%d experiments, %d finished before, %d simulated, %d failed, in %s  %s\n",
           s->finished + s->of, s->finished, s->done - s->failed, s->failed, s->output,
           s->failed ? "FAILED" : "OK");
    return 0;
}

static int sweep_file(struct sweep *s, const char *file, int argc, char **argv,
                      struct s4d_error *err)
{
    if (check_suite(&s->config, err) ||
        (s->config.share.of == 0 && s4d_share_from_environment(&s->config.share, err)) ||
        s4d_sweep_read(&s->file, file, err) ||
        s4d_trials_load(&s->trials, &s->file, s4d_provenance(argc, argv), err) ||
        name_outputs(s, file, err) || take_output(s, err) || read_records(s, err) ||
        cut_half_line(s, err))
        return -1;
    s4d_stop_keeps(s->output);
    run_share(s);
    return finish(s, err);
}

static void release(struct sweep *s)
{
    s4d_options_free(groups, &s->config);
    s4d_trials_free(&s->trials);
    s4d_sweep_free(&s->file);
    s4d_records_free(&s->own);
    s4d_records_free(&s->others);
    free(s->output);
    free(s->stem);
    if (s->lock >= 0)
        close(s->lock);
}

static int run(int argc, char **argv)
{
    struct sweep s = {.lock = -1};
    struct s4d_texts file = {.usage = "FILE"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Simulates the experiments of FILE: a list, or every combination of "
                              "some values, with the keys of scale4d simulate's options. Each that "
                              "is finished is a record, which a later run does not make again.",
                              argc, argv, &s.config, &file, &err);
    int help = rc == 1;
    if (rc == 0 && file.n != 1)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected one file of experiments, got %d", file.n);
    if (rc == 0)
        rc = sweep_file(&s, file.v[0], argc, argv, &err);
    int status = rc < 0 ? s4d_error_print(&err) : help ? S4D_EXIT_OK : s.exit;
    s4d_texts_free(&file);
    release(&s);
    return status;
}

const struct s4d_command s4d_command_sweep = {
    .name = "sweep",
    .summary = "simulate the experiments of a file, here or shared out over a cluster",
    .run = run,
    .options = groups,
};
