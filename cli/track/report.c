/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track report: the morning's page. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/cause.h"
#include "cli/track/judge.h"
#include "cli/track/track.h"
#include "plots/page/report.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/replace.h"

struct config {
    char *store;
    struct s4d_verdict_options judge;
    struct own {
        char *output;
        int nights, sections;
    } own;
    struct s4d_cause_options causes;
};

#define FIELD(name) offsetof(struct own, name)
static const struct s4d_option options[] = {
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = FIELD(output),
     .help = "the page, one file of HTML; default standard output"},
    {.name = "nights",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 1,
     .max = 100000,
     .offset = FIELD(nights),
     .help = "that are drawn, up to the one that is judged"},
    {.name = "sections",
     .argument = "N",
     .type = S4D_OPT_INT,
     .min = 0,
     .max = 100000,
     .offset = FIELD(sections),
     .help = "series with pictures, those with the worst standing first; the table has all"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Store", .options = s4d_track_store_option},
    {.title = "Report", .options = options, .offset = offsetof(struct config, own)},
    {.title = "Verdict", .options = s4d_judge_table, .offset = offsetof(struct config, judge)},
    {.title = "Causes", .options = s4d_cause_table, .offset = offsetof(struct config, causes)},
    {.options = NULL}};

/* A file is there whole, or as it was. */
static int write_file(const char *file, struct s4d_store *store, const struct s4d_verdict *verdict,
                      const struct s4d_report_options *report, struct s4d_error *err)
{
    struct s4d_replacement to;
    if (s4d_replace_open(&to, file, err))
        return -1;
    return s4d_replace_close(&to, s4d_report_write(to.out, store, verdict, report, err), err);
}

static int write_report(const struct own *own, struct s4d_store *store,
                        const struct s4d_verdict *verdict, struct s4d_error *err)
{
    struct s4d_references references = {0};
    struct s4d_report_options report = {
        .nights = own->nights, .sections = own->sections, .references = &references};
    const char *file = verdict->options.references;
    int rc = file ? s4d_references_read(&references, file, err) : 0;
    if (rc == 0 && own->output)
        rc = write_file(own->output, store, verdict, &report, err);
    else if (rc == 0)
        rc = s4d_report_write(stdout, store, verdict, &report, err);
    s4d_references_free(&references);
    return rc;
}

static int make(const struct config *config, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct s4d_verdict verdict;
    if (config->own.output && s4d_file_writable(config->own.output, err))
        return -1;
    if (s4d_store_open(&store, config->store, S4D_STORE_READ, err))
        return -1;
    int rc = s4d_verdict_of(&verdict, store, &config->judge, err);
    if (rc == 0) {
        s4d_track_warn_future(config->judge.night, verdict.night);
        rc = s4d_causes_find(&verdict, store, &config->causes, err);
        if (rc == 0)
            rc = write_report(&config->own, store, &verdict, err);
        s4d_verdict_free(&verdict);
    }
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct s4d_report_options report = s4d_report_defaults();
    struct config config = {.judge = s4d_verdict_defaults(),
                            .causes = s4d_cause_defaults(),
                            .own = {.nights = report.nights, .sections = report.sections}};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Writes the morning's page: the verdict, a table of all series, and "
                              "each one's nights in pictures. One file, without network; with "
                              "gnuplot.",
                              argc, argv, &config, NULL, &err);
    if (rc == 0)
        rc = make(&config, &err);
    s4d_options_free(groups, &config);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_report = {
    .name = "report", .summary = "the morning's page: one file of HTML", .run = run};
