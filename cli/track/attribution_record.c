/* SPDX-License-Identifier: Apache-2.0 */
/* An attribution as JSON, and as a line for people. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/attribution.h"
#include "support/memory.h"

/* What is measured of a night, as people call it. */
struct measured {
    const char *of, *name, *unit;
    bool is_time;
    double before, after;
    double error; /* standard error of the change */
};
struct list {
    struct measured v[3 + S4D_STREAMS];
    int n;
};

static void add(struct list *list, struct measured m)
{
    if (m.before > 0 && m.after > 0)
        list->v[list->n++] = m;
}

/* Nothing where either side has no records. */
static struct list list_measured(const struct s4d_attribution *a)
{
    static const char *const streams[S4D_STREAMS] = {
        [S4D_STREAM_X] = "all-reduce on x",         [S4D_STREAM_Y] = "all-reduce on y",
        [S4D_STREAM_Z_GATHER] = "all-gather on z",  [S4D_STREAM_Z_SCATTER] = "reduce-scatter on z",
        [S4D_STREAM_DATA] = "all-reduce on data",   [S4D_STREAM_Z_DATA] = "all-reduce on z,data",
        [S4D_STREAM_X_Y_Z] = "collectives on x,y,z"};
    const struct s4d_night_rates *b = &a->before, *c = &a->after;
    struct list list = {.n = 0};
    if (b->records == 0 || c->records == 0)
        return list;
    struct s4d_rate_noise e = s4d_rate_errors(b, c);
    add(&list, (struct measured){"gemm", "GEMM", "FLOP/s", false, b->gemm_flops_per_s,
                                 c->gemm_flops_per_s, e.gemm});
    add(&list, (struct measured){"attention", "attention", "s", true, b->attention_s,
                                 c->attention_s, e.attention});
    add(&list, (struct measured){"kernels", "other kernels", "s", true, b->kernels_s, c->kernels_s,
                                 e.kernels});
    for (int s = 0; s < S4D_STREAMS; s++)
        if (streams[s])
            add(&list, (struct measured){s4d_streams[s].name, streams[s], "B/s", false,
                                         b->busbw_Bps[s], c->busbw_Bps[s], e.busbw[s]});
    return list;
}

/* Of the rate, also where a time is measured. */
static double change_of(const struct measured *m)
{
    return (m->is_time ? m->before / m->after : m->after / m->before) - 1;
}

/* Smaller changes of a rate are called unchanged, and those that its scatter explains. */
static bool is_word(const struct measured *m)
{
    return fabs(change_of(m)) >= fmax(0.01, 2 * m->error);
}

static void say_rates(const struct s4d_attribution *a, FILE *out)
{
    struct list list = list_measured(a);
    const char *comma = "";
    for (int i = 0; i < list.n; i++) {
        const struct measured *m = &list.v[i];
        double change = change_of(m);
        if (is_word(m))
            fprintf(out, "%s%s %s %.1f %%", comma, m->name, change < 0 ? "down" : "up",
                    100 * fabs(change));
        else if (strcmp(m->of, "gemm") == 0)
            fprintf(out, "%sGEMM unchanged", comma);
        else
            continue;
        comma = ", ";
    }
    const struct s4d_slowest *s = &a->after.slowest;
    if (a->after.records && s->host[0]) {
        fprintf(out, "%s%s%s", comma, s->is_rank ? "" : "node ", s->host);
        if (s->is_rank)
            fprintf(out, " rank %d", s->rank);
        fprintf(out, " slowest (%.1f %% below the others)", 100 * (1 - s->part));
        comma = ", ";
    }
    if (*comma)
        fprintf(out, "; ");
}

/* The parts of the metric: FLOP/s fall as time grows. */
static double scale_of(const struct s4d_attribution *a, enum s4d_time_metric metric)
{
    return metric == S4D_IS_TIME ? 1 : -1 / a->ratio;
}

/* To a tenth, as it is printed; nothing has no sign of its own. */
static double tenths(double points)
{
    double shown = round(10 * points) / 10;
    return shown == 0 ? 0 : shown;
}

