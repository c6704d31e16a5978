/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track verdict: what the night says, and exit 1 on a confirmed regression. */
#include <stddef.h>
#include <stdio.h>

#include "cli/track/cause.h"
#include "cli/track/judge.h"
#include "cli/track/track.h"
#include "plots/format/format.h"
#include "plots/format/verdict.h"
#include "plots/track/verdict.h"
#include "support/record.h"

struct config {
    char *store;
    struct s4d_verdict_options judge;
    struct own {
        char *output;
        int format;
        bool missing_fails, json;
    } own;
    struct s4d_cause_options causes;
};

#define FIELD(name) offsetof(struct own, name)
static const struct s4d_option options[] = {
    {.name = "missing-fails",
     .type = S4D_OPT_FLAG,
     .offset = FIELD(missing_fails),
     .help = "exit 1 also where a series is missing"},
    {.name = "format",
     .argument = "FORMAT",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_format_names,
     .offset = FIELD(format),
     .help = "print the night in another program's format instead (scale4d convert lists them)"},
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = FIELD(output),
     .help = "of --format; default standard output; of reframe-perflog a folder"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = FIELD(json),
     .help = "print one JSON line, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Store", .options = s4d_track_store_option},
    {.title = "Verdict", .options = s4d_judge_table, .offset = offsetof(struct config, judge)},
    {.title = "What is printed", .options = options, .offset = offsetof(struct config, own)},
    {.title = "Causes", .options = s4d_cause_table, .offset = offsetof(struct config, causes)},
    {.options = NULL}};

static int print(const struct s4d_verdict *v, const struct config *config, int argc, char **argv,
                 struct s4d_error *err)
{
    json_t *provenance = s4d_provenance(argc, argv);
    int rc = 0;
    if (config->own.json) {
        json_t *record = s4d_verdict_record(v);
        json_object_set(record, "provenance", provenance);
        rc = s4d_record_write(record, stdout, err);
        json_decref(record);
    } else {
        s4d_provenance_print(provenance, stdout);
        s4d_verdict_print(v, stdout);
    }
    json_decref(provenance);
    return rc;
}

static int print_format(const struct s4d_verdict *v, struct s4d_store *store, const struct own *own,
                        struct s4d_error *err)
{
    struct s4d_references references = {0};
    struct s4d_outcomes outcomes = {0};
    const char *file = v->options.references;
    int rc = file ? s4d_references_read(&references, file, err) : 0;
    if (rc == 0)
        rc = s4d_outcomes_of_verdict(&outcomes, v, store, &references, err);
    if (rc == 0)
        rc = s4d_format_write(&s4d_formats[own->format], &outcomes, own->output, err);
    s4d_outcomes_free(&outcomes);
    s4d_references_free(&references);
    return rc;
}

/* 0; 1: it fails; -1 with *err. */
static int judge(const struct config *config, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_verdict_options options = config->judge;
    struct s4d_store *store = NULL;
    struct s4d_verdict v;
    options.missing_fails = config->own.missing_fails;
    if (s4d_store_open(&store, config->store, S4D_STORE_READ, err))
        return -1;
    int rc = s4d_verdict_of(&v, store, &options, err);
    if (rc == 0) {
        s4d_track_warn_future(options.night, v.night);
        rc = s4d_causes_find(&v, store, &config->causes, err);
        if (rc == 0 && config->own.format >= 0)
            rc = print_format(&v, store, &config->own, err);
        else if (rc == 0)
            rc = print(&v, config, argc, argv, err);
        if (rc == 0)
            rc = s4d_verdict_failed(&v);
        s4d_verdict_free(&v);
    }
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config config = {
        .judge = s4d_verdict_defaults(), .causes = s4d_cause_defaults(), .own = {.format = -1}};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Says what a night's records show: what changed since when, by how "
                              "much, how sure that is, and the commits between. Exit 1 on a "
                              "confirmed regression.",
                              argc, argv, &config, NULL, &err),
        failed = 0;
    if (rc == 0 && config.own.json && config.own.format >= 0)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "--format", "expected it or --json, got both");
    else if (rc == 0 && config.own.output && config.own.format < 0)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "--output", "expected --format with it");
    if (rc == 0) {
        rc = judge(&config, argc, argv, &err);
        failed = rc == 1;
    }
    s4d_options_free(groups, &config);
    if (rc < 0)
        return s4d_error_print(&err);
    return failed ? S4D_EXIT_CHECK : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_verdict = {
    .name = "verdict",
    .summary = "what the night says: lost, gained, changed, missing; exit 1 on a regression",
    .run = run};
