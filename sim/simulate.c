/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation as a whole: checks, children, and what to try where a model is too large. */
#include "sim/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/auto_grid.h"
#include "sim/fabric.h"
#include "sim/isolate.h"
#include "sim/simulate_one.h"

enum { TRIES = 16 };

struct tries {
    const struct s4d_simulation *s;
    const struct s4d_candidate *candidate;
};

static int one_job(void *context, int index, void *result, struct s4d_error *err)
{
    const struct s4d_simulation *s = context;
    (void)index;
    return s4d_simulate_one(s, &s->grid, result, err);
}

static int fits_job(void *context, int index, void *result, struct s4d_error *err)
{
    const struct tries *t = context;
    struct s4d_program program;
    if (s4d_plan_grid(t->s, &t->candidate[index].grid, &program, result, err))
        return -1;
    s4d_program_free(&program);
    return 0;
}

/* The grid of as many GPUs nearest to the one asked for that fits, as the error's hint. */
static void hint_nearest(const struct s4d_simulation *s, struct s4d_error *err)
{
    struct s4d_candidate *list;
    struct s4d_simulation any = *s;
    any.options.micro_batch = 0;
    int divide, n = s4d_candidates(&any, true, &list, &divide, NULL), found = -1;
    n = n < TRIES ? n : TRIES;
    struct s4d_result results[TRIES];
    struct s4d_error errors[TRIES];
    int workers = s->workers > 1 ? s->workers : 1;
    for (int at = 0; at < n && found < 0; at += workers) {
        struct tries tries = {&any, list + at};
        int some = workers < n - at ? workers : n - at;
        s4d_isolated(fits_job, &tries, some, workers, results, sizeof results[0], errors, NULL);
        for (int i = some - 1; i >= 0; i--)
            if (errors[i].exit == S4D_EXIT_OK)
                found = i;
        if (found >= 0) {
            char grid[64];
            s4d_hint(err, "the nearest grid that fits is %s with micro-batch %d",
                     s4d_grid_text(&list[at + found].grid, grid, sizeof grid),
                     results[found].micro_batch);
        }
    }
    if (found < 0)
        s4d_hint(err, "no grid of %d GPUs near it fits: use more GPUs", s->gpus);
    free(list);
}

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int s4d_simulation_check(const struct s4d_simulation *s, struct s4d_error *err)
{
    const struct s4d_machine *m = s->machine;
    struct s4d_kernels kernels = {.machine = m};
    if (s4d_fabric_check(m, err) || s4d_kernels_check(&kernels, &s->options, err))
        return -1;
    if (s->gpus > m->fabric.nodes * (int64_t)m->node.devices)
        return s4d_fail(err, S4D_EXIT_DATA, "--gpus",
                        "%s has %d nodes of %d devices, %lld in all: %d are more", m->name,
                        m->fabric.nodes, m->node.devices,
                        (long long)m->fabric.nodes * m->node.devices, s->gpus);
    return 0;
}

/* The grid that was chosen once more, by itself. */
static int again(const struct s4d_simulation *s, const struct s4d_result *chosen,
                 struct s4d_result *same, struct s4d_error *err)
{
    struct s4d_simulation one = *s;
    struct s4d_error fault;
    one.grid = chosen->grid;
    one.options.micro_batch = chosen->micro_batch;
    if (s4d_isolated(one_job, &one, 1, 1, same, sizeof *same, &fault, NULL) == 0)
        return 0;
    if (err)
        *err = fault;
    return -1;
}

static int check_stepwise(const struct s4d_simulation *s, struct s4d_result *result,
                          struct s4d_error *err)
{
    struct s4d_simulation one = *s;
    struct s4d_result stepwise;
    one.explain = NULL;
    one.fold = false;
    if (again(&one, result, &stepwise, err))
        return -1;
    result->stepwise_time_s = stepwise.run.iteration_time_s;
    result->sent = stepwise.sent;
    return 0;
}

static int simulate_grid(const struct s4d_simulation *s, struct s4d_result *result,
                         struct s4d_error *err)
{
    struct s4d_error fault;
    if (s4d_isolated(one_job, (void *)s, 1, 1, result, sizeof *result, &fault, NULL) == 0)
        return 0;
    if (strcmp(fault.where, s4d_memory_fault) == 0)
        hint_nearest(s, &fault);
    if (err)
        *err = fault;
    return -1;
}

int s4d_simulate(const struct s4d_simulation *s, struct s4d_result *result, struct s4d_error *err)
{
    double start_s = clock_s();
    struct s4d_simulation fluid = *s;
    fluid.stepwise = S4D_STEPWISE_OFF;
    if (s4d_simulation_check(s, err))
        return -1;
    if (s->grid_auto) {
        struct s4d_simulation quiet = fluid;
        struct s4d_result same;
        quiet.explain = NULL;
        if (s4d_simulate_auto(&quiet, result, err) ||
            (s->explain && again(&fluid, result, &same, err)))
            return -1;
    } else if (simulate_grid(&fluid, result, err)) {
        return -1;
    }
    result->stepwise_time_s = 0;
    if (s->stepwise && check_stepwise(s, result, err))
        return -1;
    result->wall_s = clock_s() - start_s;
    return 0;
}
