/* SPDX-License-Identifier: Apache-2.0 */
#include "support/csv.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"

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

static int lines(char *text, const char *file, const char *header, s4d_csv_row row, void *context,
                 struct s4d_error *err)
{
    int number = 0;
    for (char *next, *line = text; *line != '\0'; line = next) {
        char *end = line + strcspn(line, "\n");
        next = *end == '\0' ? end : end + 1;
        if (end > line && end[-1] == '\r')
            end--;
        *end = '\0';
        number++;
        char where[512];
        snprintf(where, sizeof where, "%s:%d", file, number);
        if (number == 1) {
            if (strcmp(line, header) != 0)
                return s4d_fail(err, S4D_EXIT_DATA, where, "expected the header %s", header);
            continue;
        }
        if (*line != '\0' && *line != '#' &&
            one(line, columns_of(header), row, context, where, err))
            return -1;
    }
    if (number == 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "the file is empty");
    return 0;
}

int s4d_csv_read(const char *file, const char *header, s4d_csv_row row, void *context,
                 struct s4d_error *err)
{
    char *text;
    size_t n;
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    int rc = lines(text, file, header, row, context, err);
    free(text);
    return rc;
}
