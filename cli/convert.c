/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d convert: records in the formats of other programs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "plots/format/format.h"
#include "support/file.h"
#include "support/memory.h"

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

static int add_line(struct s4d_outcomes *outcomes, const char *line, size_t n, const char *file,
                    int number, struct s4d_error *err)
{
    char where[512];
    snprintf(where, sizeof where, "%.490s:%d", file, number);
    return s4d_outcomes_add(outcomes, line, n, where, err);
}

static int add_file(struct s4d_outcomes *outcomes, const char *file, struct s4d_error *err)
{
    bool standard = strcmp(file, "-") == 0;
    FILE *in = standard ? stdin : fopen(file, "re");
    char *line = NULL;
    size_t size = 0;
    int rc = 0, number = 1;
    if (!in)
        return s4d_fail(err, S4D_EXIT_DATA, file, "cannot be read: %s", strerror(errno));
    errno = 0;
    for (ssize_t n; rc == 0 && (n = s4d_file_line(&line, &size, S4D_FILE_MAX, in)) > 0; number++)
        rc = add_line(outcomes, line, (size_t)n, standard ? "standard input" : file, number, err);
    if (rc == 0 && errno == EFBIG)
        rc = s4d_fail(err, S4D_EXIT_DATA, file,
                      "expected lines of at most %d MiB, found a longer one", S4D_FILE_MAX >> 20);
    else if (rc == 0 && ferror(in))
        rc = s4d_fail(err, S4D_EXIT_DATA, file, "cannot be read: %s", strerror(errno));
    free(line);
    if (!standard)
        fclose(in);
    return rc;
}

static int convert(const struct config *config, const struct s4d_texts *files,
                   struct s4d_error *err)
{
    struct s4d_outcomes outcomes = {0};
    int rc = 0;
    for (int i = 0; i < files->n && rc == 0; i++)
        rc = add_file(&outcomes, files->v[i], err);
    if (rc == 0 && outcomes.n == 0)
        rc = s4d_fail(err, S4D_EXIT_DATA, files->v[0], "has no records");
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
    struct s4d_texts files = {0};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Writes records, of --json and of scale4d-run, for other programs. "
                              "Arguments: files of records, one a line; - is standard input.",
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
