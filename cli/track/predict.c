/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d track predict: a night's iterations, simulated at the rates that were measured that
 * night. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/track.h"
#include "cli/track/window.h"
#include "support/memory.h"
#include "support/processors.h"
#include "support/quote.h"
#include "support/record.h"

struct config {
    char *store;
    struct own {
        int night;
        bool json;
    } own;
    struct s4d_replay_options replay;
};

static const struct s4d_option options[] = {
    S4D_TRACK_NIGHT_OPTION(offsetof(struct own, night), "which night: YYYY-MM-DD, or today (UTC)"),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct own, json),
     .help = "print one JSON line a series, and nothing else"},
    {.name = NULL},
};
static const struct s4d_option replay_options[] = {S4D_REPLAY_OPTIONS(0), {.name = NULL}};
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = options, .offset = offsetof(struct config, own)},
    {.title = "Simulation", .options = replay_options, .offset = offsetof(struct config, replay)},
    {.title = "Store", .options = s4d_track_store_option},
    {.options = NULL}};

struct prediction {
    double measured_s, simulated_s; /* NAN: not simulated, says why */
    bool made;
    char machine[64];
    struct s4d_error why;
};

static int last_line(void *to, const struct s4d_stored *stored)
{
    char **line = to;
    free(*line);
    *line = s4d_strdup(stored->line);
    return 0;
}

static int simulate(struct prediction *p, const json_t *record, const struct s4d_night_rates *rates,
                    const struct s4d_replay_options *o)
{
    struct s4d_replay replay;
    if (rates->records == 0)
        return s4d_fail(&p->why, S4D_EXIT_DATA, "", "no rates were measured");
    if (s4d_replay_open(&replay, record, rates, o, &p->why))
        return -1;
    struct s4d_night_state state = s4d_replay_state(&replay, rates);
    int rc = s4d_replay_times(&replay, &state, 1, &p->simulated_s, &p->why);
    snprintf(p->machine, sizeof p->machine, "%s",
             replay.made ? "made of the rates" : replay.machine.name);
    s4d_replay_free(&replay);
    return rc;
}

/* 1: there is one; 0: the series has no iteration of that night; -1 with *err. */
static int predict(struct prediction *p, struct s4d_store *store,
                   const struct s4d_series_list *list, const struct s4d_series *s, int night,
                   const struct s4d_replay_options *o, struct s4d_error *err)
{
    struct s4d_window own = {.of_rates = false}, of_rates = {.of_rates = true};
    char *line = NULL;
    int rc = 0;
    *p = (struct prediction){.simulated_s = NAN};
    if (s4d_window_read(&own, store, list, s, night, night, 1, err) ||
        s4d_window_read(&of_rates, store, list, s, night, night, 1, err) ||
        s4d_store_records(store, s->id, night, night, last_line, &line, err))
        rc = -1;
    if (rc == 0 && own.n > 0) {
        struct s4d_night_rates rates = s4d_window_rates(&of_rates);
        json_t *record = json_loads(line, 0, NULL);
        p->measured_s = s4d_window_exposed(&own).iteration_s;
        if (simulate(p, record, &rates, o))
            p->simulated_s = NAN;
        json_decref(record);
        rc = 1;
    }
    free(line);
    s4d_window_free(&own);
    s4d_window_free(&of_rates);
    return rc;
}

static json_t *record_of(const struct prediction *p, const struct s4d_series *s, int night)
{
    json_t *record =
        json_pack("{s:s, s:s, s:o, s:f}", "kind", "prediction", "night", s4d_date(night).text,
                  "series", s4d_track_series_json(s), "measured_s", p->measured_s);
    if (isnan(p->simulated_s)) {
        json_object_set_new(record, "simulated_s", json_null());
        json_object_set_new(record, "where", json_string(p->why.where));
        json_object_set_new(record, "message", json_string(p->why.text));
    } else {
        json_object_set_new(record, "simulated_s", json_real(p->simulated_s));
        json_object_set_new(record, "error", json_real(p->simulated_s / p->measured_s - 1));
        json_object_set_new(record, "machine", json_string(p->machine));
    }
    return record;
}

static int print(const struct prediction *p, const struct s4d_series *s, int night, bool json,
                 struct s4d_error *err)
{
    if (json) {
        json_t *record = record_of(p, s, night);
        int rc = s4d_record_write(record, stdout, err);
        json_decref(record);
        return rc;
    }
    bool simulated = !isnan(p->simulated_s);
    if (simulated)
        printf("%11.6g %11.6g %+8.1f  ", p->measured_s, p->simulated_s,
               100 * (p->simulated_s / p->measured_s - 1));
    else
        printf("%11.6g %11s %8s  ", p->measured_s, "-", "-");
    s4d_print_line(s->label, stdout);
    if (simulated)
        printf(" (machine %s)\n", p->machine);
    else
        printf(" (%s%s%s)\n", p->why.where, p->why.where[0] ? ": " : "", p->why.text);
    return 0;
}

static int predict_all(const struct config *c, struct s4d_store *store,
                       const struct s4d_series_list *list, struct s4d_error *err)
{
    int night = c->own.night, n = 0, rc = 0;
    if (list->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, s4d_store_file(store), "has no records");
    if (night == S4D_LAST_NIGHT) {
        night = INT_MIN;
        for (int i = 0; i < list->n; i++)
            night = list->v[i].last > night ? list->v[i].last : night;
    }
    if (!c->own.json)
        printf("# night of %s: iterations, and as simulated at the rates that were measured then\n"
               "#  measured   simulated    error  series\n"
               "#       (s)         (s)      (%%)\n",
               s4d_date(night).text);
    for (int i = 0; i < list->n && rc >= 0; i++) {
        struct prediction p;
        if (strcmp(list->v[i].kind, "train") != 0)
            continue;
        rc = predict(&p, store, list, &list->v[i], night, &c->replay, err);
        if (rc == 1 && print(&p, &list->v[i], night, c->own.json, err))
            rc = -1;
        n += rc == 1;
    }
    if (rc >= 0 && n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, s4d_store_file(store),
                        "has no training of the night of %s", s4d_date(night).text);
    return rc < 0 ? -1 : 0;
}

static int open_and_predict(const struct config *c, struct s4d_error *err)
{
    struct s4d_store *store = NULL;
    struct s4d_series_list list = {0};
    if (s4d_replay_options_check(&c->replay, err) ||
        s4d_store_open(&store, c->store, S4D_STORE_READ, err))
        return -1;
    int rc = s4d_store_series(store, &list, err);
    if (rc == 0)
        rc = predict_all(c, store, &list, err);
    s4d_series_list_free(&list);
    s4d_store_close(store);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config config = {.own = {.night = S4D_LAST_NIGHT},
                            .replay = {.workers = s4d_processors()}};
    struct s4d_error err = {0};
    int rc =
        s4d_options_argv(groups,
                         "Simulates a night's iterations at the rates that its suite measured, "
                         "beside what they took: how far the model is to be trusted.",
                         argc, argv, &config, NULL, &err);
    if (rc == 0)
        rc = open_and_predict(&config, &err);
    s4d_options_free(groups, &config);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_track_command s4d_track_predict = {
    .name = "predict",
    .summary = "a night's iterations, simulated at the rates measured that night",
    .run = run};
