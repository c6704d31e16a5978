/* SPDX-License-Identifier: Apache-2.0 */
/* Whole simulations: bounds, exact scaling, the same bytes twice, folded as unfolded, memory, and
 * the choice of a grid. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/flops.h"
#include "schedule/plan.h"
#include "sim/auto_grid.h"
#include "sim/simulate.h"
#include "sim/simulate_one.h"

#define LINE(nic, latency, peak)                                                                   \
    "synthetic:topology=single-switch,nodes=64,devices_per_node=1,nic=" nic ",latency=" latency    \
    ",peak=" peak

struct case_ {
    struct s4d_machine machine;
    struct s4d_workload workload;
    struct s4d_simulation s;
};

static void set_up(struct case_ *c, const char *machine, const char *workload, struct s4d_grid grid,
                   int batch)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(&c->machine, machine, NULL, 0, &err) ||
        s4d_workload_load(&c->workload, workload, &err))
        fail_msg("%s: %s", err.where, err.text);
    c->s = (struct s4d_simulation){.machine = &c->machine,
                                   .workload = &c->workload,
                                   .gpus = s4d_grid_ranks(&grid),
                                   .grid = grid,
                                   .options = s4d_options_default(),
                                   .fold = true,
                                   .workers = 2};
    c->s.options.global_batch = batch;
}

static void tear_down(struct case_ *c)
{
    s4d_machine_free(&c->machine);
    s4d_workload_free(&c->workload);
}

static struct s4d_result simulate(const struct case_ *c)
{
    struct s4d_result r;
    struct s4d_error err;
    if (s4d_simulate(&c->s, &r, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    return r;
}

static void near(double got, double expected, double part)
{
    if (!(fabs(got - expected) <= part * fabs(expected)))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

/* One device a node and one ring a group: a NIC sends each collective's bus bytes, so an iteration
 * takes at least their sum over the NIC's rate, and at least the gemms at the peak. */
static void test_bounds(void **state)
{
    (void)state;
    static const int grids[][4] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 4, 1},
                                   {1, 1, 1, 4}, {2, 2, 2, 2}, {4, 2, 2, 1}, {1, 4, 2, 2}};
    static const char *const overlaps[] = {"all", "none", "axonn-sc24"};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (int o = 0; o < 3; o++) {
            struct case_ c;
            const int *n = grids[g];
            set_up(&c, LINE("50GB/s", "500ns", "1TFLOP/s"), "gpt-tiny",
                   s4d_grid_make(n[0], n[1], n[2], n[3]), 32);
            c.s.options.micro_batch = 2;
            struct s4d_error err;
            assert_int_equal(s4d_overlap_parse(overlaps[o], &c.s.options.overlap, &err), 0);
            struct s4d_result r = simulate(&c);
            double wire_s = 0, parts_s = r.run.exposed_other_s;
            for (int s = 0; s < S4D_STREAMS; s++) {
                wire_s += r.bus_bytes[s] / 50e9;
                parts_s += r.run.exposed_s[s];
            }
            double compute_s = r.run.gemm_flops / 1e12, t_s = r.run.iteration_time_s;
            assert_true(t_s >= compute_s * (1 - 1e-12));
            assert_true(t_s >= wire_s * (1 - 1e-12));
            assert_true((g == 0) == (wire_s == 0));
            assert_true(r.run.exposed_s[S4D_STREAM_COMPUTE] >= compute_s * (1 - 1e-9));
            near(parts_s, t_s, 1e-12);
            if (g == 0) { /* nothing to wait for, free kernels but gemm and attention */
                near(r.run.busy_s[S4D_STREAM_COMPUTE], t_s, 1e-9);
                /* 8 times what test_tune.c counts of 4 sequences, without attention's squares */
                assert_true(r.run.gemm_flops == 8 * (121634816.0 - 8388608));
            }
            tear_down(&c);
        }
}

