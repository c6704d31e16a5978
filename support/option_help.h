/* SPDX-License-Identifier: Apache-2.0 */
/* The help of a command in argp's form. Not by argp, whose glibc printer indents an option by the
 * column of texts where its buffer happens to have been flushed shortly before. */
#ifndef S4D_SUPPORT_OPTION_HELP_H
#define S4D_SUPPORT_OPTION_HELP_H

#include <stdio.h>

#include "support/option.h"

/* Groups in order, their options sorted; each with its choices and what its field holds now, the
 * default. others: what the command takes beside options, or NULL. */
void s4d_option_help(FILE *out, const char *command, const char *others, const char *summary,
                     const struct s4d_option_group *groups, void *config);

#endif
