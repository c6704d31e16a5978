/* SPDX-License-Identifier: Apache-2.0 */
/* From measurements to a machine, and back: what the simulator makes of the file is what was
 * measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "real/calibration.h"
#include "sim/collective/measure.h"
#include "sim/kernel.h"
#include "sim/tune/wire.h"
#include "support/machine.h"

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-7 * fabs(expected)))
        fail_msg("expected %.12g, found %.12g", expected, found);
}

static struct s4d_probed took(double t_s)
{
    return (struct s4d_probed){.t = {.n = 9, .median = t_s, .mean = t_s, .p99 = t_s, .least = t_s}};
}

enum { OPS = 9, COLLECTIVES = 8 };

/* Two ranks on one processor. Launch 1 us. */
struct measured {
    struct s4d_calibration c;
    struct s4d_calibrated_op op[OPS];
    struct s4d_calibrated_collective collective[COLLECTIVES];
};

static void fill(struct measured *m)
{
    *m = (struct measured){
        .op = {{.kind = S4D_OP_GEMM, .probed = took(101e-6)}, /* 2e9 FLOP in 100 us: 20 TFLOP/s */
               {.kind = S4D_OP_GEMM, .probed = took(201e-6)},
               {.kind = S4D_OP_ATTENTION_FORWARD, .probed = took(65e-6)},
               {.kind = S4D_OP_ATTENTION_BACKWARD, .probed = took(161e-6)},
               {.kind = S4D_OP_ADAMW, .bytes = 1000000, .probed = took(1001e-6)},
               {.kind = S4D_OP_ADAMW, .bytes = 10000, .probed = took(6e-6)},
               {.kind = S4D_OP_COPY, .bytes = 8192, .probed = took(3e-6)},
               {.kind = S4D_OP_COPY, .bytes = 8192 * 1024, .probed = took(1025e-6)},
               {.kind = S4D_OP_HOST_TO_DEVICE, .bytes = 1 << 20, .probed = took(101e-6)}},
        .collective = {{S4D_OP_ALL_REDUCE, 2, 4, took(2e-6)},
                       {S4D_OP_ALL_REDUCE, 2, 1024, took(4e-6)},
                       {S4D_OP_ALL_REDUCE, 2, 1 << 20, took(300e-6)},
                       {S4D_OP_ALL_GATHER, 2, 8, took(1e-6)},
                       {S4D_OP_ALL_GATHER, 2, 1 << 20, took(150e-6)},
                       {S4D_OP_REDUCE_SCATTER, 2, 8, took(2e-6)},
                       {S4D_OP_REDUCE_SCATTER, 2, 2048, took(3e-6)},
                       {S4D_OP_REDUCE_SCATTER, 2, 1 << 20, took(200e-6)}},
    };
    for (int i = 0; i < 2; i++) {
        m->op[i].c.gemm.m = m->op[i].c.gemm.n = m->op[i].c.gemm.k = 1000;
        m->op[i].c.gemm.transpose_b = i == 1;
        /* 4 * 2 * 4 * 1e4 * 25 * 0.5 = 4e6 FLOP forward, 2.5 times as many backward */
        m->op[2 + i].c.attention.batch = 2;
        m->op[2 + i].c.attention.heads = m->op[2 + i].c.attention.kv_heads = 4;
        m->op[2 + i].c.attention.seq = 100;
        m->op[2 + i].c.attention.head_dim = 25;
        m->op[2 + i].c.attention.causal = true;
    }
    m->op[5].probed.noisy = true;
    m->c = (struct s4d_calibration){.precision = S4D_F32,
                                    .ranks = 2,
                                    .active = 1,
                                    .op = m->op,
                                    .n_ops = OPS,
                                    .collective = m->collective,
                                    .n_collectives = COLLECTIVES,
                                    .launch = took(1e-6),
                                    .beside = took(0.4),
                                    .memory_bytes = 8e9,
                                    .device = "toy \"9000\"",
                                    .source = "by hand, C:\\today"};
}

/* Written as a file and read. */
static struct s4d_machine machine_of(const struct s4d_calibration *c)
{
    struct s4d_machine m;
    struct s4d_error err = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (s4d_calibration_write(c, out, &err))
        fail_msg("%s", err.text);
    fclose(out);
    if (s4d_machine_parse(&m, "toy.yaml", text, strlen(text), NULL, 0, &err))
        fail_msg("%s: %s (%s)\n%s", err.where, err.text, err.hint, text);
    free(text);
    return m;
}

