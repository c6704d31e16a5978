/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/isolate.h"
#include "sim/simulate_one.h"
#include "sim/tune/estimate.h"
#include "support/memory.h"
#include "support/statistics.h"

static int times_picked(const struct s4d_tuned *list, int n, const struct s4d_grid *grid)
{
    int times = 0;
    for (int i = 0; i < n; i++)
        times += memcmp(list[i].choice.grid.size, grid->size, sizeof grid->size) == 0;
    return times;
}

int s4d_tune_pick(const struct s4d_ranking *r, int k, int variants, struct s4d_tuned **list)
{
    int n = 0, cap = 0;
    *list = NULL;
    for (int i = 0; i < r->n && n < k; i++) {
        struct s4d_tuned t = {.choice = r->v[i],
                              .rank = i + 1,
                              .time_s = -1,
                              .memory_bytes = -1,
                              .published_s = NAN,
                              .links_s = NAN};
        if (variants >= r->n || times_picked(*list, n, &t.choice.grid) < variants)
            s4d_push(*list, n, cap, t);
    }
    return n;
}

struct s4d_simulation s4d_tune_simulation(const struct s4d_space *s, const struct s4d_choice *c)
{
    return (struct s4d_simulation){.machine = s->machine,
                                   .workload = s->workload,
                                   .scenario = s->scenario,
                                   .gpus = s->gpus,
                                   .grid = c->grid,
                                   .options = s4d_choice_options(s, c),
                                   .fold = true,
                                   .workers = 1};
}

/* Those without a time, by number. */
struct pending {
    const struct s4d_space *s;
    struct s4d_tuned *list;
    int *index;
    struct s4d_result *result;
    struct s4d_error *error;
    const struct s4d_tune_watch *watch;
};

static int simulate_job(void *context, int i, void *result, struct s4d_error *err)
{
    const struct pending *p = context;
    struct s4d_simulation s = s4d_tune_simulation(p->s, &p->list[p->index[i]].choice);
    return s4d_simulate_one(&s, &s.grid, result, err);
}

static void note(void *context, int i)
{
    struct pending *p = context;
    struct s4d_tuned *t = &p->list[p->index[i]];
    t->fault = p->error[i];
    if (t->fault.exit == S4D_EXIT_OK) {
        t->time_s = p->result[i].run.iteration_time_s;
        t->memory_bytes = (double)p->result[i].memory_peak_bytes;
    }
    p->watch->finished(p->watch->context, p->index[i], &p->result[i]);
}

void s4d_tune_simulate(const struct s4d_space *s, struct s4d_tuned *list, int n, int workers,
                       const struct s4d_tune_watch *watch)
{
    size_t most = (size_t)(n > 0 ? n : 1);
    struct pending p = {.s = s,
                        .list = list,
                        .watch = watch,
                        .index = s4d_malloc(most * sizeof(int)),
                        .result = s4d_calloc(most, sizeof *p.result),
                        .error = s4d_calloc(most, sizeof *p.error)};
    int jobs = 0;
    for (int i = 0; i < n; i++)
        if (list[i].time_s < 0)
            p.index[jobs++] = i;
    if (jobs > 0)
        s4d_isolated(simulate_job, &p, jobs, workers, p.result, sizeof *p.result, p.error, note);
    free(p.index);
    free(p.result);
    free(p.error);
}

bool s4d_tuned_died(const struct s4d_tuned *t)
{
    return t->fault.exit != S4D_EXIT_OK && strcmp(t->fault.where, s4d_memory_fault) != 0;
}

int s4d_tune_order(struct s4d_tuned *list, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        list[i].simulated_rank = 0;
        if (list[i].time_s < 0)
            continue;
        list[i].simulated_rank = 1;
        for (int j = 0; j < n; j++)
            if (list[j].time_s >= 0 &&
                (list[j].time_s < list[i].time_s || (list[j].time_s == list[i].time_s && j < i)))
                list[i].simulated_rank++;
        if (list[i].simulated_rank == 1)
            best = i;
    }
    return best;
}

static double model_s(const struct s4d_tuned *t, enum s4d_tune_model model)
{
    return model == S4D_TUNE_ESTIMATE    ? t->choice.estimate_s
           : model == S4D_TUNE_PUBLISHED ? t->published_s
                                         : t->links_s;
}

double s4d_tune_correlation(const struct s4d_tuned *list, int n, enum s4d_tune_model model)
{
    size_t most = (size_t)(n > 0 ? n : 1);
    double *x = s4d_malloc(most * sizeof *x), *y = s4d_malloc(most * sizeof *y);
    int m = 0;
    for (int i = 0; i < n; i++)
        if (list[i].time_s >= 0 && !isnan(model_s(&list[i], model))) {
            x[m] = model_s(&list[i], model);
            y[m++] = list[i].time_s;
        }
    double r = s4d_rank_correlation(x, y, m);
    free(x);
    free(y);
    return r;
}

int s4d_tune_published(const struct s4d_space *s, struct s4d_tuned *list, int n,
                       struct s4d_error *err)
{
    struct s4d_estimator e = {.machine = s->machine,
                              .model = &s->workload->model,
                              .wires = s4d_wires_create(s->machine, s->gpus, err)};
    const struct s4d_published_machine *table = s4d_published_machine_find(s->machine->name);
    int rc = e.wires ? 0 : -1;
    for (int i = 0; i < n && rc == 0; i++) {
        const struct s4d_grid *grid = &list[i].choice.grid;
        struct s4d_options o = s4d_choice_options(s, &list[i].choice);
        struct s4d_counts counts;
        rc = s4d_counts_create(&counts, e.model, grid, &o, err);
        if (rc != 0)
            break;
        list[i].links_s = s4d_estimate_published(&e, &counts, grid, &o, NULL).total_s;
        if (table)
            list[i].published_s = s4d_estimate_published(&e, &counts, grid, &o, table).total_s;
        s4d_counts_free(&counts);
    }
    s4d_wires_free(e.wires);
    return rc;
}
