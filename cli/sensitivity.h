/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d machines NAME --sensitivity: what of the machine moves a job's iteration time. */
#ifndef S4D_CLI_SENSITIVITY_H
#define S4D_CLI_SENSITIVITY_H

#include "schedule/schedule_options.h"
#include "sim/scenario.h"
#include "support/machine.h"

struct s4d_sensitivity_options {
    bool wanted;
    char *workload;
    int gpus, workers;
    struct s4d_texts tags;
};
extern const struct s4d_option s4d_sensitivity_options[];

/* Simulates and prints: a table by effect, or one JSON line. 0, or -1. */
int s4d_sensitivity_command(const struct s4d_machine *m, const struct s4d_scenario *scenario,
                            const struct s4d_sensitivity_options *o,
                            struct s4d_schedule_options *schedule, bool json, int argc, char **argv,
                            struct s4d_error *err);

#endif
