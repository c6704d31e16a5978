/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plots/page/internal.h"
#include "plots/track/verdict_internal.h" /* for: s4d_metric_shown */
#include "support/memory.h"

const char *s4d_standing_word(enum s4d_standing standing)
{
    static const char *const words[] = {
        [S4D_STANDING_SAME] = "unchanged", [S4D_STANDING_TOO_FEW] = "too few nights",
        [S4D_STANDING_BETTER] = "better",  [S4D_STANDING_NOTED] = "new model",
        [S4D_STANDING_WATCH] = "to watch", [S4D_STANDING_MISSING] = "missing",
        [S4D_STANDING_WORSE] = "worse"};
    return words[standing];
}

void s4d_write_standing(FILE *out, enum s4d_standing standing)
{
    fprintf(out, "<span class=\"standing %s\">%s</span>", s4d_standing_name(standing),
            s4d_standing_word(standing));
}

char *s4d_metric_title(const char *name)
{
    static const struct {
        const char *name, *title;
    } titles[] = {{"flops_per_s", "FLOP/s"},
                  {"iteration_time_s", "time of an iteration"},
                  {"exposed_s", "exposed"},
                  {"busbw_Bps", "bus bandwidth"},
                  {"gemm_flops_per_s", "FLOP/s of matrix products"},
                  {"gemm_s", "time of matrix products"},
                  {"attention_s", "time of attention"},
                  {"kernels_s", "time of other kernels"},
                  {"communication_s", "communication alone,"},
                  {"memory_peak_bytes", "peak memory"},
                  {"slowest_rank", "slowest rank"}};
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) {
        size_t n = strlen(titles[i].name);
        if (strncmp(name, titles[i].name, n) == 0 && (name[n] == '\0' || name[n] == '.'))
            return s4d_asprintf("%s%s%s", titles[i].title, name[n] ? " " : "",
                                name[n] ? name + n + 1 : "");
    }
    return s4d_strdup(name);
}

static struct s4d_when date(int day, const char *format)
{
    struct s4d_when w;
    time_t at = (time_t)day * 86400;
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(w.text, sizeof w.text, format, &utc); /* in the C locale: this program sets none */
    return w;
}

struct s4d_when s4d_long_date(int day)
{
    return date(day, "%A %-d %B %Y");
}

struct s4d_when s4d_short_date(int day)
{
    return date(day, "%-d %b %Y");
}

struct s4d_when s4d_percent(double part)
{
    struct s4d_when w = {""};
    double percent = 100 * part;
    if (!isnan(part))
        snprintf(w.text, sizeof w.text, "%s%.1f\u00a0%%",
                 fabs(percent) < 0.05 ? "±"
                 : percent < 0        ? "−"
                                      : "+",
                 fabs(percent));
    return w;
}

/* "FLOP/s −3.1 %" of the first, then the others that moved with it. */
static void write_metrics(FILE *out, const struct s4d_finding *f)
{
    const struct s4d_metric_change *c = &f->v[0];
    char *title = s4d_metric_title(c->name);
    fputs("<strong>", out);
    s4d_write_escaped(out, title);
    if (isnan(c->part))
        fputs(" changed", out);
    else
        fprintf(out, " %s", s4d_percent(c->part).text);
    fputs("</strong>", out);
    free(title);
}

static void write_others(FILE *out, const struct s4d_finding *f)
{
    for (int i = 1; i < f->n; i++) {
        char *title = s4d_metric_title(f->v[i].name);
        fputs(i == 1 ? "; also " : ", ", out);
        s4d_write_escaped(out, title);
        fprintf(out, " %s", isnan(f->v[i].part) ? "changed" : s4d_percent(f->v[i].part).text);
        free(title);
    }
}

static void write_commits(FILE *out, const struct s4d_finding *f)
{
    bool same =
        f->commit_before && f->commit_since && strcmp(f->commit_before, f->commit_since) == 0;
    if (f->commit_since && *f->commit_since) {
        fputs(same ? "; same commit <code>" : "; commits <code>", out);
        if (!same) {
            s4d_write_escaped(out, f->commit_before ? f->commit_before : "");
            fputs("..", out);
        }
        s4d_write_escaped(out, f->commit_since);
        fputs("</code>", out);
    }
    if (f->environment) {
        fputs("; changed with it: <code>", out);
        s4d_write_escaped(out, f->environment);
        fputs("</code>", out);
    }
}

static void write_change(FILE *out, const struct s4d_finding *f)
{
    const struct s4d_metric_change *c = &f->v[0];
    write_metrics(out, f);
    if (f->kind == S4D_FINDING_REFERENCE)
        fprintf(out, " off its reference: %s, allowed %s to %s of %s",
                s4d_metric_shown(c->metric, c->after).text, s4d_percent(f->lower).text,
                s4d_percent(f->upper).text, s4d_metric_shown(c->metric, c->before).text);
    else if (f->standing == S4D_STANDING_WATCH)
        fputs(" this night alone; a second one would confirm it", out);
    else
        fprintf(out, " since %s (%d night%s)", s4d_short_date(c->since).text, c->nights,
                c->nights == 1 ? "" : "s");
    if (f->kind != S4D_FINDING_REFERENCE)
        fprintf(out, ": %s → %s", s4d_metric_shown(c->metric, c->before).text,
                s4d_metric_shown(c->metric, c->after).text);
    if (!isnan(c->p))
        fprintf(out, ", p\u00a0=\u00a0%.3g", c->p);
    write_others(out, f);
    if (f->kind == S4D_FINDING_SIMULATED && f->differs) {
        fputs("; differs in ", out);
        s4d_write_escaped(out, f->differs);
    }
    write_commits(out, f);
    putc('.', out);
}

static void write_missing(FILE *out, const struct s4d_finding *f)
{
    fputs("<strong>No record</strong> of this night", out);
    if (f->before >= 0)
        fprintf(out, "; the last is of %s", s4d_short_date(f->before).text);
    if (f->differs) {
        fputs(". It failed: <q>", out);
        s4d_write_escaped(out, f->differs);
        fputs("</q>", out);
    }
    putc('.', out);
}

void s4d_write_finding(FILE *out, const struct s4d_finding *f, bool with_cause)
{
    if (f->n > 0)
        write_change(out, f);
    else if (f->kind == S4D_FINDING_MISSING)
        write_missing(out, f);
    else
        s4d_write_escaped(out, f->text);
    const char *cause = with_cause ? s4d_finding_cause(f) : NULL;
    if (cause) {
        fputs("<br><span class=\"cause\">", out);
        s4d_write_escaped(out, cause);
        fputs("</span>", out);
    }
}
