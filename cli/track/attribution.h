/* SPDX-License-Identifier: Apache-2.0 */
/* One change of an iteration's time, put down to its causes: numbers, JSON and a line for people.
 *
 * With rates of the nights before and after: the record's iteration is simulated at both, cause by
 * cause (cli/track/split.h), and the simulated time is scaled to the measured one. How sure a part
 * is follows from one more simulation, with that cause's rates off by their standard errors. What
 * rates do not say is unexplained; parts and unexplained sum to the change. Without: exposed_s of
 * the records themselves, which says where time was lost, not why. */
#ifndef S4D_CLI_TRACK_ATTRIBUTION_H
#define S4D_CLI_TRACK_ATTRIBUTION_H

#include "cli/track/replay.h"
#include "cli/track/split.h"

enum s4d_attributed_by { S4D_BY_NOTHING, S4D_BY_RATES, S4D_BY_EXPOSED };

/* exposed_s and iteration_time_s, medians of a few records. */
enum { S4D_EXPOSED = 6 };
extern const char *const s4d_exposed_names[S4D_EXPOSED]; /* "compute", "x", ..., "other" */
struct s4d_exposed {
    int records;
    double part_s[S4D_EXPOSED], iteration_s;
};

struct s4d_attribution {
    enum s4d_attributed_by by;
    double ratio;                 /* iteration time after, of that before; NAN: no metric of time */
    double ratio_error;           /* its standard error; 0: not known */
    double part[S4D_SPLIT_PARTS]; /* of the iteration time before; sum to ratio - 1 */
    double error[S4D_SPLIT_PARTS]; /* by rates: their standard errors, as the rates scatter */
    struct s4d_night_rates before, after; /* records 0: none */
    struct s4d_exposed exposed[2];        /* before, after */
    char machine[64];                     /* simulated; "made of the rates" */
    double simulated_s[2]; /* the iteration before and after, unscaled; NAN: not simulated */
    char note[400];        /* why there is no more; "" */
};

/* a has ratio, its error, and before and after or exposed, the rest zero. record: of the series,
 * with all its inputs. Fills what is left: by rates, or with the reason in `note` by exposed_s, or
 * by nothing. A simulated record's are its own exposed_s. */
void s4d_attribute(struct s4d_attribution *a, const json_t *record,
                   const struct s4d_replay_options *options);

/* The change of a metric with this ratio of its iteration time: time itself, or FLOP/s. */
enum s4d_time_metric { S4D_IS_TIME, S4D_IS_RATE };
/* {by, change, parts: {compute, x, y, z, data, other, slow_node, unexplained}, errors: the same,
 * rates: [{of, unit, before, after, change, error}], slowest: {host, rank, below, records, before:
 * {host, below}}, records: {before, after}, simulated: {machine, before_s, after_s}, measured:
 * {before_s, after_s}, note, text}; parts of the metric before the change, which they sum to;
 * error: the change's standard error as the records scatter; what is not known is missing. New
 * reference. */
json_t *s4d_attribution_record(const struct s4d_attribution *a, enum s4d_time_metric metric);

#endif
