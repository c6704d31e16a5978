/* SPDX-License-Identifier: Apache-2.0 */
/* What is simulated: the options of simulate that a result depends on. Keys of experiments (sweep,
 * plot) have the same names, with '_' for '-'. */
#ifndef S4D_CLI_RUN_OPTIONS_H
#define S4D_CLI_RUN_OPTIONS_H

#include "cli/scenario.h"
#include "schedule/schedule_options.h"
#include "sim/simulate.h"

struct s4d_run_options {
    char *machine, *workload;
    struct s4d_texts set;
    int gpus;
    bool no_fold;
    struct s4d_schedule_options schedule;
    struct s4d_scenario_options scenario;
};

extern const struct s4d_option s4d_run_options[]; /* machine, workload, gpus, set, no-fold */
/* The three tables, in one struct s4d_run_options. */
extern const struct s4d_option_group s4d_run_groups[];

struct s4d_run_options s4d_run_options_default(void);

/* What a simulation needs, which points to it: it stays where it is. */
struct s4d_run_inputs {
    struct s4d_machine machine;
    struct s4d_scenario scenario;
    struct s4d_workload workload;
    struct s4d_simulation simulation; /* workers: 1 */
    bool loaded;
};

/* Checks that what must be given is, and loads it. 0 (s4d_run_inputs_free), or -1 (exit 64,
 * "--gpus" in err->where; 65): nothing to free. Completes options->schedule. */
int s4d_run_inputs_load(struct s4d_run_inputs *in, struct s4d_run_options *options,
                        struct s4d_error *err);
void s4d_run_inputs_free(struct s4d_run_inputs *in);

#endif
