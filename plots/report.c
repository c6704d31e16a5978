/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "plots/figure.h"
#include "plots/ratios.h"
#include "plots/rows.h"
#include "plots/scaling.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Text from a file inside a table cell: no bar, no line end. */
static void cell(const char *text, FILE *out)
{
    fputs(" ", out);
    for (; *text != '\0'; text++)
        fputc(*text == '|' || *text == '\n' ? '/' : *text, out);
    fputs(" |", out);
}

struct mean {
    double sum;
    int n;
};

/* Of one machine's points, or (NULL) of all. */
static struct mean mean_error(const struct s4d_series *series, const struct s4d_records *records,
                              const struct s4d_experiment *e,
                              const struct s4d_published_list *published, const char *machine)
{
    struct mean mean = {0};
    for (int i = 0; i < e->n_points; i++) {
        const struct s4d_point *p = &e->point[i];
        const struct s4d_published *number = s4d_figure_published(e, published, "sustained", p);
        double error = s4d_figure_error(number, s4d_figure_record(records, series, p));
        if (machine != NULL && strcmp(machine, p->machine) != 0)
            continue;
        if (number != NULL && number->verified && isfinite(error)) {
            mean.sum += fabs(error);
            mean.n++;
        }
    }
    return mean;
}

/* Whether point i is the first of its machine. */
static bool begins_machine(const struct s4d_experiment *e, int i)
{
    for (int j = 0; j < i; j++)
        if (strcmp(e->point[j].machine, e->point[i].machine) == 0)
            return false;
    return true;
}

static void comparison_row(const struct s4d_experiment *e, const struct s4d_records *records,
                           const struct s4d_published *number, FILE *out)
{
    fprintf(out, "| %s%s%s | %d | %s | %g %s | %s |", e->several_machines ? number->machine : "",
            e->several_machines ? " " : "", number->workload, number->gpus, number->metric->name,
            number->value, number->metric->unit, number->provenance);
    struct s4d_point p = {.workload = number->workload,
                          .machine = e->several_machines ? number->machine : e->machine,
                          .gpus = number->gpus};
    for (int s = 0; s < e->n_series; s++) {
        const json_t *r = s4d_figure_record(records, &e->series[s], &p);
        if (r == NULL)
            fprintf(out, " not simulated | |");
        else if (s4d_ratios_is_reference(e, &e->series[s]))
            fprintf(out, " %.4g | |", s4d_metric_value(number->metric, r));
        else
            fprintf(out, " %.4g | %+.1f %% |", s4d_metric_value(number->metric, r),
                    s4d_figure_error(number, r));
    }
    fputc('\n', out);
}

static void series_titles(const struct s4d_experiment *e, FILE *out)
{
    for (int s = 0; s < e->n_series; s++) {
        const struct s4d_series *series = &e->series[s];
        fprintf(out, "- Series %s: %s%s", series->name, series->title, series->set.n ? " (" : "");
        for (int i = 0; i < series->set.n; i++)
            fprintf(out, "%s`%s`", i ? ", " : "", series->set.v[i]);
        fprintf(out, "%s.\n", series->set.n ? ")" : "");
    }
    fputc('\n', out);
}

static void comparison(const struct s4d_experiment *e, const struct s4d_records *records,
                       const struct s4d_published_list *published, FILE *out)
{
    if (published->n == 0) {
        fprintf(out, "## Series\n\nNothing was published of these points.\n\n");
        series_titles(e, out);
        return;
    }
    fprintf(out,
            "## Simulated and published\n\n| model | GPUs | metric | published | provenance |");
    for (int s = 0; s < e->n_series; s++)
        fprintf(out, " %s | error |", e->series[s].name);
    fprintf(out, "\n|---|---:|---|---:|---|");
    for (int s = 0; s < e->n_series; s++)
        fprintf(out, "---:|---:|");
    fputc('\n', out);
    for (int i = 0; i < published->n; i++)
        if (published->v[i].metric->key != NULL)
            comparison_row(e, records, &published->v[i], out);
    fprintf(out,
            "\nError: 100 (simulated / published - 1). Unverified numbers (recalled, not seen in "
            "print) are drawn hollow and are in no mean.\n\n");
    s4d_report_errors(&(struct s4d_tables){e, records, published}, out);
    series_titles(e, out);
}

