/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track prune: old nights, or one record, out of the store. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/track/track.h"
#include "support/quote.h"
#include "support/units.h"

struct config {
    char *store, *series, *record;
    int before; /* a day; -1: not given */
    bool dry_run;
};

/* "400d": before as many days ago; or a night. */
static int parse_age(const char *text, void *field, struct s4d_error *err)
{
    size_t n = strlen(text);
    char days[16] = "";
    int64_t value;
    if (s4d_date_parse(text, field) == 0)
        return 0;
    if (n > 1 && n < sizeof days && text[n - 1] == 'd') {
        memcpy(days, text, n - 1);
        if (s4d_parse_int(days, 1, 100000, &value, NULL) == 0) {
            *(int *)field = (int)(time(NULL) / 86400 - value);
            return 0;
        }
    }
    s4d_fail(err, S4D_EXIT_USAGE, "", "expected days or a night, got %s", s4d_quote(text).text);
    return s4d_hint(err, "400d: all that is older than 400 days; or 2026-01-01");
}

static const struct s4d_option options[] = {
    {.name = "older-than",
     .argument = "DAYS|NIGHT",
     .type = S4D_OPT_PARSE,
     .parse = parse_age,
     .offset = offsetof(struct config, before),
     .help = "records of nights before it: 400d, or 2026-01-01"},
    {.name = "series",
     .argument = "SERIES",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, series),
     .help = "of this one alone: its number, or a part of its label"},
    {.name = "record",
     .argument = "HASH",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, record),
     .help = "this record alone"},
    {.name = "dry-run",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, dry_run),
     .help = "only say what would go"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

struct going {
    int64_t records;
    int nights, last;
};

static int count(void *to, const struct s4d_stored *r)
{
    struct going *g = to;
    g->records++;
    g->nights += g->records == 1 || r->day != g->last;
    g->last = r->day;
    return 0;
}

/* A line for every series that loses something. */
static int say(struct s4d_store *store, const struct s4d_series_list *all, const struct config *c,
               int64_t only, struct s4d_error *err)
{
    int64_t records = 0;
    for (int i = 0; i < all->n; i++) {
        const struct s4d_series *s = &all->v[i];
        struct going g = {0};
        if ((only && s->id != only) || s->first >= c->before)
            continue;
        if (s4d_store_records(store, s->id, INT_MIN, c->before - 1, count, &g, err))
            return -1;
        printf("%s %" PRId64 " of %" PRId64 " records, %d of %d nights of series %" PRId64 ": ",
               c->dry_run ? "would remove" : "removes", g.records, s->records, g.nights, s->nights,
               s->id);
        s4d_print_line(s->label, stdout);
        putchar('\n');
        records += g.records;
    }
    printf("# %" PRId64 " records of nights before %s%s\n", records, s4d_date(c->before).text,
           c->dry_run ? ": nothing removed" : "");
    return 0;
}

/* What is said is what goes: nobody else writes meanwhile. */
static int prune_nights(struct s4d_store *store, const struct config *c, struct s4d_error *err)
{
    struct s4d_series_list all = {0};
    int64_t only = 0, records = 0;
    int at, rc = c->dry_run ? 0 : s4d_store_begin(store, err);
    if (rc == 0)
        rc = s4d_store_series(store, &all, err);
    if (rc == 0 && c->series && (rc = s4d_track_series(&all, c->series, &at, err)) == 0)
        only = all.v[at].id;
    if (rc == 0)
        rc = say(store, &all, c, only, err);
    s4d_series_list_free(&all);
    if (rc == 0 && !c->dry_run &&
        (s4d_store_prune(store, only, c->before, &records, err) || s4d_store_commit(store, err)))
        return -1;
    return rc == 0 && !c->dry_run ? s4d_store_shrink(store, err) : rc;
}

static int prune_record(struct s4d_store *store, const struct config *c, struct s4d_error *err)
{
    int64_t id;
    if (s4d_store_find(store, c->record, &id, err))
        return -1;
    const char *hash = s4d_store_hash(store, id).text;
    printf("%s record %s\n", c->dry_run ? "would remove" : "removes", hash);
    return !c->dry_run && (s4d_store_begin(store, err) || s4d_store_remove(store, id, err) ||
                           s4d_store_commit(store, err))
               ? -1
               : 0;
}

static int check(const struct config *c, struct s4d_error *err)
{
    if ((c->record != NULL) + (c->before >= 0) != 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected one of --older-than and --record");
    if (c->record && c->series)
        return s4d_fail(err, S4D_EXIT_USAGE, "--series", "is of --older-than");
    return 0;
}

static int run(int argc, char **argv)
{
    struct config c = {.before = -1};
    struct s4d_error err = {0};
    struct s4d_store *store = NULL;
    int rc = s4d_options_argv(groups,
                              "Removes records of old nights, or one record. Annotations stay. "
                              "Says what goes; scale4d track export saves it before.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0 && (rc = check(&c, &err)) == 0)
        rc = s4d_store_open(&store, c.store, S4D_STORE_READ, &err); /* makes none */
    if (rc == 0 && !c.dry_run) {
        s4d_store_close(store);
        store = NULL;
        rc = s4d_store_open(&store, c.store, S4D_STORE_WRITE, &err);
    }
    if (rc == 0)
        rc = c.record ? prune_record(store, &c, &err) : prune_nights(store, &c, &err);
    s4d_store_close(store);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_prune = {
    .name = "prune",
    .summary = "old nights out of the store; annotations stay",
    .run = run,
};
