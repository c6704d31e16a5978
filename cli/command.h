/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of scale4d: one file each (cli/NAME.c), one row in cli/main.c's table. */
#ifndef S4D_CLI_COMMAND_H
#define S4D_CLI_COMMAND_H

#include "support/option.h"

struct s4d_command {
    const char *name, *summary;
    const char *also; /* another name for it, or NULL */
    /* argv[0] is "scale4d NAME". Returns the exit code; prints its own errors (s4d_error_print). */
    int (*run)(int argc, char **argv);
    /* For completion: its tables of options, NULL where it has none; and the command that lists
     * what its NAMEs may be, NULL: files, or nothing. */
    const struct s4d_option_group *options;
    const char *names;
};
extern const struct s4d_command *const s4d_commands[]; /* ends with NULL */

extern const struct s4d_command s4d_command_simulate, s4d_command_collective, s4d_command_schedule,
    s4d_command_route, s4d_command_machines, s4d_command_workloads, s4d_command_layers,
    s4d_command_collectives, s4d_command_fabrics, s4d_command_plot, s4d_command_compare,
    s4d_command_links, s4d_command_completion, s4d_command_validate, s4d_command_accuracy;
extern const struct s4d_command s4d_command_sweep, s4d_command_tune, s4d_command_convert,
    s4d_command_track;

#endif
