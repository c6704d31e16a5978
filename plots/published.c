/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/published.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/file.h"
#include "support/memory.h"
#include "support/units.h"

static const struct s4d_metric metrics[] = {
    {.name = "sustained", .unit = "PFLOP/s", .key = "flops_per_s", .scale = 1e15},
    {.name = "peak_fraction", .unit = "%", .key = "peak_fraction", .scale = 0.01},
    {.name = "measured_peak_fraction", .unit = "%", .key = "peak_fraction_measured", .scale = 0.01},
    {.name = "iteration_time", .unit = "s", .key = "iteration_time_s", .scale = 1},
    {.name = NULL},
};

enum { SOURCE, MACHINE, DEVICES, MODEL, SYSTEM, METRIC, VALUE, UNIT, PROVENANCE, NOTE, COLUMNS };
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
    const json_t *value = json_object_get(record, metric->key);
    return json_is_number(value) ? json_number_value(value) / metric->scale : NAN;
}

/* Cuts a line at its commas, in place; a field in double quotes may hold commas and "". Returns how
 * many fields there are (at most COLUMNS are kept), or -1: a quote that is not closed. */
static int cut(char *line, char *field[COLUMNS])
{
    int n = 0;
    for (char *in = line;; in++) {
        char *out = in, *start = in;
        bool quoted = *in == '"';
        if (quoted)
            in++;
        for (; *in != '\0' && (quoted || *in != ','); in++) {
            if (quoted && *in == '"') {
                quoted = in[1] == '"';
                if (!quoted)
                    continue;
                in++;
            }
            *out++ = *in;
        }
        if (quoted)
            return -1;
        bool last = *in == '\0';
        *out = '\0';
        if (n < COLUMNS)
            field[n] = start;
        n++;
        if (last)
            return n;
    }
}

static int one(char *const field[COLUMNS], const char *where, struct s4d_published *p,
               struct s4d_error *err)
{
    struct s4d_error why;
    int64_t gpus;
    const struct s4d_metric *metric = s4d_metric_find(field[METRIC]);
    if (metric == NULL)
        return s4d_fail(err, S4D_EXIT_DATA, where,
                        "metric: expected sustained, peak_fraction or iteration_time, got '%s'",
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
    return 0;
}

static int lines(struct s4d_published_list *list, const char *file, char *text,
                 struct s4d_error *err)
{
    int number = 0;
    for (char *next, *line = text; *line != '\0'; line = next) {
        char *end = line + strcspn(line, "\n");
        next = *end == '\0' ? end : end + 1;
        if (end > line && end[-1] == '\r')
            end--;
        *end = '\0';
        number++;
        char where[512];
        snprintf(where, sizeof where, "%s:%d", file, number);
        if (number == 1) {
            if (strcmp(line, header) != 0)
                return s4d_fail(err, S4D_EXIT_DATA, where, "expected the header %s", header);
            continue;
        }
        if (*line == '\0' || *line == '#')
            continue;
        char *field[COLUMNS];
        int n = cut(line, field);
        if (n != COLUMNS)
            return s4d_fail(err, S4D_EXIT_DATA, where,
                            n < 0 ? "a quote is not closed" : "expected %d columns, got %d",
                            (int)COLUMNS, n);
        struct s4d_published p = {0};
        if (one(field, where, &p, err))
            return -1;
        s4d_push(list->v, list->n, list->cap, p);
    }
    if (number == 0)
        return s4d_fail(err, S4D_EXIT_DATA, file, "the file is empty");
    return 0;
}

int s4d_published_read(struct s4d_published_list *list, const char *file, struct s4d_error *err)
{
    char *text;
    size_t n;
    if (s4d_file_read(file, &text, &n, err))
        return -1;
    int rc = lines(list, file, text, err);
    free(text);
    return rc;
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
