/* SPDX-License-Identifier: Apache-2.0 */
#include "support/csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/lines.h"

enum { FIELDS = 32 };

/* Cuts a line at its commas, in place. Returns how many fields there are (at most FIELDS are kept),
 * or -1: a quote that is not closed. */
static int cut(char *line, char *field[FIELDS])
{
    int n = 0;
    for (char *in = line;; in++) {
        char *out = in, *start = in;
        bool quoted = *in == '"';
        if (quoted)
            in++;
        for (; *in != '\0' && (quoted || *in != ','); in++) {
            if (quoted && *in == '"') {
                quoted = in[1] == '"';
                if (!quoted)
                    continue;
                in++;
            }
            *out++ = *in;
        }
        if (quoted)
            return -1;
        bool last = *in == '\0';
        *out = '\0';
        if (n < FIELDS)
            field[n] = start;
        n++;
        if (last)
            return n;
    }
}

static int columns_of(const char *header)
{
    int n = 1;
    for (; *header != '\0'; header++)
        n += *header == ',';
    S4D_ASSERT(n <= FIELDS, "%d columns", n);
    return n;
}

static int one(char *line, int columns, s4d_csv_row row, void *context, const char *where,
               struct s4d_error *err)
{
    char *field[FIELDS];
    int n = cut(line, field);
    if (n < 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "a quote is not closed");
    if (n != columns)
        return s4d_fail(err, S4D_EXIT_DATA, where, "expected %d columns, got %d", columns, n);
    return row(context, field, where, err);
}

static int read_lines(struct s4d_lines *lines, const char *header, s4d_csv_row row, void *context,
                      struct s4d_error *err)
{
    int got, columns = columns_of(header);
    while ((got = s4d_lines_next(lines, err)) > 0) {
        if (lines->number == 1 && strcmp(lines->line, header) != 0)
            return s4d_fail(err, S4D_EXIT_DATA, lines->where, "expected the header %s", header);
        if (lines->number > 1 && lines->line[0] && lines->line[0] != '#' &&
            one(lines->line, columns, row, context, lines->where, err))
            return -1;
    }
    if (got == 0 && lines->number == 0)
        return s4d_fail(err, S4D_EXIT_DATA, lines->name, "the file is empty");
    return got;
}

int s4d_csv_read(const char *file, const char *header, s4d_csv_row row, void *context,
                 struct s4d_error *err)
{
    struct s4d_lines lines;
    int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err);
    if (rc == 0)
        rc = read_lines(&lines, header, row, context, err);
    s4d_lines_close(&lines);
    return rc;
}
