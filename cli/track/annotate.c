/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track annotate: what people know of a night: a change that is accepted, from which the
 * history starts again, or a note. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/track/track.h"
#include "support/quote.h"
#include "support/record.h"

struct config {
    char *store, *accepted, *note, *series, *text, *author;
    int remove;
    bool all, list, json;
};
static const struct s4d_option options[] = {
    {.name = "accepted-since",
     .argument = "COMMIT|NIGHT",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, accepted),
     .help = "the change is known and accepted: the history starts again there"},
    {.name = "note",
     .argument = "COMMIT|NIGHT",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, note),
     .help = "only a note, shown at that night"},
    {.name = "series",
     .argument = "SERIES",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, series),
     .help = "of this one: its number, or a part of its label"},
    {.name = "all",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, all),
     .help = "of all series"},
    {.name = "text",
     .argument = "TEXT",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, text),
     .help = "why"},
    {.name = "author",
     .argument = "NAME",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, author),
     .help = "who says so (default the user's name)"},
    {.name = "list",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, list),
     .help = "show all annotations"},
    {.name = "remove",
     .argument = "NUMBER",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct config, remove),
     .max = 2147483647,
     .help = "take this one away"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "with --list: one JSON line, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

static int check(const struct config *c, struct s4d_error *err)
{
    int asked = (c->accepted != NULL) + (c->note != NULL) + c->list + (c->remove > 0);
    if (asked != 1) {
        s4d_fail(err, S4D_EXIT_USAGE, "",
                 "expected one of --accepted-since, --note, --list and --remove, got %d", asked);
        return s4d_hint(err, "scale4d track annotate --accepted-since 1a2b3c4 --series 3 --text "
                             "\"the new MPI is slower, and stays\"");
    }
    if (!c->accepted && !c->note)
        return 0;
    if ((c->series != NULL) + c->all != 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected one of --series and --all");
    if (!c->text || !*c->text)
        return s4d_fail(err, S4D_EXIT_USAGE, "--text",
                        "expected a reason, for who reads it in a year");
    return 0;
}

static const char *user(void)
{
    const struct passwd *of = getpwuid(getuid());
    return of ? of->pw_name : "unknown";
}

static int annotate(struct s4d_store *store, const struct config *c, struct s4d_error *err)
{
    const char *since = c->accepted ? c->accepted : c->note;
    char when[32];
    time_t now = time(NULL);
    struct tm utc;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    struct s4d_annotation a = {.day = -1,
                               .restarts = c->accepted != NULL,
                               .commit = "",
                               .text = c->text,
                               .author = c->author ? c->author : (char *)user(),
                               .time = when};
    if (s4d_date_parse(since, &a.day))
        a.commit = (char *)since;
    struct s4d_series_list all = {0};
    int at = 0, rc = c->all ? 0 : s4d_store_series(store, &all, err);
    if (rc == 0 && !c->all && (rc = s4d_track_series(&all, c->series, &at, err)) == 0)
        a.series = all.v[at].id;
    s4d_series_list_free(&all);
    if (rc || s4d_store_begin(store, err) || s4d_store_annotate(store, &a, err) ||
        s4d_store_commit(store, err))
        return -1;
    printf("# annotation %" PRId64 ", from the night of %s on\n", a.id, s4d_date(a.day).text);
    return 0;
}

static int take_away(struct s4d_store *store, int id, struct s4d_error *err)
{
    if (s4d_store_begin(store, err) || s4d_store_annotation_remove(store, id, err) ||
        s4d_store_commit(store, err))
        return -1;
    printf("# annotation %d removed\n", id);
    return 0;
}

static int print_json(const struct s4d_annotation_list *list, struct s4d_error *err)
{
    json_t *all = json_array();
    for (int i = 0; i < list->n; i++) {
        const struct s4d_annotation *a = &list->v[i];
        json_array_append_new(
            all, json_pack("{sI so ss sb ss ss ss ss}", "id", (json_int_t)a->id, "series",
                           a->series ? json_integer(a->series) : json_null(), "night",
                           s4d_date(a->day).text, "restarts", a->restarts, "commit", a->commit,
                           "text", a->text, "author", a->author, "time", a->time));
    }
    json_t *record = json_pack("{ss so}", "kind", "track-annotations", "annotations", all);
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static int list(struct s4d_store *store, bool json, struct s4d_error *err)
{
    struct s4d_annotation_list all;
    int rc = s4d_store_annotations(store, &all, err);
    if (rc)
        return rc;
    if (json)
        rc = print_json(&all, err);
    else
        printf("# id  night       series  what      text\n");
    for (int i = 0; !json && i < all.n; i++) {
        const struct s4d_annotation *a = &all.v[i];
        char series[24] = "all";
        if (a->series)
            snprintf(series, sizeof series, "%" PRId64, a->series);
        printf("%4" PRId64 "  %s  %6s  %s  ", a->id, s4d_date(a->day).text, series,
               a->restarts ? "accepted" : "note    ");
        s4d_print_line(a->text, stdout);
        printf("  (");
        s4d_print_line(a->author, stdout);
        printf(", %s%s", a->time, *a->commit ? ", since commit " : "");
        s4d_print_line(a->commit, stdout);
        printf(")\n");
    }
    s4d_annotation_list_free(&all);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {0};
    struct s4d_error err = {0};
    struct s4d_store *store = NULL;
    int rc = s4d_options_argv(groups,
                              "Says of a night that its change is accepted, so that the history of "
                              "a series starts again there, or notes something else about it.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0 && (rc = check(&c, &err)) == 0)
        rc = s4d_store_open(&store, c.store, S4D_STORE_READ, &err); /* makes none */
    if (rc == 0 && !c.list) {
        s4d_store_close(store);
        store = NULL;
        rc = s4d_store_open(&store, c.store, S4D_STORE_WRITE, &err);
    }
    if (rc == 0)
        rc = c.list     ? list(store, c.json, &err)
             : c.remove ? take_away(store, c.remove, &err)
                        : annotate(store, &c, &err);
    s4d_store_close(store);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_annotate = {
    .name = "annotate",
    .summary = "a change is accepted since a commit: the history starts again; or a note",
    .run = run,
};
