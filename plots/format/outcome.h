/* SPDX-License-Identifier: Apache-2.0 */
/* What other programs' formats are written from: a night of a series each, with its numbers, and
 * what was said of them.
 *
 * Use: s4d_outcomes_add for every record, s4d_outcomes_ready once, then a format. */
#ifndef S4D_PLOTS_FORMAT_OUTCOME_H
#define S4D_PLOTS_FORMAT_OUTCOME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/error.h"

struct s4d_value {
    char *name; /* "flops_per_s", "busbw_Bps.z-gather" */
    const char *unit;
    int direction;   /* +1: more is better, -1: less is, 0: neither */
    double *samples; /* n >= 1 */
    int n, cap;
    double value;                   /* their median */
    double spread;                  /* half of what their middle half spans */
    double reference, lower, upper; /* ReFrame's signed fractions of a reference; NAN: none */
    bool judged;                    /* a change of it would have been said */
    char *worse;                    /* why it is a regression, one line; NULL: it is none */
};

struct s4d_outcome {
    char *label;                /* told apart from that of every other series */
    char *key;                  /* of the series, as plots/track/intake.h makes it */
    int night;                  /* a day since 1970-01-01 */
    bool last;                  /* no later night of this series is in the list */
    long long time_s;           /* of its last record */
    json_t *record;             /* the last: own reference */
    const char *kind;           /* the record's */
    char *host_class, *backend; /* as the store has them; "simulated" */
    char *failure;              /* why there are no numbers, or not all; NULL: it went well */
    struct s4d_value *v;
    int n, cap;
};
struct s4d_outcomes {
    struct s4d_outcome *v; /* in the order of their first records */
    int n, cap;
    char *text; /* one line that says it all; NULL: none */
    struct s4d_outcome_index *index;
};

/* One record: a JSON object on one line of n bytes. Records of one series and night are an outcome,
 * all their samples together. where: "file:line". 0, or -1 (exit 65). */
int s4d_outcomes_add(struct s4d_outcomes *outcomes, const char *line, size_t n, const char *where,
                     struct s4d_error *err);
void s4d_outcomes_ready(struct s4d_outcomes *outcomes);
void s4d_outcomes_free(struct s4d_outcomes *outcomes);

#endif
