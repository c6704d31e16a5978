/* SPDX-License-Identifier: Apache-2.0 */
/* A job's share of a machine that is not all alike: where it runs, and what differs there. */
#ifndef S4D_SIM_SCENARIO_H
#define S4D_SIM_SCENARIO_H

#include <jansson.h>

#include "sim/differences.h"
#include "sim/placement.h"

struct s4d_scenario {
    struct s4d_placement placement;
    struct s4d_differences differences;
};

void s4d_scenario_free(struct s4d_scenario *s);
/* The first nodes of the machine as its file says. */
bool s4d_scenario_is_plain(const struct s4d_scenario *s);

/* The cluster of a job of `gpus` ranks. Plain, with rates alone, or NULL: only the nodes it uses;
 * else the whole machine. 0, or -1: as s4d_cluster_create, s4d_differences_apply,
 * s4d_placement_apply, s4d_cluster_settle. */
int s4d_scenario_cluster(struct s4d_cluster *c, const struct s4d_machine *m, int gpus,
                         const struct s4d_scenario *s, struct s4d_error *err);

/* What slows a job down alike on all of its ranks, for models that know no single part: rates, and
 * computing at the pace of its slowest device. 0, or -1 (exit 64: a placement or a difference of
 * links or NICs, which such a model cannot tell; else as s4d_scenario_cluster). */
int s4d_scenario_rates(struct s4d_rates *r, const struct s4d_machine *m, int gpus,
                       const struct s4d_scenario *s, struct s4d_error *err);

/* {"placement", "hosts", "differences", "hash"} for records, new reference; NULL for a plain one.
 */
json_t *s4d_scenario_record(const struct s4d_scenario *s);

#endif
