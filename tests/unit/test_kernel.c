/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel times against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/kernel.h"

static void assert_close(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * fabs(expected)))
        fail_msg("expected %.17g, found %.17g", expected, found);
}

/* A device with round numbers: 100 TFLOP/s, output 1 TB/s, memory 1 TB/s, launch 1 us. */
static struct s4d_machine round_machine(void)
{
    struct s4d_machine m = {0};
    m.device.launch_s.value = 1e-6;
    m.device.gemm_flops_per_s.value = 100e12;
    m.device.gemm_output_Bps.value = 1e12;
    m.device.memory_bandwidth_Bps.value = 1e12;
    m.device.rate_beside_in_node.value = 0.8;
    m.device.rate_beside_across_nodes.value = 0.9;
    m.node.host_bandwidth_Bps.value = 10e9;
    return m;
}

static struct s4d_tensor tensor_bf16 = {
    .type = S4D_BF16, .dims = 2, .shape = {1000, 1000}, .stride = {1000, 1}};
static const struct s4d_program one_tensor = {.tensors = &tensor_bf16, .n_tensors = 1};

/* 2 * 1000 * 1000 * 500 / 100e12 = 10 us; output 2e6 B / 1e12 = 2 us; launch 1 us: 13 us. The
 * traffic, 4 MB, is 4 us: hidden. With 20 MB of traffic it is 20 us, above the 12: 21 us. */
static void test_gemm(void **state)
{
    (void)state;
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_op op = {.kind = S4D_OP_GEMM, .bytes_read = 2000000, .bytes_written = 2000000};
    op.c.gemm.m = op.c.gemm.n = 1000;
    op.c.gemm.k = 500;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 13e-6);
    op.bytes_read = 18000000;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 21e-6);
    m.device.gemm_output_Bps.value = INFINITY;
    op.bytes_read = 2000000;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 11e-6);
}

/* Twice 1 MB over 1 TB/s: 2 us at full bandwidth; at 2 MB the part is half way (in log2) from 0.4
 * at 1 MB to 0.8 at 4 MB, 0.6: 2 / 0.6 us. */
static void test_memory_bound(void **state)
{
    (void)state;
    double x[] = {1e6, 4e6}, y[] = {0.4, 0.8};
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_op op = {.kind = S4D_OP_CAST, .bytes_read = 1000000, .bytes_written = 1000000};
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 3e-6);
    m.device.memory_efficiency = (struct s4d_curve){.x = x, .y = y, .n = 2};
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 1e-6 + 2e-6 / 0.6);
    op.bytes_read = 99000000; /* clamped above the last point */
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 1e-6 + 100e-6 / 0.8);
    m.device.memory_bandwidth_Bps.value = INFINITY;
    m.device.launch_s.value = 0;
    assert_true(s4d_kernel_time_s(&k, &one_tensor, &op) == 0);
}

/* b 2, heads 5, s 1000, head_dim 100: 4 * 2 * 5 * 1e6 * 100 = 4e9 FLOP, half causal: 2e9. Without
 * rows the GEMM rate: 20 us; with 50 TFLOP/s at s 1000: 40 us; the backward is 5e9 FLOP. */
static void test_attention(void **state)
{
    (void)state;
    double x[] = {500, 2000}, y[] = {25e12, 75e12}, other[] = {1e12, 1e12};
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_op op = {.kind = S4D_OP_ATTENTION_FORWARD};
    op.c.attention.batch = 2;
    op.c.attention.heads = op.c.attention.kv_heads = 5;
    op.c.attention.seq = 1000;
    op.c.attention.head_dim = 100;
    op.c.attention.causal = true;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 21e-6);
    struct s4d_attention_row rows[] = {
        {128, false, false, {.x = x, .y = other, .n = 2}}, /* not causal: the last choice */
        {32, true, false, {.x = x, .y = other, .n = 2}},
        {128, true, false, {.x = x, .y = y, .n = 2}},
        {128, true, true, {.x = x, .y = y, .n = 2}},
    };
    m.device.attention = rows;
    m.device.n_attention = 4;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 41e-6);
    op.kind = S4D_OP_ATTENTION_BACKWARD;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 101e-6);
    op.c.attention.causal = false; /* twice the work, the only row of that pass */
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 201e-6);
}

