/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/backend.h"

#include <stdio.h>
#include <string.h>

#include "real/host/host.h"

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

/* "model name : AMD EPYC 7763" of /proc/cpuinfo. */
static json_t *state(const struct s4d_device *device)
{
    FILE *in = fopen("/proc/cpuinfo", "r");
    char line[512];
    json_t *object = json_object();
    (void)device;
    while (in && json_object_size(object) == 0 && fgets(line, sizeof line, in)) {
        char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "model name", 10) == 0 && colon && colon[1 + strspn(colon + 1, " ")])
            json_object_set_new(object, "name",
                                json_stringn(colon + 1 + strspn(colon + 1, " "),
                                             strnlen(colon + 1 + strspn(colon + 1, " "), 60)));
    }
    if (in)
        fclose(in);
    if (json_object_size(object) == 0)
        json_object_set_new(object, "name", json_string("a processor without a name"));
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
