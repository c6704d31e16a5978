/* SPDX-License-Identifier: Apache-2.0 */
/* When every op of every class of ranks started and ended, in both iterations. */
#ifndef S4D_SIM_TRACE_H
#define S4D_SIM_TRACE_H

#include "sim/executor.h"
#include "sim/program_index.h"

struct s4d_span {
    double start_s, end_s;
};

struct s4d_trace {
    const struct s4d_system *system;
    const struct s4d_program *program;
    struct s4d_span *span;  /* [class of ranks][iteration][op] */
    double open_s, close_s; /* the second iteration, as iteration_time_s measures it */
};

/* Of a program that all ranks run. */
void s4d_trace_create(struct s4d_trace *t, const struct s4d_system *system,
                      const struct s4d_program *program);
void s4d_trace_free(struct s4d_trace *t);
/* For an observer's functions, with the trace as their context. */
void s4d_trace_started(void *trace, int rank_class, int op, int iteration, double start_s);
void s4d_trace_ended(void *trace, int rank_class, int op, int iteration, double end_s);
void s4d_trace_window(void *trace, bool open, double now_s);

static inline struct s4d_span *s4d_trace_span(const struct s4d_trace *t, int rank_class,
                                              int iteration, int op)
{
    return &t->span[((size_t)rank_class * 2 + (size_t)iteration) * (size_t)t->program->n_ops +
                    (size_t)op];
}

#endif