static void mean_by_machine(const struct s4d_experiment *e, const struct s4d_records *records,
                            const struct s4d_published_list *published,
                            const struct s4d_series *series, FILE *out)
{
    const char *between = " (";
    for (int i = 0; i < e->n_points; i++) {
        const char *machine = e->point[i].machine;
        struct mean m = mean_error(series, records, e, published, machine);
        if (!begins_machine(e, i) || m.n == 0)
            continue;
        fprintf(out, "%s%s %.1f %% over %d", between, machine, m.sum / m.n, m.n);
        between = ", ";
    }
    fputc(')', out);
}

void s4d_report_errors(const struct s4d_tables *t, FILE *out)
{
    const struct s4d_experiment *e = t->e;
    for (int s = 0; s < e->n_series && t->published->n > 0; s++) {
        struct mean m = mean_error(&e->series[s], t->records, e, t->published, NULL);
        if (s4d_ratios_is_reference(e, &e->series[s]))
            continue;
        if (m.n == 0) {
            fprintf(out, "- %s: no verified published point\n", e->series[s].name);
            continue;
        }
        fprintf(out, "- %s: mean |error| of sustained FLOP/s %.1f %% over %d verified %s",
                e->series[s].name, m.sum / m.n, m.n, m.n == 1 ? "point" : "points");
        if (e->several_machines)
            mean_by_machine(e, t->records, t->published, &e->series[s], out);
        fputc('\n', out);
    }
    s4d_ratios_print(e, t->records, t->published, out);
}

void s4d_report_summary(const struct s4d_experiment *e, const struct s4d_records *records,
                        const struct s4d_published_list *published, FILE *out)
{
    s4d_rows_kinds[e->rows].summary(&(struct s4d_tables){e, records, published}, out);
}

/* What the slowest rank's iteration is made of, in percent. */
static void exposed(const json_t *record, FILE *out)
{
    const json_t *parts = json_object_get(record, "exposed_s");
    double whole = number_of(record, "iteration_time_s");
    const char *name;
    json_t *part;
    const char *between = " ";
    json_object_foreach((json_t *)parts, name, part)
    {
        double percent = 100 * json_number_value(part) / whole;
        if (percent >= 0.05) {
            fprintf(out, "%s%s %.1f", between, name, percent);
            between = ", ";
        }
    }
    fputs(" |", out);
}

/* Of the collectives of an iteration, in percent; nothing where the record does not say. */
static void extrapolated(const json_t *record, FILE *out)
{
    const json_t *sim = json_object_get(record, "sim");
    double part = number_of(sim, "extrapolated") / number_of(sim, "collectives");
    if (isfinite(part))
        fprintf(out, " %.0f |", 100 * part);
    else
        fputs(" |", out);
}

static void runs(const struct s4d_experiment *e, const struct s4d_records *records, FILE *out)
{
    fprintf(
        out,
        "## Runs\n\nGrid: GXxGYxGZxGDATA. PFLOP/s by the formula the papers use. Parts: of "
        "the slowest rank's iteration, computing and the communication not hidden behind it, "
        "by axis. Extrapolated: collectives outside the sizes or rank counts that the machine's "
        "tables were measured for.\n\n"
        "| series | model | GPUs | grid | micro-batch | iteration s | PFLOP/s | %% of peak | "
        "memory GB | extrapolated %% | parts %% |\n"
        "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---|\n");
    for (int s = 0; s < e->n_series; s++)
        for (int i = 0; i < e->n_points; i++) {
            const json_t *r = s4d_figure_record(records, &e->series[s], &e->point[i]);
            fprintf(out, "| %s | %s%s%s | %d | %s | %.0f | %.4g | %.4g | %.1f | %.1f |",
                    e->series[s].name, e->several_machines ? e->point[i].machine : "",
                    e->several_machines ? " " : "", e->point[i].workload, e->point[i].gpus,
                    text_of(r, "grid"), number_of(r, "micro_batch"),
                    number_of(r, "iteration_time_s"), number_of(r, "flops_per_s") / 1e15,
                    100 * number_of(r, "peak_fraction"), number_of(r, "memory_peak_bytes") / 1e9);
            extrapolated(r, out);
            exposed(r, out);
            fputc('\n', out);
        }
    fputc('\n', out);
}

