/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track export: records as they were added, byte for byte, for add to take back. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/track/track.h"
#include "support/file.h"
#include "support/replace.h"

struct config {
    char *store, *series, *output;
    int since, until;
};
static const struct s4d_option options[] = {
    {.name = "series",
     .argument = "SERIES",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, series),
     .help = "of this one alone: its number, or a part of its label"},
    {.name = "since",
     .argument = "NIGHT",
     .type = S4D_OPT_PARSE,
     .parse = s4d_track_parse_night,
     .offset = offsetof(struct config, since),
     .help = "from this night on, YYYY-MM-DD"},
    {.name = "until",
     .argument = "NIGHT",
     .type = S4D_OPT_PARSE,
     .parse = s4d_track_parse_night,
     .offset = offsetof(struct config, until),
     .help = "up to this night"},
    {.name = "output",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, output),
     .help = "write there instead of standard output"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

struct writing {
    FILE *out;
    int64_t lost;
};

/* A damaged record does not keep the others from being saved. */
static int write_record(void *to, const struct s4d_stored *r)
{
    struct writing *w = to;
    if (!r->line) {
        s4d_warn("record %s of %s is damaged: left out", r->hash, s4d_date(r->day).text);
        w->lost++;
        return 0;
    }
    return fputs(r->line, w->out) == EOF || fputc('\n', w->out) == EOF ? 1 : 0;
}

/* What a damaged store still gives is worth a file: 0 with *damage filled, too. */
static int write_all(struct s4d_store *store, const struct config *c, int64_t series,
                     struct writing *w, struct s4d_error *damage, struct s4d_error *err)
{
    int rc = s4d_store_records(store, series, c->since, c->until, write_record, w, damage);
    if (rc == 1 || fflush(w->out) != 0)
        return s4d_fail(err, S4D_EXIT_OUTPUT, c->output ? c->output : "standard output",
                        "cannot be written: %s", strerror(errno));
    return 0;
}

static int find_series(struct s4d_store *store, const char *text, int64_t *id,
                       struct s4d_error *err)
{
    struct s4d_series_list all = {0};
    int at = 0, rc = s4d_store_series(store, &all, err);
    if (rc == 0 && (rc = s4d_track_series(&all, text, &at, err)) == 0)
        *id = all.v[at].id;
    s4d_series_list_free(&all);
    return rc;
}

static int write_out(struct s4d_store *store, const struct config *c, struct s4d_error *err)
{
    struct writing w = {.out = stdout};
    struct s4d_error damage = {0};
    struct s4d_replacement to = {0};
    int64_t series = 0;
    if (c->series && find_series(store, c->series, &series, err))
        return -1;
    if (c->output && s4d_replace_open(&to, c->output, err))
        return -1;
    w.out = c->output ? to.out : stdout;
    int rc = write_all(store, c, series, &w, &damage, err);
    rc = s4d_replace_close(&to, rc, err);
    if (rc == 0 && damage.exit != S4D_EXIT_OK) {
        *err = damage;
        return -1;
    }
    if (rc == 0 && w.lost)
        rc = s4d_fail(err, S4D_EXIT_DATA, s4d_store_file(store),
                      "the store is damaged: %" PRId64 " records could not be read", w.lost);
    return rc;
}

static int export(const struct config *c, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    if (c->output && s4d_file_writable(c->output, err))
        return -1;
    int rc = s4d_store_open(&store, c->store, S4D_STORE_READ, err);
    if (rc == 0 && c->output && s4d_file_same(c->output, s4d_store_file(store)))
        rc = s4d_fail(err, S4D_EXIT_USAGE, "--output", "%s is the store itself", c->output);
    if (rc == 0)
        rc = write_out(store, c, err);
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {.since = INT_MIN, .until = INT_MAX};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Prints records as they were added, one JSON object a line, for "
                              "scale4d track add to take back.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0)
        rc = export(&c, &err);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_export = {
    .name = "export",
    .summary = "records as they were added, for add to take back",
    .run = run,
};