static void scale(struct s4d_quantity *q, double factor)
{
    q->value *= factor;
}

static void hasten_latency(struct s4d_nccl_latency *l)
{
    for (int p = 0; p < S4D_PROTOCOLS; p++) {
        scale(&l->base_s[p], 0.5);
        scale(&l->nvlink_s[p], 0.5);
        scale(&l->net_s[p], 0.5);
    }
}

/* Every rate of the machine twice as high, every time half as long. */
static void hasten(struct s4d_machine *m)
{
    struct s4d_device *d = &m->device;
    struct s4d_library *l = &m->library;
    struct s4d_quantity *rates[] = {&d->peak_flops_per_s,
                                    &d->peak_measured_flops_per_s,
                                    &d->memory_bandwidth_Bps,
                                    &d->gemm_flops_per_s,
                                    &d->gemm_output_Bps,
                                    &m->node.nic_bandwidth_Bps,
                                    &m->node.host_bandwidth_Bps,
                                    &l->ll_max_in_node_Bps,
                                    &l->ll_max_two_nodes_Bps,
                                    &l->ll_max_Bps,
                                    &l->ll128_channel_Bps,
                                    &l->tree_channel_in_node_Bps,
                                    &l->tree_channel_two_nodes_Bps,
                                    &l->tree_channel_Bps};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        scale(rates[i], 2);
    for (int i = 0; i < d->n_attention; i++)
        for (int k = 0; k < d->attention[i].flops_per_s.n; k++)
            d->attention[i].flops_per_s.y[k] *= 2;
    for (int i = 0; i < m->node.n_links; i++)
        scale(&m->node.link[i].brick_bandwidth_Bps, 2);
    for (int i = 0; i < m->fabric.n_parameters; i++)
        if (strstr(m->fabric.parameter[i].key, "_Bps"))
            scale(&m->fabric.parameter[i].value, 2);
    scale(&d->launch_s, 0.5);
    scale(&m->node.latency_s, 0.5);
    scale(&m->fabric.latency_s, 0.5);
    scale(&l->net_post_s, 0.5);
    hasten_latency(&l->ring);
    hasten_latency(&l->tree);
}

static void expect_half(const struct s4d_result *fast, const struct s4d_result *slow)
{
    near(fast->run.iteration_time_s, slow->run.iteration_time_s / 2, 1e-12);
    near(fast->run.first_iteration_s, slow->run.first_iteration_s / 2, 1e-12);
    assert_int_equal(fast->run.slowest_rank, slow->run.slowest_rank);
    double least_s = 1e-12 * slow->run.iteration_time_s;
    for (int s = 0; s < S4D_STREAMS; s++) {
        assert_true(fabs(fast->run.busy_s[s] - slow->run.busy_s[s] / 2) <= least_s);
        assert_true(fabs(fast->run.exposed_s[s] - slow->run.exposed_s[s] / 2) <= least_s);
    }
}

static void test_scaling(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE("50GB/s", "500ns", "312TFLOP/s"), "gpt-tiny", s4d_grid_make(2, 2, 2, 2), 32);
    struct s4d_result slow = simulate(&c);
    tear_down(&c);
    set_up(&c, LINE("100GB/s", "250ns", "624TFLOP/s"), "gpt-tiny", s4d_grid_make(2, 2, 2, 2), 32);
    struct s4d_result fast = simulate(&c);
    tear_down(&c);
    expect_half(&fast, &slow);

    for (int fold = 0; fold < 2; fold++) {
        set_up(&c, "perlmutter", "gpt-5b", s4d_grid_make(2, 2, 4, 4), 64);
        c.s.fold = fold;
        slow = simulate(&c);
        hasten(&c.machine);
        fast = simulate(&c);
        expect_half(&fast, &slow);
        tear_down(&c);
    }
}

