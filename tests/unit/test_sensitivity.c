/* SPDX-License-Identifier: Apache-2.0 */
/* Which entries of a machine move a job, and by how much: two that can be worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/sensitivity.h"

static struct s4d_sensitivity study(const char *machine, struct s4d_grid grid, unsigned tags)
{
    struct s4d_error err = {0};
    struct s4d_machine m;
    struct s4d_workload w;
    struct s4d_sensitivity r;
    if (s4d_machine_load(&m, machine, NULL, 0, &err) || s4d_workload_load(&w, "gpt-tiny", &err))
        fail_msg("%s: %s", err.where, err.text);
    struct s4d_simulation s = {.machine = &m,
                               .workload = &w,
                               .gpus = s4d_grid_ranks(&grid),
                               .grid = grid,
                               .options = s4d_options_default(),
                               .fold = true,
                               .workers = 2};
    s.options.global_batch = 8;
    if (s4d_sensitivity(&s, tags, &r, &err))
        fail_msg("%s: %s", err.where, err.text);
    for (int i = 0; i < r.n; i++)
        r.entry[i].source = NULL; /* the machine's, which goes */
    s4d_machine_free(&m);
    s4d_workload_free(&w);
    return r;
}

static const struct s4d_sensitive *find(const struct s4d_sensitivity *r, const char *key)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].key, key) == 0)
            return &r->entry[i];
    fail_msg("no entry %s", key);
    return NULL;
}

#define ONE                                                                                        \
    "synthetic:topology=single-switch,nodes=4,devices_per_node=1,nic=50GB/s,latency=0s,"           \
    "peak=100TFLOP/s"

/* One device, memory-bound kernels free: all its time is FLOPs / rate, so half the rate is twice
 * the time and twice the rate half of it. Nothing is sent. Unlimited memory cannot be varied. */
static void test_compute(void **state)
{
    (void)state;
    struct s4d_sensitivity r = study(ONE, s4d_grid_make(1, 1, 1, 1), ~0U);
    const struct s4d_sensitive *e = find(&r, "device.gemm_flops_per_s");
    double base_s = r.base.run.iteration_time_s;
    assert_ptr_equal(e, &r.entry[0]);
    assert_float_equal(e->varied[S4D_HALVED].iteration_s / base_s, 2, 1e-9);
    assert_float_equal(e->varied[S4D_DOUBLED].iteration_s / base_s, 0.5, 1e-9);
    assert_float_equal(e->effect, 1, 1e-9);
    e = find(&r, "node.nic_bandwidth_Bps");
    assert_float_equal(e->effect, 0, 1e-12);
    assert_false(e->varied[S4D_HALVED].same);
    e = find(&r, "device.memory_bytes");
    assert_true(e->varied[S4D_HALVED].same && isnan(e->varied[S4D_DOUBLED].iteration_s));
    for (int i = 1; i < r.n; i++)
        assert_true(r.entry[i].effect <= r.entry[i - 1].effect);
    s4d_sensitivity_free(&r);
}

/* Four devices over data, no latency: the gradients are reduced at the end, with nothing beside
 * them. So an iteration is computing and wire, 2 (p - 1) / p n / B with p = 4, and half the
 * bandwidth adds the wire once more, twice the bandwidth takes half of it away. */
static void test_wire(void **state)
{
    (void)state;
    struct s4d_sensitivity r = study(ONE, s4d_grid_make(1, 1, 1, 4), ~0U);
    double base_s = r.base.run.iteration_time_s;
    double wire_s = base_s - r.base.run.exposed_s[S4D_STREAM_COMPUTE];
    const struct s4d_sensitive *e = find(&r, "node.nic_bandwidth_Bps");
    assert_float_equal(wire_s, 2 * 3.0 / 4 * 4 * (double)r.base.parameters / 50e9, 0.01 * wire_s);
    assert_float_equal(e->varied[S4D_HALVED].iteration_s - base_s, wire_s, 1e-6 * wire_s);
    assert_float_equal(base_s - e->varied[S4D_DOUBLED].iteration_s, wire_s / 2, 1e-6 * wire_s);
    s4d_sensitivity_free(&r);
}

/* What cannot be simulated says why, and has no effect; the tags choose. */
static void test_refused_and_tags(void **state)
{
    (void)state;
    struct s4d_sensitivity r =
        study("perlmutter", s4d_grid_make(1, 1, 4, 1), 1U << S4D_TAG_SECONDARY);
    for (int i = 0; i < r.n; i++)
        assert_int_equal(r.entry[i].tag, S4D_TAG_SECONDARY);
    const struct s4d_sensitive *e = find(&r, "fabric.nodes_per_group");
    assert_int_equal(e->varied[S4D_HALVED].why.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(e->varied[S4D_HALVED].why.text, "make room for"));
    assert_true(isnan(e->varied[S4D_HALVED].iteration_s));
    assert_int_equal(e->varied[S4D_DOUBLED].why.exit, S4D_EXIT_OK);
    s4d_sensitivity_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compute),
        cmocka_unit_test(test_wire),
        cmocka_unit_test(test_refused_and_tags),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
