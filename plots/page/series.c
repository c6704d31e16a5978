/* SPDX-License-Identifier: Apache-2.0 */
/* One series: what the table says of it, and its section. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/page/internal.h"
#include "plots/track/verdict_internal.h" /* for: s4d_metric_shown */
#include "support/memory.h"
#include "support/units.h"

enum { RECENT = 60, MORE_PICTURES = 3 };

/* "all_reduce 64 MiB, 8 ranks", of what the options say. */
static char *collective_title(const struct s4d_series *s)
{
    char bytes[32], *text;
    json_t *options = json_loads(s->options, 0, NULL);
    const char *op = json_string_value(json_object_get(options, "op"));
    json_int_t ranks = json_integer_value(json_object_get(options, "ranks"));
    s4d_format_bytes(json_number_value(json_object_get(options, "bytes")), bytes, sizeof bytes);
    text = s4d_asprintf("%s %s, %lld ranks", op ? op : s->kind, bytes, (long long)ranks);
    json_decref(options);
    return text;
}

/* What people say of a series: the model, how many GPUs, the grid; and what it is if no training.
 */
static char *title_of(const struct s4d_series *s)
{
    bool simulated = strcmp(s->backend, "simulated") == 0;
    const char *what = strcmp(s->kind, "train") == 0      ? ""
                       : strcmp(s->kind, "simulate") == 0 ? ", simulated"
                                                          : NULL;
    if (strcmp(s->kind, "collective") == 0) {
        char *own = collective_title(s),
             *title = s4d_asprintf("%s%s", own, simulated ? ", simulated" : "");
        free(own);
        return title;
    }
    char *gpus = s->gpus ? s4d_asprintf(", %lld GPUs", (long long)s->gpus) : s4d_strdup("");
    char *title = s4d_asprintf("%s%s%s%s%s%s", *s->workload ? s->workload : s->kind, gpus,
                               *s->grid ? ", " : "", s->grid, what || !*s->workload ? "" : ": ",
                               what           ? what
                               : *s->workload ? s->kind
                                              : "");
    free(gpus);
    return title;
}

static const struct s4d_points *points_named(const struct s4d_history *history, const char *name)
{
    for (int i = 0; i < history->n; i++)
        if (strcmp(history->v[i].name, name) == 0)
            return &history->v[i];
    return NULL;
}

/* What stands for a series: what its finding leads with, else the first that has a direction and is
 * of the whole iteration, not of a part. */
