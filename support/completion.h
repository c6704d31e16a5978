/* SPDX-License-Identifier: Apache-2.0 */
/* Bash completion of a program with commands, from its tables of options. */
#ifndef S4D_SUPPORT_COMPLETION_H
#define S4D_SUPPORT_COMPLETION_H

#include <stdio.h>

#include "support/option.h"

struct s4d_completion {
    const char *command;
    const struct s4d_option_group *options; /* NULL: none */
    const char *names; /* the command of scale4d whose first column its NAMEs are; NULL: files */
};

/* Writes a bash script that completes `program`: commands, the options of each, values of choices,
 * names of machines and workloads (asked of scale4d when they are needed), and files. commands:
 * ends with a row without one. */
void s4d_completion_bash(const char *program, const struct s4d_completion *commands, FILE *out);

#endif
