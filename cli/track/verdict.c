/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track verdict: what the night says, and exit 1 on a confirmed regression. */
#include <stddef.h>
#include <stdio.h>

#include "cli/track/cause.h"
#include "cli/track/track.h"
#include "plots/format/format.h"
#include "plots/format/verdict.h"
#include "plots/track/verdict.h"
#include "support/record.h"

struct config {
    char *store;
    struct own {
        int night;
        char *references, *output;
        int window, retired, permutations, seed, format;
        double p, magnitude, deviation;
        bool missing_fails, json;
    } own;
    struct s4d_cause_options causes;
};

#define FIELD(name) offsetof(struct own, name)
static const struct s4d_option options[] = {
    {.name = "night",
     .argument = "DATE",
     .type = S4D_OPT_PARSE,
     .parse = s4d_track_parse_night,
     .format = s4d_track_format_night,
     .offset = FIELD(night),
     .help = "which night is judged: YYYY-MM-DD, or today (UTC); one without records is an error"},
    {.name = "references",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = FIELD(references),
     .help = "YAML: values with signed fractions by host class; plots/TRACK.md shows it"},
    {.name = "window",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 4,
     .max = S4D_NIGHTS_MAX,
     .offset = FIELD(window),
     .help = "nights that are looked back on for changes"},
    {.name = "min-change",
     .argument = "PART",
     .type = S4D_OPT_NUMBER,
     .min = 0,
     .max = 1,
     .offset = FIELD(magnitude),
     .help = "least change that counts, a part of the level: 0.01 is 1 %; where a metric's own is "
             "larger, that"},
    {.name = "max-p",
     .argument = "P",
     .type = S4D_OPT_NUMBER,
     .min = 0,
     .max = 1,
     .offset = FIELD(p),
     .help = "most of the random orders of the nights that may have as good a split"},
    {.name = "min-deviation",
     .argument = "N",
     .type = S4D_OPT_NUMBER,
     .min = 0,
     .max = 1000,
     .offset = FIELD(deviation),
     .help = "least change that counts, in its standard errors"},
    {.name = "permutations",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 19,
     .max = 1000000,
     .offset = FIELD(permutations),
     .help = "random orders that are tried"},
    {.name = "seed",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 0,
     .max = 1000000000,
     .offset = FIELD(seed),
     .help = "of the random orders: the same seed, the same verdict"},
    {.name = "retired",
     .argument = "DAYS",
     .type = S4D_OPT_INT,
     .min = 1,
     .max = 36500,
     .offset = FIELD(retired),
     .help = "a series that has not run for so long is not missed any more"},
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
    {.title = "Verdict", .options = options, .offset = offsetof(struct config, own)},
    {.title = "Causes", .options = s4d_cause_table, .offset = offsetof(struct config, causes)},
    {.options = NULL}};

static struct s4d_verdict_options chosen(const struct own *own)
{
    return (struct s4d_verdict_options){.night = own->night,
                                        .window = own->window,
                                        .retired = own->retired,
                                        .references = own->references,
                                        .missing_fails = own->missing_fails,
                                        .change = {.permutations = own->permutations,
                                                   .p_max = own->p,
                                                   .magnitude = own->magnitude,
                                                   .deviation = own->deviation,
                                                   .seed = (uint64_t)own->seed}};
}

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
    int rc = own->references ? s4d_references_read(&references, own->references, err) : 0;
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
    struct s4d_verdict_options options = chosen(&config->own);
    struct s4d_store *store = NULL;
    struct s4d_verdict v;
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
    struct s4d_verdict_options defaults = s4d_verdict_defaults();
    struct config config = {.causes = s4d_cause_defaults(),
                            .own = {.night = defaults.night,
                                    .format = -1,
                                    .window = defaults.window,
                                    .retired = defaults.retired,
                                    .permutations = defaults.change.permutations,
                                    .seed = (int)defaults.change.seed,
                                    .p = defaults.change.p_max,
                                    .magnitude = defaults.change.magnitude,
                                    .deviation = defaults.change.deviation}};
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
