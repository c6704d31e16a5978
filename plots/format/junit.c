/* SPDX-License-Identifier: Apache-2.0 */
/* JUnit XML as Ant writes it, valid by both schemas that CI systems check against (junit-10.xsd of
 * Jenkins' xunit plugin, and the stricter JUnit.xsd of windyroad): a test suite a host class; in it
 * a test case for every run, an error where it failed, and one for every number that was judged, a
 * failure where it got worse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plots/format/format.h"
#include "plots/track/store.h" /* for: s4d_date */

static bool is_judged(const struct s4d_value *v)
{
    return v->judged || v->worse || !isnan(v->reference);
}

struct suite {
    int tests, failures, errors;
    double time_s;
    long long last_s;
};

/* What the iterations took. */
static double time_of(const struct s4d_outcome *o)
{
    double sum_s = 0;
    for (int i = 0; i < o->n; i++)
        if (strcmp(o->v[i].name, "iteration_time_s") == 0)
            for (int k = 0; k < o->v[i].n; k++)
                sum_s += o->v[i].samples[k];
    return sum_s;
}

static struct suite count(const struct s4d_outcomes *outcomes, const char *host_class)
{
    struct suite s = {0};
    for (int i = 0; i < outcomes->n; i++) {
        const struct s4d_outcome *o = &outcomes->v[i];
        if (strcmp(o->host_class, host_class) != 0)
            continue;
        s.tests++;
        s.errors += o->failure != NULL;
        s.time_s += time_of(o);
        s.last_s = o->time_s > s.last_s ? o->time_s : s.last_s;
        for (int k = 0; k < o->n; k++) {
            s.tests += is_judged(&o->v[k]);
            s.failures += o->v[k].worse != NULL;
        }
    }
    return s;
}

static void attribute(FILE *out, const char *name, const char *text)
{
    fprintf(out, " %s=\"", name);
    s4d_write_escaped(out, text);
    putc('"', out);
}

static void open_case(FILE *out, const struct s4d_outcome *o, const char *name, double time_s)
{
    fputs("    <testcase", out);
    attribute(out, "classname", o->label);
    attribute(out, "name", name);
    fprintf(out, " time=\"%.3f\"", time_s);
}

/* kind: failure, error; text: NULL: it passed. */
static void close_case(FILE *out, const char *kind, const char *type, const char *text)
{
    if (!text) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, ">\n      <%s type=\"%s\"", kind, type);
    attribute(out, "message", text);
    putc('>', out);
    s4d_write_escaped(out, text);
    fprintf(out, "</%s>\n    </testcase>\n", kind);
}

static void write_outcome(const struct s4d_outcome *o, FILE *out)
{
    char name[400];
    snprintf(name, sizeof name, "run of %s", s4d_date(o->night).text);
    open_case(out, o, name, time_of(o));
    close_case(out, "error", "run", o->failure);
    for (int i = 0; i < o->n; i++) {
        if (!is_judged(&o->v[i]))
            continue;
        snprintf(name, sizeof name, "%s of %s", o->v[i].name, s4d_date(o->night).text);
        open_case(out, o, name, 0);
        close_case(out, "failure", "regression", o->v[i].worse);
    }
}

static void write_suite(const struct s4d_outcomes *outcomes, const char *host_class, int id,
                        FILE *out)
{
    struct suite s = count(outcomes, host_class);
    char time[64];
    time_t at = (time_t)s.last_s;
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%S", &utc);
    const char *name = *host_class ? host_class : "unknown host";
    fputs("  <testsuite", out);
    attribute(out, "name", name);
    attribute(out, "hostname", name);
    fprintf(out,
            " package=\"scale4d\" id=\"%d\" tests=\"%d\" failures=\"%d\" errors=\"%d\""
            " time=\"%.3f\" timestamp=\"%s\">\n    <properties/>\n",
            id, s.tests, s.failures, s.errors, s.time_s, time);
    for (int i = 0; i < outcomes->n; i++)
        if (strcmp(outcomes->v[i].host_class, host_class) == 0)
            write_outcome(&outcomes->v[i], out);
    fputs("    <system-out>", out);
    s4d_write_escaped(out, outcomes->text ? outcomes->text : "");
    fputs("</system-out>\n    <system-err/>\n  </testsuite>\n", out);
}

int s4d_write_junit(const struct s4d_outcomes *outcomes, FILE *out, struct s4d_error *err)
{
    (void)err;
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
    for (int i = 0, id = 0; i < outcomes->n; i++) {
        int k = 0;
        while (strcmp(outcomes->v[k].host_class, outcomes->v[i].host_class) != 0)
            k++;
        if (k == i) /* the first of its host class */
            write_suite(outcomes, outcomes->v[i].host_class, id++, out);
    }
    fputs("</testsuites>\n", out);
    return 0;
}
