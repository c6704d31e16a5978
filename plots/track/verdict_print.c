/* SPDX-License-Identifier: Apache-2.0 */
/* A verdict for people and for programs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/track/verdict_internal.h"
#include "support/memory.h"
#include "support/quote.h"
#include "support/units.h"

static const char *const standings[] = {"same",  "too-few", "better", "noted",
                                        "watch", "missing", "worse"};
static const char *const kinds[] = {"change", "reference", "simulated", "missing"};

const char *s4d_standing_name(enum s4d_standing standing)
{
    return standings[standing];
}

const char *s4d_finding_kind_name(enum s4d_finding_kind kind)
{
    return kinds[kind];
}

struct s4d_shown s4d_metric_shown(const struct s4d_metric *metric, double value)
{
    static const struct {
        const char *unit;
        const char *(*format)(double value, char *text, int size);
    } units[] = {{"FLOP/s", s4d_format_flops},
                 {"s", s4d_format_time},
                 {"B/s", s4d_format_bandwidth},
                 {"B", s4d_format_bytes}};
    struct s4d_shown shown;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].unit, metric->unit) == 0) {
            units[i].format(value, shown.text, sizeof shown.text);
            return shown;
        }
    snprintf(shown.text, sizeof shown.text, "%g %s", value, metric->unit);
    return shown;
}

/* --- in words ------------------------------------------------------------------------------- */

struct words {
    char text[128];
};

/* "lost 3.1 %", "takes 4.0 % more", "gained 2.0 %". */
static struct words how_much(const struct s4d_metric_change *c)
{
    struct words w;
    bool more = c->after > c->before;
    const char *verb =
        c->metric->direction > 0 ? (more ? "gained" : "lost") : (more ? "rose by" : "fell by");
    if (isnan(c->part))
        snprintf(w.text, sizeof w.text, "was %s", s4d_metric_shown(c->metric, c->before).text);
    else
        snprintf(w.text, sizeof w.text, "%s %.*f %%", verb, fabs(c->part) < 0.0095 ? 3 : 1,
                 100 * fabs(c->part));
    return w;
}

/* The figure of a series that people know first needs no name. */
static char *subject(const struct s4d_finding *f)
{
    if (f->n == 0 || strcmp(f->v[0].name, "flops_per_s") == 0)
        return s4d_strdup(f->series->label);
    return s4d_asprintf("%s: %s", f->series->label, f->v[0].name);
}

static char *commits(const struct s4d_finding *f)
{
    const char *a = f->commit_before, *b = f->commit_since,
               *with = f->environment ? f->environment : "",
               *before = f->environment ? "; changed with it: " : "";
    if (!*a || !*b)
        return s4d_asprintf("%s%s", before, with);
    return strcmp(a, b) == 0 ? s4d_asprintf("; the same commit %s%s%s", a, before, with)
                             : s4d_asprintf("; commits %s..%s%s%s", a, b, before, with);
}

static char *others(const struct s4d_finding *f)
{
    char *text = s4d_strdup("");
    for (int i = 1; i < f->n; i++) {
        char part[32] = "new";
        if (!isnan(f->v[i].part))
            snprintf(part, sizeof part, "%+.*f %%", fabs(f->v[i].part) < 0.0095 ? 3 : 1,
                     100 * f->v[i].part);
        char *longer =
            s4d_asprintf("%s%s%s %s", text, i == 1 ? "; also " : ", ", f->v[i].name, part);
        free(text);
        text = longer;
    }
    return text;
}

static char *say_change(const struct s4d_finding *f, const char *who, const char *commits,
                        const char *others)
{
    const struct s4d_metric_change *c = &f->v[0];
    struct s4d_shown before = s4d_metric_shown(c->metric, c->before),
                     after = s4d_metric_shown(c->metric, c->after);
    if (f->standing == S4D_STANDING_WATCH)
        return s4d_asprintf("%s %s this night (%s -> %s, %.1f standard errors); a second night "
                            "would confirm it%s%s",
                            who, how_much(c).text, before.text, after.text, c->deviations, commits,
                            others);
    return s4d_asprintf("%s %s since the night of %s (p = %.3g, %.1f standard errors, %d nights): "
                        "%s -> %s%s%s",
                        who, how_much(c).text, s4d_date(f->since).text, c->p, c->deviations,
                        c->nights, before.text, after.text, commits, others);
}

