/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d-run nightly FILE.yaml: the experiments of a file, one after another and again, in one
 * job, each finished run on the disk before the next begins.
 *
 * What fails the same on all ranks (a grid that does not divide, too little memory, a file that is
 * not there, a loss that is NaN) is a record, and the next goes on. What ends the job (a rank that
 * dies, or hangs, or takes longer than it may) is a record, too, and --resume goes on from there.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/command.h"
#include "cli/run/nightly.h"
#include "cli/run/preflight.h"
#include "plots/track/store.h"
#include "real/host_class.h"
#include "real/watch.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/record.h"

#define AT(field) offsetof(struct s4d_nightly_config, field)
static const struct s4d_option options[] = {
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(output),
     .help = "records are added to it (default: the suite's name with .jsonl, in this folder)"},
    {.name = "only",
     .argument = "NAME",
     .type = S4D_OPT_LIST,
     .offset = AT(only),
     .help = "this experiment alone; may be repeated"},
    {.name = "resume",
     .type = S4D_OPT_FLAG,
     .offset = AT(resume),
     .help = "go on with a night that was ended: what the output holds of it is not run again"},
    {.name = "night",
     .argument = "YYYY-MM-DD",
     .type = S4D_OPT_TEXT,
     .offset = AT(night),
     .help = "what the records call it (default: today, UTC; with --resume the output's last)"},
    {.name = "time-limit",
     .argument = "TIME",
     .type = S4D_OPT_TIME,
     .offset = AT(time_limit_s),
     .help = "of the night, in place of the file's time_limit"},
    {.name = "host-class",
     .argument = "NAME",
     .type = S4D_OPT_TEXT,
     .offset = AT(host_class),
     .help = "of the records: machines to compare night by night, as of train"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Nightly", .options = options},
                                                 {.options = NULL}};

/* Files and lines of a single training. */
static const char *const refused[] = {"list_backends", "save", "save_gradients", "timeline",
                                      "record",        "json", "log_throughput", "preflight",
                                      "machine",       NULL};

static int check_night(const char *night, struct s4d_error *err)
{
    int day;
    if (s4d_date_parse(night, &day) == 0)
        return 0;
    return s4d_fail(err, S4D_EXIT_USAGE, "--night", "expected a date as 2026-11-30, got '%s'",
                    night);
}

static int check_only(const struct s4d_nightly *n, struct s4d_error *err)
{
    const struct s4d_texts *only = &n->config->only;
    const char **names = s4d_calloc((size_t)n->suite.n, sizeof *names);
    int rc = 0;
    for (int i = 0; i < n->suite.n; i++)
        names[i] = n->suite.v[i].name;
    for (int k = 0; k < only->n && !rc; k++) {
        bool found = false;
        for (int i = 0; i < n->suite.n; i++)
            found = found || strcmp(only->v[k], names[i]) == 0;
        if (found)
            continue;
        s4d_fail(err, S4D_EXIT_USAGE, "--only", "%s has no experiment named '%s'", n->suite.name,
                 only->v[k]);
        rc = s4d_hint_nearest(err, only->v[k], names, n->suite.n);
    }
    free(names);
    return rc;
}

static int read_suite(struct s4d_nightly *n, const char *file, struct s4d_error *err)
{
    const struct s4d_train_config defaults = s4d_train_config_default();
    const struct s4d_suite_options o = {.groups = s4d_train_groups,
                                        .defaults = &defaults,
                                        .bytes = sizeof defaults,
                                        .refused = refused};
    if (s4d_suite_read(&n->suite, file, &o, err) || check_only(n, err))
        return -1;
    for (int i = 0; i < n->suite.n; i++) {
        struct s4d_train_config *c = n->suite.v[i].config;
        if (!c->workload)
            return s4d_yaml_fail(n->suite.v[i].node, err, "the key workload is missing");
        if (!n->config->host_class)
            continue;
        free(c->host_class);
        c->host_class = s4d_strdup(n->config->host_class);
    }
    n->time_limit_s = n->config->time_limit_s > 0 ? n->config->time_limit_s : n->suite.time_limit_s;
    return n->config->night ? check_night(n->config->night, err) : 0;
}

