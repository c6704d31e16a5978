/* SPDX-License-Identifier: Apache-2.0 */
/* The health check of all devices: scale4d-run preflight, and train --preflight. */
#ifndef S4D_CLI_RUN_PREFLIGHT_H
#define S4D_CLI_RUN_PREFLIGHT_H

#include <jansson.h>

#include "cli/run/waiting.h"
#include "real/mpi/world.h"
#include "real/preflight.h"

struct s4d_preflight_config {
    int backend, precision, threads;
    char *machine;              /* NULL: peers alone are compared */
    double slower_percent;      /* below the median of the peers */
    struct s4d_texts tolerance; /* below the machine file: "PERCENT" or "CHECK=PERCENT" */
    struct s4d_waiting waiting;
    bool tf32;
};
/* One check of all ranks by those options, host and bf16 until set. */
struct s4d_preflight_config s4d_preflight_config_default(void);

/* Collective; watches the ranks meanwhile. An exit code, the same on all ranks, errors printed: 0;
 * 1: something is slow or wrong, which is no error of the command; 64, 65: options or the machine;
 * 69: a device failed. Rank 0 has a record of kind "preflight" without provenance in *record where
 * the check was made; else it is NULL. */
int s4d_preflight_run(const struct s4d_preflight_config *config, struct s4d_world *world,
                      json_t **record);
/* The record for people; and warnings that name what is slow. */
void s4d_preflight_print(const json_t *record);
void s4d_preflight_warn(const json_t *record);

#endif
