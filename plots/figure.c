/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/figure.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/rows.h"
#include "support/file.h"
#include "support/memory.h"

bool s4d_figure_is_of(const json_t *record, const struct s4d_series *series,
                      const struct s4d_point *point)
{
    const json_t *f = json_object_get(record, "experiment");
    const char *s = json_string_value(json_object_get(f, "series"));
    const char *w = json_string_value(json_object_get(f, "workload"));
    const char *m = json_string_value(json_object_get(f, "machine"));
    return s != NULL && w != NULL && strcmp(s, series->name) == 0 &&
           strcmp(w, point->workload) == 0 && (m == NULL || strcmp(m, point->machine) == 0) &&
           json_integer_value(json_object_get(f, "gpus")) == point->gpus;
}

json_t *s4d_figure_record(const struct s4d_records *records, const struct s4d_series *series,
                          const struct s4d_point *point)
{
    for (int i = records->n - 1; i >= 0; i--)
        if (s4d_figure_is_of(records->v[i], series, point))
            return records->v[i];
    return NULL;
}

double s4d_figure_error(const struct s4d_published *published, const json_t *record)
{
    if (published == NULL || record == NULL || published->value <= 0)
        return NAN;
    return 100 * (s4d_metric_value(published->metric, record) / published->value - 1);
}

static int by_gpus(const void *a, const void *b)
{
    const struct s4d_point *p = *(struct s4d_point *const *)a, *q = *(struct s4d_point *const *)b;
    return p->gpus != q->gpus ? (p->gpus > q->gpus) - (p->gpus < q->gpus)
                              : strcmp(p->workload, q->workload);
}

static int simulated_rows(const struct s4d_tables *t, struct s4d_point *const *points, FILE *out,
                          struct s4d_error *err)
{
    const struct s4d_experiment *e = t->e;
    for (int s = 0; s < e->n_series; s++)
        for (int i = 0; i < e->n_points; i++) {
            const struct s4d_point *p = points[i];
            const json_t *r = s4d_figure_record(t->records, &e->series[s], p);
            if (r == NULL) {
                s4d_fail(err, S4D_EXIT_DATA, e->folder, "no record of %s on %d GPUs (%s)",
                         p->workload, p->gpus, e->series[s].name);
                return s4d_hint(err, "leave --draw-only out, and it is simulated");
            }
            s4d_rows_kinds[e->rows].simulated(t, &e->series[s], p, r, out);
        }
    return 0;
}

const struct s4d_published *s4d_figure_published(const struct s4d_experiment *e,
                                                 const struct s4d_published_list *published,
                                                 const char *metric, const struct s4d_point *p)
{
    return s4d_published_find(published, metric, e->several_machines ? p->machine : NULL,
                              p->workload, p->gpus);
}

/* The first that a point has tells its row's provenance. */
static const char *const merits[] = {"sustained", "peak_fraction", "iteration_time"};
enum { MERITS = sizeof merits / sizeof *merits };

/* One row a point that has a published number; gnuplot reads NaN as missing. */
static void published_rows(const struct s4d_tables *t, struct s4d_point *const *points, FILE *out)
{
    const struct s4d_rows_kind *kind = &s4d_rows_kinds[t->e->rows];
    for (int i = 0; i < t->e->n_points && kind->published != NULL; i++) {
        const struct s4d_point *p = points[i];
        const struct s4d_published *any = NULL;
        for (int m = 0; m < MERITS && any == NULL; m++)
            any = s4d_figure_published(t->e, t->published, merits[m], p);
        if (any == NULL)
            continue;
        fprintf(out, "published\t%s\t%d\t", p->workload, p->gpus);
        kind->published(t, p, out);
        fprintf(out, "\t%s\n", any->provenance);
    }
}

/* Of a user's records; a series scales from its own smallest. */
static void added_rows(const struct s4d_experiment *e, const struct s4d_overlay *overlay, FILE *out)
{
    double first = NAN;
    for (int i = 0; i < overlay->n; i++) {
        const struct s4d_added *a = &overlay->v[i];
        const char *workload =
            json_string_value(json_object_get(json_object_get(a->record, "workload"), "name"));
        int gpus = (int)json_integer_value(json_object_get(a->record, "gpus"));
        double rate = s4d_metric_value(s4d_metric_find("sustained"), a->record) / gpus;
        if (i == 0 || strcmp(a->series, a[-1].series) != 0)
            first = rate;
        fprintf(out, "%s\t%s\t%d\t", a->series, workload != NULL ? workload : "-", gpus);
        s4d_rows_kinds[e->rows].record(a->record, a->machine != NULL ? a->machine : "-",
                                       100 * rate / first, out);
        fprintf(out, "\t%s\n", a->measured ? "measured" : "simulated");
    }
}

