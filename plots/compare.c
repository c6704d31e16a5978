/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "support/quote.h"
#include "support/units.h"

/* What was asked for; everything else but provenance is a result. A name stands for its contents:
 * comparing two states of a machine's file is what people want. */
static const char *const input_keys[] = {
    "kind",         "machine.name",  "workload.name",
    "op",           "bytes",         "axis",
    "ranks",        "gpus",          "grid",
    "rank_order",   "global_batch",  "micro_batch",
    "recompute",    "overlap",       "cache_layers",
    "precision",    "gradient_type", "gradient_reduce",
    "loss_scaling", "clip_norm",     "seed",
    "backend",      "progress",      "threads",
    "tf32",         "fold",          "scenario.hash",
    "gemm_tuning",  "cuda_graphs",
};
enum { INPUT_KEYS = sizeof input_keys / sizeof *input_keys };

static const json_t *by_path(const json_t *record, const char *path)
{
    const char *dot = strchr(path, '.');
    if (!dot)
        return json_object_get(record, path);
    char first[64];
    snprintf(first, sizeof first, "%.*s", (int)(dot - path), path);
    return by_path(json_object_get(record, first), dot + 1);
}

double s4d_compare_number(const json_t *record, const char *path)
{
    const json_t *v = by_path(record, path);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

json_t *s4d_compare_inputs(const json_t *record)
{
    json_t *inputs = json_object();
    for (int i = 0; i < INPUT_KEYS; i++) {
        const json_t *v = by_path(record, input_keys[i]);
        if (v && !json_is_object(v) && !json_is_array(v))
            json_object_set(inputs, input_keys[i], (json_t *)v);
    }
    return inputs;
}

/* Of whatever JSON: a number, a text, true, false, null. */
static char *text_of(const json_t *v)
{
    if (json_is_string(v))
        return s4d_strdup(json_string_value(v));
    if (json_is_real(v))
        return s4d_asprintf("%.6g", json_real_value(v));
    char *dump = v ? json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    char *text = s4d_strdup(dump ? dump : "-");
    free(dump);
    return text;
}

char *s4d_inputs_label(const json_t *inputs)
{
    static const struct {
        const char *key, *unit;
    } parts[] = {{"kind", ""},        {"machine.name", ""}, {"workload.name", ""},
                 {"op", ""},          {"bytes", " B"},      {"axis", ""},
                 {"ranks", " ranks"}, {"gpus", " GPUs"},    {"grid", ""}};
    char *label = s4d_strdup("");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const json_t *v = json_object_get(inputs, parts[i].key);
        if (!v)
            continue;
        char *text = text_of(v),
             *longer = s4d_asprintf("%s%s%s%s", label, label[0] ? " " : "", text, parts[i].unit);
        free(text);
        free(label);
        label = longer;
    }
    return label;
}

static bool is_input(const char *path)
{
    for (int i = 0; i < INPUT_KEYS; i++)
        if (strcmp(path, input_keys[i]) == 0)
            return true;
    return false;
}

/* Of the record, what is no result: also how a figure or sweep finds it, and what machine and
 * workload say of themselves. */
static bool is_result(const char *path)
{
    static const char *const others[] = {"provenance", "experiment", "machine", "workload"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(path, others[i]) == 0)
            return false;
    return !is_input(path);
}

/* The first leaf below `path` that differs, as "key: old, new"; NULL: none. */
static char *first_difference(const char *path, const json_t *old, const json_t *new)
{
    if (!is_result(path))
        return NULL;
    if (!json_is_object(old) || !json_is_object(new)) {
        if (json_equal(old, new))
            return NULL;
        char *a = text_of(old), *b = text_of(new), *text = s4d_asprintf("%s: %s, %s", path, a, b);
        free(a);
        free(b);
        return text;
    }
    const char *key;
    json_t *child;
    char *found = NULL;
    for (int pass = 0; pass < 2; pass++) { /* keys of old, then those that only new has */
        json_object_foreach(pass ? (json_t *)new : (json_t *)old, key, child)
        {
            char *below = s4d_asprintf("%s%s%s", path, path[0] ? "." : "", key);
            if (!found && (!pass || !json_object_get(old, key)))
                found =
                    first_difference(below, json_object_get(old, key), json_object_get(new, key));
            free(below);
        }
    }
    return found;
}

static bool is_simulated(const json_t *record)
{
    return json_object_get(record, "backend") == NULL; /* what measured it */
}

