/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/track/attribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/track/replay.h"
#include "support/memory.h"

const char *const s4d_exposed_names[S4D_EXPOSED] = {"compute", "x", "y", "z", "data", "other"};
static const enum s4d_split_part of_exposed[S4D_EXPOSED] = {
    S4D_SPLIT_COMPUTE, S4D_SPLIT_X, S4D_SPLIT_Y, S4D_SPLIT_Z, S4D_SPLIT_DATA, S4D_SPLIT_OTHER};

/* --- by rates ------------------------------------------------------------------------------- */

/* Whose part a stream's collectives are: as exposed_s counts them. */
static enum s4d_split_part part_of_stream(int stream)
{
    switch (stream) {
    case S4D_STREAM_X:
        return S4D_SPLIT_X;
    case S4D_STREAM_Y:
        return S4D_SPLIT_Y;
    case S4D_STREAM_Z_GATHER:
    case S4D_STREAM_Z_SCATTER:
        return S4D_SPLIT_Z;
    case S4D_STREAM_DATA:
    case S4D_STREAM_Z_DATA:
        return S4D_SPLIT_DATA;
    default:
        return S4D_SPLIT_OTHER;
    }
}

static unsigned differing(const struct s4d_night_state *a, const struct s4d_night_state *b)
{
    unsigned differ = 0;
    if (memcmp(a->rates.op_class, b->rates.op_class, sizeof a->rates.op_class) != 0)
        differ |= 1u << S4D_SPLIT_COMPUTE;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (a->rates.stream[s] != b->rates.stream[s])
            differ |= 1u << part_of_stream(s);
    if (a->slow != b->slow || a->slow_rank != b->slow_rank)
        differ |= 1u << S4D_SPLIT_SLOW_NODE;
    return differ;
}

/* The causes of `after` as after, all else as before. */
static struct s4d_night_state mix(const struct s4d_night_state *before,
                                  const struct s4d_night_state *after, unsigned mask)
{
    struct s4d_night_state state = mask >> S4D_SPLIT_SLOW_NODE & 1 ? *after : *before;
    state.rates = mask >> S4D_SPLIT_COMPUTE & 1 ? after->rates : before->rates;
    for (int s = 0; s < S4D_STREAMS; s++)
        state.rates.stream[s] = (mask >> part_of_stream(s) & 1 ? after : before)->rates.stream[s];
    return state;
}

/* A part that was measured only on one side cannot be a cause. */
static void keep_common(struct s4d_night_rates *a, struct s4d_night_rates *b)
{
    double *of[][2] = {{&a->gemm_flops_per_s, &b->gemm_flops_per_s},
                       {&a->gemm_s, &b->gemm_s},
                       {&a->attention_s, &b->attention_s},
                       {&a->kernels_s, &b->kernels_s}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (isnan(*of[i][0]) || isnan(*of[i][1]))
            *of[i][0] = *of[i][1] = NAN;
    for (int s = 0; s < S4D_STREAMS; s++)
        if (isnan(a->busbw_Bps[s]) || isnan(b->busbw_Bps[s]))
            a->busbw_Bps[s] = b->busbw_Bps[s] = NAN;
}

static int simulate(struct s4d_attribution *a, const struct s4d_replay *r, struct s4d_error *err)
{
    unsigned masks[S4D_SPLIT_MASKS];
    struct s4d_night_state before = s4d_replay_state(r, &a->before),
                           after = s4d_replay_state(r, &a->after), states[S4D_SPLIT_MASKS];
    double time_s[S4D_SPLIT_MASKS], part_s[S4D_SPLIT_CAUSES];
    if (!a->before.slowest.host[0] || !a->after.slowest.host[0])
        before.slow = after.slow = 1;
    unsigned differ = differing(&before, &after);
    int n = s4d_split_masks(differ, masks);
    for (int i = 0; i < n; i++)
        states[i] = mix(&before, &after, masks[i]);
    if (s4d_replay_times(r, states, n, time_s, err))
        return -1;
    s4d_split(differ, time_s, part_s);
    a->simulated_s[0] = time_s[0];
    a->simulated_s[1] = time_s[n - 1];
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++)
        a->part[i] = part_s[i] / time_s[0];
    snprintf(a->machine, sizeof a->machine, "%s", r->made ? "made of the rates" : r->machine.name);
    return 0;
}

static int by_rates(struct s4d_attribution *a, const json_t *record, const char *machine,
                    int workers, struct s4d_error *err)
{
    struct s4d_replay replay;
    keep_common(&a->before, &a->after);
    if (s4d_replay_open(&replay, record, machine, &a->before, workers, err))
        return -1;
    int rc = simulate(a, &replay, err);
    s4d_replay_free(&replay);
    return rc;
}

/* --- by the records themselves -------------------------------------------------------------- */

static bool by_exposed(struct s4d_attribution *a)
{
    double before_s = a->exposed[0].iteration_s;
    if (a->exposed[0].records == 0 || a->exposed[1].records == 0 || !(before_s > 0))
        return false;
    for (int i = 0; i < S4D_EXPOSED; i++)
        a->part[of_exposed[i]] = (a->exposed[1].part_s[i] - a->exposed[0].part_s[i]) / before_s;
    return true;
}

