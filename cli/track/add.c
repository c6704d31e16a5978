/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track add: records into the store. Lines that are wrong are named and left out; the
 * others are added, because a night's other experiments are no worse for it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/track.h"
#include "support/file.h"
#include "support/memory.h"

enum { SHOWN = 20 }; /* wrong lines of a call */

static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = s4d_track_store_option}, {.options = NULL}};

struct added {
    int64_t fresh, known, wrong;
};

static int add_line(struct s4d_store *store, const char *line, size_t n, const char *where,
                    struct added *added, struct s4d_error *err)
{
    bool is_new;
    if (s4d_store_add(store, line, n, where, &is_new, err) == 0) {
        *(is_new ? &added->fresh : &added->known) += 1;
        return 0;
    }
    if (err->exit != S4D_EXIT_DATA)
        return -1;
    if (++added->wrong <= SHOWN)
        s4d_error_print(err);
    return 0;
}

static int add_lines(struct s4d_store *store, const char *file, FILE *in, struct added *added,
                     struct s4d_error *err)
{
    char *line = NULL, where[512];
    size_t size = 0;
    int rc = 0;
    errno = 0;
    for (int number = 1; rc == 0; number++) {
        ssize_t n = s4d_file_line(&line, &size, S4D_FILE_MAX, in);
        if (n <= 0)
            break;
        snprintf(where, sizeof where, "%.490s:%d", file, number);
        if (strspn(line, " \t\r\n") < (size_t)n)
            rc = add_line(store, line, (size_t)n, where, added, err);
    }
    if (rc == 0 && errno == EFBIG)
        rc = s4d_fail(err, S4D_EXIT_DATA, file,
                      "expected lines of at most %d MiB, found a longer one", S4D_FILE_MAX >> 20);
    else if (rc == 0 && ferror(in))
        rc = s4d_fail(err, S4D_EXIT_DATA, file, "cannot be read: %s", strerror(errno));
    free(line);
    return rc;
}

static int add_file(struct s4d_store *store, const char *file, struct added *added,
                    struct s4d_error *err)
{
    bool standard = strcmp(file, "-") == 0;
    FILE *in = standard ? stdin : fopen(file, "r");
    if (!in)
        return s4d_fail(err, S4D_EXIT_DATA, file, "cannot be read: %s", strerror(errno));
    int rc = s4d_store_begin(store, err);
    if (rc == 0)
        rc = add_lines(store, standard ? "standard input" : file, in, added, err);
    if (rc == 0)
        rc = s4d_store_commit(store, err);
    if (!standard)
        fclose(in);
    return rc;
}

static int add(const char *file, const struct s4d_texts *files, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct added added = {0};
    if (files->n == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "",
                        "expected files of records, or - for standard "
                        "input");
    int rc = s4d_store_open(&store, file, S4D_STORE_WRITE, err);
    for (int i = 0; rc == 0 && i < files->n; i++)
        rc = add_file(store, files->v[i], &added, err);
    if (rc == 0)
        printf("# %lld added, %lld there already, %lld wrong  %s\n", (long long)added.fresh,
               (long long)added.known, (long long)added.wrong, s4d_store_file(store));
    s4d_store_close(store);
    return rc ? rc : added.wrong > 0;
}

static int run(int argc, char **argv)
{
    char *store = NULL;
    struct s4d_texts files = {0};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Adds records, one JSON object a line, as scale4d and scale4d-run "
                              "print them with --json. Arguments: files, or - for standard input. "
                              "A record that is there already is not added again.",
                              argc, argv, &store, &files, &err);
    bool help = rc == 1;
    if (rc == 0)
        rc = add(store, &files, &err);
    s4d_texts_free(&files);
    s4d_options_free(groups, &store);
    return rc < 0 ? s4d_error_print(&err) : rc == 1 && !help ? S4D_EXIT_DATA : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_add = {
    .name = "add", .summary = "add records of a night, JSON lines of either program", .run = run};