static struct s4d_pair make_pair(json_t *old, json_t *new, double threshold)
{
    static const char *const merits[] = {"flops_per_s", "busbw_Bps"};
    struct s4d_pair p = {.old = old, .new = new, .gain = NAN, .inputs = s4d_compare_inputs(old)};
    p.simulated = is_simulated(old) && is_simulated(new);
    for (int i = 0; i < 2 && !p.merit; i++) {
        double a = s4d_compare_number(old, merits[i]), b = s4d_compare_number(new, merits[i]);
        if (a > 0) {
            p.merit = merits[i];
            p.gain = b >= 0 ? b / a - 1 : -1; /* lost altogether */
        }
    }
    if (p.simulated)
        p.differs = first_difference("", old, new);
    /* To rounding: 0.95 / 1 - 1 is a little less than -0.05. */
    p.beyond = isnan(threshold) ? p.differs != NULL : p.gain < threshold - 1e-9;
    return p;
}

static int check_kinds(const struct s4d_records *records, const char *which, struct s4d_error *err)
{
    if (records->n == 0) {
        s4d_fail(err, S4D_EXIT_DATA, which, "holds no record");
        return s4d_hint(err, "a record is one JSON line, as --json prints it");
    }
    for (int i = 0; i < records->n; i++)
        if (!json_is_string(json_object_get(records->v[i], "kind")))
            return s4d_fail(err, S4D_EXIT_DATA, which, "record %d has no kind: not one of ours",
                            i + 1);
    return 0;
}

/* A threshold without a figure that it could be held against would let everything pass. */
static int check_merits(const struct s4d_comparison *c, struct s4d_error *err)
{
    for (int i = 0; i < c->n; i++)
        if (c->pair[i].merit)
            return 0;
    return s4d_fail(err, S4D_EXIT_DATA, "OLD",
                    "expected flops_per_s or busbw_Bps for --threshold, no record has it");
}

int s4d_compare_records(struct s4d_comparison *c, const struct s4d_records *old,
                        const struct s4d_records *new, double threshold, struct s4d_error *err)
{
    *c = (struct s4d_comparison){.only_old = json_array(), .only_new = json_array()};
    if (check_kinds(old, "OLD", err) || check_kinds(new, "NEW", err))
        return -1;
    json_t **inputs = s4d_calloc((size_t) new->n, sizeof *inputs);
    bool *taken = s4d_calloc((size_t) new->n, sizeof *taken);
    for (int j = 0; j < new->n; j++)
        inputs[j] = s4d_compare_inputs(new->v[j]);
    for (int i = 0; i < old->n; i++) {
        json_t *of = s4d_compare_inputs(old->v[i]);
        int j = 0;
        while (j < new->n && (taken[j] || !json_equal(of, inputs[j])))
            j++;
        if (j < new->n) {
            taken[j] = true;
            s4d_push(c->pair, c->n, c->cap, make_pair(old->v[i], new->v[j], threshold));
            c->beyond += c->pair[c->n - 1].beyond;
            json_decref(of);
        } else {
            json_array_append_new(c->only_old, of);
        }
    }
    for (int j = 0; j < new->n; j++) {
        if (!taken[j])
            json_array_append(c->only_new, inputs[j]);
        json_decref(inputs[j]);
    }
    free(inputs);
    free(taken);
    c->missing = (int)json_array_size(c->only_old);
    if (c->n > 0)
        return isnan(threshold) ? 0 : check_merits(c, err);
    s4d_fail(err, S4D_EXIT_DATA, "", "no record of OLD has the inputs of one of NEW");
    char *a = s4d_inputs_label(json_array_get(c->only_old, 0)),
         *b = s4d_inputs_label(json_array_get(c->only_new, 0));
    s4d_hint(err, "OLD starts with %.200s; NEW with %.200s", a, b);
    free(a);
    free(b);
    return -1;
}

void s4d_comparison_free(struct s4d_comparison *c)
{
    for (int i = 0; i < c->n; i++) {
        json_decref(c->pair[i].inputs);
        free(c->pair[i].differs);
    }
    free(c->pair);
    json_decref(c->only_old);
    json_decref(c->only_new);
    *c = (struct s4d_comparison){0};
}

int s4d_parse_threshold(const char *text, void *field, struct s4d_error *err)
{
    struct s4d_error inner = {0};
    size_t n = strlen(text);
    bool percent = n > 0 && text[n - 1] == '%', negative = text[0] == '-';
    char *number = s4d_strdup(text + negative);
    double value = NAN;
    if (percent)
        number[strlen(number) - 1] = '\0';
    int rc = s4d_parse_number(number, 0, percent ? 100 : 1, &value, &inner);
    free(number);
    if (rc || (!negative && value > 0)) {
        s4d_fail(err, S4D_EXIT_USAGE, "--threshold", "expected a loss from -100%% to 0, got %s",
                 s4d_quote(text).text);
        return s4d_hint(err, "-3%% (or -0.03): losing more than 3 %% fails");
    }
    *(double *)field = value == 0 ? 0 : -value / (percent ? 100 : 1);
    return 0;
}
