/* SPDX-License-Identifier: Apache-2.0 */
/* What several subcommands of track need. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/track/track.h"
#include "support/quote.h"
#include "support/units.h"

const struct s4d_option s4d_track_store_option[] = {
    {.name = "store",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = 0,
     .help = "where the records are kept (default SCALE4D_STORE, else "
             "$XDG_DATA_HOME/scale4d/track.sqlite, else below ~/.local/share)"},
    {.name = NULL},
};

int s4d_track_series(const struct s4d_series_list *list, const char *text, int *at,
                     struct s4d_error *err)
{
    int64_t id = 0;
    int found = 0;
    bool number = s4d_parse_int(text, 1, INT64_MAX, &id, NULL) == 0;
    for (int i = 0; i < list->n; i++)
        if (number ? list->v[i].id == id : *text && strstr(list->v[i].label, text) != NULL) {
            *at = i;
            found++;
        }
    if (found == 1)
        return 0;
    s4d_fail(err, S4D_EXIT_DATA, "", "expected a series, %s is %s", s4d_quote(text).text,
             found ? "a part of several labels"
                   : (number ? "the number of none" : "a part of no label"));
    return s4d_hint(err, "scale4d track list shows numbers and labels");
}

int s4d_track_parse_night(const char *text, void *field, struct s4d_error *err)
{
    int *day = field;
    if (strcmp(text, "today") == 0) {
        const char *epoch = getenv("SOURCE_DATE_EPOCH");
        long long now_s = epoch ? strtoll(epoch, NULL, 10) : (long long)time(NULL);
        *day = (int)(now_s / 86400);
        return 0;
    }
    if (s4d_date_parse(text, day) == 0)
        return 0;
    return s4d_fail(err, S4D_EXIT_USAGE, "", "expected a night as 2026-11-30, or today, got %s",
                    s4d_quote(text).text);
}

void s4d_track_format_night(const void *field, char *text, int size)
{
    int day = *(const int *)field;
    snprintf(text, (size_t)size, "%s",
             day == S4D_LAST_NIGHT ? "the last of the store" : s4d_date(day).text);
}

void s4d_track_warn_future(int asked, int judged)
{
    if (asked == S4D_LAST_NIGHT && (int64_t)judged * 86400 > (int64_t)time(NULL) + 86400)
        s4d_warn("the store's last night, %s, is of the future, and is the one that is judged: a "
                 "clock was wrong; --night says which, track prune --record removes that record",
                 s4d_date(judged).text);
}

json_t *s4d_track_series_json(const struct s4d_series *s)
{
    json_t *series =
        json_pack("{sI ss ss ss ss ss sI ss ss so si sI ss ss}", "id", (json_int_t)s->id, "label",
                  s->label, "host_class", s->host_class, "backend", s->backend, "kind", s->kind,
                  "workload", s->workload, "gpus", (json_int_t)s->gpus, "grid", s->grid,
                  "model_version", s->model_version, "options", json_loads(s->options, 0, NULL),
                  "nights", s->nights, "records", (json_int_t)s->records, "first",
                  s4d_date(s->first).text, "last", s4d_date(s->last).text);
    S4D_ASSERT(series != NULL, "a series that is no JSON");
    return series;
}
