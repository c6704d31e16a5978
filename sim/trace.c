/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace.h"

#include <stdlib.h>

#include "support/memory.h"

void s4d_trace_create(struct s4d_trace *t, const struct s4d_system *system,
                      const struct s4d_program *program)
{
    S4D_ASSERT(!program->stages, "a trace of the programs of a pipe's stages");
    *t = (struct s4d_trace){.system = system, .program = program};
    t->span = s4d_calloc((size_t)system->n_ranks * 2 * (size_t)program->n_ops, sizeof *t->span);
}

void s4d_trace_free(struct s4d_trace *t)
{
    free(t->span);
    *t = (struct s4d_trace){0};
}

void s4d_trace_started(void *trace, int rank_class, int op, int iteration, double start_s)
{
    s4d_trace_span(trace, rank_class, iteration, op)->start_s = start_s;
}

void s4d_trace_ended(void *trace, int rank_class, int op, int iteration, double end_s)
{
    s4d_trace_span(trace, rank_class, iteration, op)->end_s = end_s;
}

void s4d_trace_window(void *trace, bool open, double now_s)
{
    struct s4d_trace *t = trace;
    *(open ? &t->open_s : &t->close_s) = now_s;
}
