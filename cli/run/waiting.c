/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/waiting.h"

#include <stddef.h>
#include <string.h>

#include "real/mpi/backend.h"

const struct s4d_option s4d_waiting_options[] = {
    {.name = "timeout",
     .argument = "TIME",
     .type = S4D_OPT_TIME,
     .offset = offsetof(struct s4d_waiting, timeout_s),
     .help = "stop when nothing has completed on a rank for so long; 0 s: never"},
    {.name = "group-timeout",
     .argument = "TIME",
     .type = S4D_OPT_TIME,
     .offset = offsetof(struct s4d_waiting, group_timeout_s),
     .help = "of cuda: in which each of NCCL's communicators must form; 0 s: 20 s and 20 ms a "
             "rank"},
    {.name = NULL},
};

int s4d_waiting_check(const struct s4d_waiting *w, int backend, struct s4d_error *err)
{
    const char *name = s4d_backend_names[backend];
    if (w->group_timeout_s > 0 && strcmp(name, "cuda") != 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--group-timeout", "--backend %s has none", name);
    return 0;
}