static int failed(const char *file, struct s4d_error *err)
{
    return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
}

int s4d_figure_data(const struct s4d_experiment *e, const struct s4d_records *records,
                    const struct s4d_published_list *published, const struct s4d_overlay *overlay,
                    const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return failed(file, err);
    struct s4d_point **points = s4d_calloc((size_t)e->n_points, sizeof *points);
    for (int i = 0; i < e->n_points; i++)
        points[i] = &e->point[i];
    qsort(points, (size_t)e->n_points, sizeof *points, by_gpus);
    fputs(s4d_rows_kinds[e->rows].columns, out);
    struct s4d_tables t = {e, records, published};
    int rc = simulated_rows(&t, points, out, err);
    if (rc == 0)
        published_rows(&t, points, out);
    if (rc == 0 && overlay != NULL)
        added_rows(e, overlay, out);
    bool bad = ferror(out) != 0;
    if ((fclose(out) != 0 || bad) && rc == 0)
        rc = failed(file, err);
    free(points);
    return rc;
}

/* The simulated rows of data.tsv, its header first: what expected.tsv keeps. */
static char *simulated_text(char *text)
{
    char *out = text;
    for (char *line = text, *next; *line != '\0'; line = next) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        next = line + n;
        if (strncmp(line, "published\t", 10) == 0 || line[0] == '+')
            continue;
        memmove(out, line, n);
        out += n;
    }
    *out = '\0';
    return text;
}

static bool same_field(const char *a, size_t n, const char *b, size_t m, double tolerance)
{
    if (n == m && memcmp(a, b, n) == 0)
        return true;
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return end_a == a + n && end_b == b + m && n > 0 && m > 0 && fabs(x - y) <= tolerance * fabs(y);
}

static bool same_line(const char *a, const char *b, double tolerance)
{
    for (;;) {
        size_t n = strcspn(a, "\t\n"), m = strcspn(b, "\t\n");
        if (!same_field(a, n, b, m, tolerance) || a[n] != b[m])
            return false;
        if (a[n] != '\t')
            return true;
        a += n + 1;
        b += m + 1;
    }
}

static int compare(const struct s4d_experiment *e, const char *now, const char *expected,
                   const char *file, struct s4d_error *err)
{
    for (int line = 1; *now != '\0' || *expected != '\0'; line++) {
        int n = (int)strcspn(now, "\n"), m = (int)strcspn(expected, "\n");
        if (!same_line(now, expected, e->tolerance_percent / 100)) {
            char where[512];
            snprintf(where, sizeof where, "%s:%d", file, line);
            s4d_fail(err, S4D_EXIT_CHECK, where,
                     "differs by more than %g %%\n  expected  %.*s\n  simulated %.*s",
                     e->tolerance_percent, m, m ? expected : "", n, n ? now : "");
            return s4d_hint(err,
                            "if the change is meant: scale4d plot %s --accept, and review "
                            "the diff",
                            e->folder);
        }
        now += n + (now[n] == '\n');
        expected += m + (expected[m] == '\n');
    }
    return 0;
}

static int accept_rows(const char *text, const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return failed(file, err);
    bool bad = fputs(text, out) == EOF;
    return fclose(out) != 0 || bad ? failed(file, err) : 0;
}

int s4d_figure_expected(const struct s4d_experiment *e, const char *data, bool accept,
                        struct s4d_error *err)
{
    char *now = NULL, *expected = NULL, *file = s4d_asprintf("%s/expected.tsv", e->folder);
    size_t n;
    int rc = s4d_file_read(data, &now, &n, err);
    if (rc == 0)
        simulated_text(now);
    if (rc == 0 && accept)
        rc = accept_rows(now, file, err);
    else if (rc == 0 && (rc = s4d_file_read(file, &expected, &n, err)) == 0)
        rc = compare(e, now, expected, file, err);
    else if (rc)
        s4d_hint(err, "scale4d plot %s --accept writes it", e->folder);
    free(now);
    free(expected);
    free(file);
    return rc;
}
