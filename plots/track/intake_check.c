/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/intake_check.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "plots/track/metrics.h"
#include "plots/track/pack.h" /* for: S4D_RECORD_MAX */
#include "support/nearest.h"
#include "support/quote.h"

enum type { TEXT, COUNT, POSITIVE, NUMBER, SAMPLES };

/* A key that a kind must have. */
struct need {
    const char *path;
    enum type type;
    bool unless_interrupted; /* a run that was ended early may not have got there */
};

/* clang-format off */
static const struct need of_simulate[] = {
    {"model_version", TEXT, false}, {"machine.name", TEXT, false}, {"workload.name", TEXT, false},
    {"gpus", COUNT, false}, {"grid", TEXT, false},
    {"iteration_time_s", POSITIVE, false}, {"flops_per_s", POSITIVE, false}, {.path = NULL}};
static const struct need of_train[] = {
    {"backend", TEXT, false}, {"workload.name", TEXT, false}, {"gpus", COUNT, false},
    {"grid", TEXT, false}, {"iteration_time_s", POSITIVE, true}, {"samples_s", SAMPLES, true},
    {"flops_per_s", POSITIVE, true}, {.path = NULL}};
static const struct need of_collective[] = {
    {"op", TEXT, false}, {"ranks", COUNT, false}, {"bytes", NUMBER, false},
    {"time_s", NUMBER, false}, {"busbw_Bps", NUMBER, false}, {.path = NULL}};
static const struct need of_rates[] = {
    {"backend", TEXT, false}, {"workload.name", TEXT, false}, {"gpus", COUNT, false},
    {"grid", TEXT, false}, {.path = NULL}};
static const struct need of_others[] = {{.path = NULL}};

static const struct {
    const char *kind;
    const struct need *needs;
} kinds[] = {
    {"simulate", of_simulate},
    {"train", of_train},
    {"collective", of_collective},
    {"rates", of_rates},
    {"preflight", of_others},
    {"failure", of_others},
};
/* clang-format on */
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Far above every machine and job: what is beyond was written by mistake. */
static const double most_number = 1e24, most_count = 1e8;
enum { MOST_SAMPLES = 100000 };

static const char *at(const char *where, const char *path, char text[512])
{
    snprintf(text, 512, "%.400s: %.100s", where, path);
    return text;
}

