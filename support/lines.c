/* SPDX-License-Identifier: Apache-2.0 */
#include "support/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/memory.h"

void s4d_lines_of(struct s4d_lines *lines, FILE *in, const char *name, size_t most)
{
    *lines = (struct s4d_lines){.name = name, .in = in, .most = most, .cap = 256};
    lines->line = s4d_calloc(lines->cap, 1);
    snprintf(lines->where, sizeof lines->where, "%.480s", name);
}

int s4d_lines_open(struct s4d_lines *lines, const char *file, size_t most, struct s4d_error *err)
{
    struct stat st;
    bool standard = strcmp(file, "-") == 0;
    s4d_lines_of(lines, standard ? stdin : fopen(file, "re"), standard ? "standard input" : file,
                 most);
    lines->own = !standard && lines->in;
    if (!lines->in)
        return s4d_fail(err, S4D_EXIT_DATA, lines->name, "cannot be read: %s", strerror(errno));
    if (fstat(fileno(lines->in), &st) == 0 && S_ISDIR(st.st_mode))
        return s4d_fail(err, S4D_EXIT_DATA, lines->name, "expected a file, found a folder");
    return 0;
}

/* Appends up to and with '\n', or to the end of the file. false: the line is too long. */
static bool take(struct s4d_lines *lines)
{
    for (int c = 0; c != '\n' && (c = getc_unlocked(lines->in)) != EOF;) {
        if (lines->n == lines->most && c != '\n')
            return false;
        if (lines->n + 2 > lines->cap) {
            lines->cap *= 2;
            lines->line = s4d_realloc(lines->line, lines->cap);
        }
        lines->line[lines->n++] = (char)c;
    }
    return true;
}

static int broken(struct s4d_lines *lines)
{
    lines->broken = true;
    lines->line[lines->n = 0] = '\0';
    return -1;
}

int s4d_lines_next(struct s4d_lines *lines, struct s4d_error *err)
{
    lines->n = 0;
    lines->number++;
    lines->ended = false;
    snprintf(lines->where, sizeof lines->where, "%.480s:%ld", lines->name, lines->number);
    if (!take(lines)) {
        s4d_fail(err, S4D_EXIT_DATA, lines->where,
                 "expected lines of at most %zu KiB, found a longer one", lines->most >> 10);
        return broken(lines);
    }
    if (ferror(lines->in)) {
        s4d_fail(err, S4D_EXIT_DATA, lines->where, "cannot be read: %s", strerror(errno));
        return broken(lines);
    }
    if (lines->n == 0) {
        lines->line[0] = '\0';
        lines->number--;
        return 0;
    }
    lines->ended = lines->line[lines->n - 1] == '\n';
    lines->n -= lines->ended;
    lines->n -= lines->ended && lines->n > 0 && lines->line[lines->n - 1] == '\r';
    lines->line[lines->n] = '\0';
    if (memchr(lines->line, '\0', lines->n))
        return s4d_fail(err, S4D_EXIT_DATA, lines->where, "the line holds a zero byte");
    return 1;
}

bool s4d_lines_blank(const struct s4d_lines *lines)
{
    return strspn(lines->line, " \t\r") == lines->n;
}

void s4d_lines_close(struct s4d_lines *lines)
{
    if (lines->own)
        fclose(lines->in);
    free(lines->line);
    *lines = (struct s4d_lines){.name = lines->name};
}