static char *say_reference(const struct s4d_finding *f, const char *who, const char *commits)
{
    const struct s4d_metric_change *c = &f->v[0];
    bool below = c->after < c->before;
    char since[64] = "";
    if (c->nights > 1)
        snprintf(since, sizeof since, ", for %d nights, since that of %s", c->nights,
                 s4d_date(f->since).text);
    return s4d_asprintf("%s is %s, %.1f %% %s the reference %s (%+.1f %% is allowed)%s%s", who,
                        s4d_metric_shown(c->metric, c->after).text, 100 * fabs(c->part),
                        below ? "below" : "above", s4d_metric_shown(c->metric, c->before).text,
                        100 * (below ? f->lower : f->upper), since, commits);
}

static char *say_simulated(const struct s4d_finding *f, const char *who, const char *commits,
                           const char *others)
{
    char *model = f->standing == S4D_STANDING_NOTED
                      ? s4d_asprintf(" has model_version %s, not %s;", f->series->model_version,
                                     f->model_before)
                      : s4d_strdup(""),
         *text;
    if (f->n == 0)
        text = s4d_asprintf("%s%s %s%s%s", who, model,
                            *f->differs ? "simulated otherwise than on the night of "
                                        : "simulated the same as on the night of ",
                            s4d_date(f->before).text, commits);
    else
        text = s4d_asprintf("%s%s simulated otherwise: %s against the night of %s (%s -> %s)%s%s",
                            who, model, how_much(&f->v[0]).text, s4d_date(f->before).text,
                            s4d_metric_shown(f->v[0].metric, f->v[0].before).text,
                            s4d_metric_shown(f->v[0].metric, f->v[0].after).text, commits, others);
    if (*f->differs) {
        char *longer = s4d_asprintf("%s; not the same: %s", text, f->differs);
        free(text);
        text = longer;
    }
    free(model);
    return text;
}

void s4d_finding_say(struct s4d_finding *f)
{
    char *who = subject(f), *between = commits(f), *also = others(f);
    free(f->text);
    switch (f->kind) {
    case S4D_FINDING_CHANGE:
        f->text = say_change(f, who, between, also);
        break;
    case S4D_FINDING_REFERENCE:
        f->text = say_reference(f, who, between);
        break;
    case S4D_FINDING_SIMULATED:
        f->text = say_simulated(f, who, between, also);
        break;
    case S4D_FINDING_MISSING:
        if (f->before < 0) {
            f->text = s4d_asprintf("%s: %s; no night of it went well lately", who, f->differs);
            break;
        }
        f->text = s4d_asprintf("%s has no record of this night; the last is of %s%s%s", who,
                               s4d_date(f->before).text, f->differs ? "; it failed: " : "",
                               f->differs ? f->differs : "");
        break;
    }
    free(who);
    free(between);
    free(also);
}

const char *s4d_finding_cause(const struct s4d_finding *f)
{
    return json_string_value(json_object_get(f->cause, "text"));
}

/* "worse    WORDS": one line, whatever the names of a record hold. */
static void print_line(FILE *out, const char *standing, const char *indent, const char *words)
{
    fprintf(out, "%-8s %s", standing, indent);
    s4d_print_line(words, out);
    fputc('\n', out);
}

void s4d_verdict_print(const struct s4d_verdict *v, FILE *out)
{
    const struct s4d_change_options *o = &v->options.change;
    fprintf(out,
            "# changes: the last %d nights, p <= %g of %d orders (seed %d), at least %g %% and "
            "%g standard errors, two nights\n",
            v->options.window, o->p_max, o->permutations, o->seed, 100 * o->magnitude,
            o->deviation);
    for (int i = 0; i < v->n; i++) {
        const struct s4d_finding *f = &v->v[i];
        const char *cause = s4d_finding_cause(f);
        bool under = f->of >= 0;
        print_line(out, under ? "" : s4d_standing_name(f->standing), under ? "  " : "", f->text);
        if (cause && !(under && s4d_finding_cause(&v->v[f->of])))
            print_line(out, "", under ? "    " : "  ", cause);
    }
    for (int i = 0; i < v->n_rows; i++)
        if (v->row[i].standing == S4D_STANDING_TOO_FEW) {
            char *words = s4d_asprintf("%s: %s", v->row[i].series->label, v->row[i].text);
            print_line(out, s4d_standing_name(S4D_STANDING_TOO_FEW), "", words);
            free(words);
        }
    for (int i = 0; i < v->unused.n; i++)
        fprintf(out, "# %s: no series of the store has this reference\n", v->unused.v[i]);
    fprintf(out, "# %s  %s\n", v->text, s4d_verdict_failed(v) ? "FAILED" : "OK");
}