/* Every rank reads the file by itself. */
static int same_file(const struct s4d_nightly *n, const char *file, struct s4d_error *err)
{
    const char *const names[] = {"the suite's file"};
    uint64_t value = 0;
    int code = s4d_world_agree(n->world, s4d_file_fingerprint(file, &value, err) ? err : NULL);
    if (code)
        return code;
    return s4d_world_agree(n->world, s4d_world_same(n->world, names, &value, 1, err) ? err : NULL);
}

static void name_night(struct s4d_nightly *n)
{
    json_t *state = n->config->resume ? s4d_suite_log_state(&n->log) : NULL;
    json_t *provenance = s4d_provenance(0, NULL);
    const char *running = json_string_value(json_object_get(state, "night"));
    const char *last = n->config->resume ? s4d_suite_log_night(&n->log, n->suite.name) : NULL;
    const char *today = json_string_value(json_object_get(provenance, "time"));
    snprintf(n->night, sizeof n->night, "%.10s",
             n->config->night ? n->config->night
             : running        ? running
             : last           ? last
                              : today);
    json_decref(state);
    json_decref(provenance);
}

/* On rank 0. */
static int open_log(struct s4d_nightly *n, struct s4d_error *err)
{
    char *file =
        n->config->output ? s4d_strdup(n->config->output) : s4d_asprintf("%s.jsonl", n->suite.name);
    int rc = s4d_suite_log_open(&n->log, file, err);
    free(file);
    if (rc)
        return -1;
    name_night(n);
    if (!n->config->resume) /* what was there is another run's */
        json_array_clear(n->log.records);
    json_t *provenance = s4d_provenance(n->argc, n->argv);
    s4d_provenance_print(provenance, stdout);
    json_decref(provenance);
    printf("# %s, night %s: %d experiment%s, %d repeat%s each, into %s\n", n->suite.name, n->night,
           n->suite.n, n->suite.n == 1 ? "" : "s", n->suite.repeats,
           n->suite.repeats == 1 ? "" : "s", n->log.file);
    printf("%-32s %7s %12s %14s %8s\n%-32s %7s %12s %14s %8s\n", "experiment", "repeat",
           "iteration", "by the formula", "slowest", "", "", "(s)", "(GFLOP/s)", "(rank)");
    fflush(stdout);
    return n->config->resume ? s4d_nightly_take_up(n, err) : 0;
}

/* The exit code of a night that came to its end. */
static int conclude(struct s4d_nightly *n)
{
    struct s4d_error err;
    int code = s4d_world_agree(
        n->world, n->world->rank == 0 && s4d_suite_log_end(&n->log, &err) ? &err : NULL);
    struct s4d_nightly_count c = {0, 0, 0};
    if (n->world->rank == 0) {
        c = s4d_nightly_count(n);
        printf("# %s, night %s: %d runs, %d of %d experiments failed, in %s  %s\n", n->suite.name,
               n->night, c.runs, c.failed, n->suite.n, n->log.file, c.failed ? "FAILED" : "OK");
    }
    MPI_Bcast(&c, sizeof c / sizeof(int), MPI_INT, 0, n->world->comm);
    if (code)
        return code;
    return c.out_of_time > 0 ? S4D_EXIT_TIMEOUT : c.failed > 0 ? S4D_EXIT_CHECK : S4D_EXIT_OK;
}

/* On rank 0: its record, and where the night ends here, one for every experiment. */
static int keep_preflight(struct s4d_nightly *n, json_t *record, bool stops, struct s4d_error *err)
{
    const struct s4d_train_config *c = n->suite.v[0].config;
    const struct s4d_error slow = {.exit = S4D_EXIT_CHECK,
                                   .where = "preflight",
                                   .text = "devices are slow, or compute wrong values: not run",
                                   .hint = "preflight: go-on runs all the same"};
    char *host_class = s4d_host_class(c->host_class, s4d_backend_names[c->backend],
                                      n->world->local_size, n->world->host);
    json_object_set_new(record, "host_class", json_string(host_class));
    free(host_class);
    json_object_set_new(record, "provenance", s4d_provenance(n->argc, n->argv));
    s4d_preflight_warn(record);
    int rc = s4d_nightly_keep(n, record, -1, 0, err);
    for (int e = 0; e < n->suite.n && stops && !rc; e++)
        if (s4d_nightly_named(n, e) && s4d_nightly_wants(n, e, 1))
            rc = s4d_nightly_fail(n, e, 0, &slow, false, err);
    return rc;
}

