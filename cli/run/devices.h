/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of all ranks, gathered on rank 0. */
#ifndef S4D_CLI_RUN_DEVICES_H
#define S4D_CLI_RUN_DEVICES_H

#include <jansson.h>

#include "real/mpi/world.h"

/* Collective. `own` is taken over. On rank 0 a new array of every rank's object, with "rank" and
 * "host" before its keys; NULL on the others. */
json_t *s4d_devices_gather(const struct s4d_world *w, json_t *own);

/* "rank 3 (node7, NVIDIA H200, GPU-8f2c...)": into text of the given size, returned. NULL devices:
 * the number alone. */
const char *s4d_device_words(const json_t *devices, int rank, char *text, size_t size);

#endif
