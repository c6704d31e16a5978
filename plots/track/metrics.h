/* SPDX-License-Identifier: Apache-2.0 */
/* What is followed from night to night: one row a metric.
 *
 * A row reads numbers of a record by a dotted path. A path that ends in ".*" is a metric for every
 * key below it: "busbw_Bps.*" makes busbw_Bps.z-gather and so on. */
#ifndef S4D_PLOTS_TRACK_METRICS_H
#define S4D_PLOTS_TRACK_METRICS_H

#include <jansson.h>

struct s4d_metric {
    const char *name;
    const char *path;  /* of a number, or of an array of numbers: every one is a sample */
    const char *other; /* the path where the first is not there, or NULL */
    const char *over;  /* path of a number: the metric is that over each sample; NULL: the sample */
    const char *unit;
    int direction;     /* +1: more is better, -1: less is, 0: shown, and not judged */
    double magnitude;  /* the least change worth a word, a part: 0.01 is 1 % */
    const char *whole; /* the metric that it is a part of: what changes less than 0.5 % of that is
                        * not worth a word either; NULL: none */
};

/* In the order in which they are shown; ends with a row without a name. */
extern const struct s4d_metric s4d_metrics[];

/* The row of a metric's full name ("flops_per_s", "busbw_Bps.z-gather"), or NULL. */
const struct s4d_metric *s4d_metric_named(const char *name);

/* A value of the metric with its unit, "151.3 TFLOP/s": into text of the given size, returned. */
const char *s4d_metric_format(const struct s4d_metric *metric, double value, char *text, int size);

/* The value at a dotted path, borrowed, or NULL. */
json_t *s4d_at_path(const json_t *record, const char *path);

/* Calls `take` for every metric that the record has, in the table's order, those of one row by
 * their name: numbers and over are what its paths say, borrowed (over: NULL where the row has
 * none). */
void s4d_metrics_of(const json_t *record,
                    void (*take)(void *to, const struct s4d_metric *metric, const char *name,
                                 const json_t *numbers, const json_t *over),
                    void *to);

#endif
