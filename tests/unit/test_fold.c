/* SPDX-License-Identifier: Apache-2.0 */
/* Folded and unfolded simulations end every op of every rank at the same time: whole GPT iterations
 * on a single switch and on a dragonfly, symmetric, with one slow link and with one slow device. */
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
#include "support/memory.h"
#include "workloads/workload.h"

static const char single_switch[] =
    "synthetic:topology=single-switch,nodes=512,nic=25GB/s,latency=2us,peak=100TFLOP/s,"
    "memory_bandwidth=1TB/s,library=nccl";
/* Four devices a node; a group's 8 nodes leave it over half of the bandwidth they put in. */
static const char dragonfly[] =
    "synthetic:topology=dragonfly,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"
    "latency=2us,peak=100TFLOP/s,memory_bandwidth=1TB/s,library=nccl,groups=16,nodes_per_group=8,"
    "switches_per_group=4,switches_per_node=2,local_links_per_switch=6,"
    "global_links_per_group=16,link_bandwidth_Bps=25GB/s";

struct scene {
    const char *machine, *grid;
    const char *slow_link; /* the first link of this kind is slow; NULL: none */
    int slow_device;       /* -1: none */
    struct s4d_machine m;
    struct s4d_cluster cluster;
    struct s4d_program program;
    int classes;  /* of ranks, folded */
    double end_s; /* of the last op */
};

static void give_up(const struct s4d_error *err)
{
    fail_msg("%s: %s", err->where, err->text);
}

/* gpt-tiny, wide enough that its messages load the links, with one layer and two micro-batches. */
static void open_scene(struct scene *s)
{
    struct s4d_workload w;
    struct s4d_error err = {0};
    struct s4d_grid grid;
    struct s4d_options options = s4d_options_default();
    if (s4d_machine_load(&s->m, s->machine, NULL, 0, &err) ||
        s4d_workload_load(&w, "gpt-tiny", &err) || s4d_grid_parse(s->grid, &grid, &err))
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
    int nodes = (s4d_grid_ranks(&grid) + s->m.node.devices - 1) / s->m.node.devices;
    if (s4d_divides(&w.model, &grid, &options, &err) ||
        s4d_build(&s->program, &w.model, &grid, &options, &err) ||
        s4d_cluster_create(&s->cluster, &s->m, nodes, &err))
        give_up(&err);
    for (int i = 0, slowed = 0; s->slow_link && !slowed; i++)
        if (strcmp(s->cluster.links[i].kind, s->slow_link) == 0) {
            s->cluster.links[i].capacity_Bps *= 0.3;
            slowed = 1;
        }
    if (s->slow_device >= 0)
        s->cluster.device_speed[s->slow_device] = 0.7;
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

static void compare(struct scene *s)
{
    open_scene(s);
    size_t n = result_doubles(s);
    double *both = s4d_malloc(2 * n * sizeof *both);
    struct s4d_error errors[2];
    if (s4d_isolated(run, s, 2, 2, both, n * sizeof *both, errors, NULL) != 0)
        give_up(errors[0].exit ? &errors[0] : &errors[1]);
    const double *full = both, *folded = both + n;
    assert_true(full[n - 1] == s4d_grid_ranks(&s->program.grid));
    s->classes = (int)folded[n - 1];
    s->end_s = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        s->end_s = fmax(s->end_s, full[i]);
        if (!(full[i] >= 0 && fabs(full[i] - folded[i]) <= 1e-9 * full[i]))
            fail_msg("%s %s: rank %d, op %d ends at %.15g s, folded at %.15g s", s->machine,
                     s->grid, (int)(i / 2 / (size_t)s->program.n_ops),
                     (int)(i % (size_t)s->program.n_ops), full[i], folded[i]);
    }
    assert_true(s->end_s > 1e-3);
    free(both);
    close_scene(s);
}

/* Symmetric, with a slow link, with a slow device: a slow NIC or device takes longer, a slow device
 * makes more classes. */
static void three_ways(const char *machine, const char *grid, const char *kind)
{
    struct scene symmetric = {.machine = machine, .grid = grid, .slow_device = -1};
    struct scene link = symmetric, device = symmetric;
    link.slow_link = kind;
    device.slow_device = 5;
    compare(&symmetric);
    compare(&link);
    compare(&device);
    print_message("%s: %d, %d, %d classes of ranks\n", grid, symmetric.classes, link.classes,
                  device.classes);
    if (strcmp(kind, "nic-out") == 0)
        assert_true(link.end_s > symmetric.end_s);
    assert_true(device.end_s > symmetric.end_s);
    assert_true(link.classes >= symmetric.classes && device.classes > symmetric.classes);
}

static void on_a_single_switch(void **state)
{
    (void)state;
    three_ways(single_switch, "2x2x2x2", "nic-out");
    three_ways(single_switch, "1x1x1x64", "nic-out");
    three_ways(single_switch, "4x1x16x1", "nic-out");
    three_ways(single_switch, "1x2x4x32", "nic-out");
    three_ways(single_switch, "2x2x4x32", "nic-out");
}

static void on_a_dragonfly(void **state)
{
    (void)state;
    three_ways(dragonfly, "2x2x2x2", "nic-out");
    three_ways(dragonfly, "4x2x2x2", "nic-out");
    three_ways(dragonfly, "2x2x4x8", "nic-out");
    three_ways(dragonfly, "4x2x8x8", "node");
}

static void on_perlmutter(void **state)
{
    (void)state;
    three_ways("perlmutter", "4x1x8x2", "nic-out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_single_switch),
        cmocka_unit_test(on_a_dragonfly),
        cmocka_unit_test(on_perlmutter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
