/* SPDX-License-Identifier: Apache-2.0 */
/* --grid auto: the ranking of sim/tune, of which the best that fit are simulated. */
#include "sim/auto_grid.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int by_distance(const void *a, const void *b)
{
    const struct s4d_candidate *p = a, *q = b;
    if (p->distance != q->distance)
        return p->distance < q->distance ? -1 : 1;
    return (p->rank > q->rank) - (p->rank < q->rank);
}

/* What the ranking's model can tell of where the job runs: single links and nodes it cannot, and
 * only the simulations that follow know them. */
static const struct s4d_scenario *told(const struct s4d_simulation *s)
{
    struct s4d_rates rates;
    return s4d_scenario_rates(&rates, s->machine, s->gpus, s->scenario, NULL) == 0 ? s->scenario
                                                                                   : NULL;
}

int s4d_candidates(const struct s4d_simulation *s, bool near, struct s4d_candidate **list,
                   int *divide, struct s4d_error *err)
{
    struct s4d_space space = {.machine = s->machine,
                              .workload = s->workload,
                              .gpus = s->gpus,
                              .order = s->grid,
                              .options = s->options,
                              .largest_micro_batch = true,
                              .scenario = told(s),
                              .strategy = s4d_strategies};
    struct s4d_ranking r;
    int rc = s4d_space_rank(&space, &r, err), n = r.n;
    *divide = r.divide;
    *list = s4d_calloc((size_t)(n ? n : 1), sizeof **list);
    for (int i = 0; i < n; i++)
        (*list)[i] = (struct s4d_candidate){.grid = r.v[i].grid,
                                            .estimate_s = r.v[i].estimate_s,
                                            .distance = distance(&r.v[i].grid, &s->grid),
                                            .rank = i};
    if (near && n > 1)
        qsort(*list, (size_t)n, sizeof **list, by_distance);
    s4d_ranking_free(&r);
    return rc == 0 ? n : -1;
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
    int divide, n = s4d_candidates(s, false, &list, &divide, err), at = 0, simulated = 0, rc = 0;
    while (rc == 0 && at < n && simulated < BEST) {
        struct batch b = {.s = s, .candidate = list + at, .simulated = simulated};
        int wanted = BEST - simulated < n - at ? BEST - simulated : n - at;
        rc = simulate_batch(&b, wanted, results, &simulated, err);
        at += wanted;
    }
    s4d_progress_end();
    free(list);
    if (n < 0 || rc != 0 || simulated == 0)
        return -1;
    *result = *fastest(results, simulated);
    result->candidates = divide;
    result->feasible = n - (at - simulated);
    result->simulated = simulated;
    return 0;
}
