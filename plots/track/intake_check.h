/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a record says what can be. A row for every kind of record that is followed. */
#ifndef S4D_PLOTS_TRACK_INTAKE_CHECK_H
#define S4D_PLOTS_TRACK_INTAKE_CHECK_H

#include <jansson.h>

#include "support/error.h"

/* Reads a line, and says of what is no JSON where and why. NULL with *err (exit 65). */
json_t *s4d_intake_parse(const char *line, size_t n, const char *where, struct s4d_error *err);
/* 0; -1 (exit 65): an unknown kind, a key that is missing, of another type or unit, negative, too
 * large, or numbers that contradict each other. */
int s4d_intake_check(const json_t *record, const char *where, struct s4d_error *err);

#endif
