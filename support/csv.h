/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of comma-separated values with a fixed header. */
#ifndef S4D_SUPPORT_CSV_H
#define S4D_SUPPORT_CSV_H

#include "support/error.h"

/* One line cut into its fields; where is "file:line". 0, or -1 with *err. */
typedef int (*s4d_csv_row)(void *context, char *const field[], const char *where,
                           struct s4d_error *err);

/* Calls row for every line of a file whose first line is the header, as many fields as it names.
 * Empty lines and those that start with '#' are skipped; a field in double quotes may hold commas
 * and "". 0, or -1 (exit 65) with file:line: no such file, an empty one, another header, another
 * number of fields, a quote that is not closed; or what row returned. */
int s4d_csv_read(const char *file, const char *header, s4d_csv_row row, void *context,
                 struct s4d_error *err);

#endif
