/* SPDX-License-Identifier: Apache-2.0 */
/* Published numbers: a CSV whose rows say where each number was seen.
 *
 * Columns: source,machine,devices,model,system,metric,value,unit,provenance,note. Provenance: read
 * (seen in print), derived (computed from printed numbers, the note says how), unverified
 * (recalled, not seen in print: drawn hollow, in no mean error). */
#ifndef S4D_PLOTS_PUBLISHED_H
#define S4D_PLOTS_PUBLISHED_H

#include <jansson.h>
#include <stdbool.h>

#include "support/error.h"

/* A published metric and the key of a record that it is compared with. */
struct s4d_metric {
    const char *name, *unit;
    const char *key; /* in the record; NULL: of two series (plots/ratios.h) */
    double scale;    /* of one unit, in the record's unit */
};

struct s4d_published {
    char *source, *machine, *workload, *system, *note;
    int gpus;
    const struct s4d_metric *metric;
    double value; /* in the metric's unit */
    char *provenance;
    bool verified;
};

struct s4d_published_list {
    struct s4d_published *v;
    int n, cap;
};

/* 0, or -1 (exit 65) with file:line: no such file, another header, a missing column, a metric or
 * unit that cannot be compared, a bad number or provenance. */
int s4d_published_read(struct s4d_published_list *list, const char *file, struct s4d_error *err);
void s4d_published_free(struct s4d_published_list *list);

/* The row of a metric for a point, or NULL. machine: NULL, any. */
const struct s4d_published *s4d_published_find(const struct s4d_published_list *list,
                                               const char *metric, const char *machine,
                                               const char *workload, int gpus);
/* The same figure of a simulated record, in the metric's unit; NAN where the record lacks it. */
double s4d_metric_value(const struct s4d_metric *metric, const json_t *record);
const struct s4d_metric *s4d_metric_find(const char *name); /* or NULL */

#endif
