/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track list: the series of the store. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/track.h"
#include "support/quote.h"
#include "support/record.h"

struct config {
    char *store;
    bool json;
};
static const struct s4d_option options[] = {
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "print one JSON line, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

/* Of its last night, the metric that stands first in the table: FLOP/s where it has them. */
static int last_value(struct s4d_store *store, const struct s4d_series *series, char text[32],
                      struct s4d_error *err)
{
    struct s4d_history h;
    snprintf(text, 32, "-");
    if (s4d_store_history(store, series->id, 1, S4D_LAST_NIGHT, &h, err))
        return -1;
    const struct s4d_points *whole = NULL; /* the first that is not of a part, as in the report */
    for (int i = 0; !whole && i < h.n; i++)
        if (!strchr(h.v[i].name, '.') && h.v[i].metric->direction != 0)
            whole = &h.v[i];
    if (!whole && h.n > 0)
        whole = &h.v[0];
    if (whole)
        s4d_metric_format(whole->metric, whole->v[whole->n - 1].median, text, 32);
    s4d_history_free(&h);
    return 0;
}

static int print(struct s4d_store *store, const struct s4d_series_list *all, struct s4d_error *err)
{
    printf("#  id  nights  records  last night       its value  series\n");
    for (int i = 0; i < all->n; i++) {
        const struct s4d_series *s = &all->v[i];
        char value[32];
        if (last_value(store, s, value, err))
            return -1;
        printf("%5" PRId64 "  %6d  %7" PRId64 "  %s  %14s  ", s->id, s->nights, s->records,
               s4d_date(s->last).text, value);
        s4d_print_line(s->label, stdout);
        putchar('\n');
    }
    printf("# %d series  ", all->n);
    s4d_print_line(s4d_store_file(store), stdout);
    putchar('\n');
    return 0;
}

static int print_json(const struct s4d_series_list *all, struct s4d_error *err)
{
    json_t *record = json_pack("{ss so}", "kind", "track-list", "series", json_array()),
           *series = json_object_get(record, "series");
    for (int i = 0; i < all->n; i++)
        json_array_append_new(series, s4d_track_series_json(&all->v[i]));
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static int list(const struct config *c, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct s4d_series_list all = {0};
    int rc = s4d_store_open(&store, c->store, S4D_STORE_READ, err);
    if (rc == 0)
        rc = s4d_store_series(store, &all, err);
    if (rc == 0)
        rc = c->json ? print_json(&all, err) : print(store, &all, err);
    s4d_series_list_free(&all);
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {0};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Lists the series of the store: their numbers, how many nights they "
                              "have, the last one and the median of its samples.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0)
        rc = list(&c, &err);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_list = {
    .name = "list",
    .summary = "the series of the store, a line each",
    .run = run,
};
