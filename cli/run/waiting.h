/* SPDX-License-Identifier: Apache-2.0 */
/* How long a rank waits for others: options of every command that runs on devices. Each command's
 * default of --timeout is assumed: many times what its longest op takes. */
#ifndef S4D_CLI_RUN_WAITING_H
#define S4D_CLI_RUN_WAITING_H

#include "support/option.h"

struct s4d_waiting {
    double timeout_s;       /* for anything to complete; 0: for ever */
    double group_timeout_s; /* for a communicator to form; 0: as the backend thinks */
};

extern const struct s4d_option s4d_waiting_options[];
/* The group of a command's options that has them at `offset` of its configuration. */
#define S4D_WAITING_GROUP(at)                                                                      \
    {                                                                                              \
        .title = "Waiting", .options = s4d_waiting_options, .offset = at                           \
    }

/* 0, or -1 (exit 64): --group-timeout of a backend that has no communicators of its own. */
int s4d_waiting_check(const struct s4d_waiting *w, int backend, struct s4d_error *err);

#endif
