/* SPDX-License-Identifier: Apache-2.0 */
#include "real/suite_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/lines.h"
#include "support/memory.h"
#include "support/replace.h"

/* Bytes of a record: assumed, of 100,000 iterations with all their samples. */
enum { MOST_LINE = 64 << 20 };

static int cannot(const char *file, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
}

static int read_line(struct s4d_suite_log *log, const struct s4d_lines *lines,
                     struct s4d_error *err)
{
    json_error_t why;
    json_t *record = json_loadb(lines->line, lines->n, 0, &why);
    if (json_is_object(record)) {
        json_array_append_new(log->records, record);
        return 0;
    }
    s4d_fail(err, S4D_EXIT_DATA, lines->where, "expected a record, one JSON object a line: %s",
             record ? "found another value" : why.text);
    json_decref(record);
    return s4d_hint(err, "remove the line, or write another file with --output");
}

/* The last line, without its end: half of a record that a run was writing when it was killed goes,
 * and a whole one gets its end. What was never a record is somebody's: -1, nothing is cut. */
static int end_line(struct s4d_suite_log *log, const struct s4d_lines *lines, struct s4d_error *err)
{
    off_t end = lseek(log->fd, 0, SEEK_END);
    json_t *record = json_loadb(lines->line, lines->n, 0, NULL);
    bool whole = json_is_object(record);
    json_decref(record);
    if (!whole && lines->line[0] != '{')
        return read_line(log, lines, err);
    if (whole)
        return write(log->fd, "\n", 1) == 1 ? read_line(log, lines, err) : cannot(log->file, err);
    return ftruncate(log->fd, end - (off_t)lines->n) != 0 ? cannot(log->file, err) : 0;
}

static int read_records(struct s4d_suite_log *log, struct s4d_error *err)
{
    struct s4d_lines lines;
    int rc = s4d_lines_open(&lines, log->file, MOST_LINE, err), got;
    while (rc == 0 && (got = s4d_lines_next(&lines, err)) != 0) {
        if (!lines.broken && !lines.ended)
            rc = end_line(log, &lines, err);
        else if (got < 0)
            rc = -1;
        else if (!s4d_lines_blank(&lines))
            rc = read_line(log, &lines, err);
    }
    s4d_lines_close(&lines);
    return rc;
}

int s4d_suite_log_open(struct s4d_suite_log *log, const char *file, struct s4d_error *err)
{
    struct stat st;
    *log = (struct s4d_suite_log){.file = s4d_strdup(file),
                                  .running = s4d_asprintf("%s.running", file),
                                  .records = json_array()};
    pthread_mutexattr_t again; /* who has the last words takes it more than once */
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&log->lock, &again);
    pthread_mutexattr_destroy(&again);
    log->fd = open(file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->fd < 0)
        return cannot(file, err);
    if (fstat(log->fd, &st) == 0 && !S_ISREG(st.st_mode))
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "expected a file, found a device or pipe");
    if (flock(log->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        s4d_fail(err, S4D_EXIT_OUTPUT, file, "another scale4d-run nightly is writing it");
        return s4d_hint(err, "wait for it, or write another file with --output");
    }
    return read_records(log, err);
}

void s4d_suite_log_close(struct s4d_suite_log *log)
{
    if (!log->file)
        return;
    if (log->fd >= 0)
        close(log->fd);
    json_decref(log->records);
    pthread_mutex_destroy(&log->lock);
    free(log->file);
    free(log->running);
    *log = (struct s4d_suite_log){.fd = -1};
}

/* All of it, or nothing. */
static int write_lines(struct s4d_suite_log *log, const char *lines, size_t n,
                       struct s4d_error *err)
{
    off_t before = lseek(log->fd, 0, SEEK_END);
    size_t written = 0;
    while (written < n) {
        ssize_t some = write(log->fd, lines + written, n - written);
        if (some < 0 && errno == EINTR)
            continue;
        if (some <= 0)
            break;
        written += (size_t)some;
    }
    if (written == n && fsync(log->fd) == 0)
        return 0;
    int why = errno;
    if (before >= 0 && ftruncate(log->fd, before) != 0)
        why = errno;
    errno = why;
    return cannot(log->file, err);
}

