/* SPDX-License-Identifier: Apache-2.0 */
/* Reference values with signed fractions by host class, as ReFrame writes them:
 *
 *   NVIDIA H100 80GB HBM3 x8 n:                        # host class, or simulated:MACHINE
 *     - series: {workload: gpt-5b, gpus: 64}           # what is left out is any
 *       flops_per_s: [4.12, -0.05, 0.10, PFLOP/s]      # value, lower, upper, unit; null: no limit
 *       iteration_time_s: [310, null, 0.05, ms]
 *
 * A night outside [value (1 + lower), value (1 + upper)] fails. Keys of `series`: kind, backend,
 * workload, gpus, grid. */
#ifndef S4D_PLOTS_TRACK_REFERENCE_H
#define S4D_PLOTS_TRACK_REFERENCE_H

#include <stdbool.h>

#include "plots/track/store.h"
#include "support/yaml.h"

struct s4d_reference {
    char *where; /* "file:line" */
    char *host_class;
    char *kind, *backend, *workload, *grid; /* NULL: any */
    int64_t gpus;                           /* 0: any */
    char *metric;                           /* full name */
    double value;                           /* in the metric's unit */
    double lower, upper;                    /* fractions, at most and at least 0; NAN: no limit */
    bool used;                              /* a series of the store has it */
};
struct s4d_references {
    struct s4d_reference *v;
    int n, cap;
};

/* 0; -1 (exit 65, file:line): unknown keys and metrics, wrong units, fractions of the wrong sign,
 * no limit at all, the same metric of the same series twice. */
int s4d_references_read(struct s4d_references *references, const char *file, struct s4d_error *err);
/* The same of a tree, which stays the caller's. */
int s4d_references_make(struct s4d_references *references, const struct s4d_yaml_node *root,
                        struct s4d_error *err);
void s4d_references_free(struct s4d_references *references);
bool s4d_reference_is_of(const struct s4d_reference *reference, const struct s4d_series *series);

#endif