/* --- JSON ----------------------------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *series_json(const struct s4d_series *s)
{
    return json_pack("{s:I, s:s, s:s, s:s, s:s, s:s, s:I, s:s, s:s}", "id", (json_int_t)s->id,
                     "label", s->label, "host_class", s->host_class, "backend", s->backend, "kind",
                     s->kind, "workload", s->workload, "gpus", (json_int_t)s->gpus, "grid", s->grid,
                     "model_version", s->model_version);
}

static void put_change(json_t *o, const struct s4d_metric_change *c)
{
    json_object_set_new(o, "metric", json_string(c->name));
    json_object_set_new(o, "unit", json_string(c->metric->unit));
    json_object_set_new(o, "since", json_string(s4d_date(c->since).text));
    json_object_set_new(o, "nights", json_integer(c->nights));
    json_object_set_new(o, "before", number(c->before));
    json_object_set_new(o, "after", number(c->after));
    json_object_set_new(o, "change", number(c->part));
    json_object_set_new(o, "p", number(c->p));
    json_object_set_new(o, "deviations", number(c->deviations));
}

static json_t *date_or_null(int day)
{
    return day < 0 ? json_null() : json_string(s4d_date(day).text);
}

static json_t *finding_json(const struct s4d_verdict *v, int at)
{
    const struct s4d_finding *f = &v->v[at];
    json_t *o = json_object(), *also = json_array(), *rates = json_array();
    json_object_set_new(o, "kind", json_string(s4d_finding_kind_name(f->kind)));
    json_object_set_new(o, "standing", json_string(s4d_standing_name(f->standing)));
    json_object_set_new(o, "series", series_json(f->series));
    if (f->n > 0)
        put_change(o, &f->v[0]);
    json_object_set_new(o, "since", date_or_null(f->since));
    json_object_set_new(o, "night_before", date_or_null(f->before));
    json_object_set_new(o, "commits", json_pack("[s, s]", f->commit_before, f->commit_since));
    if (f->kind == S4D_FINDING_REFERENCE) {
        json_object_set_new(o, "lower", number(f->lower));
        json_object_set_new(o, "upper", number(f->upper));
    }
    json_object_set_new(o, "environment",
                        f->environment ? json_string(f->environment) : json_null());
    if (f->model_before)
        json_object_set_new(o, "model_version_before", json_string(f->model_before));
    if (f->differs)
        json_object_set_new(o, f->kind == S4D_FINDING_MISSING ? "failure" : "differs",
                            json_string(f->differs));
    for (int i = 1; i < f->n; i++) {
        json_t *other = json_object();
        put_change(other, &f->v[i]);
        json_array_append_new(also, other);
    }
    json_object_set_new(o, "also", also);
    json_object_set_new(o, "text", json_string(f->text));
    json_object_set(o, "cause", f->cause ? f->cause : json_null());
    for (int i = at + 1; i < v->n && v->v[i].of == at; i++)
        json_array_append_new(rates, finding_json(v, i));
    json_object_set_new(o, "rates", rates);
    return o;
}

static json_t *options_json(const struct s4d_verdict_options *o)
{
    return json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:I, s:s?}", "window", o->window, "retired",
                     o->retired, "permutations", o->change.permutations, "p_max", o->change.p_max,
                     "magnitude", o->change.magnitude, "deviation", o->change.deviation, "seed",
                     (json_int_t)o->change.seed, "references", o->references);
}

json_t *s4d_verdict_record(const struct s4d_verdict *v)
{
    json_t *o = json_object(), *counts = json_object(), *findings = json_array(),
           *rows = json_array(), *unused = json_array();
    for (int i = S4D_STANDING_WORSE; i >= 0; i--)
        json_object_set_new(counts, standings[i], json_integer(v->count[i]));
    for (int i = 0; i < v->n; i++)
        if (v->v[i].of < 0)
            json_array_append_new(findings, finding_json(v, i));
    for (int i = 0; i < v->n_rows; i++) {
        json_t *row = series_json(v->row[i].series);
        json_object_set_new(row, "standing", json_string(standings[v->row[i].standing]));
        json_object_set_new(row, "nights", json_integer(v->row[i].nights));
        json_object_set_new(row, "text", json_string(v->row[i].text));
        json_array_append_new(rows, row);
    }
    for (int i = 0; i < v->unused.n; i++)
        json_array_append_new(unused, json_string(v->unused.v[i]));
    json_object_set_new(o, "kind", json_string("verdict"));
    json_object_set_new(o, "night", json_string(s4d_date(v->night).text));
    json_object_set_new(o, "passed", json_boolean(!s4d_verdict_failed(v)));
    json_object_set_new(o, "text", json_string(v->text));
    json_object_set_new(o, "counts", counts);
    json_object_set_new(o, "options", options_json(&v->options));
    json_object_set_new(o, "findings", findings);
    json_object_set_new(o, "series", rows);
    json_object_set_new(o, "references_unused", unused);
    return o;
}
