/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/intake.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plots/track/intake_check.h"
#include "plots/track/metrics.h"
#include "plots/track/store.h" /* for: s4d_date_parse */
#include "support/memory.h"
#include "support/quote.h"
#include "support/random.h"

/* Inputs that tell one series from another, beside those that have a column: what is asked for, not
 * what was found. Contents' hashes are not among them: a workload or machine that changed under its
 * name is a change of the series, which is named. */
static const char *const option_keys[] = {
    "machine.name", "rank_order",   "global_batch", "micro_batch",   "recompute",
    "overlap",      "cache_layers", "precision",    "gradient_type", "gradient_reduce",
    "loss_scaling", "clip_norm",    "fold",         "seed",          "tokens",
    "load",         "threads",      "progress",     "tf32",          "gemm_tuning",
    "op",           "axis",         "ranks",        "bytes",         "scenario.hash",
    "cuda_graphs",
};

static const char *text_at(const json_t *record, const char *path)
{
    const char *text = json_string_value(s4d_at_path(record, path));
    return text ? text : "";
}

static char *canonical(const json_t *v)
{
    char *text = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    S4D_ASSERT(text != NULL, "no memory for a record");
    return text;
}

static char *options_of(const json_t *record)
{
    json_t *options = json_object();
    for (size_t i = 0; i < sizeof option_keys / sizeof *option_keys; i++) {
        json_t *v = s4d_at_path(record, option_keys[i]);
        if (v && !json_is_object(v) && !json_is_array(v))
            json_object_set(options, option_keys[i], v);
    }
    char *text = canonical(options);
    json_decref(options);
    return text;
}

/* Variables of job launchers are other ones in every job. */
static bool of_launcher(const char *variable)
{
    return strncmp(variable, "SLURM_", 6) == 0 || strncmp(variable, "OMPI_", 5) == 0;
}

static char *environment_of(const json_t *record)
{
    static const char *const paths[] = {"provenance.version", "provenance.blas", "model_version",
                                        "machine.hash", "workload.hash"};
    json_t *all = json_object(), *variables = json_object(), *v;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if ((v = s4d_at_path(record, paths[i])) != NULL)
            json_object_set(all, paths[i], v);
    const char *name;
    json_object_foreach(s4d_at_path(record, "provenance.environment"), name, v)
    {
        if (!of_launcher(name))
            json_object_set(variables, name, v);
    }
    json_object_set_new(all, "environment", variables);
    char *text = canonical(all);
    json_decref(all);
    return text;
}

static char *host_class_of(const json_t *record, const char *backend)
{
    const char *given = text_at(record, "host_class");
    if (*given)
        return s4d_strdup(given);
    if (strcmp(backend, "simulated") == 0)
        return s4d_asprintf("simulated:%s", text_at(record, "machine.name"));
    char *host = s4d_strdup(text_at(record, "provenance.host")), *to = host;
    for (const char *c = host; *c; c++)
        if (!isdigit((unsigned char)*c))
            *to++ = *c;
    *to = '\0';
    return host;
}

static char *key_of(const struct s4d_intake *in)
{
    json_t *key =
        json_pack("{ss ss ss ss sI ss ss ss}", "host_class", in->host_class, "backend", in->backend,
                  "kind", in->kind, "workload", in->workload, "gpus", (json_int_t)in->gpus, "grid",
                  in->grid, "options", in->options, "model_version", in->model_version);
    S4D_ASSERT(key != NULL, "a series without a key");
    char *text = canonical(key);
    json_decref(key);
    return text;
}

static int when(struct s4d_intake *in, const char *where, struct s4d_error *err)
{
    const char *time = text_at(in->record, "provenance.time"),
               *night = text_at(in->record, "suite.night");
    struct tm utc = {0};
    const char *end = strptime(time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    char path[512];
    if (!end || *end) {
        snprintf(path, sizeof path, "%.400s: provenance.time", where);
        return s4d_fail(err, S4D_EXIT_DATA, path,
                        "expected a UTC time as 2026-11-30T04:00:00Z, found %s",
                        s4d_quote(time).text);
    }
    in->time_s = timegm(&utc);
    in->night = (int)(in->time_s / 86400);
    if (*night && s4d_date_parse(night, &in->night)) {
        snprintf(path, sizeof path, "%.400s: suite.night", where);
        return s4d_fail(err, S4D_EXIT_DATA, path, "expected a date, 2026-11-30, found %s",
                        s4d_quote(night).text);
    }
    return 0;
}

/* Of a record that is good: its series and night. */
static int place(struct s4d_intake *in, const char *where, struct s4d_error *err)
{
    const char *backend = text_at(in->record, "backend");
    if (when(in, where, err))
        return -1;
    in->kind = text_at(in->record, "kind");
    in->backend = *backend ? backend : "simulated";
    in->workload = text_at(in->record, "workload.name");
    in->grid = text_at(in->record, "grid");
    in->commit = text_at(in->record, "provenance.commit");
    in->gpus = json_integer_value(json_object_get(in->record, "gpus"));
    in->model_version = *backend ? "" : text_at(in->record, "model_version");
    in->host_class = host_class_of(in->record, in->backend);
    in->options = options_of(in->record);
    in->environment = environment_of(in->record);
    in->key = key_of(in);
    in->hash = s4d_intake_hash(in->record);
    return 0;
}

int s4d_intake(struct s4d_intake *in, const char *line, size_t n, const char *where,
               struct s4d_error *err)
{
    *in = (struct s4d_intake){.record = s4d_intake_parse(line, n, where, err)};
    if (in->record && s4d_intake_check(in->record, where, err) == 0 && place(in, where, err) == 0)
        return 0;
    s4d_intake_free(in);
    return -1;
}

void s4d_intake_free(struct s4d_intake *in)
{
    json_decref(in->record);
    free(in->host_class);
    free(in->options);
    free(in->environment);
    free(in->key);
    *in = (struct s4d_intake){0};
}
