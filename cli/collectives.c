/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d collectives: the algorithms that are known. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "sim/collective.h"
#include "support/option.h"

static void print_ops(const struct s4d_algorithm *a, char *text, size_t size)
{
    text[0] = '\0';
    for (int op = 0; op < S4D_OP_KINDS; op++)
        if (a->supports(op)) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s%s", used ? ", " : "", s4d_op_kinds[op].name);
        }
}

static int run(int argc, char **argv)
{
    static const struct s4d_option_group none[] = {{0}};
    struct s4d_error err = {0};
    int unused;
    int rc =
        s4d_options_argv(none, s4d_command_collectives.summary, argc, argv, &unused, NULL, &err);
    if (rc < 0)
        return s4d_error_print(&err);
    for (int i = 0; rc == 0 && s4d_algorithms[i]; i++) {
        const struct s4d_algorithm *a = s4d_algorithms[i];
        char ops[256];
        print_ops(a, ops, sizeof ops);
        printf("%-6s %s\n       %s\n       source: %s\n", a->name, ops, a->summary, a->source);
    }
    return S4D_EXIT_OK;
}

const struct s4d_command s4d_command_collectives = {
    "collectives", "the collective algorithms: operations, summary, source", run};