/* Before the first run. 0, or the exit code of a check that could not be made. */
static int preflight(struct s4d_nightly *n)
{
    struct s4d_preflight_config check = s4d_train_check_of(n->suite.v[0].config);
    struct s4d_error err;
    json_t *record = NULL;
    int due = n->suite.preflight != S4D_SUITE_PREFLIGHT_OFF;
    if (n->world->rank == 0 && due)
        due = s4d_suite_log_count(&n->log, n->suite.name, n->night, "preflight", NULL, 0,
                                  S4D_SUITE_ANY) == 0;
    MPI_Bcast(&due, 1, MPI_INT, 0, n->world->comm);
    if (!due)
        return 0;
    check.machine = n->suite.machine;
    int code = s4d_preflight_run(&check, n->world, &record);
    bool stops = code != 0 && n->suite.preflight == S4D_SUITE_PREFLIGHT_STOP;
    int rc = record ? keep_preflight(n, record, stops, &err) : 0;
    json_decref(record);
    int failed = s4d_world_agree(n->world, rc ? &err : NULL);
    return failed ? failed : code > S4D_EXIT_CHECK ? code : 0;
}

static int nightly(struct s4d_nightly *n, const struct s4d_texts *files)
{
    struct s4d_world *w = n->world;
    struct s4d_error err;
    int rc = files->n == 1 ? read_suite(n, files->v[0], &err)
                           : s4d_fail(&err, S4D_EXIT_USAGE, "",
                                      "expected one file of experiments, got %d", files->n);
    int code = s4d_world_agree(w, rc ? &err : NULL);
    if (!code)
        code = same_file(n, files->v[0], &err);
    if (code)
        return code;
    n->spent_s = s4d_calloc((size_t)n->suite.n, sizeof *n->spent_s);
    n->last_s = s4d_calloc((size_t)n->suite.n, sizeof *n->last_s);
    n->began_s = s4d_nightly_now_s();
    n->now.experiment = -1;
    code = s4d_world_agree(w, w->rank == 0 && open_log(n, &err) ? &err : NULL);
    if (!code)
        code = preflight(n);
    if (!code)
        code = s4d_nightly_run(n);
    return code ? code : conclude(n);
}

static int run(struct s4d_world *world, int argc, char **argv)
{
    struct s4d_nightly_config config = {0};
    struct s4d_nightly n = {.config = &config, .world = world, .argc = argc, .argv = argv};
    struct s4d_texts files = {.usage = "FILE.yaml"};
    struct s4d_error err;
    n.log.fd = -1;
    int rc = s4d_options_argv(groups,
                              "Runs the experiments of FILE.yaml, one after another and again, and "
                              "adds a record of each to a file (plots/TRACK.md).",
                              argc, argv, &config, &files, &err);
    int code = s4d_world_agree(world, rc < 0 ? &err : NULL);
    world->failed = &n.failed;
    world->ending = s4d_nightly_ending;
    world->ending_self = &n;
    s4d_watch_at_end(s4d_nightly_ending, &n);
    if (rc == 0 && code == 0)
        code = nightly(&n, &files);
    world->failed = NULL;
    world->ending = NULL;
    s4d_watch_at_end(NULL, NULL);
    s4d_suite_log_close(&n.log);
    s4d_suite_free(&n.suite);
    free(n.spent_s);
    free(n.last_s);
    s4d_texts_free(&files);
    s4d_options_free(groups, &config);
    return code;
}

const struct s4d_run_command s4d_run_nightly = {
    .name = "nightly",
    .summary = "run the experiments of a file, night after night",
    .run = run,
    .options = groups,
};
