/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d links: sums up and draws a table of links. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "plots/links.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/option.h"

struct config {
    int value;
    char *output;
};
static const struct s4d_option options[] = {
    {.name = "value",
     .argument = "mean|peak",
     .type = S4D_OPT_CHOICE,
     .choices = s4d_links_values,
     .offset = offsetof(struct config, value),
     .help = "what the colours show, of a link's use"},
    {.name = "output",
     .argument = "STEM",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, output),
     .help = "draws STEM.png, STEM.svg and STEM.pdf, with STEM.gp and STEM.tsv (default: the "
             "table's name without ending)"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Options", .options = options},
                                                 {.title = NULL}};

static char *stem_of(const struct config *c, const char *file)
{
    char *stem = s4d_strdup(c->output ? c->output : file), *dot = strrchr(stem, '.');
    static const char *const endings[] = {".tsv", ".png", ".svg", ".pdf"};
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0) {
            *dot = '\0';
            break;
        }
    if (!c->output) { /* the table itself stays */
        char *other = s4d_asprintf("%s-map", stem);
        free(stem);
        return other;
    }
    return stem;
}

static int links(const struct config *c, const struct s4d_texts *given, struct s4d_error *err)
{
    struct s4d_links_table t = {0};
    if (given->n != 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected one table of links, got %d", given->n);
    char *stem = stem_of(c, given->v[0]), *data = s4d_asprintf("%s.tsv", stem);
    int rc = s4d_file_same(data, given->v[0])
                 ? s4d_fail(err, S4D_EXIT_USAGE, "--output", "%s is the table itself", data)
                 : s4d_file_writable(data, err);
    if (rc == 0)
        rc = s4d_links_read(&t, given->v[0], err);
    if (rc == 0) {
        s4d_links_print(&t, stdout);
        rc = s4d_links_draw(&t, (enum s4d_links_value)c->value, stem, err);
        if (rc == 0)
            printf("# %s.png, .svg, .pdf\n", stem);
    }
    free(stem);
    free(data);
    s4d_links_free(&t);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {.value = S4D_LINKS_MEAN};
    struct s4d_texts given = {.usage = "FILE"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Sums up a table that scale4d simulate --links FILE wrote, and "
                              "draws it as a heat map.",
                              argc, argv, &c, &given, &err);
    if (rc == 0)
        rc = links(&c, &given, &err);
    s4d_texts_free(&given);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_links = {
    .name = "links",
    .summary = "sum up and draw the use of links",
    .run = run,
    .options = groups,
};
