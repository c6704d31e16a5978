/* SPDX-License-Identifier: Apache-2.0 */
/* One grid: program, memory, system, executor. */
#include "sim/simulate_one.h"

#include <string.h>

#include "schedule/build.h"
#include "schedule/flops.h"
#include "schedule/plan.h"
#include "schedule/record_parts.h"
#include "sim/cluster.h"
#include "support/units.h" /* for: s4d_format_bytes */

const char *const s4d_memory_fault = "memory";

static int too_large(const struct s4d_simulation *s, const struct s4d_program *p, double need,
                     struct s4d_error *err)
{
    const struct s4d_device *d = &s->machine->device;
    struct s4d_plan_summary sum = s4d_plan_summarise(p);
    char grid[64], text[6][32];
    s4d_fail(err, S4D_EXIT_DATA, s4d_memory_fault,
             "%s on grid %s with micro-batch %d needs %s a device (%s kept between iterations, %s "
             "of activations and buffers, %s reserve), %s more than its %s (%s)",
             p->model.name, s4d_grid_text(&p->grid, grid, sizeof grid), p->options.micro_batch,
             s4d_format_bytes(need, text[0], sizeof text[0]),
             s4d_format_bytes((double)(sum.total - sum.shared), text[1], sizeof text[1]),
             s4d_format_bytes((double)sum.shared, text[2], sizeof text[2]),
             s4d_format_bytes(d->memory_reserve_bytes.value, text[3], sizeof text[3]),
             s4d_format_bytes(need - d->memory_bytes.value, text[4], sizeof text[4]),
             s4d_format_bytes(d->memory_bytes.value, text[5], sizeof text[5]), d->name);
    return -1;
}

/* Bytes a device needs: the program's arena and what the machine keeps for itself. */
static double need_bytes(const struct s4d_simulation *s, int64_t arena_bytes)
{
    return (double)arena_bytes + s->machine->device.memory_reserve_bytes.value;
}

static int check_memory(const struct s4d_simulation *s, const struct s4d_program *p,
                        struct s4d_error *err)
{
    double need = need_bytes(s, p->arena_bytes[S4D_DEVICE]);
    return need > s->machine->device.memory_bytes.value ? too_large(s, p, need, err) : 0;
}

/* Micro-batches after the first few use the same buffers again: what does not fit with so many
 * never does, and that is known sooner of the shorter program. */
enum { PLANNED = 4 };

static int plan(const struct s4d_simulation *s, const struct s4d_grid *grid,
                const struct s4d_options *o, struct s4d_program *p, struct s4d_error *err)
{
    if (s4d_build(p, &s->workload->model, grid, o, err))
        return -1;
    s4d_plan(p);
    if (check_memory(s, p, err) == 0)
        return 0;
    s4d_program_free(p);
    return -1;
}

/* Builds the program with the options as they are and plans its memory. 0 (free the program), or
 * -1. */
static int plan_with(const struct s4d_simulation *s, const struct s4d_grid *grid,
                     const struct s4d_options *o, struct s4d_program *p, struct s4d_error *err)
{
    struct s4d_options few = *o;
    int64_t most = (int64_t)PLANNED * grid->size[S4D_Z] * grid->size[S4D_DATA] * o->micro_batch;
    if (most < o->global_batch) {
        few.global_batch = (int)most;
        if (plan(s, grid, &few, p, err))
            return -1;
        s4d_program_free(p);
    }
    return plan(s, grid, o, p, err);
}

static void describe(const struct s4d_simulation *s, const struct s4d_program *p,
                     struct s4d_result *r)
{
    const struct s4d_model *m = &p->model;
    const struct s4d_options *o = &p->options;
    *r = (struct s4d_result){
        .grid = p->grid,
        .micro_batch = o->micro_batch,
        .micro_batches = p->micro_batches,
        .flops_formula = s4d_formula_flops(m, o->global_batch, o->recompute),
        .flops_executed = s4d_program_executed_flops(p),
        .memory_peak_bytes = (int64_t)need_bytes(s, p->arena_bytes[S4D_DEVICE]),
        .parameters = s4d_program_parameters(p),
        .n_ops = p->n_ops,
    };
    s4d_bus_bytes(p, r->bus_bytes);
}

