/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d completion: the shell's completion, from the tables of options. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "support/completion.h"
#include "support/memory.h"

static void write_bash(void)
{
    struct s4d_completion *rows = NULL;
    int n = 0, cap = 0;
    for (int i = 0; s4d_commands[i]; i++)
        s4d_push(rows, n, cap,
                 (struct s4d_completion){s4d_commands[i]->name, s4d_commands[i]->options,
                                         s4d_commands[i]->names});
    s4d_push(rows, n, cap, (struct s4d_completion){.command = NULL});
    s4d_completion_bash("scale4d", rows, stdout);
    free(rows);
}

static int run(int argc, char **argv)
{
    static const struct s4d_option_group none[] = {{.options = NULL}};
    struct s4d_texts shell = {.usage = "bash"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(none,
                              "Prints the completion of the shell. In ~/.bashrc: "
                              "source <(scale4d completion bash)",
                              argc, argv, NULL, &shell, &err);
    if (rc == 0 && (shell.n != 1 || strcmp(shell.v[0], "bash") != 0))
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "", "expected a shell: bash");
    if (rc == 0)
        write_bash();
    s4d_texts_free(&shell);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_completion = {
    .name = "completion", .summary = "print the completion of bash", .run = run};