static void test_folded_and_twice(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, "perlmutter", "gpt-5b", s4d_grid_make(2, 4, 2, 3), 24);
    struct s4d_result once = simulate(&c), twice = simulate(&c);
    once.wall_s = twice.wall_s = 0;
    json_t *a = s4d_simulation_record(&c.s, &once), *b = s4d_simulation_record(&c.s, &twice);
    char *a_text = json_dumps(a, JSON_REAL_PRECISION(17)),
         *b_text = json_dumps(b, JSON_REAL_PRECISION(17));
    assert_string_equal(a_text, b_text);
    free(a_text);
    free(b_text);
    json_decref(a);
    json_decref(b);
    c.s.fold = false;
    struct s4d_result full = simulate(&c);
    assert_true(full.gpu_classes == 48 && once.gpu_classes < 48);
    near(once.run.iteration_time_s, full.run.iteration_time_s, 1e-9);
    near(once.run.first_iteration_s, full.run.first_iteration_s, 1e-9);
    assert_int_equal(once.run.slowest_rank, full.run.slowest_rank);
    assert_int_equal(once.run.collectives, full.run.collectives);
    for (int s = 0; s < S4D_STREAMS; s++)
        assert_true(fabs(once.run.exposed_s[s] - full.run.exposed_s[s]) <=
                    1e-9 * full.run.iteration_time_s);
    tear_down(&c);
}

/* What simulate reports is the arena of the whole program's plan, and what it rejects by a plan of
 * four micro-batches needs no less than they do: the shared buffers of eleven are those of four. */
static void test_memory_of_many_micro_batches(void **state)
{
    (void)state;
    static const enum s4d_recompute recompute[] = {S4D_RECOMPUTE_NONE, S4D_RECOMPUTE_SELECTIVE,
                                                   S4D_RECOMPUTE_FULL};
    for (int i = 0; i < 12; i++) {
        struct case_ c;
        bool large = i >= 9;
        set_up(&c, large ? "perlmutter" : LINE("50GB/s", "500ns", "1TFLOP/s"),
               large ? "gpt-5b" : "gpt-tiny",
               large ? s4d_grid_make(2, 2, 4, 4) : s4d_grid_make(2, 2, 2, 1), large ? 176 : 22 * 3);
        struct s4d_error err;
        c.s.options.recompute = recompute[i % 3];
        c.s.options.micro_batch = large ? 1 : 3;
        static const char *const overlaps[] = {"all", "none", "axonn-sc24"};
        assert_int_equal(s4d_overlap_parse(overlaps[i / 3 % 3], &c.s.options.overlap, &err), 0);
        struct s4d_program p;
        struct s4d_result r;
        assert_int_equal(s4d_plan_grid(&c.s, &c.s.grid, &p, &r, &err), 0);
        assert_int_equal(r.micro_batches, 11);
        s4d_program_free(&p);
        assert_int_equal(s4d_build(&p, &c.workload.model, &c.s.grid, &c.s.options, &err), 0);
        s4d_plan(&p);
        assert_int_equal(r.memory_peak_bytes - (int64_t)c.machine.device.memory_reserve_bytes.value,
                         p.arena_bytes[S4D_DEVICE]);
        s4d_program_free(&p);
        tear_down(&c);
    }
}

/* Message by message every rank is there, however the flows were folded; it takes nearly as long
 * as they do. */
static void test_stepwise(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, LINE("50GB/s", "500ns", "1TFLOP/s"), "gpt-tiny", s4d_grid_make(2, 1, 2, 1), 8);
    c.s.stepwise = 4;
    struct s4d_result r = simulate(&c);
    assert_true(r.gpu_classes < 4 && r.sent.messages > 0);
    assert_int_equal(r.sent.most_passes, 4);
    near(r.stepwise_time_s, r.run.iteration_time_s, 1e-2);
    tear_down(&c);
}

/* micro_batch 0 takes the largest divisor that fits; a model that does not fit is refused with what
 * it needs, and the grid that is offered instead fits. */