/* Whether a micro-batch of one sequence, or one micro-batch of them all, fits: no other size needs
 * less. */
static int smallest_fits(const struct s4d_simulation *s, const struct s4d_grid *grid, int local,
                         struct s4d_error *err)
{
    struct s4d_program p;
    struct s4d_options o = s->options;
    o.micro_batch = 1;
    if (o.global_batch / local * PLANNED < o.global_batch)
        o.global_batch = o.global_batch / local * PLANNED;
    int rc = plan_with(s, grid, &o, &p, err);
    if (rc == 0)
        s4d_program_free(&p);
    return rc;
}

int s4d_plan_grid(const struct s4d_simulation *s, const struct s4d_grid *grid,
                  struct s4d_program *p, struct s4d_result *r, struct s4d_error *err)
{
    struct s4d_options o = s->options;
    if (s4d_divides(&s->workload->model, grid, &o, err))
        return -1;
    int local = o.global_batch / (grid->size[S4D_Z] * grid->size[S4D_DATA]), rc = -1;
    int largest = s4d_largest_micro_batch(&s->workload->model);
    bool given = o.micro_batch > 0, small = false;
    for (int b = given ? o.micro_batch : local; rc != 0 && b >= 1; b--) {
        if (local % b || (b > largest && b > 1 && !given))
            continue;
        o.micro_batch = b;
        rc = plan_with(s, grid, &o, p, err);
        if (rc != 0 && (given || strcmp(err->where, s4d_memory_fault) != 0))
            return -1;
        if (rc != 0 && !small && b > 1 && smallest_fits(s, grid, local, err))
            return -1;
        small = true;
    }
    if (rc == 0)
        describe(s, p, r);
    return rc;
}

/* Runs the system as it is asked for. */
static int run(const struct s4d_simulation *s, const struct s4d_system *system,
               const struct s4d_program *p, struct s4d_result *r, struct s4d_error *err)
{
    struct s4d_kernels kernels = {.machine = s->machine};
    if (s->explain)
        return s4d_execute_explained(system, p, &kernels, s->explain, &r->run, err);
    if (!s->stepwise)
        return s4d_execute(system, p, &kernels, &r->run, err);
    struct s4d_stepwise *stepwise = s4d_stepwise_create(system, &p->grid, s->stepwise);
    int rc = s4d_execute_stepwise(system, p, &kernels, stepwise, &r->sent, &r->run, err);
    s4d_stepwise_free(stepwise);
    return rc;
}

static int execute(const struct s4d_simulation *s, const struct s4d_program *p,
                   struct s4d_result *r, struct s4d_error *err)
{
    struct s4d_cluster cluster;
    struct s4d_system system;
    int rc = -1;
    if (s4d_scenario_cluster(&cluster, s->machine, s->gpus, s->scenario, err))
        return -1;
    if (s4d_system_create(&system, &cluster, p, ~0u, s->fold, err) == 0) {
        r->gpu_classes = system.n_ranks;
        r->group_classes = system.n_groups;
        r->flow_classes = system.n_flows;
        r->link_classes = system.n_links;
        rc = run(s, &system, p, r, err);
        s4d_system_free(&system);
    }
    s4d_cluster_destroy(&cluster);
    return rc;
}

int s4d_simulate_one(const struct s4d_simulation *s, const struct s4d_grid *grid,
                     struct s4d_result *r, struct s4d_error *err)
{
    struct s4d_program program;
    if (s4d_plan_grid(s, grid, &program, r, err))
        return -1;
    int rc = execute(s, &program, r, err);
    s4d_program_free(&program);
    return rc;
}
