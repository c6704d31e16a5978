/* SPDX-License-Identifier: Apache-2.0 */
/* What a program communicates, counted from its ops. */
#ifndef S4D_SCHEDULE_TRAFFIC_H
#define S4D_SCHEDULE_TRAFFIC_H

#include "schedule/program.h"

/* Bytes an iteration's collectives and messages of each kind move over each axis set, as
 * s4d_collective_bytes, and how many there are: [kind - S4D_OP_ALL_REDUCE][stream]. */
struct s4d_traffic {
    int64_t bytes[S4D_COMMUNICATIONS][S4D_STREAMS];
    int calls[S4D_COMMUNICATIONS][S4D_STREAMS];
};
struct s4d_traffic s4d_traffic_count(const struct s4d_program *program);

#endif
