/* SPDX-License-Identifier: Apache-2.0 */
/* The executor with collectives message by message; apart from sim/execute.c, so that a system made
 * by hand runs without algorithms. */
#include "sim/executor_state.h"

static struct s4d_engine *engine(void *self)
{
    return s4d_stepwise_engine(self);
}

static void start(void *self, struct s4d_engine *e, int group, const struct s4d_group_flows *flows,
                  enum s4d_op_kind op, const struct s4d_cost *cost, s4d_callback ended,
                  void *context)
{
    s4d_stepwise_start(self, e, group, flows, op, cost, ended, context);
}

int s4d_execute_stepwise(const struct s4d_system *system, const struct s4d_program *program,
                         const struct s4d_kernels *kernels, struct s4d_stepwise *stepwise,
                         struct s4d_message_count *sent, struct s4d_run *run, struct s4d_error *err)
{
    const struct s4d_mover mover = {engine, start, stepwise};
    struct executor x = {.system = system, .program = program, .run = run, .mover = &mover};
    *sent = (struct s4d_message_count){0};
    for (int i = 0; i < program->n_ops; i++) {
        const struct s4d_op *op = &program->ops[i];
        if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE)
            s4d_stepwise_count(stepwise, op->stream, op->kind,
                               (double)s4d_collective_bytes(&op->c, op->kind), NULL, ITERATIONS,
                               sent);
    }
    return s4d_stepwise_check(sent, err) ? -1 : s4d_executor_run(&x, kernels, err);
}
