/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/folding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/build.h"
#include "sim/executor.h"
#include "sim/isolate.h"
#include "sim/scenario.h"
#include "support/memory.h"
#include "workloads/workload.h"

struct scene {
    struct folding *f;
    struct s4d_machine m;
    struct s4d_cluster cluster;
    struct s4d_program program;
};

static void give_up(const struct s4d_error *err)
{
    fail_msg("%s: %s", err->where, err->text);
}

static int open_cluster(struct scene *s, int ranks, struct s4d_error *err)
{
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    int rc = 0;
    if (s->f->placement)
        rc = s4d_placement_parse(&scenario.placement, s->f->placement, err);
    if (s->f->hosts)
        rc = s4d_placement_parse_hosts(&scenario.placement, "hosts", s->f->hosts,
                                       strlen(s->f->hosts), err);
    for (int i = 0; i < FOLDING_SETTINGS && s->f->set[i] && rc == 0; i++)
        rc = s4d_differences_add(&scenario.differences, s->f->set[i], err);
    if (rc == 0)
        rc = s4d_scenario_cluster(&s->cluster, &s->m, ranks, &scenario, err);
    s4d_scenario_free(&scenario);
    return rc;
}

/* gpt-tiny, wide enough that its messages load the links, with one layer and two micro-batches. */
static void open_scene(struct scene *s)
{
    struct s4d_workload w;
    struct s4d_error err = {0};
    struct s4d_grid grid;
    struct s4d_options options = s4d_options_default();
    if (s4d_machine_load(&s->m, s->f->machine, NULL, 0, &err) ||
        s4d_workload_load(&w, "gpt-tiny", &err) || s4d_grid_parse(s->f->grid, &grid, &err))
        give_up(&err);
    s->m.device.launch_s.value = 3e-6;
    s->m.device.rate_beside_in_node.value = 0.9;
    s->m.device.rate_beside_across_nodes.value = 0.8;
    w.model.num_layers = 1;
    w.model.hidden_size = 1024;
    w.model.ffn_hidden_size = 4096;
    w.model.num_attention_heads = w.model.num_key_value_heads = 16;
    options.global_batch = 2 * grid.size[S4D_Z] * grid.size[S4D_DATA];
    options.micro_batch = 1;
    if (s4d_divides(&w.model, &grid, &options, &err) ||
        s4d_build(&s->program, &w.model, &grid, &options, &err) ||
        open_cluster(s, s4d_grid_ranks(&grid), &err))
        give_up(&err);
    s4d_workload_free(&w);
}

static void close_scene(struct scene *s)
{
    s4d_program_free(&s->program);
    s4d_cluster_destroy(&s->cluster);
    s4d_machine_free(&s->m);
}

/* The end times of both iterations, [rank][iteration][op]; the last number is the count of rank
 * classes. */
static size_t result_doubles(const struct scene *s)
{
    return (size_t)s4d_grid_ranks(&s->program.grid) * 2 * (size_t)s->program.n_ops + 1;
}

struct listener {
    double *end_s; /* [rank class][iteration][op] */
    int n_ops;
};

static void on_end(void *context, int rank_class, int op, int iteration, double end_s)
{
    struct listener *l = context;
    l->end_s[((size_t)rank_class * 2 + (size_t)iteration) * (size_t)l->n_ops + (size_t)op] = end_s;
}

/* Job 0 is the unfolded simulation, job 1 the folded. */
static int run(void *context, int index, void *result, struct s4d_error *err)
{
    struct scene *s = context;
    struct s4d_system system;
    struct s4d_run figures;
    if (s4d_system_create(&system, &s->cluster, &s->program, ~0u, index == 1, err))
        return -1;
    size_t per_rank = 2 * (size_t)s->program.n_ops;
    struct listener l = {s4d_malloc((size_t)system.n_ranks * per_rank * sizeof(double)),
                         s->program.n_ops};
    for (size_t i = 0; i < (size_t)system.n_ranks * per_rank; i++)
        l.end_s[i] = NAN;
    struct s4d_observer observer = {.ended = on_end, .context = &l};
    struct s4d_kernels kernels = {&s->m};
    int rc = s4d_execute_observed(&system, &s->program, &kernels, &observer, &figures, err);
    double *out = result;
    int ranks = s4d_grid_ranks(&s->program.grid);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < per_rank; i++)
            *out++ = l.end_s[(size_t)system.class_of_rank[r] * per_rank + i];
    *out = system.n_ranks;
    free(l.end_s);
    s4d_system_free(&system);
    return rc;
}

void folding_compare(struct folding *f)
{
    struct scene scene = {.f = f}, *s = &scene;
    open_scene(s);
    size_t n = result_doubles(s);
    double *both = s4d_malloc(2 * n * sizeof *both);
    struct s4d_error errors[2];
    if (s4d_isolated(run, s, 2, 2, both, n * sizeof *both, errors, NULL) != 0)
        give_up(errors[0].exit ? &errors[0] : &errors[1]);
    const double *full = both, *folded = both + n;
    assert_true(full[n - 1] == s4d_grid_ranks(&s->program.grid));
    s->f->classes = (int)folded[n - 1];
    s->f->end_s = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        s->f->end_s = fmax(s->f->end_s, full[i]);
        if (!(full[i] >= 0 && fabs(full[i] - folded[i]) <= 1e-9 * full[i]))
            fail_msg("%s %s: rank %d, op %d ends at %.15g s, folded at %.15g s", s->f->machine,
                     s->f->grid, (int)(i / 2 / (size_t)s->program.n_ops),
                     (int)(i % (size_t)s->program.n_ops), full[i], folded[i]);
    }
    assert_true(s->f->end_s > 1e-3);
    free(both);
    close_scene(s);
}
