/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of the second iteration: ops, each of which started the instant that the one
 * before it ended, from the end of the first iteration to the last op of the second.
 *
 * Found from the last op backwards. What an op started on is the op before it in its stream or the
 * op of one of its waits, whichever ended last; of a collective, that of the member that came last.
 * So the path has no gaps, and its times sum to the iteration. Where several ended at that instant:
 * the stream's own first, then the waits in the program's order; of members the op's own class,
 * then the lowest. */
#ifndef S4D_SIM_CRITICAL_PATH_H
#define S4D_SIM_CRITICAL_PATH_H

#include <stdio.h>

#include "sim/trace.h"

enum s4d_step_cause {
    S4D_STEP_STREAM, /* the op before it in its stream ended */
    S4D_STEP_DATA,   /* a wait of this kind ended */
    S4D_STEP_MEMORY,
    S4D_STEP_ORDER
};
extern const char *const s4d_step_causes[]; /* "stream", "data", "memory", "order" */

struct s4d_step {
    int rank_class;  /* of a collective, where the path left it: one of its members */
    int last_member; /* of a collective: the class that came last, by which the path entered */
    int iteration, op;
    double start_s, end_s;     /* the first step's start is the iteration's */
    enum s4d_step_cause cause; /* what let it start, on last_member */
};

struct s4d_critical_path {
    struct s4d_step *step; /* in order of time; step[i].end_s == step[i + 1].start_s */
    int n, cap;
};

/* index: of the same program. Free with s4d_critical_path_free. */
void s4d_critical_path_find(struct s4d_critical_path *path, const struct s4d_trace *t,
                            const struct s4d_program_index *index);
void s4d_critical_path_free(struct s4d_critical_path *path);

/* One line a step: start_ms, end_ms and time_us, counted from the iteration's start, then rank,
 * stream, phase, layer, micro_batch, op, name, cause. */
void s4d_critical_path_write(const struct s4d_critical_path *path, const struct s4d_trace *t,
                             FILE *out);

#endif
