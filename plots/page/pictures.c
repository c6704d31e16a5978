/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/page/pictures.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plots/gnuplot.h"
#include "plots/page/svg.h"
#include "support/file.h"
#include "support/memory.h"

enum { DAY_S = 86400 };

int s4d_pictures_begin(struct s4d_pictures *p, struct s4d_error *err)
{
    const char *temporary = getenv("TMPDIR");
    *p =
        (struct s4d_pictures){.folder = s4d_asprintf("%s/scale4d-report-XXXXXX",
                                                     temporary && *temporary ? temporary : "/tmp")};
    if (!mkdtemp(p->folder)) {
        s4d_fail(err, S4D_EXIT_OUTPUT, p->folder, "cannot be made: %s", strerror(errno));
        free(p->folder);
        p->folder = NULL;
        return -1;
    }
    char *script = s4d_asprintf("%s/report.gp", p->folder);
    p->script = fopen(script, "we");
    if (!p->script)
        s4d_fail(err, S4D_EXIT_OUTPUT, script, "cannot be written: %s", strerror(errno));
    else
        fprintf(p->script, "load '%s/plots/page/report.gp'\n", s4d_data_folder());
    free(script);
    return p->script ? 0 : -1;
}

int s4d_pictures_draw(struct s4d_pictures *p, struct s4d_error *err)
{
    char *script = s4d_asprintf("%s/report.gp", p->folder);
    int lost = ferror(p->script), rc = 0;
    if (fclose(p->script) != 0 || lost)
        rc = s4d_fail(err, S4D_EXIT_OUTPUT, script, "cannot be written: %s", strerror(errno));
    p->script = NULL;
    if (rc == 0 && p->n > 0)
        rc = s4d_gnuplot_folder(script, p->folder, err);
    free(script);
    return rc;
}

int s4d_picture_take(const struct s4d_pictures *p, int picture, FILE *out, const char *class,
                     const char *label, struct s4d_error *err)
{
    char *file = s4d_asprintf("%s/%d.svg", p->folder, picture), *svg = NULL;
    size_t n;
    int rc = s4d_file_read(file, &svg, &n, err);
    if (rc == 0)
        s4d_svg_inline(out, svg, class, label);
    else if (err)
        err->exit = S4D_EXIT_DEVICE;
    free(svg);
    free(file);
    return rc;
}

void s4d_pictures_end(struct s4d_pictures *p)
{
    if (p->script)
        fclose(p->script);
    DIR *folder = p->folder ? opendir(p->folder) : NULL;
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        char *file = s4d_asprintf("%s/%s", p->folder, e->d_name);
        if (e->d_name[0] != '.')
            unlink(file);
        free(file);
    }
    if (folder)
        closedir(folder);
    if (p->folder)
        rmdir(p->folder);
    free(p->folder);
    *p = (struct s4d_pictures){0};
}

static struct s4d_unit unit_of(const struct s4d_metric *metric, double largest)
{
    static const struct prefix {
        double scale;
        const char *text;
    } large[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"},
                 {1e6, "M"},  {1e3, "k"},  {1, ""}},
      small[] = {{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}};
    bool seconds = strcmp(metric->unit, "s") == 0;
    const struct prefix *p = seconds ? small : large,
                        *last = p + (seconds ? sizeof small : sizeof large) / sizeof *p - 1;
    if (strcmp(metric->unit, "rank") == 0)
        p = last;
    while (p < last && largest < p->scale)
        p++;
    struct s4d_unit unit = {.scale = p->scale};
    snprintf(unit.text, sizeof unit.text, "%s%s", p->text, metric->unit);
    return unit;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The vertical range: every median, level and band, and of the samples all but the outermost
 * hundredth at either end, as far as twice the medians' range from these (of medians that are
 * alike, 2 % of them): neither one that was interrupted nor a noisy machine's flatten what is
 * judged. */
