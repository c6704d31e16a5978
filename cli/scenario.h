/* SPDX-License-Identifier: Apache-2.0 */
/* The machine that a command is given: --machine and --set, where a job runs on it, and what
 * differs there. */
#ifndef S4D_CLI_SCENARIO_H
#define S4D_CLI_SCENARIO_H

#include "sim/scenario.h"
#include "support/option.h"

struct s4d_scenario_options {
    char *device, *platform_hosts, *node, *placement, *hosts;
    struct s4d_texts diff;
};
extern const struct s4d_option s4d_scenario_options[];

/* Loads the machine by name with its settings, and the scenario: settings of links, nics and
 * devices and what the options say. 0 (free both), or -1. */
int s4d_scenario_load(struct s4d_machine *m, struct s4d_scenario *s, const char *machine,
                      const struct s4d_texts *set, const struct s4d_scenario_options *o,
                      struct s4d_error *err);

#endif
