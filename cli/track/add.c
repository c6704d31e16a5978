/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track add: records into the store. Lines that are wrong are named and left out; the
 * others are added, because a night's other experiments are no worse for it. What is printed as
 * added is on the disk. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/track/track.h"
#include "support/file.h"
#include "support/lines.h"

enum {
    SHOWN = 20,    /* wrong lines of a file */
    BATCH = 20000, /* records of a transaction */
    DAY_s = 86400,
};

static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = s4d_track_store_option}, {.options = NULL}};

struct adding {
    struct s4d_store *store;
    const char *name;
    int64_t fresh, known, wrong;
    int64_t late, behind_s,
        ahead; /* records older than their series was; the most; of the future */
    char late_where[512], ahead_where[512];
};

/* Not refused: nights come late, and a clock that is wrong is no reason to lose one. */
static void look_at_clock(struct adding *a, const char *where)
{
    int64_t behind_s = s4d_store_behind_s(a->store);
    if (behind_s > 0 && a->late++ == 0)
        snprintf(a->late_where, sizeof a->late_where, "%s", where);
    if (behind_s > a->behind_s)
        a->behind_s = behind_s;
    if (s4d_store_time_s(a->store) > (int64_t)time(NULL) + DAY_s && a->ahead++ == 0)
        snprintf(a->ahead_where, sizeof a->ahead_where, "%s", where);
}

static void wrong(struct adding *a, const struct s4d_error *err)
{
    if (++a->wrong <= SHOWN)
        s4d_error_print(err);
}

static int add_line(struct adding *a, const struct s4d_lines *lines, struct s4d_error *err)
{
    bool is_new;
    if (s4d_store_add(a->store, lines->line, lines->n, lines->where, &is_new, err) == 0) {
        *(is_new ? &a->fresh : &a->known) += 1;
        if (is_new)
            look_at_clock(a, lines->where);
        return 0;
    }
    if (!s4d_store_refused(a->store))
        return -1;
    wrong(a, err);
    return 0;
}

static int add_lines(struct adding *a, struct s4d_lines *lines, struct s4d_error *err)
{
    int rc = 0, got;
    while (rc == 0 && (got = s4d_lines_next(lines, err)) != 0) {
        if (lines->broken)
            return -1;
        if (got < 0)
            wrong(a, err);
        else if (!s4d_lines_blank(lines))
            rc = add_line(a, lines, err);
        if (rc == 0 && lines->number % BATCH == 0 && (rc = s4d_store_commit(a->store, err)) == 0)
            rc = s4d_store_begin(a->store, err);
    }
    return rc;
}

static void report(const struct adding *a)
{
    if (a->wrong > SHOWN)
        fprintf(stderr, "scale4d: %s: %" PRId64 " more lines are wrong\n", a->name,
                a->wrong - SHOWN);
    if (a->late)
        s4d_warn("%s: %" PRId64 " added are older than their series' last night was, by up to %.1f "
                 "days: they come late, or a clock went backwards (%s)",
                 a->name, a->late, (double)a->behind_s / DAY_s, a->late_where);
    if (a->ahead)
        s4d_warn("%s: %" PRId64 " added are of the future: a clock is wrong, theirs or this one's "
                 "(%s); scale4d track prune --record removes one",
                 a->name, a->ahead, a->ahead_where);
    if (a->fresh + a->known + a->wrong == 0)
        s4d_warn("%s: there is no record in it: did what should have written it fail?", a->name);
    printf("%s: %" PRId64 " added, %" PRId64 " there already, %" PRId64 " wrong\n", a->name,
           a->fresh, a->known, a->wrong);
    fflush(stdout);
}

static int add_file(struct s4d_store *store, const char *file, bool *wrong, struct s4d_error *err)
{
    struct s4d_lines lines;
    int rc = s4d_lines_open(&lines, file, S4D_FILE_MAX, err);
    struct adding a = {.store = store, .name = lines.name};
    if (rc == 0)
        rc = s4d_store_begin(store, err);
    if (rc == 0)
        rc = add_lines(&a, &lines, err);
    if (rc == 0)
        rc = s4d_store_commit(store, err);
    if (rc == 0)
        report(&a);
    *wrong |= a.wrong > 0;
    s4d_lines_close(&lines);
    return rc;
}

static int add(const char *file, const struct s4d_texts *files, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    bool wrong = false;
    if (files->n == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "",
                        "expected files of records, or - for standard input");
    signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk, and no end */
    int rc = s4d_store_open(&store, file, S4D_STORE_WRITE, err);
    for (int i = 0; rc == 0 && i < files->n; i++)
        rc = add_file(store, files->v[i], &wrong, err);
    s4d_store_close(store);
    return rc ? rc : wrong;
}

static int run(int argc, char **argv)
{
    char *store = NULL;
    struct s4d_texts files = {.usage = "FILE..."};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Adds records, one JSON object a line, as scale4d and scale4d-run "
                              "print them with --json. Arguments: files, or - for standard input. "
                              "A record that is there already is not added again; a line that is "
                              "wrong is named and left out, the others are added, and the exit "
                              "status is 65.",
                              argc, argv, &store, &files, &err);
    bool help = rc == 1;
    if (rc == 0)
        rc = add(store, &files, &err);
    s4d_texts_free(&files);
    s4d_options_free(groups, &store);
    return rc < 0 ? s4d_error_print(&err) : rc == 1 && !help ? S4D_EXIT_DATA : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_add = {
    .name = "add",
    .summary = "add records of a night, JSON lines of either program",
    .run = run,
};