static void range_of(const struct s4d_picture *p, double *low, double *high)
{
    const struct s4d_points *points = p->points;
    int n = 0;
    for (int i = 0; i < points->n; i++)
        n += points->v[i].n;
    double *all = s4d_malloc(((size_t)n + 1) * sizeof *all);
    n = 0;
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < points->n; i++) {
        *low = fmin(*low, points->v[i].median);
        *high = fmax(*high, points->v[i].median);
        memcpy(all + n, points->v[i].samples, (size_t)points->v[i].n * sizeof *all);
        n += points->v[i].n;
    }
    qsort(all, (size_t)n, sizeof *all, by_value);
    double room = 2 * fmax(*high - *low, 1e-2 * fabs(*high));
    const double more[] = {n > 0 ? fmax(all[n / 100], *low - room) : NAN,
                           n > 0 ? fmin(all[n - 1 - n / 100], *high + room) : NAN, p->lower,
                           p->upper, p->simulated};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        *low = fmin(*low, more[i]); /* of a NaN the other */
        *high = fmax(*high, more[i]);
    }
    double margin = 0.06 * (*high - *low);
    if (margin < 1e-3 * fabs(*high)) /* nothing moves: do not draw the last digit as a mountain */
        margin = fmax(1e-2 * fabs(*high), 1e-12);
    *low -= margin;
    *high += margin;
    free(all);
}

/* The first of every month, or of every second, third, sixth, so that `most` names have room. */
static void write_months(FILE *out, int first, int last, int most)
{
    static const int every[] = {1, 2, 3, 6, 12};
    size_t step = 0;
    while (step + 1 < sizeof every / sizeof *every && (last - first) / (30 * every[step]) >= most)
        step++;
    fputs("set xtics (", out);
    const char *between = "";
    for (int day = first; day <= last; day++) {
        time_t at = (time_t)day * DAY_S;
        struct tm utc;
        char name[16];
        gmtime_r(&at, &utc);
        if (utc.tm_mday != 1 || utc.tm_mon % every[step] != 0)
            continue;
        strftime(name, sizeof name, "%b", &utc);
        fprintf(out, "%s'%s' %lld", between, name, (long long)at);
        between = ", ";
    }
    fputs(")\n", out);
}

/* Ticks at a number of days that people count in, from the last night backwards, which is the one
 * that they look for; months where the history is long. wide: room for twice as many. */
static void write_dates(FILE *out, int first, int last, bool wide)
{
    static const int steps[] = {1, 2, 7, 14, 28};
    int days = last - first;
    size_t i = 0;
    fprintf(out, "set xrange ['%lld':'%lld']\n", (long long)first * DAY_S - DAY_S * 6 / 10,
            (long long)last * DAY_S + DAY_S * 6 / 10);
    if (days > 90 || !wide) {
        write_months(out, first, last, wide ? 12 : 3);
        return;
    }
    while (i + 1 < sizeof steps / sizeof *steps && days > 5 * steps[i])
        i++;
    fprintf(out, "set format x '%%d %%b'; set xtics %lld,%d\n",
            (long long)(last - days / steps[i] * steps[i]) * DAY_S, steps[i] * DAY_S);
}

/* At most six ticks, at 1, 2 or 5 of a power of ten, with as many decimals as they need. */
static void write_values(FILE *out, double low, double high)
{
    static const double nice[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10((high - low) / 6)));
    size_t i = 0;
    while (i < 3 && (high - low) / (power * nice[i]) > 6)
        i++;
    double step = power * nice[i];
    int decimals = (int)fmax(0, -floor(log10(step) + 1e-9));
    fprintf(out, "set yrange [%.9g:%.9g]; set ytics %.9g; set format y '%%.%df'\n", low, high, step,
            decimals);
}

/* Nights [from, to). */
static void write_ranges(FILE *out, const struct s4d_points *points, int from, int to, double scale,
                         double low, double high)
{
    fputs("$ranges << E\n", out);
    for (int i = from; i < to; i++) {
        const struct s4d_night *night = &points->v[i];
        double least = INFINITY, most = -INFINITY;
        for (int k = 0; k < night->n; k++) {
            least = fmin(least, night->samples[k]);
            most = fmax(most, night->samples[k]);
        }
        long long at = (long long)night->day * DAY_S;
        fprintf(out, "%lld %.7g\n%lld %.7g\n\n", at, fmax(least, low) / scale, at,
                fmin(most, high) / scale);
    }
    fputs("E\n", out);
}

