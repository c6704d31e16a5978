/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d validate: simulated iteration times against measured ones. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "plots/gnuplot.h"
#include "plots/validate.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/option.h"

struct config {
    char *output;
};

static const struct s4d_option options[] = {
    {.name = "output",
     .argument = "FOLDER",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, output),
     .help = "write data.tsv, report.md and the figure into this folder"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.options = NULL}};

static int name_file(const struct s4d_texts *files, struct s4d_error *err)
{
    for (int i = 0; i < 2; i++)
        if (strcmp(err->where, i ? "SIMULATED" : "MEASURED") == 0)
            snprintf(err->where, sizeof err->where, "%.500s", files->v[i]);
    return -1;
}

static int write_all(const struct s4d_validation *v, const char *folder, struct s4d_error *err)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return s4d_fail(err, S4D_EXIT_OUTPUT, folder, "cannot be made: %s", strerror(errno));
    char *data = s4d_asprintf("%s/data.tsv", folder),
         *report = s4d_asprintf("%s/report.md", folder),
         *stem = s4d_asprintf("%s/validation", folder),
         *script = s4d_asprintf("%s/plots/validate.gp", s4d_data_folder());
    int rc = s4d_validation_data(v, data, err) || s4d_validation_report(v, report, err) ||
             s4d_gnuplot(script, data, stem, err);
    if (!rc)
        printf("%s; %s.png, .svg, .pdf\n", report, stem);
    free(data);
    free(report);
    free(stem);
    free(script);
    return rc ? -1 : 0;
}

static int validate(const struct config *c, const struct s4d_texts *files, struct s4d_error *err)
{
    struct s4d_records measured = {0}, simulated = {0};
    struct s4d_validation v = {0};
    if (files->n != 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "",
                        "expected two files, MEASURED.jsonl and SIMULATED.jsonl, got %d", files->n);
    int rc = s4d_records_load(&measured, files->v[0], err);
    if (rc == 0)
        rc = s4d_records_load(&simulated, files->v[1], err);
    if (rc == 0 && s4d_validate(&v, &measured, &simulated, err))
        rc = name_file(files, err);
    if (rc == 0)
        s4d_validation_print(&v, stdout);
    if (rc == 0 && c->output)
        rc = write_all(&v, c->output, err);
    s4d_validation_free(&v);
    s4d_records_free(&measured);
    s4d_records_free(&simulated);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {0};
    struct s4d_texts files = {.usage = "MEASURED SIMULATED"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Compares simulated iteration times with measured ones. MEASURED is "
                              "of scale4d-run train, SIMULATED of scale4d simulate: one record a "
                              "line, as --json prints them.",
                              argc, argv, &c, &files, &err);
    if (rc == 0)
        rc = validate(&c, &files, &err);
    s4d_texts_free(&files);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_validate = {
    .name = "validate",
    .summary = "simulated iteration times against measured ones",
    .run = run,
    .options = groups,
};
