/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of all ranks, gathered on rank 0. */
#ifndef S4D_CLI_RUN_DEVICES_H
#define S4D_CLI_RUN_DEVICES_H

#include <jansson.h>

#include "real/mpi/world.h"

/* Collective. `own` is taken over. On rank 0 a new array of every rank's object, with "rank" and
 * "host" before its keys; NULL on the others. */
json_t *s4d_devices_gather(const struct s4d_world *w, json_t *own);

/* provenance.devices (plots/RECORD.md) of what was gathered before and after a run (NULL: it did
 * not end): what all ranks' devices have in common, and an entry a rank. */
json_t *s4d_devices_provenance(const json_t *before, const json_t *after);
/* A warning for each device that was held back by its temperature, or met memory errors, between
 * the two. A power limit holds back any GPU that works hard: it is in the record alone. */
void s4d_devices_warn(const json_t *before, const json_t *after);

/* "rank 3 (node7, NVIDIA H200, GPU-8f2c...)": into text of the given size, returned. NULL devices:
 * the number alone. */
const char *s4d_device_words(const json_t *devices, int rank, char *text, size_t size);

#endif