static void write_samples(FILE *out, const struct s4d_points *points, int from, int to,
                          double scale, double low, double high)
{
    fputs("$samples << E\n", out);
    for (int i = from; i < to; i++)
        for (int k = 0; k < points->v[i].n; k++) {
            long long at = (long long)points->v[i].day * DAY_S;
            double x = points->v[i].samples[k];
            if (x >= low && x <= high)
                fprintf(out, "%lld %.7g\n%lld %.7g\n\n", at, x / scale, at, x / scale);
        }
    fputs("E\n", out);
}

static void write_medians(FILE *out, const struct s4d_points *points, int from, int to,
                          double scale)
{
    fputs("$medians << E\n", out);
    for (int i = from; i < to; i++)
        fprintf(out, "%lld %.7g\n", (long long)points->v[i].day * DAY_S,
                points->v[i].median / scale);
    fputs("E\n", out);
}

/* A dashed line before a night, and what happened there above it. */
static void write_mark(FILE *out, int day, const char *text, const char *ink)
{
    long long at = (long long)day * DAY_S - DAY_S / 2;
    fprintf(out,
            "set arrow from '%lld', graph 0 to '%lld', graph 1.02 nohead lc rgb %s\n"
            "set label '%s' at '%lld', graph 1.06 center tc rgb %s\n",
            at, at, ink, text, at, ink);
}

static int write_levels(FILE *out, const struct s4d_picture *p, int first, int last, double scale)
{
    char text[32];
    int n = 0;
    fputs("unset label; unset arrow\n$levels << E\n", out);
    for (int i = 0; i < p->n_steps; i++) {
        const struct s4d_step *step = &p->steps[i];
        if (step->to < first || step->from > last)
            continue;
        double from = fmax(step->from, first) - 0.5, to = fmin(step->to, last) + 0.5;
        fprintf(out, "%.0f %.7g\n%.0f %.7g\n\n", from * DAY_S, step->value / scale, to * DAY_S,
                step->value / scale);
        n++;
    }
    fputs("E\n", out);
    for (int i = 0; i < p->n_steps; i++) {
        const struct s4d_step *step = &p->steps[i];
        snprintf(text, sizeof text, "%s%.1f %%", step->change < 0 ? "−" : "+",
                 fabs(100 * step->change));
        if (!isnan(step->change) && step->from >= first && step->from <= last)
            write_mark(out, step->from, text, "CHANGE");
    }
    for (int i = 0; i < p->points->n; i++)
        if (p->points->v[i].restart && p->points->v[i].day >= first && p->points->v[i].day <= last)
            write_mark(out, p->points->v[i].day, "accepted", "RESTART");
    return n;
}

/* Nights [from, to), all samples or ranges. Behind first: band, simulated, ranges, levels, samples,
 * medians. A datablock without points is left out: gnuplot would warn. */
