/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/csv.h"
#include "support/memory.h"
#include "support/units.h"

static const struct s4d_metric metrics[] = {
    {.name = "sustained", .unit = "PFLOP/s", .key = "flops_per_s", .scale = 1e15},
    {.name = "peak_fraction", .unit = "%", .key = "peak_fraction", .scale = 0.01},
    {.name = "measured_peak_fraction", .unit = "%", .key = "peak_fraction_measured", .scale = 0.01},
    {.name = "iteration_time", .unit = "s", .key = "iteration_time_s", .scale = 1},
    {.name = "time_to_solution_reduction", .unit = "%"},
    {.name = "speedup", .unit = "%"},
    {.name = NULL},
};

enum { SOURCE, MACHINE, DEVICES, MODEL, SYSTEM, METRIC, VALUE, UNIT, PROVENANCE, NOTE };
static const char header[] =
    "source,machine,devices,model,system,metric,value,unit,provenance,note";

const struct s4d_metric *s4d_metric_find(const char *name)
{
    for (const struct s4d_metric *m = metrics; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

double s4d_metric_value(const struct s4d_metric *metric, const json_t *record)
{
    const json_t *value = metric->key != NULL ? json_object_get(record, metric->key) : NULL;
    return json_is_number(value) ? json_number_value(value) / metric->scale : NAN;
}

static int one(void *context, char *const field[], const char *where, struct s4d_error *err)
{
    struct s4d_published_list *list = context;
    struct s4d_published published = {0}, *p = &published;
    struct s4d_error why;
    int64_t gpus;
    const struct s4d_metric *metric = s4d_metric_find(field[METRIC]);
    if (metric == NULL)
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "metric: expected sustained, peak_fraction, measured_peak_fraction, "
                        "iteration_time, time_to_solution_reduction or speedup, got '%s'",
                        field[METRIC]);
    if (strcmp(field[UNIT], metric->unit) != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where, "unit: expected %s for %s, got '%s'",
                        metric->unit, metric->name, field[UNIT]);
    if (s4d_parse_int(field[DEVICES], 1, 1 << 20, &gpus, &why))
        return s4d_fail(err, S4D_EXIT_DATA, where, "devices: %s", why.text);
    if (s4d_parse_number(field[VALUE], 0, 1e30, &p->value, &why))
        return s4d_fail(err, S4D_EXIT_DATA, where, "value: %s", why.text);
    bool verified =
        strcmp(field[PROVENANCE], "read") == 0 || strcmp(field[PROVENANCE], "derived") == 0;
    if (!verified && strcmp(field[PROVENANCE], "unverified") != 0)
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "provenance: expected read, derived or unverified, got '%s'",
                        field[PROVENANCE]);
    p->metric = metric;
    p->gpus = (int)gpus;
    p->verified = verified;
    p->source = s4d_strdup(field[SOURCE]);
    p->machine = s4d_strdup(field[MACHINE]);
    p->workload = s4d_strdup(field[MODEL]);
    p->system = s4d_strdup(field[SYSTEM]);
    p->provenance = s4d_strdup(field[PROVENANCE]);
    p->note = s4d_strdup(field[NOTE]);
    s4d_push(list->v, list->n, list->cap, published);
    return 0;
}

int s4d_published_read(struct s4d_published_list *list, const char *file, struct s4d_error *err)
{
    return s4d_csv_read(file, header, one, list, err);
}

void s4d_published_free(struct s4d_published_list *list)
{
    for (int i = 0; i < list->n; i++) {
        struct s4d_published *p = &list->v[i];
        char *texts[] = {p->source, p->machine, p->workload, p->system, p->note, p->provenance};
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            free(texts[j]);
    }
    free(list->v);
    *list = (struct s4d_published_list){0};
}

const struct s4d_published *s4d_published_find(const struct s4d_published_list *list,
                                               const char *metric, const char *machine,
                                               const char *workload, int gpus)
{
    for (int i = 0; i < list->n; i++) {
        const struct s4d_published *p = &list->v[i];
        if (p->gpus == gpus && strcmp(p->workload, workload) == 0 &&
            strcmp(p->metric->name, metric) == 0 &&
            (machine == NULL || strcmp(p->machine, machine) == 0))
            return p;
    }
    return NULL;
}
