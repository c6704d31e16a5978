/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/grids.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/report.h"
#include "support/memory.h"
#include "support/statistics.h"

static const struct model {
    const char *key, *title;
} models[] = {
    {"estimate_s", "iteration, model of scale4d tune"},
    {"published_s", "communication, arXiv 2502.08145, its authors' bandwidths"},
    {"links_s", "the same, bandwidths of the links"},
};
enum { MODELS = sizeof models / sizeof *models };

/* Of one point in one series. */
struct grids {
    const json_t **v;
    int n, cap;
};

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double model_s(const json_t *record, int model)
{
    return number_of(json_object_get(record, "tune"), models[model].key);
}

static double simulated_s(const json_t *record)
{
    return number_of(record, "iteration_time_s");
}

static const char *grid_of(const json_t *record)
{
    const char *grid = json_string_value(json_object_get(record, "grid"));
    return grid != NULL ? grid : "-";
}

static int by_sizes(const void *a, const void *b)
{
    const char *x = grid_of(*(const json_t *const *)a), *y = grid_of(*(const json_t *const *)b);
    for (;;) {
        char *end_x, *end_y;
        long m = strtol(x, &end_x, 10), n = strtol(y, &end_y, 10);
        if (m != n || *end_x != 'x' || *end_y != 'x')
            return (m > n) - (m < n);
        x = end_x + 1;
        y = end_y + 1;
    }
}

static int by_time(const void *a, const void *b)
{
    double x = simulated_s(*(const json_t *const *)a), y = simulated_s(*(const json_t *const *)b);
    return x != y ? (x > y) - (x < y) : by_sizes(a, b);
}

static struct grids grids_of(const struct s4d_records *records, const struct s4d_series *series,
                             const struct s4d_point *point,
                             int (*order)(const void *, const void *))
{
    struct grids g = {0};
    for (int i = 0; i < records->n; i++)
        if (s4d_figure_is_of(records->v[i], series, point))
            s4d_push(g.v, g.n, g.cap, records->v[i]);
    if (g.n > 0)
        qsort(g.v, (size_t)g.n, sizeof *g.v, order);
    return g;
}

void s4d_grids_rows(const struct s4d_tables *t, const struct s4d_series *series,
                    const struct s4d_point *point, const json_t *last, FILE *out)
{
    struct grids g = grids_of(t->records, series, point, by_sizes);
    (void)last;
    for (int i = 0; i < g.n; i++) {
        fprintf(out, "%s\t%s\t%d\t%s\t%s\t%d", series->name, point->workload, point->gpus,
                point->machine, grid_of(g.v[i]),
                (int)json_integer_value(json_object_get(g.v[i], "micro_batch")));
        for (int m = 0; m < MODELS; m++)
            fprintf(out, "\t%.6g", model_s(g.v[i], m));
        fprintf(out, "\t%.6g\tsimulated\n", simulated_s(g.v[i]));
    }
    free(g.v);
}

/* Of the grids that the model has a time for; NAN: fewer than two. */
static double correlation(const struct grids *g, int model)
{
    double *x = s4d_malloc((size_t)(g->n + 1) * sizeof *x),
           *y = s4d_malloc((size_t)(g->n + 1) * sizeof *y);
    int n = 0;
    for (int i = 0; i < g->n; i++)
        if (isfinite(model_s(g->v[i], model))) {
            x[n] = model_s(g->v[i], model);
            y[n++] = simulated_s(g->v[i]);
        }
    double r = s4d_rank_correlation(x, y, n);
    free(x);
    free(y);
    return r;
}

/* Its place, from 1, by the tuner's model. */
static int place_of(const struct grids *g, int i)
{
    int place = 1;
    for (int j = 0; j < g->n; j++)
        place += model_s(g->v[j], 0) < model_s(g->v[i], 0);
    return place;
}

static void summary(const struct s4d_point *p, const struct s4d_series *series,
                    const struct grids *g, FILE *out)
{
    fprintf(out,
            "- %s on %d GPUs of %s, %s, %d grids. Rank correlation (Spearman) with simulation:",
            p->workload, p->gpus, p->machine, series->name, g->n);
    for (int m = 0; m < MODELS; m++) {
        double r = correlation(g, m);
        if (isfinite(r))
            fprintf(out, "%s %s %.3f", m ? ";" : "", models[m].title, r);
    }
    fprintf(out, ". The fastest, %s, is number %d of the tuner's ranking\n", grid_of(g->v[0]),
            place_of(g, 0));
}

static void each(const struct s4d_experiment *e, const struct s4d_records *records, FILE *out,
                 void (*put)(const struct s4d_point *, const struct s4d_series *,
                             const struct grids *, FILE *))
{
    for (int i = 0; i < e->n_points; i++)
        for (int s = 0; s < e->n_series; s++) {
            struct grids g = grids_of(records, &e->series[s], &e->point[i], by_time);
            if (g.n > 0)
                put(&e->point[i], &e->series[s], &g, out);
            free(g.v);
        }
}

void s4d_grids_summary(const struct s4d_tables *t, FILE *out)
{
    each(t->e, t->records, out, summary);
}

static void table(const struct s4d_point *p, const struct s4d_series *series, const struct grids *g,
                  FILE *out)
{
    fprintf(out,
            "### %s on %d GPUs of %s, %s\n\n| grid | micro-batch | memory GB | simulated s | model "
            "s | error %% | place by the model | published model s | over the links s |\n"
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
            p->workload, p->gpus, p->machine, series->name);
    for (int i = 0; i < g->n; i++) {
        const json_t *r = g->v[i];
        double time_s = simulated_s(r), published_s = model_s(r, 1);
        fprintf(out, "| %s | %d | %.1f | %.4g | %.4g | %+.1f | %d |", grid_of(r),
                (int)json_integer_value(json_object_get(r, "micro_batch")),
                number_of(r, "memory_peak_bytes") / 1e9, time_s, model_s(r, 0),
                100 * (model_s(r, 0) / time_s - 1), place_of(g, i));
        if (isfinite(published_s))
            fprintf(out, " %.4g |", published_s);
        else
            fputs(" |", out);
        fprintf(out, " %.4g |\n", model_s(r, 2));
    }
    fputc('\n', out);
}

void s4d_grids_report(const struct s4d_tables *t, FILE *out)
{
    s4d_report_series(t->e, out);
    fprintf(out, "## Models and simulation\n\n");
    s4d_grids_summary(t, out);
    fprintf(out, "\n## Every grid\n\nGrid: GXxGYxGZxGDATA, of each the micro-batch that the "
                 "tuner's model ranks first. Error: 100 (model / simulated - 1). The published "
                 "model is of communication alone; empty: its authors' tables have no such "
                 "group.\n\n");
    each(t->e, t->records, out, table);
}
