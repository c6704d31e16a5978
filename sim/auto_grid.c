/* SPDX-License-Identifier: Apache-2.0 */
/* --grid auto: enumerate, rank by the estimate, simulate the best that fit. */
#include "sim/auto_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/build.h" /* for: s4d_divides */
#include "sim/estimate.h"
#include "sim/isolate.h"
#include "sim/simulate_one.h"
#include "support/memory.h"
#include "support/progress.h"

enum { BEST = 10 };

static double distance(const struct s4d_grid *a, const struct s4d_grid *b)
{
    double sum = 0;
    for (int axis = 0; axis < S4D_AXES; axis++)
        sum += fabs(log2((double)a->size[axis] / b->size[axis]));
    return sum;
}

static int by_size(const struct s4d_candidate *a, const struct s4d_candidate *b)
{
    static const enum s4d_axis axes[] = {S4D_X, S4D_Y, S4D_Z};
    for (int i = 0; i < 3; i++)
        if (a->grid.size[axes[i]] != b->grid.size[axes[i]])
            return a->grid.size[axes[i]] < b->grid.size[axes[i]] ? -1 : 1;
    return 0;
}

static int by_estimate(const void *a, const void *b)
{
    const struct s4d_candidate *p = a, *q = b;
    return p->estimate_s < q->estimate_s ? -1 : p->estimate_s > q->estimate_s ? 1 : by_size(p, q);
}

static int by_distance_then_estimate(const void *a, const void *b)
{
    const struct s4d_candidate *p = a, *q = b;
    return p->distance < q->distance ? -1 : p->distance > q->distance ? 1 : by_estimate(a, b);
}

int s4d_candidates(const struct s4d_simulation *s, bool by_distance, struct s4d_candidate **list,
                   int *divide)
{
    const struct s4d_model *m = &s->workload->model;
    int n = 0, cap = 0, gpus = s->gpus;
    double room =
        s->machine->device.memory_bytes.value - s->machine->device.memory_reserve_bytes.value;
    *list = NULL;
    *divide = 0;
    for (int x = 1; x <= gpus; x++)
        for (int y = 1; gpus % x == 0 && y <= gpus / x; y++)
            for (int z = 1; gpus / x % y == 0 && z <= gpus / x / y; z++) {
                if (gpus / x / y % z)
                    continue;
                struct s4d_candidate c = {.grid = s4d_grid_make(x, y, z, gpus / x / y / z)};
                memcpy(c.grid.order, s->grid.order, sizeof c.grid.order);
                if (s4d_divides(m, &c.grid, &s->options, NULL))
                    continue;
                ++*divide;
                if (s4d_least_memory_bytes(m, &c.grid, &s->options) > room)
                    continue;
                c.estimate_s = s4d_estimate_s(s, &c.grid);
                c.distance = distance(&c.grid, &s->grid);
                s4d_push(*list, n, cap, c);
            }
    if (n > 1)
        qsort(*list, (size_t)n, sizeof **list,
              by_distance ? by_distance_then_estimate : by_estimate);
    return n;
}

struct batch {
    const struct s4d_simulation *s;
    const struct s4d_candidate *candidate;
    int simulated, done;
};

static int simulate_job(void *context, int index, void *result, struct s4d_error *err)
{
    const struct batch *b = context;
    return s4d_simulate_one(b->s, &b->candidate[index].grid, result, err);
}

static void show_progress(void *context, int index)
{
    struct batch *b = context;
    (void)index;
    s4d_progress("simulating", b->simulated + ++b->done, BEST);
}

/* The next grids of the ranking, as many as are still wanted. Those too large are left out; any
 * other fault ends the walk. */
static int simulate_batch(struct batch *b, int n, struct s4d_result *results, int *n_results,
                          struct s4d_error *err)
{
    struct s4d_error errors[BEST];
    struct s4d_result fresh[BEST];
    b->done = 0;
    s4d_isolated(simulate_job, b, n, b->s->workers, fresh, sizeof fresh[0], errors, show_progress);
    for (int i = 0; i < n; i++) {
        if (errors[i].exit == S4D_EXIT_OK) {
            results[(*n_results)++] = fresh[i];
        } else {
            *err = errors[i];
            if (strcmp(err->where, s4d_memory_fault) != 0)
                return -1;
        }
    }
    return 0;
}

/* Where two are equal to rounding the one ranked higher wins. */
static const struct s4d_result *fastest(const struct s4d_result *results, int n)
{
    const struct s4d_result *best = results;
    for (int i = 1; i < n; i++)
        if (results[i].run.iteration_time_s < best->run.iteration_time_s * (1 - 1e-9))
            best = &results[i];
    return best;
}

int s4d_simulate_auto(const struct s4d_simulation *s, struct s4d_result *result,
                      struct s4d_error *err)
{
    struct s4d_candidate *list;
    struct s4d_result results[BEST];
    int divide, n = s4d_candidates(s, false, &list, &divide), at = 0, simulated = 0, rc = 0;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    if (divide == 0 && s4d_divides(&s->workload->model, &one, &s->options, err))
        return -1; /* what fits no grid at all says so itself */
    if (divide == 0)
        return s4d_fail(err, S4D_EXIT_USAGE, "--grid",
                        "no grid of %d GPUs divides %s and a global batch of %d", s->gpus,
                        s->workload->model.name, s->options.global_batch);
    while (rc == 0 && at < n && simulated < BEST) {
        struct batch b = {.s = s, .candidate = list + at, .simulated = simulated};
        int wanted = BEST - simulated < n - at ? BEST - simulated : n - at;
        rc = simulate_batch(&b, wanted, results, &simulated, err);
        at += wanted;
    }
    s4d_progress_end();
    free(list);
    if (rc != 0)
        return -1;
    if (simulated == 0) {
        if (n == 0)
            s4d_fail(err, S4D_EXIT_DATA, s4d_memory_fault,
                     "the weights and optimizer state of %s alone are larger than the memory of "
                     "one %s on every grid of %d GPUs",
                     s->workload->model.name, s->machine->device.name, s->gpus);
        return s4d_hint(err,
                        "none of the %d grids of %d GPUs that divide the model fits: use more "
                        "GPUs",
                        divide, s->gpus);
    }
    *result = *fastest(results, simulated);
    result->candidates = divide;
    result->feasible = n - (at - simulated);
    result->simulated = simulated;
    return 0;
}
