/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of scale4d-run: one file each (cli/run/NAME.c), one row in cli/run/main.c's table.
 */
#ifndef S4D_CLI_RUN_COMMAND_H
#define S4D_CLI_RUN_COMMAND_H

#include "real/mpi/world.h"
#include "support/option.h"

struct s4d_run_command {
    const char *name, *summary;
    /* On every rank. argv[0] is "scale4d-run NAME". Returns the exit code, the same on all ranks;
     * has printed its errors. */
    int (*run)(struct s4d_world *world, int argc, char **argv);
    const struct s4d_option_group *options; /* for completion */
};

extern const struct s4d_run_command s4d_run_train, s4d_run_calibrate, s4d_run_collective,
    s4d_run_preflight, s4d_run_layers, s4d_run_nightly;

#endif
