/* SPDX-License-Identifier: Apache-2.0 */
/* One run of tune: its options, and what is done for each number of GPUs. */
#ifndef S4D_CLI_TUNE_RUN_H
#define S4D_CLI_TUNE_RUN_H

#include <limits.h>

#include "cli/scenario.h"
#include "cli/tune.h"
#include "plots/records.h"
#include "schedule/schedule_options.h"
#include "support/option.h" /* for: struct s4d_texts */

enum { S4D_TUNE_ALL = INT_MAX }; /* of simulate: without a warning that there are fewer */
struct s4d_tune_config {
    char *machine, *workload, *gpus, *records, *plot;
    struct s4d_texts set;
    int strategy, top, simulate, variants, workers;
    bool json;
    struct s4d_schedule_options schedule;
    struct s4d_scenario_options scenario;
};

/* A run of the command. */
struct s4d_tune_run {
    const struct s4d_tune_config *c;
    struct s4d_machine machine;
    struct s4d_scenario scenario;
    struct s4d_workload workload;
    struct s4d_records records;
    json_t *provenance;
    json_t *experiment; /* of every record made, too; or NULL */
    char program[17];
    struct s4d_tuning now; /* of the number of GPUs at hand */
    int finished;
    struct s4d_error write_fault;
};

/* Ranks, takes what is finished from the records, simulates the rest, draws: into t->now, which
 * s4d_tune_forget frees. 0, or -1: no configuration (64, 65), a file that cannot be written (74).
 */
int s4d_tune_gpus(struct s4d_tune_run *t, int gpus, struct s4d_error *err);
void s4d_tune_forget(struct s4d_tuning *now);

#endif