static void what_the_file_says(void **state)
{
    (void)state;
    struct measured in;
    fill(&in);
    struct s4d_machine m = machine_of(&in.c);
    assert_string_equal(m.device.name, "toy \"9000\"");
    assert_string_equal(m.device.compute_types, "f32");
    assert_near(m.device.launch_s.value, 1e-6);
    assert_int_equal(m.device.launch_s.tag, S4D_TAG_MEASURED);
    assert_non_null(strstr(m.device.launch_s.source, "C:\\today"));
    assert_near(m.device.memory_bytes.value, 4e9);
    assert_near(m.device.gemm_flops_per_s.value, 20e12);
    assert_int_equal(m.device.peak_flops_per_s.tag, S4D_TAG_ASSUMED);
    assert_near(m.device.rate_beside_in_node.value, 0.4);
    assert_int_equal(m.node.devices, 2);
    assert_near(m.node.compute_units.value, 1);
    assert_near(m.node.latency_s.value, 1e-6);
    /* the best bus bandwidth: an all-reduce of 1 MiB in 300 us */
    assert_near(m.node.link[0].brick_bandwidth_Bps.value, 1048576 / 300e-6);
    assert_string_equal(m.library.name, "mpi");
    assert_int_equal(m.library.n_tables, 3);
    for (int i = 0; i < m.device.n_kernels; i++) {
        bool marked = strstr(m.device.kernel[i].bandwidth_Bps.source, "TOO NOISY") != NULL;
        assert_int_equal(marked, strcmp(m.device.kernel[i].kind, "adamw") == 0);
    }
    s4d_machine_free(&m);
}

/* Each op takes in the simulator what it took here, twice as long with two ranks on a processor. */
static void kernels_take_what_they_took(void **state)
{
    (void)state;
    struct measured in;
    fill(&in);
    struct s4d_machine m = machine_of(&in.c);
    struct s4d_kernels kernels = {&m};
    struct s4d_options options = {.precision = S4D_F32};
    struct s4d_tensor tensor = {.type = S4D_F32, .dims = 1, .shape = {1 << 18}, .stride = {1}};
    struct s4d_program one = {.tensors = &tensor, .grid = s4d_grid_make(1, 1, 1, 1)}, two = one;
    two.grid = s4d_grid_make(1, 1, 2, 1);
    assert_int_equal(s4d_kernels_check(&kernels, &options, NULL), 0);
    for (int i = 0; i < OPS; i++) {
        struct s4d_op op = {.kind = in.op[i].kind, .c = in.op[i].c, .bytes_read = in.op[i].bytes};
        double t_s = in.op[i].probed.t.median;
        assert_near(s4d_kernel_time_s(&kernels, &one, &op), t_s);
        if (in.op[i].kind != S4D_OP_HOST_TO_DEVICE)
            assert_near(s4d_kernel_time_s(&kernels, &two, &op), 2 * t_s);
    }
    s4d_machine_free(&m);
}

/* The all-reduces through the whole simulator (one engine a process), the others by their cost: the
 * links alone carry 2 (p - 1) / p or (p - 1) / p of the bytes. */