static void say_parts(const struct s4d_attribution *a, double scale, FILE *out)
{
    const char *comma = "";
    fprintf(out, "%s of %+.1f %%: ", a->by == S4D_BY_RATES ? "simulated," : "by exposed_s,",
            tenths(100 * scale * (a->ratio - 1)));
    for (int i = 0; i < S4D_SPLIT_PARTS; i++) {
        double points = 100 * scale * a->part[i], error = 100 * fabs(scale) * a->error[i];
        if (fabs(points) < 0.05 && i != S4D_SPLIT_UNEXPLAINED)
            continue;
        fprintf(out, "%s%s %+.1f", comma,
                i == S4D_SPLIT_SLOW_NODE ? "slow node" : s4d_split_names[i], tenths(points));
        if (error >= 0.05)
            fprintf(out, " (+-%.1f)", error);
        comma = ", ";
    }
}

static json_t *text_of(const struct s4d_attribution *a, double scale)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    S4D_ASSERT(out != NULL, "no memory");
    say_rates(a, out);
    if (a->by != S4D_BY_NOTHING)
        say_parts(a, scale, out);
    if (a->note[0])
        fprintf(out, "%s%s", a->by != S4D_BY_NOTHING ? " (" : "", a->note);
    if (a->note[0] && a->by != S4D_BY_NOTHING)
        fprintf(out, ")");
    fclose(out);
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == ';'))
        text[--n] = '\0';
    json_t *line = json_string(text);
    free(text);
    return line ? line : json_string("a name that is no text");
}

static json_t *rates_of(const struct s4d_attribution *a)
{
    struct list list = list_measured(a);
    json_t *rates = json_array();
    for (int i = 0; i < list.n; i++) {
        const struct measured *m = &list.v[i];
        json_array_append_new(rates,
                              json_pack("{s:s, s:s, s:f, s:f, s:f, s:f}", "of", m->of, "unit",
                                        m->unit, "before", m->before, "after", m->after, "change",
                                        change_of(m), "error", m->error));
    }
    return rates;
}

static json_t *slowest_of(const struct s4d_attribution *a)
{
    const struct s4d_slowest *s = &a->after.slowest, *b = &a->before.slowest;
    json_t *slowest = json_pack("{s:s, s:i, s:f, s:i}", "host", s->host, "rank", s->rank, "below",
                                1 - s->part, "records", s->records);
    if (b->host[0])
        json_object_set_new(slowest, "before",
                            json_pack("{s:s, s:f}", "host", b->host, "below", 1 - b->part));
    return slowest;
}

json_t *s4d_attribution_record(const struct s4d_attribution *a, enum s4d_time_metric metric)
{
    static const char *const by[] = {[S4D_BY_RATES] = "rates", [S4D_BY_EXPOSED] = "exposed_s"};
    double scale = scale_of(a, metric);
    json_t *record = json_object();
    json_object_set_new(record, "by", by[a->by] ? json_string(by[a->by]) : json_null());
    if (a->by != S4D_BY_NOTHING) {
        json_t *parts = json_object();
        for (int i = 0; i < S4D_SPLIT_PARTS; i++)
            json_object_set_new(parts, s4d_split_names[i], json_real(scale * a->part[i] + 0.0));
        json_object_set_new(record, "change", json_real(scale * (a->ratio - 1)));
        json_object_set_new(record, "parts", parts);
    }
    if (a->by == S4D_BY_RATES) {
        json_t *errors = json_object();
        for (int i = 0; i < S4D_SPLIT_PARTS; i++)
            json_object_set_new(errors, s4d_split_names[i], json_real(fabs(scale) * a->error[i]));
        json_object_set_new(record, "errors", errors);
    }
    if (a->before.records && a->after.records)
        json_object_set_new(record, "rates", rates_of(a));
    if (a->after.records && a->after.slowest.host[0])
        json_object_set_new(record, "slowest", slowest_of(a));
    json_object_set_new(
        record, "records",
        json_pack("{s:i, s:i}", "before", a->before.records, "after", a->after.records));
    if (a->by == S4D_BY_RATES)
        json_object_set_new(record, "simulated",
                            json_pack("{s:s, s:f, s:f}", "machine", a->machine, "before_s",
                                      a->simulated_s[0], "after_s", a->simulated_s[1]));
    if (a->exposed[0].records && a->exposed[1].records)
        json_object_set_new(record, "measured",
                            json_pack("{s:f, s:f}", "before_s", a->exposed[0].iteration_s,
                                      "after_s", a->exposed[1].iteration_s));
    if (a->note[0])
        json_object_set_new(record, "note", json_string(a->note));
    json_object_set_new(record, "text", text_of(a, scale));
    return record;
}