static void test_too_large(void **state)
{
    (void)state;
    struct case_ c;
    set_up(&c, "perlmutter", "gpt-5b", s4d_grid_make(1, 1, 4, 4), 512);
    struct s4d_result r = simulate(&c);
    assert_true(r.memory_peak_bytes <= (int64_t)c.machine.device.memory_bytes.value);
    struct s4d_error err;
    struct s4d_result larger;
    for (c.s.options.micro_batch = r.micro_batch + 1; 32 % c.s.options.micro_batch;)
        c.s.options.micro_batch++;
    assert_int_equal(s4d_simulate(&c.s, &larger, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, s4d_memory_fault);
    tear_down(&c);

    set_up(&c, "perlmutter", "gpt-5b", s4d_grid_make(1, 1, 1, 16), 512);
    assert_int_equal(s4d_simulate(&c.s, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "gpt-5b on grid 1x1x1x16"));
    char *grid = strstr(err.hint, "fits is ");
    assert_non_null(grid);
    *strchr(grid + 8, ' ') = '\0';
    assert_int_equal(s4d_grid_parse(grid + 8, &c.s.grid, &err), 0);
    assert_int_equal(s4d_grid_ranks(&c.s.grid), 16);
    simulate(&c);
    tear_down(&c);
}

static void test_refused(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_result r;
    struct s4d_error err;
    set_up(&c, "perlmutter", "gpt-tiny", s4d_grid_make(3, 1, 1, 1), 32);
    assert_int_equal(s4d_simulate(&c.s, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_string_equal(err.where, "--grid");
    tear_down(&c);
    set_up(&c, "perlmutter", "gpt-tiny", s4d_grid_make(1, 1, 1, 1 << 14), 1 << 14);
    assert_int_equal(s4d_simulate(&c.s, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, "--gpus");
    tear_down(&c);
    set_up(&c, "perlmutter", "gpt-tiny", s4d_grid_make(1, 1, 1, 31), 32);
    c.s.grid_auto = true;
    assert_int_equal(s4d_simulate(&c.s, &r, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    tear_down(&c);
}

/* 2^4 over four axes: 35 ways. gpt-tiny (4 heads, batch 32) leaves those with x at most 4 and y at
 * most 16: all but x = 8 (3 ways) and x = 16 (1 way), 31. */
static void test_auto(void **state)
{
    (void)state;
    struct case_ c;
    struct s4d_candidate *list;
    int divide;
    set_up(&c, LINE("50GB/s", "500ns", "1TFLOP/s"), "gpt-tiny", s4d_grid_make(1, 1, 1, 16), 32);
    int n = s4d_candidates(&c.s, false, &list, &divide, NULL);
    assert_int_equal(n, 31);
    assert_int_equal(divide, 31);
    for (int i = 1; i < n; i++)
        assert_true(list[i - 1].estimate_s <= list[i].estimate_s);
    c.s.grid_auto = true;
    struct s4d_result best = simulate(&c);
    assert_int_equal(best.candidates, 31);
    assert_int_equal(best.simulated, 10);
    c.s.workers = 7;
    struct s4d_result again = simulate(&c);
    best.wall_s = again.wall_s = 0;
    assert_memory_equal(&best, &again, sizeof best);
    c.s.grid_auto = false;
    for (int i = 0; i < 10; i++) {
        c.s.grid = list[i].grid;
        struct s4d_result r = simulate(&c);
        assert_true(r.run.iteration_time_s >= best.run.iteration_time_s * (1 - 1e-9));
        if (memcmp(&list[i].grid, &best.grid, sizeof best.grid) == 0)
            assert_true(r.run.iteration_time_s == best.run.iteration_time_s);
    }
    free(list);
    tear_down(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_folded_and_twice),
        cmocka_unit_test(test_memory_of_many_micro_batches),
        cmocka_unit_test(test_stepwise),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_auto),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