static void finish(struct s4d_attribution *a)
{
    double sum = 0;
    for (int i = 0; i < S4D_SPLIT_CAUSES; i++)
        sum += a->part[i];
    a->part[S4D_SPLIT_UNEXPLAINED] = a->ratio - 1 - sum;
}

void s4d_attribute(struct s4d_attribution *a, const json_t *record, const char *machine,
                   int workers)
{
    struct s4d_error err = {0};
    const char *kind = json_string_value(json_object_get(record, "kind"));
    a->by = S4D_BY_NOTHING;
    a->simulated_s[0] = a->simulated_s[1] = NAN;
    if (isnan(a->ratio))
        return;
    if (strcmp(kind ? kind : "", "simulate") == 0)
        a->note[0] = '\0'; /* that what was simulated changed is a matter of commits */
    else if (a->before.records == 0 || a->after.records == 0)
        snprintf(a->note, sizeof a->note, "no rates were measured %s",
                 a->before.records + a->after.records == 0 ? "in these nights"
                 : a->before.records == 0                  ? "before the change"
                                                           : "since the change");
    else if (by_rates(a, record, machine, workers, &err) == 0)
        a->by = S4D_BY_RATES;
    else
        snprintf(a->note, sizeof a->note, "not simulated: %.120s%s%.240s", err.where,
                 err.where[0] ? ": " : "", err.text);
    if (a->by == S4D_BY_NOTHING && by_exposed(a))
        a->by = S4D_BY_EXPOSED;
    if (a->by != S4D_BY_NOTHING)
        finish(a);
}

/* --- what is said --------------------------------------------------------------------------- */

/* What is measured of a night, as people call it. */
struct measured {
    const char *of, *name, *unit;
    double before, after;
    bool is_time;
};
enum { MEASURED = 3 + S4D_STREAMS };

static int list_measured(const struct s4d_attribution *a, struct measured *v)
{
    static const char *const streams[S4D_STREAMS] = {
        [S4D_STREAM_X] = "all-reduce on x",         [S4D_STREAM_Y] = "all-reduce on y",
        [S4D_STREAM_Z_GATHER] = "all-gather on z",  [S4D_STREAM_Z_SCATTER] = "reduce-scatter on z",
        [S4D_STREAM_DATA] = "all-reduce on data",   [S4D_STREAM_Z_DATA] = "all-reduce on z,data",
        [S4D_STREAM_X_Y_Z] = "collectives on x,y,z"};
    const struct s4d_night_rates *b = &a->before, *c = &a->after;
    int n = 0;
    v[n++] = (struct measured){"gemm", "GEMM", "FLOP/s", b->gemm_flops_per_s, c->gemm_flops_per_s,
                               false};
    v[n++] = (struct measured){"attention", "attention", "s", b->attention_s, c->attention_s, true};
    v[n++] = (struct measured){"kernels", "other kernels", "s", b->kernels_s, c->kernels_s, true};
    for (int s = 0; s < S4D_STREAMS; s++)
        if (streams[s])
            v[n++] = (struct measured){s4d_streams[s].name, streams[s],      "B/s",
                                       b->busbw_Bps[s],     c->busbw_Bps[s], false};
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (v[i].before > 0 && v[i].after > 0)
            v[kept++] = v[i];
    return kept;
}

/* Of the rate, also where a time is measured. */
static double change_of(const struct measured *m)
{
    return (m->is_time ? m->before / m->after : m->after / m->before) - 1;
}

static const double least_word = 0.01; /* smaller changes of a rate are called unchanged */

static void say_rates(const struct s4d_attribution *a, FILE *out)
{
    struct measured v[MEASURED];
    int n = a->before.records && a->after.records ? list_measured(a, v) : 0;
    const char *comma = "";
    for (int i = 0; i < n; i++) {
        double change = change_of(&v[i]);
        if (fabs(change) >= least_word)
            fprintf(out, "%s%s %s %.1f %%", comma, v[i].name, change < 0 ? "down" : "up",
                    100 * fabs(change));
        else if (strcmp(v[i].of, "gemm") == 0)
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

static void say_parts(const struct s4d_attribution *a, double scale, FILE *out)
{
    fprintf(out, "%s of %+.1f %%: ", a->by == S4D_BY_RATES ? "simulated," : "by exposed_s,",
            100 * scale * (a->ratio - 1));
    for (int i = 0; i < S4D_SPLIT_PARTS; i++) {
        double points = 100 * scale * a->part[i];
        if (fabs(points) >= 0.05 && i != S4D_SPLIT_UNEXPLAINED)
            fprintf(out, "%s %+.1f, ", i == S4D_SPLIT_SLOW_NODE ? "slow node" : s4d_split_names[i],
                    points);
    }
    fprintf(out, "unexplained %+.1f", 100 * scale * a->part[S4D_SPLIT_UNEXPLAINED]);
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
    struct measured v[MEASURED];
    int n = list_measured(a, v);
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:f}", "of", v[i].of, "unit",
                                              v[i].unit, "before", v[i].before, "after", v[i].after,
                                              "change", change_of(&v[i])));
    return list;
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
            json_object_set_new(parts, s4d_split_names[i], json_real(scale * a->part[i]));
        json_object_set_new(record, "change", json_real(scale * (a->ratio - 1)));
        json_object_set_new(record, "parts", parts);
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