static const struct s4d_points *main_points(const struct s4d_row *row,
                                            const struct s4d_history *history)
{
    const struct s4d_points *p =
        row->finding && row->finding->n > 0 ? points_named(history, row->finding->v[0].name) : NULL;
    for (int part = 0; part < 2; part++)
        for (int i = 0; !p && i < history->n; i++)
            if (history->v[i].metric->direction != 0 && (part || !strchr(history->v[i].name, '.')))
                p = &history->v[i];
    return p ? p : history->n > 0 ? &history->v[0] : NULL;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The level that the last night is held against: of what changed the one before, else the median of
 * the nights judged but the last. NAN: there is none. */
static double level_before(const struct s4d_row *row, const struct s4d_points *points, int judged)
{
    const struct s4d_finding *f = row->finding;
    for (int i = 0; f && i < f->n; i++)
        if (strcmp(f->v[i].name, points->name) == 0)
            return f->v[i].before;
    int from = points->n > judged ? points->n - judged : 0, n = points->n - 1 - from;
    if (n < 1)
        return NAN;
    double *v = s4d_malloc((size_t)n * sizeof *v);
    for (int i = 0; i < n; i++)
        v[i] = points->v[from + i].median;
    qsort(v, (size_t)n, sizeof *v, by_value);
    double median = (v[n / 2] + v[(n - 1) / 2]) / 2;
    free(v);
    return median;
}

/* --- the section ---------------------------------------------------------------------------- */

struct text {
    char *html;
    size_t n;
    FILE *out;
};
static void open_text(struct text *t)
{
    t->out = open_memstream(&t->html, &t->n);
    S4D_ASSERT(t->out != NULL, "no memory for a page");
}

/* Ends the piece, with a picture after it; the text goes on in a new one. */
static void end_piece(struct s4d_row *row, struct text *t, int picture, char *label)
{
    fclose(t->out);
    struct s4d_piece piece = {t->html, picture, label};
    s4d_push(row->v, row->n, row->cap, piece);
}

/* A value of a simulated series with the same workload, GPUs and grid; the nearest of several. */
struct simulated {
    double value;
    const struct s4d_series *series;
};
static int simulated_of(struct s4d_page *page, const struct s4d_series *own,
                        const struct s4d_points *points, struct simulated *found,
                        struct s4d_error *err)
{
    double last = points->v[points->n - 1].median;
    *found = (struct simulated){NAN, NULL};
    if (strcmp(own->backend, "simulated") == 0)
        return 0;
    for (int i = 0; i < page->verdict->list.n; i++) {
        const struct s4d_series *s = &page->verdict->list.v[i];
        struct s4d_points p = {0};
        if (strcmp(s->backend, "simulated") != 0 || strcmp(s->workload, own->workload) != 0 ||
            s->gpus != own->gpus || strcmp(s->grid, own->grid) != 0)
            continue;
        if (s4d_store_points(page->store, s->id, points->name, 1, page->verdict->night, &p, err))
            return -1;
        if (p.n > 0 &&
            (!found->series || fabs(log(p.v[0].median / last)) < fabs(log(found->value / last))))
            *found = (struct simulated){p.v[0].median, s};
        s4d_points_free(&p);
    }
    return 0;
}

/* The reference's limits of this metric, or NAN. */
static void band_of(const struct s4d_page *page, const struct s4d_series *series,
                    const struct s4d_points *points, struct s4d_picture *picture)
{
    const struct s4d_references *r = page->options.references;
    picture->lower = picture->upper = NAN;
    for (int i = 0; r && i < r->n; i++)
        if (strcmp(r->v[i].metric, points->name) == 0 && s4d_reference_is_of(&r->v[i], series)) {
            picture->lower = r->v[i].value * (1 + r->v[i].lower);
            picture->upper = r->v[i].value * (1 + r->v[i].upper);
        }
}

static void write_caption(FILE *out, const struct s4d_picture *p, const char *title,
                          const char *unit, const struct simulated *simulated, int outside)
{
    const struct s4d_points *points = p->points;
    fputs("<figcaption><b>", out);
    s4d_write_escaped(out, title);
    fprintf(out, "</b> in %s, ", unit);
    if (points->n > 1)
        fprintf(out, "%s to ", s4d_short_date(points->v[0].day).text);
    fprintf(out, "%s, %d night%s. ", s4d_short_date(points->v[points->n - 1].day).text, points->n,
            points->n == 1 ? "" : "s");
    if (!isnan(p->lower) || !isnan(p->upper))
        fputs(" <span class=\"key k-band\">allowed by the reference</span>", out);
    if (simulated->series) {
        double last = points->v[points->n - 1].median;
        fprintf(out, " <span class=\"key k-simulated\">simulated</span> on ");
        s4d_write_escaped(out, simulated->series->host_class +
                                   strcspn(simulated->series->host_class, ":") + 1);
        fprintf(out, ": %s; the last night is at %.1f %% of it%s.",
                s4d_metric_shown(points->metric, simulated->value).text,
                100 * last / simulated->value,
                isnan(p->simulated) ? ", too far off to be drawn" : "");
    }
    if (outside > 0)
        fprintf(out, " %d sample%s above or below the picture.", outside,
                outside == 1 ? " lies" : "s lie");
    fputs("</figcaption></figure>\n", out);
}

static int add_picture(struct s4d_page *page, struct s4d_row *row, struct text *t,
                       const struct s4d_points *points, struct s4d_step **steps, int *n_steps,
                       struct s4d_error *err)
{
    struct s4d_picture p = {.points = points, .recent = RECENT, .simulated = NAN};
    struct simulated simulated;
    int outside;
    struct s4d_unit unit;
    char *title = s4d_metric_title(points->name);
    *n_steps = s4d_steps_of(points, strcmp(row->series->backend, "simulated") == 0,
                            &page->verdict->options, steps, err);
    if (*n_steps < 0 || simulated_of(page, row->series, points, &simulated, err)) {
        free(title);
        return -1;
    }
    p.steps = *steps;
    p.n_steps = *n_steps;
    band_of(page, row->series, points, &p);
    if (simulated.series &&
        fabs(log(simulated.value / points->v[points->n - 1].median)) < log(1.15))
        p.simulated = simulated.value;
    fputs("<figure>", t->out);
    int picture = s4d_picture_history(&page->pictures, &p, &outside, &unit);
    char *label =
        s4d_asprintf("%s, night by night: %s on the last", title,
                     s4d_metric_shown(points->metric, points->v[points->n - 1].median).text);
    end_piece(row, t, picture, label);
    open_text(t);
    write_caption(t->out, &p, title, unit.text, &simulated, outside);
    free(title);
    return 0;
}

static void write_metrics(FILE *out, const struct s4d_row *row, const struct s4d_history *history)
{
    int day = 0;
    for (int i = 0; i < history->n; i++)
        day = history->v[i].v[history->v[i].n - 1].day > day
                  ? history->v[i].v[history->v[i].n - 1].day
                  : day;
    fprintf(out, "<table class=\"metrics\"><caption>Medians of the night of %s</caption>",
            s4d_short_date(day).text);
    fputs("<thead><tr>"
          "<th scope=\"col\">Metric</th><th scope=\"col\" class=\"number\">Last night</th>"
          "<th scope=\"col\" class=\"number\">Before</th>"
          "<th scope=\"col\" class=\"number\">Change</th>"
          "<th scope=\"col\" class=\"number\">Samples</th></tr></thead><tbody>\n",
          out);
    for (int i = 0; i < history->n; i++) {
        const struct s4d_points *p = &history->v[i];
        const struct s4d_night *last = &p->v[p->n - 1];
        double before = level_before(row, p, row->standing->nights);
        bool judged = p->metric->direction != 0;
        char *title = s4d_metric_title(p->name);
        fputs("<tr><th scope=\"row\">", out);
        s4d_write_escaped(out, title);
        fprintf(out, "</th><td class=\"number\">%s</td><td class=\"number\">%s</td>",
                s4d_metric_shown(p->metric, last->median).text,
                judged && !isnan(before) ? s4d_metric_shown(p->metric, before).text : "");
        fprintf(out, "<td class=\"number\">%s</td><td class=\"number\">%d</td></tr>\n",
                judged && before != 0 ? s4d_percent(last->median / before - 1).text : "", last->n);
        free(title);
    }
    fputs("</tbody></table>\n", out);
}

static void write_head(FILE *out, const struct s4d_row *row)
{
    const struct s4d_series *s = row->series;
    fprintf(out, "<section class=\"one %s\" id=\"s%lld\" aria-labelledby=\"h%lld\">\n",
            s4d_standing_name(row->standing->standing), (long long)s->id, (long long)s->id);
    fprintf(out, "<h3 id=\"h%lld\">", (long long)s->id);
    s4d_write_escaped(out, row->title);
    putc(' ', out);
    s4d_write_standing(out, row->standing->standing);
    fputs("</h3>\n<p class=\"sub\">", out);
    s4d_write_escaped(out, s->label);
    fputs("</p>\n", out);
    if (row->finding) {
        fputs("<p class=\"said\">", out);
        s4d_write_finding(out, row->finding, true);
        fputs("</p>\n", out);
    } else if (row->standing->standing == S4D_STANDING_TOO_FEW) {
        fputs("<p class=\"said\">", out);
        s4d_write_escaped(out, row->standing->text);
        fputs(".</p>\n", out);
    }
}

static void write_options(FILE *out, const struct s4d_series *s)
{
    json_t *options = json_loads(s->options, 0, NULL), *v;
    const char *key;
    fputs("<details><summary>Inputs</summary><dl class=\"inputs\">", out);
    json_object_foreach(options, key, v)
    {
        char *text = json_is_string(v) ? s4d_strdup(json_string_value(v))
                                       : json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        fputs("<div><dt>", out);
        s4d_write_escaped(out, key);
        fputs("</dt><dd>", out);
        s4d_write_escaped(out, text ? text : "");
        fputs("</dd></div>", out);
        free(text);
    }
    fputs("</dl></details>\n", out);
    json_decref(options);
}

/* Pictures of what moved together with the first; the time of an iteration says what FLOP/s do. */
static int add_others(struct s4d_page *page, struct s4d_row *row, struct text *t,
                      const struct s4d_history *history, struct s4d_error *err)
{
    int drawn = 0, n, rc = 0;
    for (int i = 1; row->finding && i < row->finding->n && drawn < MORE_PICTURES && rc == 0; i++) {
        const struct s4d_points *p = points_named(history, row->finding->v[i].name);
        struct s4d_step *steps = NULL;
        if (!p || p->metric->direction == 0 || strcmp(p->name, "iteration_time_s") == 0)
            continue;
        rc = add_picture(page, row, t, p, &steps, &n, err);
        free(steps);
        drawn++;
    }
    return rc;
}

static int add_section(struct s4d_page *page, struct s4d_row *row,
                       const struct s4d_history *history, const struct s4d_points *points,
                       struct s4d_error *err)
{
    struct text t;
    struct s4d_step *steps = NULL;
    int n_steps = 0, rc = 0;
    open_text(&t);
    write_head(t.out, row);
    if (points) {
        rc = add_picture(page, row, &t, points, &steps, &n_steps, err);
        if (rc == 0)
            rc = add_others(page, row, &t, history, err);
        if (rc == 0) {
            write_metrics(t.out, row, history);
            rc = s4d_write_changes(t.out, page->store, points, steps, n_steps, err);
        }
    } else
        fputs("<p class=\"note\">No night has a number.</p>\n", t.out);
    write_options(t.out, row->series);
    fputs("<p class=\"up\"><a href=\"#series\">All series</a></p>\n</section>\n", t.out);
    end_piece(row, &t, -1, NULL);
    free(steps);
    return rc;
}

int s4d_row_fill(struct s4d_page *page, struct s4d_row *row, bool section, struct s4d_error *err)
{
    struct s4d_history history = {0};
    row->title = title_of(row->series);
    row->last = row->before = NAN;
    row->spark = -1;
    /* The table alone needs no more than its line and what the verdict looked at. */
    int few = page->verdict->options.window > RECENT ? page->verdict->options.window : RECENT;
    int nights = section || page->options.nights < few ? page->options.nights : few;
    int rc = s4d_store_history(page->store, row->series->id, nights, page->verdict->night, &history,
                               err);
    const struct s4d_points *points = rc == 0 ? main_points(row, &history) : NULL;
    if (points) {
        const struct s4d_night *last = &points->v[points->n - 1];
        row->metric = points->metric;
        row->nights = points->n;
        if (last->day == page->verdict->night)
            row->last = last->median;
        row->before = level_before(row, points, row->standing->nights);
        if (points->n > 1)
            row->spark = s4d_picture_spark(&page->pictures, points, RECENT);
    }
    if (rc == 0 && section)
        rc = add_section(page, row, &history, points, err);
    s4d_history_free(&history);
    return rc;
}

void s4d_row_free(struct s4d_row *row)
{
    for (int i = 0; i < row->n; i++) {
        free(row->v[i].html);
        free(row->v[i].label);
    }
    free(row->v);
    free(row->title);
}
