/* SPDX-License-Identifier: Apache-2.0 */
/* The static memory plan: an offset for every storage. */
#ifndef S4D_SCHEDULE_PLAN_H
#define S4D_SCHEDULE_PLAN_H

#include "schedule/program.h"

enum { S4D_PLAN_ALIGN = 256 }; /* bytes */

/* Sets storages[].offset (multiples of S4D_PLAN_ALIGN) and arena_bytes[]. Persistent storages come
 * first and share nothing. Two others share bytes only if every use of one happens before every use
 * of the other in the program unrolled twice (also across the iterations' boundary). Largest first,
 * each at the lowest offset that is free of conflicts; where more than 4 % of what is in use at
 * once is lost to gaps, also largest size times lifetime first, and longest lifetime first: the
 * lowest of these plans. */
void s4d_plan(struct s4d_program *program);

/* Bytes by role after the plan: of persistent storages, and the height of the shared part. */
struct s4d_plan_summary {
    int64_t by_role[S4D_ROLES]; /* persistent bytes of each role on the device */
    int64_t shared;             /* the rest of the device arena */
    int64_t total;              /* = arena_bytes[S4D_DEVICE] */
};
struct s4d_plan_summary s4d_plan_summarise(const struct s4d_program *program);

#endif
