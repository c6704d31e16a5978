/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d compare: two files of records, what changed, and whether it lost too much. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "plots/compare.h"
#include "support/option.h"
#include "support/record.h"

struct config {
    double threshold;
    bool allow_missing, json;
};

static const struct s4d_option options[] = {
    {.name = "threshold",
     .argument = "PART",
     .type = S4D_OPT_PARSE,
     .parse = s4d_parse_threshold,
     .offset = offsetof(struct config, threshold),
     .help = "exit 1 where flops_per_s (of a collective: busbw_Bps) loses more than this: -3% or "
             "-0.03; without it, where simulated records are not the same"},
    {.name = "allow-missing",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, allow_missing),
     .help = "records of OLD that NEW lacks do not fail (a run that died would pass unseen)"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "print one JSON line, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.options = NULL}};

/* The library knows OLD and NEW; people know their files. */
static int name_file(const struct s4d_texts *files, struct s4d_error *err)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(err->where, i ? "NEW" : "OLD") == 0)
            snprintf(err->where, sizeof err->where, "%.500s", files->v[i]);
    return -1;
}

static int print(const struct s4d_comparison *c, const struct config *config,
                 const struct s4d_texts *files, int argc, char **argv, struct s4d_error *err)
{
    json_t *provenance = s4d_provenance(argc, argv);
    int rc = 0;
    if (config->json) {
        json_t *record = s4d_comparison_record(c, config->threshold);
        json_object_set(record, "provenance", provenance);
        rc = s4d_record_write(record, stdout, err);
        json_decref(record);
    } else {
        s4d_provenance_print(provenance, stdout);
        printf("# old %s, new %s; changes are new against old, of times that a part is exposed in "
               "ms\n",
               files->v[0], files->v[1]);
        s4d_comparison_print(c, config->threshold, stdout);
    }
    json_decref(provenance);
    return rc;
}

static int compare(const struct config *config, const struct s4d_texts *files, int argc,
                   char **argv, struct s4d_error *err)
{
    struct s4d_records old = {0}, new = {0};
    struct s4d_comparison c = {0};
    if (files->n != 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "",
                        "expected two files, OLD.jsonl and NEW.jsonl, got %d", files->n);
    int rc = s4d_records_load(&old, files->v[0], err);
    if (rc == 0)
        rc = s4d_records_load(&new, files->v[1], err);
    if (rc == 0 && s4d_compare_records(&c, &old, &new, config->threshold, err))
        rc = name_file(files, err);
    if (config->allow_missing)
        c.missing = 0;
    if (rc == 0)
        rc = print(&c, config, files, argc, argv, err);
    int failed = c.beyond > 0 || c.missing > 0;
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&new);
    return rc ? rc : failed;
}

static int run(int argc, char **argv)
{
    struct config config = {.threshold = NAN};
    struct s4d_texts files = {.usage = "OLD NEW"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Compares records with the same inputs. OLD and NEW: files with one "
                              "record a line, as --json prints them.",
                              argc, argv, &config, &files, &err);
    int help = rc == 1, failed = 0;
    if (rc == 0) {
        rc = compare(&config, &files, argc, argv, &err);
        failed = rc == 1;
    }
    s4d_texts_free(&files);
    if (rc < 0)
        return s4d_error_print(&err);
    return help || !failed ? S4D_EXIT_OK : S4D_EXIT_CHECK;
}

const struct s4d_command s4d_command_compare = {
    .name = "compare",
    .summary = "records of two runs: what changed, and whether it lost too much",
    .run = run,
    .options = groups,
};