int s4d_suite_log_add_all(struct s4d_suite_log *log, json_t *records, struct s4d_error *err)
{
    char *lines = s4d_strdup("");
    size_t i;
    json_t *record;
    json_array_foreach(records, i, record)
    {
        char *line = json_dumps(record, JSON_REAL_PRECISION(17));
        S4D_ASSERT(line, "a record that is no JSON");
        char *more = s4d_asprintf("%s%s\n", lines, line);
        free(line);
        free(lines);
        lines = more;
    }
    pthread_mutex_lock(&log->lock);
    int rc = *lines ? write_lines(log, lines, strlen(lines), err) : 0;
    if (!rc)
        json_array_extend(log->records, records);
    pthread_mutex_unlock(&log->lock);
    free(lines);
    return rc;
}

int s4d_suite_log_add(struct s4d_suite_log *log, json_t *record, struct s4d_error *err)
{
    json_t *one = json_pack("[O]", record);
    int rc = s4d_suite_log_add_all(log, one, err);
    json_decref(one);
    return rc;
}

bool s4d_suite_log_last(struct s4d_suite_log *log)
{
    if (atomic_exchange(&log->closed, true))
        return false;
    pthread_mutex_lock(&log->lock); /* and never unlocked */
    return true;
}

json_t *s4d_suite_log_state(const struct s4d_suite_log *log)
{
    json_t *state = json_load_file(log->running, 0, NULL);
    if (json_is_object(state))
        return state;
    json_decref(state);
    return NULL;
}

int s4d_suite_log_run(struct s4d_suite_log *log, json_t *state, struct s4d_error *err)
{
    struct s4d_replacement to;
    if (s4d_replace_open(&to, log->running, err))
        return -1;
    bool lost = json_dumpf(state, to.out, 0) || fputc('\n', to.out) == EOF;
    return s4d_replace_close(&to, lost ? cannot(log->running, err) : 0, err);
}

int s4d_suite_log_end(struct s4d_suite_log *log, struct s4d_error *err)
{
    return unlink(log->running) == 0 || errno == ENOENT ? 0 : cannot(log->running, err);
}

static bool is_text(const json_t *value, const char *text)
{
    return text ? json_is_string(value) && strcmp(json_string_value(value), text) == 0
                : json_is_null(value);
}

int s4d_suite_log_count(const struct s4d_suite_log *log, const char *suite, const char *night,
                        const char *kind, const char *experiment, int repeat,
                        enum s4d_suite_which which)
{
    int n = 0;
    size_t i;
    json_t *r;
    json_array_foreach(log->records, i, r)
    {
        const json_t *s = json_object_get(r, "suite");
        bool interrupted = json_is_true(json_object_get(r, "interrupted"));
        n += is_text(json_object_get(s, "name"), suite) &&
             is_text(json_object_get(s, "night"), night) &&
             (!kind || is_text(json_object_get(r, "kind"), kind)) &&
             is_text(json_object_get(s, "experiment"), experiment) &&
             (repeat == 0 || json_integer_value(json_object_get(s, "repeat")) == repeat) &&
             (which == S4D_SUITE_ANY || interrupted == (which == S4D_SUITE_INTERRUPTED));
    }
    return n;
}

const char *s4d_suite_log_night(const struct s4d_suite_log *log, const char *suite)
{
    for (size_t i = json_array_size(log->records); i-- > 0;) {
        const json_t *s = json_object_get(json_array_get(log->records, i), "suite");
        const char *night = json_string_value(json_object_get(s, "night"));
        if (night && is_text(json_object_get(s, "name"), suite))
            return night;
    }
    return NULL;
}
