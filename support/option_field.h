/* SPDX-License-Identifier: Apache-2.0 */
/* One option and its field: set from text, shown as text. Used by the readers of option.h. */
#ifndef S4D_SUPPORT_OPTION_FIELD_H
#define S4D_SUPPORT_OPTION_FIELD_H

#include <stdbool.h>

#include "support/option.h"

/* Where the text comes from; a size without unit is allowed on the command line alone. */
enum s4d_option_source { S4D_FROM_ARGV, S4D_FROM_YAML };

/* Sets the field from text; a list gets one more element. 0, or -1: err->where empty, except where
 * an option's own parse function has filled it. */
int s4d_option_set(const struct s4d_option *option, void *field, const char *text,
                   enum s4d_option_source source, struct s4d_error *err);

/* The value as the user would write it into text of the given size; false: nothing to show. */
bool s4d_option_show(const struct s4d_option *option, const void *field, char *text, int size);

/* The key in YAML and records: '_' for '-'. Into text of the given size. */
const char *s4d_option_key(const struct s4d_option *option, char *text, int size);

void *s4d_option_field(const struct s4d_option_group *group, const struct s4d_option *option,
                       void *config);

/* Every option of every group, in order, with its field: *option[i], *field[i]; returns how many. A
 * name that occurs twice is a bug. Caller frees both arrays. */
int s4d_option_flatten(const struct s4d_option_group *groups, void *config,
                       const struct s4d_option ***option, void ***field);

#endif