static void write_panel(FILE *out, const struct s4d_picture *p, int from, int to, bool samples,
                        double scale, double low, double high)
{
    const struct s4d_points *points = p->points;
    int first = points->v[from].day, last = points->v[to - 1].day;
    double from_s = (first - 0.6) * DAY_S, to_s = (last + 0.6) * DAY_S;
    double lower = fmax(isnan(p->lower) ? low : p->lower, low) / scale,
           upper = fmin(isnan(p->upper) ? high : p->upper, high) / scale;
    bool band = !isnan(p->lower) || !isnan(p->upper);
    write_dates(out, first, last, samples);
    if (samples)
        write_samples(out, points, from, to, scale, low, high);
    else
        write_ranges(out, points, from, to, scale, low, high);
    write_medians(out, points, from, to, scale);
    int levels = write_levels(out, p, first, last, scale);
    if (band)
        fprintf(out, "$band << E\n%.0f %.9g %.9g\n%.0f %.9g %.9g\nE\n", from_s, lower, upper, to_s,
                lower, upper);
    if (!isnan(p->simulated))
        fprintf(out, "$simulated << E\n%.0f %.9g\n%.0f %.9g\nE\n", from_s, p->simulated / scale,
                to_s, p->simulated / scale);
    fputs("plot ", out);
    if (band)
        fputs("$band using 1:2:3 with filledcurves fc rgb BAND fs solid noborder, ", out);
    if (!isnan(p->simulated))
        fputs("$simulated using 1:2 with lines lc rgb SIMULATED, ", out);
    if (!samples)
        fputs("$ranges using 1:2 with lines lc rgb RANGE, ", out);
    if (levels > 0)
        fputs("$levels using 1:2 with lines lc rgb LEVEL, ", out);
    if (samples)
        fputs("$samples using 1:2 with lines lc rgb SAMPLES, ", out);
    fprintf(out, "$medians using 1:2 with lines lc rgb %s\n", samples ? "MEDIAN" : "OLDER");
}

static int count_outside(const struct s4d_points *points, double low, double high)
{
    int n = 0;
    for (int i = 0; i < points->n; i++)
        for (int k = 0; k < points->v[i].n; k++)
            n += points->v[i].samples[k] < low || points->v[i].samples[k] > high;
    return n;
}

int s4d_picture_history(struct s4d_pictures *pictures, const struct s4d_picture *p, int *outside,
                        struct s4d_unit *unit)
{
    FILE *out = pictures->script;
    int n = p->points->n, recent = s4d_picture_split(p);
    double low, high;
    range_of(p, &low, &high);
    *unit = unit_of(p->points->metric, fmax(fabs(low), fabs(high)));
    *outside = count_outside(p->points, low, high);
    fprintf(out, "@HISTORY\nset output folder.'/%d.svg'\n", pictures->n);
    write_values(out, low / unit->scale, high / unit->scale);
    if (recent > 0) {
        fputs("set multiplot\n@LEFT\n", out);
        write_panel(out, p, 0, recent, false, unit->scale, low, high);
        fputs("@RIGHT\nset format y ''\n", out);
    } else
        fputs("@WHOLE\n", out);
    write_panel(out, p, recent, n, true, unit->scale, low, high);
    if (recent > 0)
        fputs("unset multiplot\n", out);
    return pictures->n++;
}

int s4d_picture_split(const struct s4d_picture *p)
{
    return p->points->n > p->recent + p->recent / 2 ? p->points->n - p->recent : 0;
}

int s4d_picture_spark(struct s4d_pictures *pictures, const struct s4d_points *points, int nights)
{
    FILE *out = pictures->script;
    int from = points->n > nights ? points->n - nights : 0;
    double low = INFINITY, high = -INFINITY;
    for (int i = from; i < points->n; i++) {
        low = fmin(low, points->v[i].median);
        high = fmax(high, points->v[i].median);
    }
    double margin =
        fmax(0.1 * (high - low), 1e-3 * fabs(high)); /* a flat line where nothing moves */
    margin = fmax(margin, 1e-12);
    fprintf(out, "@SPARK\nset output folder.'/%d.svg'\n$medians << E\n", pictures->n);
    for (int i = from; i < points->n; i++)
        fprintf(out, "%d %.9g\n", points->v[i].day, points->v[i].median);
    fprintf(out,
            "E\n$last << E\n%d.2 %.9g\n%d.3 %.9g\nE\nset xrange [%d:%d]; set yrange [%.9g:%.9g]\n"
            "plot $medians using 1:2 with lines lc rgb MEDIAN, "
            "$last using 1:2 with lines lc rgb SAMPLES\n",
            points->v[points->n - 1].day, points->v[points->n - 1].median,
            points->v[points->n - 1].day, points->v[points->n - 1].median, points->v[from].day - 1,
            points->v[points->n - 1].day + 1, low - margin, high + margin);
    return pictures->n++;
}
