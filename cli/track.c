/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track: the table of its subcommands, and the way to one. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/track/track.h"
#include "support/nearest.h"
#include "support/quote.h"

/* In the order of --help. */
/* clang-format off */
static const struct s4d_track_command *const commands[] = {
    &s4d_track_add,
    &s4d_track_list,
    &s4d_track_show,
    &s4d_track_verdict,
    &s4d_track_report,
    &s4d_track_predict,
    &s4d_track_annotate,
    &s4d_track_export,
    &s4d_track_prune,
    &s4d_track_check,
    NULL};
/* clang-format on */

static void help(FILE *out)
{
    fprintf(out, "Usage: scale4d track SUBCOMMAND [OPTION...]\n\n"
                 "Keeps the records of every night, and says what changed.\n\n");
    for (int i = 0; commands[i]; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fprintf(out, "\nscale4d track SUBCOMMAND --help shows its options. All have:\n\n"
                 "      --store=FILE           where the records are kept (default SCALE4D_STORE, "
                 "else\n"
                 "                             $XDG_DATA_HOME/scale4d/track.sqlite, else below\n"
                 "                             ~/.local/share)\n"
                 "      --help                 the subcommand's options\n"
                 "      --usage                the same in a line\n");
}

static int unknown(const char *name)
{
    struct s4d_error err;
    const char *names[64];
    int n = 0;
    for (; commands[n]; n++)
        names[n] = commands[n]->name;
    s4d_fail(&err, S4D_EXIT_USAGE, "track", "expected a subcommand, got %s", s4d_quote(name).text);
    s4d_hint_nearest(&err, name, names, n);
    return s4d_error_print(&err);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return S4D_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-?") == 0 ||
        strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--usage") == 0) {
        help(stdout);
        return S4D_EXIT_OK;
    }
    if (strcmp(argv[1], "--list") == 0) { /* for completion */
        for (int i = 0; commands[i]; i++)
            printf("%s\n", commands[i]->name);
        return S4D_EXIT_OK;
    }
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, argv[1]) == 0) {
            char name[64];
            snprintf(name, sizeof name, "scale4d track %s", commands[i]->name);
            argv[1] = name;
            return commands[i]->run(argc - 1, argv + 1);
        }
    return unknown(argv[1]);
}

static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = s4d_track_store_option}, {.options = NULL}};

const struct s4d_command s4d_command_track = {
    .name = "track",
    .summary = "night after night: keep records, find what changed since when, and why",
    .run = run,
    .options = groups,
    .names = "track --list",
};
