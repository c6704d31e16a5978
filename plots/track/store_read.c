/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "plots/track/store_internal.h"
#include "support/memory.h"
#include "support/statistics.h"

/* --- series --------------------------------------------------------------------------------- */

static struct s4d_series series_of(sqlite3_stmt *s)
{
    char *text[7];
    for (int i = 0; i < 7; i++)
        text[i] = s4d_strdup(s4d_store_text(s, i + 1));
    struct s4d_series series = {.id = sqlite3_column_int64(s, 0),
                                .host_class = text[0],
                                .backend = text[1],
                                .kind = text[2],
                                .workload = text[3],
                                .grid = text[4],
                                .options = text[5],
                                .model_version = text[6],
                                .gpus = sqlite3_column_int64(s, 8),
                                .records = sqlite3_column_int64(s, 9),
                                .nights = sqlite3_column_int(s, 10),
                                .first = sqlite3_column_int(s, 11),
                                .last = sqlite3_column_int(s, 12)};
    return series;
}

/* Whether b is a with another model version. The list's order has them together. */
static bool same_but_model(const struct s4d_series *a, const struct s4d_series *b)
{
    return a->gpus == b->gpus && strcmp(a->host_class, b->host_class) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->kind, b->kind) == 0 &&
           strcmp(a->workload, b->workload) == 0 && strcmp(a->grid, b->grid) == 0 &&
           strcmp(a->options, b->options) == 0;
}

static void find_newer(struct s4d_series_list *list)
{
    for (int i = 0; i < list->n; i++) {
        const struct s4d_series *next = NULL;
        for (int step = -1; step <= 1; step += 2)
            for (int k = i + step;
                 k >= 0 && k < list->n && same_but_model(&list->v[i], &list->v[k]); k += step)
                if (list->v[k].first > list->v[i].first &&
                    (!next || list->v[k].first < next->first))
                    next = &list->v[k];
        list->v[i].newer = next ? next->id : 0;
    }
}

int s4d_store_series(struct s4d_store *store, struct s4d_series_list *list, struct s4d_error *err)
{
    *list = (struct s4d_series_list){0};
    sqlite3_stmt *s = s4d_store_sql(
        store, err,
        "SELECT series.id, host_class, backend, kind, workload, grid, options, model_version, "
        "gpus, count(*), count(DISTINCT night), min(night), max(night) FROM series JOIN record ON "
        "record.series = series.id GROUP BY series.id ORDER BY host_class, backend, kind, "
        "workload, gpus, grid, options, model_version",
        "");
    int rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1)
        s4d_push(list->v, list->n, list->cap, series_of(s));
    s4d_store_done(s);
    s4d_series_labels(list);
    find_newer(list);
    if (rc < 0)
        s4d_series_list_free(list);
    return rc < 0 ? -1 : 0;
}

void s4d_series_list_free(struct s4d_series_list *list)
{
    for (int i = 0; i < list->n; i++) {
        struct s4d_series *s = &list->v[i];
        char *text[] = {s->host_class, s->backend, s->kind,          s->workload,
                        s->grid,       s->options, s->model_version, s->label};
        for (size_t k = 0; k < sizeof text / sizeof *text; k++)
            free(text[k]);
    }
    free(list->v);
    *list = (struct s4d_series_list){0};
}

/* --- names ---------------------------------------------------------------------------------- */

/* Of a commit, kept by the store: as many as the program's builds, not as records. */
static const char *commit_name(struct s4d_store *store, int64_t id, struct s4d_error *err)
{
    if (id >= 0 && id < store->n_commits && store->commit[id])
        return store->commit[id];
    sqlite3_stmt *s =
        s4d_store_sql(store, err, "SELECT name FROM git_commit WHERE id = ?", "i", id);
    int rc = s ? s4d_store_step(store, s, err) : -1;
    const char *name = NULL;
    if (rc >= 0 && id >= 0 && id < INT_MAX / 2) {
        while (store->n_commits <= id)
            s4d_push(store->commit, store->n_commits, store->cap_commits, NULL);
        name = store->commit[id] = s4d_strdup(rc == 1 ? s4d_store_text(s, 0) : "");
    }
    s4d_store_done(s);
    return name;
}

/* --- history -------------------------------------------------------------------------------- */

struct reading {
    struct s4d_history *history;
    int day, at_row;
    int64_t record, environment;
    const char *commit;
};

static struct s4d_points *points_named(struct s4d_history *h, const struct s4d_metric *metric,
                                       const char *name)
{
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->v[i].name, name) == 0)
            return &h->v[i];
    s4d_push(h->v, h->n, h->cap, (struct s4d_points){.metric = metric, .name = s4d_strdup(name)});
    return &h->v[h->n - 1];
}

static struct s4d_night *night_of(struct s4d_points *p, const struct reading *r)
{
    if (p->n == 0 || p->v[p->n - 1].day != r->day)
        s4d_push(p->v, p->n, p->cap, (struct s4d_night){.day = r->day, .date = s4d_date(r->day)});
    struct s4d_night *night = &p->v[p->n - 1];
    night->record = r->record;
    night->environment = r->environment;
    night->commit = r->commit;
    return night;
}

static void add_values(struct s4d_night *night, const double *values, int n)
{
    night->samples = s4d_realloc(night->samples, (size_t)(night->n + n) * sizeof *night->samples);
    memcpy(night->samples + night->n, values, (size_t)n * sizeof *values);
    night->n += n;
    night->repeats =
        s4d_realloc(night->repeats, (size_t)(night->n_repeats + 1) * sizeof *night->repeats);
    night->repeats[night->n_repeats++] = s4d_statistics(values, n).median;
}