static void sources(const struct s4d_published_list *published, FILE *out)
{
    if (published->n == 0)
        return;
    fprintf(out, "## Where the published numbers were seen\n\n"
                 "| model | machine | GPUs | metric | value | provenance | source | note |\n"
                 "|---|---|---:|---|---:|---|---|---|\n");
    for (int i = 0; i < published->n; i++) {
        const struct s4d_published *p = &published->v[i];
        fprintf(out, "| %s | %s | %d | %s | %g %s | %s |", p->workload, p->machine, p->gpus,
                p->metric->name, p->value, p->metric->unit, p->provenance);
        cell(p->source, out);
        cell(p->note, out);
        fputc('\n', out);
    }
    fputc('\n', out);
}

/* The first point of a machine tells of it. */
static void machine_entries(const struct s4d_experiment *e, const struct s4d_records *records,
                            const struct s4d_point *p, FILE *out)
{
    const json_t *r = s4d_figure_record(records, &e->series[0], p);
    const json_t *entries = json_object_get(json_object_get(r, "experiment"), "machine_entries");
    fprintf(out,
            "\nEntries of the machine %s (content %s) that were not read or measured as such:\n\n"
            "| entry | tag | value | source or reason |\n|---|---|---:|---|\n",
            p->machine, text_of(json_object_get(r, "experiment"), "machine_hash"));
    size_t i;
    json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        double value = number_of(entry, "value");
        fprintf(out, "| %s | %s |", text_of(entry, "key"), text_of(entry, "tag"));
        if (isfinite(value))
            fprintf(out, " %g |", value);
        else
            fprintf(out, " %s |",
                    json_is_string(json_object_get(entry, "value")) ? text_of(entry, "value")
                                                                    : "table");
        cell(text_of(entry, "source"), out);
        fputc('\n', out);
    }
    fputc('\n', out);
}

static void assumed_and_fitted(const struct s4d_experiment *e, const struct s4d_records *records,
                               FILE *out)
{
    fprintf(out, "## Assumed and fitted\n\n");
    for (int i = 0; i < e->assumed.n; i++)
        fprintf(out, "- assumed of the experiment: %s\n", e->assumed.v[i]);
    for (int i = 0; i < e->n_points; i++)
        if (begins_machine(e, i))
            machine_entries(e, records, &e->point[i], out);
}

void s4d_report_series(const struct s4d_experiment *e, FILE *out)
{
    fprintf(out, "## Series\n\n");
    series_titles(e, out);
}

void s4d_report_points(const struct s4d_tables *t, FILE *out)
{
    comparison(t->e, t->records, t->published, out);
    s4d_scaling_report(t->e, t->records, t->published, out);
    runs(t->e, t->records, out);
}

int s4d_report(const struct s4d_experiment *e, const struct s4d_records *records,
               const struct s4d_published_list *published, const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (out == NULL)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    const json_t *r = s4d_figure_record(records, &e->series[0], &e->point[0]);
    const json_t *provenance = json_object_get(r, "provenance");
    fprintf(out, "# %s\n\n%s%s, %s. Simulated with scale4d %s (%s).\n\n![%s](%s.png)\n\n", e->title,
            strspn(e->paper, "0123456789.") == strlen(e->paper) ? "arXiv " : "", e->paper, e->name,
            text_of(provenance, "version"), text_of(provenance, "commit"), e->title, e->name);
    if (e->note != NULL)
        fprintf(out, "**%s.**\n\n", e->note);
    s4d_rows_kinds[e->rows].report(&(struct s4d_tables){e, records, published}, out);
    sources(published, out);
    assumed_and_fitted(e, records, out);
    bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    return 0;
}
