/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/window.h"

#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict.h" /* for: s4d_series_measures */
#include "support/memory.h"
#include "support/statistics.h"

static bool read_exposed(const json_t *record, struct s4d_exposed *e)
{
    const json_t *parts = json_object_get(record, "exposed_s"),
                 *time = json_object_get(record, "iteration_time_s");
    if (!json_is_number(time) || !json_is_object(parts))
        return false;
    *e = (struct s4d_exposed){.records = 1, .iteration_s = json_number_value(time)};
    for (int i = 0; i < S4D_EXPOSED; i++)
        e->part_s[i] = json_number_value(json_object_get(parts, s4d_exposed_names[i]));
    return true;
}

static int take(void *to, const struct s4d_stored *stored)
{
    struct s4d_window *w = to;
    struct s4d_window_entry e = {.day = stored->day};
    json_t *record = json_loads(stored->line, 0, NULL);
    bool said = w->of_rates;
    if (w->of_rates)
        e.rates = s4d_night_rates_of(record);
    else
        said = read_exposed(record, &e.exposed);
    if (said)
        s4d_push(w->v, w->n, w->cap, e);
    json_decref(record);
    return 0;
}

static int by_day(const void *a, const void *b)
{
    return ((const struct s4d_window_entry *)a)->day - ((const struct s4d_window_entry *)b)->day;
}

/* The last `nights` of the days [from, until]. */
static void keep_last(struct s4d_window *w, int nights)
{
    int i = w->n;
    for (; i > 0; i--)
        if ((i == w->n || w->v[i - 1].day != w->v[i].day) && nights-- == 0)
            break;
    w->n -= i;
    if (w->n > 0)
        memmove(w->v, w->v + i, (size_t)w->n * sizeof *w->v);
}

int s4d_window_read(struct s4d_window *w, struct s4d_store *store,
                    const struct s4d_series_list *all, const struct s4d_series *series, int from,
                    int until, int nights, struct s4d_error *err)
{
    for (int i = 0; i < all->n; i++) {
        const struct s4d_series *s = &all->v[i];
        if (w->of_rates ? !s4d_series_measures(s, series) : s != series)
            continue;
        if (s4d_store_records(store, s->id, from, until, take, w, err))
            return -1;
    }
    if (w->n > 0)
        qsort(w->v, (size_t)w->n, sizeof *w->v, by_day);
    keep_last(w, nights);
    return 0;
}

struct s4d_night_rates s4d_window_rates(const struct s4d_window *w)
{
    struct s4d_night_rates *v = s4d_calloc((size_t)w->n + 1, sizeof *v), median = v[0];
    for (int i = 0; i < w->n; i++)
        v[i] = w->v[i].rates;
    if (w->n > 0)
        median = s4d_night_rates_median(v, w->n);
    free(v);
    return median;
}

static double median_at(const struct s4d_window *w, size_t offset)
{
    double *v = s4d_calloc((size_t)w->n + 1, sizeof *v);
    for (int i = 0; i < w->n; i++)
        memcpy(&v[i], (const char *)&w->v[i].exposed + offset, sizeof v[i]);
    double median = s4d_statistics(v, w->n).median;
    free(v);
    return median;
}

struct s4d_exposed s4d_window_exposed(const struct s4d_window *w)
{
    struct s4d_exposed e = {.records = w->n};
    if (w->n == 0)
        return e;
    e.iteration_s = median_at(w, offsetof(struct s4d_exposed, iteration_s));
    for (int i = 0; i < S4D_EXPOSED; i++)
        e.part_s[i] =
            median_at(w, offsetof(struct s4d_exposed, part_s) + (size_t)i * sizeof(double));
    return e;
}

void s4d_window_free(struct s4d_window *w)
{
    free(w->v);
    *w = (struct s4d_window){.of_rates = w->of_rates};
}
