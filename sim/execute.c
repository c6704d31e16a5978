/* SPDX-License-Identifier: Apache-2.0 */
/* The executor on coupled flows. */
#include "sim/executor_state.h"

int s4d_execute(const struct s4d_system *system, const struct s4d_program *program,
                const struct s4d_kernels *kernels, struct s4d_run *run, struct s4d_error *err)
{
    return s4d_execute_observed(system, program, kernels, NULL, run, err);
}

int s4d_execute_observed(const struct s4d_system *system, const struct s4d_program *program,
                         const struct s4d_kernels *kernels, const struct s4d_observer *observer,
                         struct s4d_run *run, struct s4d_error *err)
{
    struct executor x = {.system = system, .program = program, .run = run, .observer = observer};
    return s4d_executor_run(&x, kernels, err);
}