static void collectives_take_what_they_took(void **state)
{
    (void)state;
    struct measured in;
    fill(&in);
    struct s4d_machine m = machine_of(&in.c);
    struct s4d_measurement measurement = {.machine = &m,
                                          .op = S4D_OP_ALL_REDUCE,
                                          .grid = s4d_grid_make(1, 2, 1, 1),
                                          .stream = S4D_STREAM_Y,
                                          .fold = true};
    struct s4d_measured measured[3];
    struct s4d_measured_system system;
    const double bytes[] = {4, 1024, 1 << 20};
    assert_int_equal(s4d_measure_collective(&measurement, bytes, 3, measured, &system, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_near(measured[i].time_s, in.collective[i].probed.t.median);
    struct s4d_cluster cluster;
    struct s4d_channels ch;
    assert_int_equal(s4d_cluster_create(&cluster, &m, 1, NULL), 0);
    assert_int_equal(s4d_ring.channels(&cluster, (int[]){0, 1}, 2, &ch), 0);
    for (int i = 3; i < COLLECTIVES; i++) {
        const struct s4d_calibrated_collective *p = &in.collective[i];
        struct s4d_cost cost = s4d_ring.cost(&m, &ch, p->kind, (double)p->bytes);
        double link_Bps = m.node.link[0].brick_bandwidth_Bps.value;
        assert_near(cost.latency_s + cost.volume_B / link_Bps, p->probed.t.median);
    }
    s4d_channels_free(&ch);
    s4d_cluster_destroy(&cluster);
    s4d_machine_free(&m);
}

/* Two nodes of two GPUs. Across nodes an all-reduce of 1 MiB by four takes 600 us, a bus bandwidth
 * of 1.5 MiB / 600 us; and of 4 bytes 12 us, a step of a ring 2 us. The simulator's estimate of it
 * is what was measured; in the node it is what it was. */
static void two_nodes(void **state)
{
    (void)state;
    struct measured in;
    struct s4d_calibrated_collective all[COLLECTIVES + 2];
    fill(&in);
    memcpy(all, in.collective, sizeof in.collective);
    all[COLLECTIVES] = (struct s4d_calibrated_collective){S4D_OP_ALL_REDUCE, 4, 4, took(12e-6)};
    all[COLLECTIVES + 1] =
        (struct s4d_calibrated_collective){S4D_OP_ALL_REDUCE, 4, 1 << 20, took(600e-6)};
    in.c.ranks = 4;
    in.c.node_ranks = 2;
    in.c.device_bytes = 80e9;
    in.c.collective = all;
    in.c.n_collectives = COLLECTIVES + 2;
    in.c.precision = S4D_BF16;
    in.c.device = "NVIDIA H200";
    struct s4d_machine m = machine_of(&in.c);
    assert_near(m.device.peak_flops_per_s.value, 989e12);
    assert_int_equal(m.device.peak_flops_per_s.tag, S4D_TAG_SECONDARY);
    assert_near(m.device.memory_bytes.value, 80e9);
    assert_true(isinf(m.node.compute_units.value));
    assert_int_equal(m.node.devices, 2);
    assert_int_equal(m.fabric.nodes, 2);
    assert_near(m.node.nic_bandwidth_Bps.value, 1.5 * 1048576 / 600e-6);
    assert_int_equal(m.node.nic_bandwidth_Bps.tag, S4D_TAG_ASSUMED);
    assert_near(m.fabric.latency_s.value, 2e-6);
    struct s4d_wires *w = s4d_wires_create(&m, 4, NULL);
    assert_near(s4d_wire_time_s(w, s4d_wires_find(w, 1, 4), S4D_OP_ALL_REDUCE, 1 << 20), 600e-6);
    assert_near(s4d_wire_time_s(w, s4d_wires_find(w, 1, 2), S4D_OP_ALL_REDUCE, 1 << 20), 300e-6);
    s4d_wires_free(w);
    s4d_machine_free(&m);
}

/* One rank has no collectives, and needs none. */
static void one_rank(void **state)
{
    (void)state;
    struct measured in;
    fill(&in);
    in.c.ranks = 1;
    in.c.n_collectives = 0;
    in.c.beside = (struct s4d_probed){0};
    struct s4d_machine m = machine_of(&in.c);
    assert_int_equal(m.node.n_links, 0);
    assert_int_equal(m.library.n_tables, 0);
    assert_int_equal(m.device.rate_beside_in_node.tag, S4D_TAG_ASSUMED);
    s4d_machine_free(&m);
}

static void nothing_is_made_up(void **state)
{
    (void)state;
    static const struct {
        int first, n; /* ops that are kept */
        int collectives;
        const char *text;
    } cases[] = {{2, 7, 8, "matrix product"}, {0, 6, 8, "no copy"}, {0, 9, 5, "reduce-scatter"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct measured in;
        struct s4d_error err = {0};
        FILE *out = fopen("/dev/null", "w");
        fill(&in);
        in.c.op += cases[i].first;
        in.c.n_ops = cases[i].n;
        in.c.n_collectives = cases[i].collectives;
        assert_int_equal(s4d_calibration_write(&in.c, out, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_DATA);
        assert_non_null(strstr(err.text, cases[i].text));
        fclose(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_says),
        cmocka_unit_test(kernels_take_what_they_took),
        cmocka_unit_test(collectives_take_what_they_took),
        cmocka_unit_test(two_nodes),
        cmocka_unit_test(one_rank),
        cmocka_unit_test(nothing_is_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
