/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/backend.h"

#include <stdlib.h>

#include "real/host/host.h"
#include "real/host_class.h"

static int open_host(struct s4d_device *device, const struct s4d_program *program,
                     const struct s4d_backend_options *options, struct s4d_error *err)
{
    struct s4d_host_options host = {.comm = options->comm,
                                    .tokens = options->tokens,
                                    .progress = (enum s4d_progress_mode)options->progress};
    return s4d_host_threads(options->threads, err) || s4d_host_open(device, program, &host, err)
               ? -1
               : 0;
}

static json_t *state(const struct s4d_device *device)
{
    char *name = s4d_processor_name();
    json_t *object = json_pack("{s:s}", "name", name);
    (void)device;
    free(name);
    return object;
}

const struct s4d_backend s4d_backend_host = {
    .name = "host",
    .about = s4d_host_blas,
    .open = open_host,
    .describe = s4d_host_describe,
    .completed = s4d_host_completed,
    .state = state,
};
