/* SPDX-License-Identifier: Apache-2.0 */
/* From a line of JSON to what the store keeps of it: checks it, and finds its series and night. */
#ifndef S4D_PLOTS_TRACK_INTAKE_H
#define S4D_PLOTS_TRACK_INTAKE_H

#include <jansson.h>
#include <stdint.h>

#include "support/error.h"

struct s4d_intake {
    json_t *record;
    int64_t hash;   /* of its contents, whatever its spaces and the order of its keys */
    int64_t time_s; /* of provenance.time, since 1970-01-01 */
    int night;      /* the day of suite.night, else of its time */
    /* The series: borrowed from the record or from what is freed with it. */
    const char *kind, *backend, *workload, *grid, *model_version, *commit;
    int64_t gpus;
    char *host_class, *options, *environment; /* the last two: canonical JSON of objects */
    char *key;                                /* of the series: canonical JSON of all above */
};

/* where: "file:line". 0; -1 (exit 65): no record, or one that says what cannot be. */
int s4d_intake(struct s4d_intake *in, const char *line, size_t n, const char *where,
               struct s4d_error *err);
/* in->hash of a record. */
int64_t s4d_intake_hash(const json_t *record);
void s4d_intake_free(struct s4d_intake *in);

#endif
