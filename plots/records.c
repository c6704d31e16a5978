/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/records.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h> /* for: flock */
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "support/file.h"
#include "support/lines.h"
#include "support/memory.h"
#include "support/record.h"
#include "support/replace.h"

static int no_record(const json_t *other, const json_error_t *why, const char *where,
                     struct s4d_error *err)
{
    if (other)
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "expected a record, one JSON object a line, found no object");
    return s4d_fail(err, S4D_EXIT_DATA, where,
                    "expected a record, one JSON object a line: %.200s in column %d", why->text,
                    why->column);
}

/* Line by line: a file of many records is larger than S4D_FILE_MAX. whole: the last line counts
 * without its newline, too. */
static int read_lines(struct s4d_records *records, const char *file, bool whole,
                      struct s4d_error *err)
{
    struct s4d_lines lines;
    int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err), got;
    while (rc == 0 && (got = s4d_lines_next(&lines, err)) != 0) {
        if (!whole && !lines.ended && lines.line[0] == '{')
            break; /* being written when a run ended */
        if (got > 0 && s4d_lines_blank(&lines))
            continue;
        json_error_t why = {.text = ""};
        json_t *record =
            got > 0 ? json_loadb(lines.line, lines.n, JSON_REJECT_DUPLICATES, &why) : NULL;
        if (json_is_object(record)) {
            s4d_push(records->v, records->n, records->cap, record);
            continue;
        }
        rc = got < 0 ? -1 : no_record(record, &why, lines.where, err);
        json_decref(record);
    }
    s4d_lines_close(&lines);
    return rc;
}

int s4d_records_read(struct s4d_records *records, const char *file, struct s4d_error *err)
{
    struct stat there;
    if (stat(file, &there) != 0 && errno == ENOENT)
        return 0;
    if (stat(file, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
        return 0; /* reading would wait for whom we are to write to */
    return read_lines(records, file, false, err);
}

int s4d_records_load(struct s4d_records *records, const char *file, struct s4d_error *err)
{
    return read_lines(records, file, true, err);
}

static int fail(const char *file, const char *what, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, file, "%s: %s", what, strerror(errno));
}

int s4d_records_write(const struct s4d_records *records, const char *file, struct s4d_error *err)
{
    struct s4d_replacement to;
    int rc = 0;
    if (s4d_replace_open(&to, file, err))
        return -1;
    for (int i = 0; rc == 0 && i < records->n; i++)
        rc = s4d_record_write(records->v[i], to.out, err);
    return s4d_replace_close(&to, rc, err);
}

/* Where the last whole line ends: behind it is what a run was writing when it was killed. */
static off_t whole_lines(int file, off_t size)
{
    char part[4096];
    while (size > 0) {
        off_t from = size > (off_t)sizeof part ? size - (off_t)sizeof part : 0;
        ssize_t n = pread(file, part, (size_t)(size - from), from);
        if (n != size - from)
            return -1;
        while (n > 0 && part[n - 1] != '\n')
            n--;
        if (n > 0)
            return from + n;
        size = from;
    }
    return 0;
}

/* A run that holds the file for itself (sweep) has seen to its end, and never lets go. */
static bool lock(int file)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (int tries = 0; tries < 5; tries++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&moment, NULL);
    }
    return false;
}

/* Whether what stands behind the last whole line is half a record: what a killed run left. Anything
 * else is the user's, a record without its newline, too. */
static bool is_half(int file, off_t from, off_t to)
{
    size_t n = (size_t)(to - from);
    char first;
    if (n > S4D_FILE_MAX || pread(file, &first, 1, from) != 1 || first != '{')
        return false;
    char *text = s4d_malloc(n);
    json_t *record = pread(file, text, n, from) == (ssize_t)n ? json_loadb(text, n, 0, NULL) : NULL;
    free(text);
    json_decref(record);
    return record == NULL;
}

static int write_whole(int file, const char *text, size_t n)
{
    while (n > 0) { /* again: of a pipe, where a signal came */
        ssize_t part = write(file, text, n);
        if (part < 0 && errno != EINTR)
            return -1;
        text += part > 0 ? part : 0;
        n -= part > 0 ? (size_t)part : 0;
    }
    return 0;
}

/* "\n", and the line: a line of its own, whole or not there; where the file cannot be locked,
 * behind whatever is there. 0, or -1 with errno. */
static int append_line(int file, const char *text, size_t n)
{
    struct stat about;
    bool regular = lock(file) && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    off_t whole = regular ? whole_lines(file, about.st_size) : -1, end = whole;
    bool open_ended = whole >= 0 && whole < about.st_size;
    if (open_ended && !is_half(file, whole, about.st_size))
        end = about.st_size;
    if (end >= 0 && end < about.st_size && ftruncate(file, end) != 0)
        return -1;
    bool alone = !open_ended || end == whole;
    if (write_whole(file, text + alone, n - alone) == 0)
        return 0;
    int why = errno;
    if (end >= 0 && ftruncate(file, end) != 0)
        why = errno;
    errno = why;
    return -1;
}

int s4d_records_append(struct s4d_records *records, const char *file, json_t *record,
                       struct s4d_error *err)
{
    s4d_push(records->v, records->n, records->cap, record);
    char *line = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&line, &n);
    S4D_ASSERT(memory != NULL, "no memory for a record");
    fputc('\n', memory);
    int rc = s4d_record_write(record, memory, err);
    fclose(memory);
    int out = rc ? -1 : s4d_open_at_end(file);
    if (rc == 0 && (out < 0 || append_line(out, line, n) != 0))
        rc = fail(file, "cannot be written", err);
    if (out >= 0 && close(out) != 0 && rc == 0)
        rc = fail(file, "cannot be written", err);
    free(line);
    return rc;
}

void s4d_records_free(struct s4d_records *records)
{
    for (int i = 0; i < records->n; i++)
        json_decref(records->v[i]);
    free(records->v);
    *records = (struct s4d_records){0};
}