/* What stands there, for a message. */
static const char *show(const json_t *v, char text[100])
{
    static const char *const names[] = {[JSON_OBJECT] = "an object",
                                        [JSON_ARRAY] = "a list",
                                        [JSON_STRING] = "",
                                        "",
                                        [JSON_REAL] = "",
                                        [JSON_TRUE] = "true",
                                        [JSON_FALSE] = "false",
                                        [JSON_NULL] = "null"};
    if (!v)
        return "nothing";
    if (json_is_string(v))
        snprintf(text, 100, "the text %s", s4d_quote(json_string_value(v)).text);
    else if (json_is_integer(v))
        snprintf(text, 100, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(text, 100, "%.10g", json_real_value(v));
    else
        return names[json_typeof(v)];
    return text;
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* NaN and Infinity, which Python and others write as numbers: the first of them outside texts, with
 * the key before it. */
static const char *no_number(const char *line, size_t n, char key[100])
{
    static const char *const words[] = {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"};
    const char *text = NULL, *text_end = NULL;
    *key = '\0';
    for (const char *c = line; c < line + n; c++) {
        if (*c == '"') {
            text = c + 1;
            for (c++; c < line + n && *c != '"'; c++)
                c += *c == '\\';
            text_end = c;
            continue;
        }
        if (*c == ':' && text && text_end < line + n)
            snprintf(key, 100, "%.*s", (int)(text_end - text), text);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strncmp(c, words[i], strlen(words[i])) == 0)
                return words[i];
    }
    return NULL;
}

json_t *s4d_intake_parse(const char *line, size_t n, const char *where, struct s4d_error *err)
{
    json_error_t why;
    char key[100], text[512];
    if (n > S4D_RECORD_MAX) {
        s4d_fail(err, S4D_EXIT_DATA, where, "expected a record of at most %d MiB, this is %.1f",
                 S4D_RECORD_MAX >> 20, (double)n / (1 << 20));
        return NULL;
    }
    json_t *record = json_loadb(line, n, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(record))
        return record;
    const char *word = record ? NULL : no_number(line, n, key);
    if (word) {
        s4d_fail(err, S4D_EXIT_DATA, at(where, s4d_quote(key).text, text),
                 "expected a number, found %s", word);
        s4d_hint(err, "a result that is not there is null; this run went wrong");
    } else if (record) {
        s4d_fail(err, S4D_EXIT_DATA, where, "expected a record, one JSON object a line, found %s",
                 show(record, text));
    } else {
        s4d_fail(err, S4D_EXIT_DATA, where,
                 "expected a record, one JSON object a line: %.200s in column %d", why.text,
                 why.column);
        if (json_error_code(&why) == json_error_premature_end_of_input)
            s4d_hint(err, "a line that ends too early was being written when a run was killed");
    }
    json_decref(record);
    return NULL;
}

/* --- keys ----------------------------------------------------------------------------------- */

/* A sibling with the same words and another unit: of iteration_time_s iteration_time_ms, of
 * busbw_Bps busbw_GBps. NULL: none. */
static const char *other_unit(const json_t *record, const char *path)
{
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path, *key;
    const char *unit = strrchr(name, '_');
    char above[64];
    json_t *v;
    snprintf(above, sizeof above, "%.*s", dot ? (int)(dot - path) : 0, path);
    if (!unit)
        return NULL;
    json_object_foreach(dot ? s4d_at_path(record, above) : (json_t *)record, key, v)
    {
        if (strncmp(key, name, (size_t)(unit - name) + 1) == 0 &&
            !strchr(key + (unit - name) + 1, '_') && json_is_number(v))
            return key;
    }
    return NULL;
}

static int missing(const json_t *record, const char *path, const char *where, const char *expected,
                   struct s4d_error *err)
{
    char text[512];
    s4d_fail(err, S4D_EXIT_DATA, at(where, path, text), "expected %s, the key is missing",
             expected);
    const char *other = other_unit(record, path);
    if (other)
        return s4d_hint(err, "there is %s: of another unit, or another program's",
                        s4d_quote(other).text);
    return s4d_hint(err, "plots/RECORD.md lists the keys of a record");
}

static int check_number(const json_t *v, const char *path, const char *where, bool positive,
                        double most, struct s4d_error *err)
{
    char text[512], found[100];
    double x = json_number_value(v);
    if (!json_is_number(v)) {
        s4d_fail(err, S4D_EXIT_DATA, at(where, path, text), "expected a number, found %s",
                 show(v, found));
        return s4d_hint(err, "numbers are in SI units, which the key's ending says, and no texts");
    }
    if (x < 0 || (positive && x == 0))
        return s4d_fail(err, S4D_EXIT_DATA, at(where, path, text), "expected a number %s, found %s",
                        positive ? "above 0" : "that is not negative", show(v, found));
    if (x > most)
        return s4d_fail(err, S4D_EXIT_DATA, at(where, path, text), "expected at most %g, found %s",
                        most, show(v, found));
    return 0;
}

static int check_samples(const json_t *v, const char *path, const char *where,
                         struct s4d_error *err)
{
    char text[512], found[100];
    size_t i;
    json_t *one;
    if (!json_is_array(v) || json_array_size(v) == 0)
        return s4d_fail(err, S4D_EXIT_DATA, at(where, path, text),
                        "expected a list of numbers, found %s",
                        json_is_array(v) ? "an empty one" : show(v, found));
    if (json_array_size(v) > MOST_SAMPLES)
        return s4d_fail(err, S4D_EXIT_DATA, at(where, path, text),
                        "expected at most %d samples, found %zu", MOST_SAMPLES, json_array_size(v));
    json_array_foreach((json_t *)v, i, one)
    {
        char each[64];
        snprintf(each, sizeof each, "%.40s[%zu]", path, i);
        if (check_number(one, each, where, true, most_number, err))
            return -1;
    }
    return 0;
}

static int check_need(const json_t *record, const struct need *need, const char *where,
                      struct s4d_error *err)
{
    static const char *const expected[] = {[TEXT] = "a text",
                                           [COUNT] = "a number of them",
                                           [POSITIVE] = "a number above 0",
                                           [NUMBER] = "a number",
                                           [SAMPLES] = "a list of numbers"};
    const json_t *v = s4d_at_path(record, need->path);
    char text[512], found[100];
    if (need->unless_interrupted && json_is_true(json_object_get(record, "interrupted")) &&
        (!v || json_is_null(v) || (need->type == SAMPLES && json_array_size(v) == 0)))
        return 0;
    if (!v)
        return missing(record, need->path, where, expected[need->type], err);
    switch (need->type) {
    case TEXT:
        if (!json_is_string(v) || !*json_string_value(v))
            return s4d_fail(err, S4D_EXIT_DATA, at(where, need->path, text),
                            "expected a text, found %s", show(v, found));
        return 0;
    case COUNT:
        if (!json_is_integer(v))
            return s4d_fail(err, S4D_EXIT_DATA, at(where, need->path, text),
                            "expected an integer from 1 to %g, found %s", most_count,
                            show(v, found));
        return check_number(v, need->path, where, true, most_count, err);
    case SAMPLES:
        return check_samples(v, need->path, where, err);
    default:
        return check_number(v, need->path, where, need->type == POSITIVE, most_number, err);
    }
}

/* --- what the metrics read ------------------------------------------------------------------ */

static int check_object(const json_t *record, const char *path, const char *where,
                        struct s4d_error *err)
{
    const json_t *v = s4d_at_path(record, path);
    char text[512], found[100];
    if (!v || json_is_null(v) || json_is_object(v))
        return 0;
    return s4d_fail(err, S4D_EXIT_DATA, at(where, path, text), "expected an object, found %s",
                    show(v, found));
}

/* null: a result that is not there. */
static int check_metric(const json_t *record, const struct s4d_metric *m, const char *where,
                        struct s4d_error *err)
{
    char path[64];
    size_t n = strlen(m->path);
    if (n > 2 && strcmp(m->path + n - 2, ".*") == 0) {
        const char *key;
        json_t *v;
        snprintf(path, sizeof path, "%.*s", (int)n - 2, m->path);
        if (!s4d_metric_named(path) && check_object(record, path, where, err))
            return -1;
        json_object_foreach(s4d_at_path(record, path), key, v)
        {
            char full[512];
            snprintf(full, sizeof full, "%s.%.300s", path, key);
            if (!json_is_null(v) && check_number(v, full, where, false, most_number, err))
                return -1;
        }
        return 0;
    }
    const json_t *v = s4d_at_path(record, m->path);
    if (!v || json_is_null(v) || json_is_object(v))
        return 0;
    if (json_is_array(v))
        return json_array_size(v) ? check_samples(v, m->path, where, err) : 0;
    return check_number(v, m->path, where, false, most_number, err);
}

/* What is computed from each other must fit, loosely: a factor of 1.5 is no rounding, and less than
 * between any two units. */
static int check_units(const json_t *record, const char *where, struct s4d_error *err)
{
    static const double loose = 1.5;
    char text[512];
    double flops = json_number_value(json_object_get(record, "flops_formula")),
           rate = json_number_value(json_object_get(record, "flops_per_s")),
           time_s = json_number_value(json_object_get(record, "iteration_time_s"));
    if (flops > 0 && rate > 0 && time_s > 0) {
        double ratio = flops / rate / time_s;
        if (ratio > loose || ratio < 1 / loose) {
            s4d_fail(err, S4D_EXIT_DATA, at(where, "iteration_time_s", text),
                     "expected flops_formula / flops_per_s, %.6g s, found %.6g", flops / rate,
                     time_s);
            return s4d_hint(err, "one of them is in another unit: they are FLOP, FLOP/s and s");
        }
    }
    const json_t *samples = json_object_get(record, "samples_s");
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < json_array_size(samples); i++) {
        least = fmin(least, json_number_value(json_array_get(samples, i)));
        most = fmax(most, json_number_value(json_array_get(samples, i)));
    }
    if (time_s > 0 && most > 0 && (time_s > most * loose || time_s < least / loose)) {
        s4d_fail(err, S4D_EXIT_DATA, at(where, "samples_s", text),
                 "expected the samples of iteration_time_s, %.6g s, found %.6g to %.6g", time_s,
                 least, most);
        return s4d_hint(err, "one of them is in another unit: both are seconds");
    }
    return 0;
}

static int check_kind(const json_t *record, const struct need **needs, const char *where,
                      struct s4d_error *err)
{
    const char *names[KINDS], *kind = json_string_value(json_object_get(record, "kind"));
    char text[512], found[100];
    for (int i = 0; i < KINDS; i++) {
        names[i] = kinds[i].kind;
        if (kind && strcmp(kind, kinds[i].kind) == 0) {
            *needs = kinds[i].needs;
            return 0;
        }
    }
    if (!kind)
        s4d_fail(err, S4D_EXIT_DATA, at(where, "kind", text),
                 "expected the kind of a record of scale4d, found %s",
                 show(json_object_get(record, "kind"), found));
    else
        s4d_fail(err, S4D_EXIT_DATA, at(where, "kind", text),
                 "expected a kind that is followed from night to night, found %s",
                 s4d_quote(kind).text);
    return s4d_hint_nearest(err, kind ? kind : "", names, KINDS);
}

/* Keys that are texts where they are, and of no absurd size: they name series. */
static int check_texts(const json_t *record, const char *where, struct s4d_error *err)
{
    static const char *const paths[] = {"host_class",   "backend",         "workload.name",
                                        "grid",         "suite.night",     "suite.experiment",
                                        "machine.name", "model_version",   "op",
                                        "axis",         "provenance.host", "provenance.commit"};
    enum { MOST_TEXT = 1000 };
    char text[512], found[100];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const json_t *v = s4d_at_path(record, paths[i]);
        if (v && !json_is_null(v) && !json_is_string(v))
            return s4d_fail(err, S4D_EXIT_DATA, at(where, paths[i], text),
                            "expected a text, found %s", show(v, found));
        if (json_string_length(v) > MOST_TEXT)
            return s4d_fail(err, S4D_EXIT_DATA, at(where, paths[i], text),
                            "expected a text of at most %d bytes, found %zu", MOST_TEXT,
                            json_string_length(v));
    }
    return 0;
}

int s4d_intake_check(const json_t *record, const char *where, struct s4d_error *err)
{
    static const struct need of_all[] = {
        {"provenance.time", TEXT, false}, {"provenance.host", TEXT, false}, {.path = NULL}};
    const struct need *needs[] = {NULL, of_all};
    if (check_kind(record, &needs[0], where, err) || check_texts(record, where, err) ||
        check_object(record, "suite", where, err))
        return -1;
    for (int i = 0; i < 2; i++)
        for (const struct need *need = needs[i]; need->path; need++)
            if (check_need(record, need, where, err))
                return -1;
    for (const struct s4d_metric *m = s4d_metrics; m->name; m++)
        if (check_metric(record, m, where, err))
            return -1;
    return check_units(record, where, err);
}
