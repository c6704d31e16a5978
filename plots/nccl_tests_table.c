/* SPDX-License-Identifier: Apache-2.0 */
/* The table: lines of '#' say what was run and name the columns, lines that begin with a number are
 * rows, all others are of somebody else (NCCL's own log, the launcher) and skipped. */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/nccl_tests.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/units.h"

enum { COLUMNS = 32 };
static const char *const known[] = {"size",  "count",     "type",      "redop",   "root",
                                    "time",  "algbw",     "busbw",     "#wrong",  "error",
                                    "i_min", "i_max",     "i_p99",     "i_cv%",   "timestamp",
                                    "p99",   "variation", "algorithm", "protocol"};
enum { KNOWN = sizeof known / sizeof *known };

struct table {
    struct s4d_nccl_tests *t;
    const char *file;
    int line;
    char where[512];
    const char *column[COLUMNS]; /* of known */
    int columns, size, time, algbw, busbw, redop;
    bool ended; /* the footer was there */
    char **host;
    int hosts, hosts_cap;
    int devices, group; /* ranks that said where they are, the group of the first */
};

/* Cuts a line at blanks, in place. Returns how many words there are, at most COLUMNS + 2. */
static int cut(char *line, char *word[COLUMNS + 2])
{
    int n = 0;
    char *rest = NULL;
    for (char *w = strtok_r(line, " \t", &rest); w && n < COLUMNS + 2;
         w = strtok_r(NULL, " \t", &rest))
        word[n++] = w;
    return n;
}

static int find_column(const struct table *b, const char *name)
{
    for (int i = 0; i < b->columns; i++)
        if (strcmp(b->column[i], name) == 0)
            return i;
    return -1;
}

static int add_column(struct table *b, const char *word, struct s4d_error *err)
{
    if (strcmp(word, "cputime") == 0) {
        s4d_fail(err, S4D_EXIT_DATA, b->where,
                 "holds the processor's time, expected that of the "
                 "collective");
        return s4d_hint(err, "run nccl-tests without -C");
    }
    for (int i = 0; i < KNOWN; i++)
        if (strcmp(known[i], word) == 0) {
            if (b->columns == COLUMNS)
                return s4d_fail(err, S4D_EXIT_DATA, b->where, "more than %d columns", (int)COLUMNS);
            b->column[b->columns++] = known[i];
            return 0;
        }
    s4d_fail(err, S4D_EXIT_DATA, b->where, "unknown column %s", s4d_quote(word).text);
    return s4d_hint_nearest(err, word, known, KNOWN);
}

static int columns(struct table *b, char *line, struct s4d_error *err)
{
    char *word[COLUMNS + 2];
    int n = cut(line, word);
    b->columns = 0;
    for (int i = 0; i < n; i++)
        if (add_column(b, word[i], err))
            return -1;
    b->size = find_column(b, "size");
    b->time = find_column(b, "time");
    b->algbw = find_column(b, "algbw");
    b->busbw = find_column(b, "busbw");
    b->redop = find_column(b, "redop");
    if (b->size < 0 || b->time < 0)
        return s4d_fail(err, S4D_EXIT_DATA, b->where, "expected the columns size and time");
    return 0;
}

static bool names_columns(const char *line)
{
    const char *first = line + strspn(line, " \t");
    return strncmp(first, "size", 4) == 0 && isspace((unsigned char)first[4]) &&
           strstr(first, "time") != NULL;
}

/* "Rank  0 Group  0 Pid 123 on HOST device  0 [0x07] NAME"; older ones have no group. */
static int device(struct table *b, char *line, struct s4d_error *err)
{
    char *word[COLUMNS + 2];
    int n = cut(line, word), group = 0;
    const char *host = NULL;
    for (int i = 0; i + 1 < n; i++) {
        if (strcmp(word[i], "Group") == 0)
            group = atoi(word[i + 1]);
        if (strcmp(word[i], "on") == 0 && host == NULL)
            host = word[i + 1];
    }
    if (b->devices == 0)
        b->group = group;
    if (group != b->group)
        return s4d_fail(err, S4D_EXIT_DATA, b->where,
                        "several groups ran side by side, expected one of all ranks");
    b->devices++;
    for (int i = 0; host != NULL && i < b->hosts; i++)
        if (strcmp(b->host[i], host) == 0)
            return 0;
    if (host != NULL)
        s4d_push(b->host, b->hosts, b->hosts_cap, s4d_strdup(host));
    return 0;
}

/* "machine M (...), all_reduce, 1 group of 8 ranks on ..." and "all_reduce, 2 groups of 4 ranks
 * side by side": of scale4d and scale4d-run. */
