/* SPDX-License-Identifier: Apache-2.0 */
/* A program's ops in a timeline, the same from both executors: a rank is a process, a stream a
 * thread, an op an event named as the program's text names it. */
#ifndef S4D_SCHEDULE_TIMELINE_H
#define S4D_SCHEDULE_TIMELINE_H

#include "schedule/program.h"
#include "support/timeline.h"

/* Names rank and streams; then ops in any order. */
void s4d_timeline_rank(struct s4d_timeline *t, const struct s4d_program *p, int rank,
                       const char *suffix);
void s4d_timeline_op(struct s4d_timeline *t, const struct s4d_program *p, int rank, int op,
                     int iteration, double start_s, double end_s);

#endif