/* The layout's metrics from the numbers of one record. */
static void add_record(struct reading *r, const struct s4d_layout *layout, const double *number)
{
    double one[64], *v = one;
    for (int i = 0; i < layout->n; i++) {
        const struct s4d_slots *s = &layout->slots[i];
        if (s->n > (int)(sizeof one / sizeof *one))
            v = s4d_malloc((size_t)s->n * sizeof *v);
        for (int k = 0; k < s->n; k++)
            v[k] = s->over < 0 ? number[s->slot[k]] : number[s->over] / number[s->slot[k]];
        add_values(night_of(points_named(r->history, s->metric, s->name), r), v, s->n);
        if (v != one)
            free(v);
        v = one;
    }
}

static int by_row(const void *a, const void *b)
{
    const struct s4d_points *p = a, *q = b;
    if (p->metric != q->metric)
        return p->metric < q->metric ? -1 : 1;
    return strcmp(p->name, q->name);
}

static int restarts(struct s4d_store *store, int64_t series, struct s4d_history *h,
                    struct s4d_error *err)
{
    sqlite3_stmt *s = s4d_store_sql(store, err,
                                    "SELECT id, night FROM annotation WHERE restarts AND (series "
                                    "IS NULL OR series = ?) ORDER BY night, id",
                                    "i", series);
    int rc = s ? 1 : -1;
    while (s && (rc = s4d_store_step(store, s, err)) == 1)
        for (int i = 0; i < h->n; i++) {
            struct s4d_points *p = &h->v[i];
            for (int k = 0; k < p->n; k++)
                if (p->v[k].day >= sqlite3_column_int(s, 1)) {
                    p->v[k].restart = sqlite3_column_int64(s, 0);
                    break;
                }
        }
    s4d_store_done(s);
    return rc < 0 ? -1 : 0;
}

static int read_numbers(struct s4d_store *store, sqlite3_stmt *s, struct reading *r,
                        struct s4d_error *err)
{
    const struct s4d_layout *layout = s4d_layout_get(store, sqlite3_column_int64(s, 4), err);
    if (!layout)
        return -1;
    double *number = s4d_malloc(((size_t)layout->first.numbers + 1) * sizeof *number);
    bool good = s4d_numbers_decode(sqlite3_column_blob(s, 5), (size_t)sqlite3_column_bytes(s, 5),
                                   layout->first.number, layout->first.numbers, number);
    if (good)
        add_record(r, layout, number);
    free(number);
    return good ? 0 : s4d_store_damaged(store, r->record, err);
}

static int read_history(struct s4d_store *store, sqlite3_stmt *s, struct reading *r,
                        struct s4d_error *err)
{
    int rc;
    while ((rc = s4d_store_step(store, s, err)) == 1) {
        r->record = sqlite3_column_int64(s, 0);
        r->day = sqlite3_column_int(s, 1);
        r->environment = sqlite3_column_int64(s, 3);
        r->commit = commit_name(store, sqlite3_column_int64(s, 2), err);
        if (!r->commit)
            return -1;
        if (read_numbers(store, s, r, err))
            return -1;
    }
    return rc;
}

int s4d_store_history(struct s4d_store *store, int64_t series, int nights, int until,
                      struct s4d_history *history, struct s4d_error *err)
{
    *history = (struct s4d_history){0};
    struct reading r = {.history = history};
    sqlite3_stmt *s = s4d_store_sql(
        store, err,
        "SELECT id, night, git_commit, environment, layout, numbers FROM record WHERE series = ?1 "
        "AND night "
        "<= ?3 AND night >= coalesce((SELECT min(night) FROM (SELECT DISTINCT night FROM record "
        "WHERE series = ?1 AND night <= ?3 ORDER BY night DESC LIMIT ?2)), 0) ORDER BY night, "
        "time, id",
        "iii", series, (int64_t)(nights > 0 ? nights : INT_MAX), (int64_t)until);
    int rc = s ? read_history(store, s, &r, err) : -1;
    s4d_store_done(s);
    if (history->n > 1)
        qsort(history->v, (size_t)history->n, sizeof *history->v, by_row);
    for (int i = 0; i < history->n; i++)
        for (int k = 0; k < history->v[i].n; k++) {
            struct s4d_night *night = &history->v[i].v[k];
            night->median = s4d_statistics(night->samples, night->n).median;
        }
    if (rc == 0)
        rc = restarts(store, series, history, err);
    if (rc < 0)
        s4d_history_free(history);
    return rc < 0 ? -1 : 0;
}

int s4d_store_points(struct s4d_store *store, int64_t series, const char *metric, int nights,
                     int until, struct s4d_points *points, struct s4d_error *err)
{
    struct s4d_history h;
    *points = (struct s4d_points){0};
    if (s4d_store_history(store, series, nights, until, &h, err))
        return -1;
    for (int i = 0; i < h.n; i++)
        if (strcmp(h.v[i].name, metric) == 0) {
            *points = h.v[i];
            h.v[i] = (struct s4d_points){0};
        }
    s4d_history_free(&h);
    return 0;
}

void s4d_points_free(struct s4d_points *points)
{
    for (int i = 0; i < points->n; i++) {
        free(points->v[i].samples);
        free(points->v[i].repeats);
    }
    free(points->v);
    free(points->name);
    *points = (struct s4d_points){0};
}

void s4d_history_free(struct s4d_history *history)
{
    for (int i = 0; i < history->n; i++)
        s4d_points_free(&history->v[i]);
    free(history->v);
    *history = (struct s4d_history){0};
}
