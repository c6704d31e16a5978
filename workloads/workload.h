/* SPDX-License-Identifier: Apache-2.0 */
/* Which model is trained: one YAML each, read into schedule/model.h. */
#ifndef S4D_WORKLOADS_WORKLOAD_H
#define S4D_WORKLOADS_WORKLOAD_H

#include "schedule/model.h"
#include "support/error.h"

struct s4d_workload {
    struct s4d_model model;
    char hash[17]; /* of the file's bytes */
    char *file;
};

/* NAME (of a file in the workloads folder), or a path that ends in .yaml. 0, or -1 (exit 65):
 * unknown workload (lists the nearest), missing or extra key, bad number, an unknown layer kind,
 * with file:line. */
int s4d_workload_load(struct s4d_workload *w, const char *name, struct s4d_error *err);
void s4d_workload_free(struct s4d_workload *w);
int s4d_workload_names(
    char ***names); /* sorted; returns how many; caller frees each and the array */

#endif
