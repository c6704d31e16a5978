/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of scale4d track: one file each (cli/track/NAME.c), one row in cli/track.c's
 * table. */
#ifndef S4D_CLI_TRACK_TRACK_H
#define S4D_CLI_TRACK_TRACK_H

#include "plots/track/store.h"
#include "support/option.h"

struct s4d_track_command {
    const char *name, *summary;
    /* argv[0] is "scale4d track NAME". Returns the exit code; prints its own errors. */
    int (*run)(int argc, char **argv);
};
extern const struct s4d_track_command s4d_track_add, s4d_track_list;
extern const struct s4d_track_command s4d_track_verdict;

/* Of every subcommand: --store FILE, into a char *. */
extern const struct s4d_option s4d_track_store_option[];

#endif
