/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d convert: records in the formats of other programs. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "plots/format/format.h"
#include "support/file.h"
#include "support/lines.h"

struct config {
    int to;
    char *output;
};

static const struct s4d_option options[] = {
    {.name = "to",
     .argument = "FORMAT",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_format_names,
     .offset = offsetof(struct config, to),
     .help = "what to write; scale4d convert without files lists them"},
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, output),
     .help = "default standard output; of reframe-perflog a folder"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.options = NULL}};

static int add_file(struct s4d_outcomes *outcomes, const char *file, struct s4d_error *err)
{
    struct s4d_lines lines;
    int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err), got = 0;
    while (rc == 0 && (got = s4d_lines_next(&lines, err)) > 0)
        if (!s4d_lines_blank(&lines))
            rc = s4d_outcomes_add(outcomes, lines.line, lines.n, lines.where, err);
    s4d_lines_close(&lines);
    return rc ? rc : got;
}

static int convert(const struct config *config, const struct s4d_texts *files,
                   struct s4d_error *err)
{
    struct s4d_outcomes outcomes = {0};
    int rc = 0;
    for (int i = 0; i < files->n && rc == 0; i++)
        rc = add_file(&outcomes, files->v[i], err);
    if (rc == 0 && outcomes.n == 0) {
        const char *file = files->v[0];
        rc = s4d_fail(err, S4D_EXIT_DATA, strcmp(file, "-") == 0 ? "standard input" : file,
                      "has no records");
        s4d_hint(err, "a record is one JSON line, as --json prints it");
    }
    if (rc == 0) {
        s4d_outcomes_ready(&outcomes);
        rc = s4d_format_write(&s4d_formats[config->to], &outcomes, config->output, err);
    }
    s4d_outcomes_free(&outcomes);
    return rc;
}

static void list(void)
{
    for (const struct s4d_format *f = s4d_formats; f->name; f++)
        printf("%-26s %s\n", f->name, f->writes);
}

static int run(int argc, char **argv)
{
    struct config config = {.to = -1};
    struct s4d_texts files = {.usage = "[FILE...]"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Writes records, of --json and of scale4d-run, for other programs. "
                              "FILE: one record a line; - is standard input. Without: lists the "
                              "formats.",
                              argc, argv, &config, &files, &err);
    if (rc == 0 && config.to < 0 && files.n > 0)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "--to", "expected a format, got none");
    else if (rc == 0 && config.to >= 0 && files.n == 0)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected a file of records, got none");
    else if (rc == 0 && files.n == 0)
        list();
    else if (rc == 0)
        rc = convert(&config, &files, &err);
    s4d_texts_free(&files);
    s4d_options_free(groups, &config);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_convert = {
    .name = "convert",
    .summary = "records for other programs: ReFrame, github-action-benchmark, JUnit, chat",
    .run = run,
    .options = groups,
};