static int ours(struct table *b, char *line, struct s4d_error *err)
{
    char *group = strstr(line, " group");
    int ranks = 0, groups = 0;
    if (group == NULL || sscanf(group, " group%*[s] of %d ranks", &ranks) != 1)
        if (group == NULL || sscanf(group, " group of %d ranks", &ranks) != 1)
            return 0;
    char *comma = group;
    while (comma > line && *comma != ',')
        comma--;
    if (comma == line || sscanf(comma, ", %d", &groups) != 1)
        return 0;
    *comma = '\0';
    if (groups != 1)
        return s4d_fail(err, S4D_EXIT_DATA, b->where,
                        "several groups ran side by side, expected one of all ranks");
    char *before = strrchr(line, ',');
    char *op = before ? before + 1 : line;
    op += strspn(op, " \t");
    s4d_nccl_tests_program(b->t, op);
    b->t->ranks = ranks;
    b->t->format = strncmp(line + strspn(line, " \t"), "machine", 7) == 0
                       ? "a table of scale4d collective"
                       : "a table of scale4d-run collective";
    return 0;
}

static int comment(struct table *b, char *line, struct s4d_error *err)
{
    static const char starting[] = "Collective test starting:";
    const char *first = line + strspn(line, " \t"), *program = strstr(line, starting);
    if (names_columns(line))
        return columns(b, line, err);
    if (strstr(line, "Avg bus bandwidth") || strstr(line, "Out of bounds values"))
        b->ended = true;
    else if (program != NULL)
        s4d_nccl_tests_program(b->t, program + strlen(starting) +
                                         strspn(program + strlen(starting), " \t"));
    else if (strncmp(first, "Rank ", 5) == 0)
        return device(b, line, err);
    else if (strstr(line, " ranks"))
        return ours(b, line, err);
    return 0;
}

static int number(const struct table *b, const char *text, const char *name, double *value,
                  struct s4d_error *err)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(*value) || *value < 0)
        return s4d_fail(err, S4D_EXIT_DATA, b->where, "%s: expected a number, got %s", name,
                        s4d_quote(text).text);
    return 0;
}

static int row(struct table *b, char *line, struct s4d_error *err)
{
    char *word[COLUMNS + 2];
    double bytes, time_us, algbw = 0, busbw = 0;
    if (b->columns == 0)
        return s4d_fail(err, S4D_EXIT_DATA, b->where,
                        "a row before the line that names the columns (# size count type ...)");
    int n = cut(line, word);
    /* Operations that reduce nothing left the column empty in older versions. */
    int shift = b->redop >= 0 && n == b->columns - 1 ? 1 : 0;
    if (n + shift < b->columns)
        return s4d_fail(err, S4D_EXIT_DATA, b->where,
                        "expected %d columns, got %d: is the file cut "
                        "off?",
                        b->columns, n);
    if (number(b, word[b->size], "size", &bytes, err) ||
        number(b, word[b->time - shift], "time", &time_us, err))
        return -1;
    if (b->algbw >= 0 && b->busbw >= 0 &&
        (number(b, word[b->algbw - shift], "algbw", &algbw, err) ||
         number(b, word[b->busbw - shift], "busbw", &busbw, err)))
        return -1;
    return s4d_nccl_tests_add(b->t, bytes, time_us, algbw, busbw, b->where, err);
}

static int one_line(struct table *b, char *line, struct s4d_error *err)
{
    char *first = line + strspn(line, " \t");
    if (*first == '#')
        return comment(b, first + 1, err);
    /* A row begins with a size, a number and a blank. */
    size_t digits = strspn(first, "0123456789");
    if (digits == 0 || (first[digits] != '\0' && !isspace((unsigned char)first[digits])))
        return 0;
    return row(b, first, err);
}

static int all_lines(struct table *b, char *text, struct s4d_error *err)
{
    for (char *next, *line = text; *line != '\0'; line = next) {
        char *end = line + strcspn(line, "\n");
        next = *end == '\0' ? end : end + 1;
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        snprintf(b->where, sizeof b->where, "%s:%d", b->file, ++b->line);
        if (one_line(b, line, err))
            return -1;
    }
    if (b->columns == 0) {
        s4d_fail(err, S4D_EXIT_DATA, b->file, "neither a table of nccl-tests nor JSON");
        return s4d_hint(err, "expected a line '# size count type redop root time algbw busbw'");
    }
    if (!b->ended) {
        s4d_fail(err, S4D_EXIT_DATA, b->file,
                 "is cut off after %d rows: its last lines ('# Avg bus bandwidth') are missing",
                 b->t->n);
        return s4d_hint(err, "let the test run to its end");
    }
    return 0;
}

int s4d_nccl_tests_table(struct s4d_nccl_tests *t, char *text, const char *file,
                         struct s4d_error *err)
{
    struct table b = {.t = t, .file = file};
    t->format = "a table of nccl-tests";
    int rc = all_lines(&b, text, err);
    if (rc == 0 && b.devices > 0) {
        t->ranks = b.devices;
        if (b.hosts > 0 && b.devices % b.hosts == 0)
            t->ranks_per_node = b.devices / b.hosts;
    }
    for (int i = 0; i < b.hosts; i++)
        free(b.host[i]);
    free(b.host);
    return rc;
}
