/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track show: the nights of a series, or a record. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/track.h"
#include "support/memory.h"
#include "support/nearest.h"
#include "support/quote.h"
#include "support/record.h"

struct config {
    char *store, *metric, *record;
    int nights;
    bool json;
};
static const struct s4d_option options[] = {
    {.name = "metric",
     .argument = "NAME",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, metric),
     .help = "of this metric (default the first that the series has: flops_per_s, ...)"},
    {.name = "nights",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct config, nights),
     .max = 100000,
     .help = "the last N; 0: all"},
    {.name = "record",
     .argument = "HASH",
     .type = S4D_OPT_TEXT,
     .offset = offsetof(struct config, record),
     .help = "print this record instead, as it was added; a beginning of its hash will do"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct config, json),
     .help = "print one JSON line with all metrics, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

static int show_record(struct s4d_store *store, const char *hash, struct s4d_error *err)
{
    int64_t id;
    char *line;
    if (s4d_store_find(store, hash, &id, err) || s4d_store_record(store, id, &line, err))
        return -1;
    puts(line);
    free(line);
    return 0;
}

static json_t *night_json(struct s4d_store *store, const struct s4d_night *night)
{
    json_t *samples = json_array();
    for (int i = 0; i < night->n; i++)
        json_array_append_new(samples, json_real(night->samples[i]));
    return json_pack("{ss sf so ss ss si sI}", "night", night->date.text, "median", night->median,
                     "samples", samples, "commit", night->commit, "record",
                     s4d_store_hash(store, night->record).text, "records", night->n_repeats,
                     "restart", (json_int_t)night->restart);
}

static int show_json(struct s4d_store *store, const struct s4d_series *series,
                     const struct s4d_history *h, struct s4d_error *err)
{
    json_t *metrics = json_array();
    for (int i = 0; i < h->n; i++) {
        json_t *nights = json_array();
        for (int k = 0; k < h->v[i].n; k++)
            json_array_append_new(nights, night_json(store, &h->v[i].v[k]));
        json_array_append_new(metrics, json_pack("{ss ss si so}", "metric", h->v[i].name, "unit",
                                                 h->v[i].metric->unit, "direction",
                                                 h->v[i].metric->direction, "nights", nights));
    }
    json_t *record = json_pack("{ss so so}", "kind", "track-series", "series",
                               s4d_track_series_json(series), "metrics", metrics);
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static void print_head(const struct s4d_series *s, const struct s4d_history *h, int at)
{
    printf("# series %" PRId64 ": ", s->id);
    s4d_print_line(s->label, stdout);
    printf("\n# options ");
    s4d_print_line(s->options, stdout);
    printf("\n# metric %s, in %s, %s; others:", h->v[at].name, h->v[at].metric->unit,
           h->v[at].metric->direction > 0   ? "more is better"
           : h->v[at].metric->direction < 0 ? "less is better"
                                            : "not judged");
    for (int i = 0; i < h->n; i++)
        if (i != at) {
            putchar(' ');
            s4d_print_line(h->v[i].name, stdout);
        }
    printf("\n# night       samples          median           least            most  commit        "
           "    record\n");
}

static void print_night(struct s4d_store *store, const struct s4d_night *night)
{
    double least = night->samples[0], most = least;
    for (int i = 1; i < night->n; i++) {
        least = night->samples[i] < least ? night->samples[i] : least;
        most = night->samples[i] > most ? night->samples[i] : most;
    }
    printf("%s  %8d  %14.8g  %14.8g  %14.8g  %-16.16s  %s", night->date.text, night->n,
           night->median, least, most, night->commit, s4d_store_hash(store, night->record).text);
    if (night->restart)
        printf("  <- annotation %" PRId64 ": the history starts again", night->restart);
    putchar('\n');
}

static int find_metric(const struct s4d_history *h, const char *name, int *at,
                       struct s4d_error *err)
{
    const char **names = s4d_calloc((size_t)h->n + 1, sizeof *names);
    *at = name ? -1 : 0;
    for (int i = 0; i < h->n; i++) {
        names[i] = h->v[i].name;
        if (name && strcmp(name, names[i]) == 0)
            *at = i;
    }
    if (*at < 0) {
        s4d_fail(err, S4D_EXIT_DATA, "--metric", "the series has no such metric");
        s4d_hint_nearest(err, name, names, h->n);
    }
    free(names);
    return *at < 0 ? -1 : 0;
}

static int show_series(struct s4d_store *store, const struct config *c,
                       const struct s4d_series *series, struct s4d_error *err)
{
    struct s4d_history h;
    int at = 0, rc = s4d_store_history(store, series->id, c->nights, S4D_LAST_NIGHT, &h, err);
    if (rc == 0 && c->json) {
        rc = show_json(store, series, &h, err);
    } else if (rc == 0 && h.n == 0) {
        printf("# series %" PRId64 ": no metric in any of its %" PRId64 " records\n", series->id,
               series->records);
    } else if (rc == 0 && (rc = find_metric(&h, c->metric, &at, err)) == 0) {
        print_head(series, &h, at);
        for (int i = 0; i < h.v[at].n; i++)
            print_night(store, &h.v[at].v[i]);
    }
    s4d_history_free(&h);
    return rc;
}

static int show(const struct config *c, const struct s4d_texts *given, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct s4d_series_list all = {0};
    int at, rc;
    if (given->n != (c->record ? 0 : 1))
        return s4d_fail(err, S4D_EXIT_USAGE, "",
                        "expected one series, its number or a part of its label, or --record HASH");
    rc = s4d_store_open(&store, c->store, S4D_STORE_READ, err);
    if (rc == 0 && c->record)
        rc = show_record(store, c->record, err);
    else if (rc == 0 && (rc = s4d_store_series(store, &all, err)) == 0 &&
             (rc = s4d_track_series(&all, given->v[0], &at, err)) == 0)
        rc = show_series(store, c, &all.v[at], err);
    s4d_series_list_free(&all);
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {0};
    struct s4d_texts given = {.usage = "[SERIES]"};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Shows the nights of a series (SERIES: its number, or a part of its "
                              "label, of scale4d track list), or a record.",
                              argc, argv, &c, &given, &err);
    if (rc == 0)
        rc = show(&c, &given, &err);
    s4d_texts_free(&given);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_show = {
    .name = "show",
    .summary = "the nights of a series, or a record",
    .run = run,
};