/* 1000 x 1000 bf16 over 10 GB/s: 200 us and the launch. */
static void test_copy_and_host(void **state)
{
    (void)state;
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_op op = {.kind = S4D_OP_HOST_TO_DEVICE};
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 201e-6);
    op.kind = S4D_OP_READ_TOKENS;
    assert_true(s4d_kernel_time_s(&k, &one_tensor, &op) == 0);
    assert_close(s4d_kernel_rate_beside(&k, false), 0.8);
    assert_close(s4d_kernel_rate_beside(&k, true), 0.9);
}

/* Perlmutter's fit against the shapes it was fitted to: each within 8 %, rms 4.6 %. */
static void test_perlmutter_gemm(void **state)
{
    (void)state;
    static const struct {
        int64_t m, n, k;
        double measured;
    } shapes[] = {
        {8192, 12288, 4096, 241.6e12}, {8192, 4096, 4096, 234.9e12},  {8192, 16384, 4096, 241.1e12},
        {8192, 4096, 16384, 252.8e12}, {8192, 51200, 4096, 255.4e12}, {1024, 10240, 5120, 271.2e12},
        {32768, 32768, 32768, 280e12},
    };
    struct s4d_machine m;
    struct s4d_error err = {0};
    if (s4d_machine_load(&m, "perlmutter", NULL, 0, &err))
        fail_msg("%s: %s", err.where, err.text);
    struct s4d_kernels k = {&m};
    double squares = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct s4d_op op = {.kind = S4D_OP_GEMM};
        op.c.gemm.m = shapes[i].m;
        op.c.gemm.n = shapes[i].n;
        op.c.gemm.k = shapes[i].k;
        int64_t mk = op.c.gemm.m * op.c.gemm.k, kn = op.c.gemm.k * op.c.gemm.n;
        op.bytes_read = 2 * (mk + kn);
        op.bytes_written = 2 * op.c.gemm.m * op.c.gemm.n;
        double flops = 2.0 * (double)op.c.gemm.m * (double)op.c.gemm.n * (double)op.c.gemm.k;
        double rate = flops / s4d_kernel_time_s(&k, &one_tensor, &op);
        double error = rate / shapes[i].measured - 1;
        squares += error * error;
        if (fabs(error) > 0.08)
            fail_msg("%zu: %.1f TFLOP/s", i, rate / 1e12);
    }
    assert_true(sqrt(squares / 7) < 0.047);
    s4d_machine_free(&m);
}

static void test_types(void **state)
{
    (void)state;
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_options o = {.precision = S4D_F32};
    struct s4d_error err = {0};
    assert_int_equal(s4d_kernels_check(&k, &o, &err), 0); /* no list: every type */
    strcpy(m.device.compute_types, "bf16 f16");
    assert_int_equal(s4d_kernels_check(&k, &o, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "bf16 f16"));
    o.precision = S4D_F16;
    assert_int_equal(s4d_kernels_check(&k, &o, &err), 0);
}

/* Whatever the kind: 1 us and 2 MB over the slowest thing that the rules know, at most. */
static void test_every_kind(void **state)
{
    (void)state;
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    for (int kind = 0; kind < S4D_OP_KINDS; kind++) {
        struct s4d_op op = {.kind = (enum s4d_op_kind)kind, .bytes_read = 2000000};
        if (s4d_communicates((enum s4d_op_kind)kind))
            continue;
        if (s4d_op_kinds[kind].op_class == S4D_CLASS_ATTENTION)
            op.c.attention.head_dim = op.c.attention.seq = 64;
        double t_s = s4d_kernel_time_s(&k, &one_tensor, &op);
        if (!(t_s >= 0 && t_s <= 201e-6))
            fail_msg("%s: %g s", s4d_op_kinds[kind].name, t_s);
    }
}

/* A shape of the table has its rate, whatever the fit says: 2e9 FLOP at 40 TFLOP/s, 50 us. Half way
 * in log2 between two rows (m 1000 and 4000: 10 and 40 TFLOP/s; m 2000): the geometric mean, 20. A
 * third row, of other transposes, does not enter; it alone answers for its own. */
