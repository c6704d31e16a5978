/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d: the table of commands, help, and the way to a command. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "support/error.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/record.h" /* for: s4d_version, s4d_commit */

/* In the order of --help. One a line, so that each has its own line of history. */
/* clang-format off */
const struct s4d_command *const s4d_commands[] = {
    &s4d_command_simulate,
    &s4d_command_tune,
    &s4d_command_sweep,
    &s4d_command_schedule,
    &s4d_command_collective,
    &s4d_command_machines,
    &s4d_command_workloads,
    &s4d_command_layers,
    &s4d_command_fabrics,
    &s4d_command_collectives,
    &s4d_command_route,
    &s4d_command_plot,
    &s4d_command_compare,
    &s4d_command_convert,
    &s4d_command_track,
    &s4d_command_validate,
    &s4d_command_accuracy,
    &s4d_command_links,
    &s4d_command_completion,
    NULL};
/* clang-format on */

static const struct s4d_command *find(const char *name)
{
    for (int i = 0; s4d_commands[i] != NULL; i++)
        if (strcmp(s4d_commands[i]->name, name) == 0 ||
            (s4d_commands[i]->also != NULL && strcmp(s4d_commands[i]->also, name) == 0))
            return s4d_commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    struct s4d_error err;
    const char *names[64];
    int n = 0;
    for (; s4d_commands[n] != NULL; n++)
        names[n] = s4d_commands[n]->name;
    s4d_fail(&err, S4D_EXIT_USAGE, "", "expected a command, got %s", s4d_quote(name).text);
    s4d_hint_nearest(&err, name, names, n);
    return s4d_error_print(&err);
}

static void help(FILE *out)
{
    fprintf(out, "Usage: scale4d COMMAND [OPTION...]\n\n"
                 "Simulates the training of large models with the 4D parallel schedule.\n\n");
    for (int i = 0; s4d_commands[i] != NULL; i++)
        fprintf(out, "  %-12s %s\n", s4d_commands[i]->name, s4d_commands[i]->summary);
    fprintf(out, "\nscale4d COMMAND --help (or scale4d help COMMAND) shows its options.\n");
}

/* Output lost at the very end (a full disk) is an error too; of a check that failed it is said. */
static int written(int rc)
{
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    if (lost && (rc == S4D_EXIT_OK || rc == S4D_EXIT_CHECK)) {
        struct s4d_error err;
        s4d_fail(&err, S4D_EXIT_OUTPUT, "standard output", "cannot be written");
        s4d_error_print(&err);
        return rc == S4D_EXIT_OK ? S4D_EXIT_OUTPUT : rc;
    }
    return rc;
}

static int run(const struct s4d_command *command, int argc, char **argv)
{
    char name[64];
    snprintf(name, sizeof name, "scale4d %s", command->name);
    argv[0] = name;
    return written(command->run(argc, argv));
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return S4D_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0) {
        printf("scale4d %s (%s)\n", s4d_version, s4d_commit);
        return written(S4D_EXIT_OK);
    }
    bool asked = strcmp(name, "help") == 0;
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "-?") == 0 ||
        (asked && argc == 2)) {
        help(stdout);
        return written(S4D_EXIT_OK);
    }
    const struct s4d_command *command = find(asked ? argv[2] : name);
    if (command == NULL)
        return unknown(asked ? argv[2] : name);
    if (asked && argc > 3) /* a subcommand's */
        return run(command, 3, (char *[]){argv[1], argv[3], "--help", NULL});
    if (asked)
        return run(command, 2, (char *[]){argv[1], "--help", NULL});
    return run(command, argc - 1, argv + 1);
}
