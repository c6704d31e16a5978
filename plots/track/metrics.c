/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/track/metrics.h"

#include <stdio.h>
#include <string.h>

#include "support/units.h"

/* Least changes worth a word: of a whole iteration and of products 1 %, as Hunter's and Conbench's
 * users set it (assumed); of parts of it, whose noise is larger, more. */
const struct s4d_metric s4d_metrics[] = {
    {.name = "flops_per_s",
     .path = "samples_s",
     .other = "flops_per_s",
     .over = "flops_formula",
     .unit = "FLOP/s",
     .direction = 1,
     .magnitude = 0.01},
    {.name = "iteration_time_s",
     .path = "samples_s",
     .other = "iteration_time_s",
     .unit = "s",
     .direction = -1,
     .magnitude = 0.01},
    {.name = "exposed_s.*",
     .path = "exposed_s.*",
     .unit = "s",
     .direction = -1,
     .magnitude = 0.05,
     .whole = "iteration_time_s"},
    {.name = "busbw_Bps.*",
     .path = "busbw_Bps.*",
     .unit = "B/s",
     .direction = 1,
     .magnitude = 0.03},
    {.name = "busbw_Bps", .path = "busbw_Bps", .unit = "B/s", .direction = 1, .magnitude = 0.03},
    {.name = "gemm_flops_per_s",
     .path = "gemm_flops_per_s",
     .unit = "FLOP/s",
     .direction = 1,
     .magnitude = 0.01},
    {.name = "gemm_s", .path = "gemm_s", .unit = "s", .direction = -1, .magnitude = 0.01},
    {.name = "attention_s", .path = "attention_s", .unit = "s", .direction = -1, .magnitude = 0.02},
    {.name = "kernels_s", .path = "kernels_s", .unit = "s", .direction = -1, .magnitude = 0.02},
    {.name = "communication_s.*",
     .path = "communication_s.*",
     .unit = "s",
     .direction = -1,
     .magnitude = 0.03},
    {.name = "memory_peak_bytes",
     .path = "memory_peak_bytes",
     .unit = "B",
     .direction = -1,
     .magnitude = 0.01},
    {.name = "slowest_rank", .path = "slowest_rank", .unit = "rank", .direction = 0},
    {.name = NULL},
};

/* How long the name is without ".*"; 0: it has none. */
static size_t stem(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && strcmp(name + n - 2, ".*") == 0 ? n - 2 : 0;
}

const struct s4d_metric *s4d_metric_named(const char *name)
{
    for (const struct s4d_metric *m = s4d_metrics; m->name; m++) {
        size_t n = stem(m->name);
        if (strcmp(m->name, name) == 0 && !n)
            return m;
        if (n && strncmp(m->name, name, n + 1) == 0 && name[n + 1] && strcmp(name, m->name) != 0)
            return m;
    }
    return NULL;
}

const char *s4d_metric_format(const struct s4d_metric *metric, double value, char *text, int size)
{
    static const struct {
        const char *unit;
        const char *(*format)(double value, char *text, int size);
    } rows[] = {{"FLOP/s", s4d_format_flops},
                {"s", s4d_format_time},
                {"B/s", s4d_format_bandwidth},
                {"B", s4d_format_bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(metric->unit, rows[i].unit) == 0)
            return rows[i].format(value, text, size);
    snprintf(text, (size_t)size, "%.10g", value);
    return text;
}

json_t *s4d_at_path(const json_t *record, const char *path)
{
    char first[64];
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
        snprintf(first, sizeof first, "%.*s", (int)(dot - path), path);
        record = json_object_get(record, first);
    }
    return json_object_get(record, path);
}

static int has_numbers(const json_t *v)
{
    if (!json_is_array(v))
        return json_is_number(v);
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)v, i, one) if (!json_is_number(one)) return 0;
    return json_array_size(v) > 0;
}

void s4d_metrics_of(const json_t *record,
                    void (*take)(void *to, const struct s4d_metric *metric, const char *name,
                                 const json_t *numbers, const json_t *over),
                    void *to)
{
    for (const struct s4d_metric *m = s4d_metrics; m->name; m++) {
        char path[64], name[256];
        size_t n = stem(m->path);
        if (n) {
            const char *key;
            json_t *child;
            snprintf(path, sizeof path, "%.*s", (int)n, m->path);
            json_object_foreach(s4d_at_path(record, path), key, child)
            {
                snprintf(name, sizeof name, "%.*s.%.180s", (int)stem(m->name), m->name, key);
                if (json_is_number(child))
                    take(to, m, name, child, NULL);
            }
            continue;
        }
        const json_t *v = s4d_at_path(record, m->path),
                     *over = m->over ? s4d_at_path(record, m->over) : NULL;
        if (has_numbers(v) && (!m->over || json_is_number(over)))
            take(to, m, m->name, v, over);
        else if (m->other && has_numbers(v = s4d_at_path(record, m->other)))
            take(to, m, m->name, v, NULL);
    }
}