static void test_gemm_table(void **state)
{
    (void)state;
    struct s4d_gemm_row rows[] = {{1000, 1000, 1000, false, true, 10e12},
                                  {4000, 1000, 1000, false, true, 40e12},
                                  {2000, 1000, 1000, true, false, 99e12}};
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_op op = {.kind = S4D_OP_GEMM, .bytes_read = 1 << 30};
    m.device.gemm = (struct s4d_gemm_table){.row = rows, .n = 3};
    op.c.gemm.n = op.c.gemm.k = 1000;
    op.c.gemm.transpose_b = true;
    op.c.gemm.m = 1000;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 1e-6 + 2e9 / 10e12);
    op.c.gemm.m = 2000;
    double between = s4d_kernel_time_s(&k, &one_tensor, &op);
    assert_true(fabs(between - (1e-6 + 4e9 / 20e12)) < 1e-15);
    /* m 1500, 0.585 from the first row and 1.415 from the second: the nearer weighs more. */
    op.c.gemm.m = 1500;
    double near = 1 / pow(log2(1.5), 2), far = 1 / pow(log2(4 / 1.5), 2);
    double rate = 10e12 * pow(4, far / (near + far)); /* 12.2 TFLOP/s */
    between = s4d_kernel_time_s(&k, &one_tensor, &op);
    assert_true(fabs(between - (1e-6 + 3e9 / rate)) < 1e-15);
    op.c.gemm.transpose_b = false;
    op.c.gemm.transpose_a = true;
    op.c.gemm.m = 8000; /* one row: its rate everywhere */
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 1e-6 + 16e9 / 99e12);
}

/* 2 MB of a kind with a curve of its own, 1 GB/s: 2 ms; of another kind: 2 us at 1 TB/s. */
static void test_kernel_kinds(void **state)
{
    (void)state;
    double x[] = {1e6}, y[] = {1e9};
    struct s4d_kernel_row row = {"adamw", {.x = x, .y = y, .n = 1}};
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_options options = {.precision = S4D_BF16};
    struct s4d_op op = {.kind = S4D_OP_ADAMW, .bytes_read = 1000000, .bytes_written = 1000000};
    struct s4d_error err;
    m.device.kernel = &row;
    m.device.n_kernels = 1;
    m.file = "file.yaml";
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 1e-6 + 2e-3);
    op.kind = S4D_OP_CAST;
    assert_close(s4d_kernel_time_s(&k, &one_tensor, &op), 3e-6);
    assert_int_equal(s4d_kernels_check(&k, &options, &err), 0);
    snprintf(row.kind, sizeof row.kind, "adamv");
    assert_int_equal(s4d_kernels_check(&k, &options, &err), -1);
    assert_non_null(strstr(err.hint, "adamw"));
}

/* Four devices share two units: with four ranks everything computes at half the rate, with two
 * (or with eight nodes of two) at the whole. Copies are no computing. */
static void test_shared_units(void **state)
{
    (void)state;
    struct s4d_machine m = round_machine();
    struct s4d_kernels k = {&m};
    struct s4d_program p = one_tensor;
    struct s4d_op op = {.kind = S4D_OP_CAST, .bytes_read = 1000000, .bytes_written = 1000000};
    m.node.devices = 4;
    m.node.compute_units.value = 2;
    p.grid = s4d_grid_make(1, 1, 2, 1);
    assert_close(s4d_kernel_time_s(&k, &p, &op), 3e-6);
    p.grid = s4d_grid_make(1, 3, 1, 1);
    assert_close(s4d_kernel_time_s(&k, &p, &op), 4.5e-6);
    p.grid = s4d_grid_make(2, 2, 2, 1); /* two nodes of four */
    assert_close(s4d_kernel_time_s(&k, &p, &op), 6e-6);
    m.node.compute_units.value = INFINITY;
    assert_close(s4d_kernel_time_s(&k, &p, &op), 3e-6);
    m.node.compute_units.value = 2;
    op = (struct s4d_op){.kind = S4D_OP_HOST_TO_DEVICE};
    double copy_s = s4d_kernel_time_s(&k, &p, &op);
    m.node.compute_units.value = INFINITY;
    assert_close(copy_s, s4d_kernel_time_s(&k, &p, &op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),          cmocka_unit_test(test_gemm_table),
        cmocka_unit_test(test_kernel_kinds),  cmocka_unit_test(test_shared_units),
        cmocka_unit_test(test_memory_bound),  cmocka_unit_test(test_attention),
        cmocka_unit_test(test_copy_and_host), cmocka_unit_test(test_perlmutter_gemm),
        cmocka_unit_test(test_types),         cmocka_unit_test(test_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
