/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements beside simulations: what is read, what is held out, what counts as an error. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plots/accuracy.h"
#include "sim/accuracy.h"

#define HEADER "machine,library,op,ranks,ranks_per_node,total_MiB,busbw_GBps,outlier,note,source\n"

static char file[] = "/tmp/s4d-accuracy-XXXXXX";

static int read_text(struct s4d_accuracy_list *list, const char *text, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    *err = (struct s4d_error){0};
    return s4d_accuracy_read(list, file, err);
}

static void refused(const char *row, const char *said)
{
    struct s4d_accuracy_list list = {0};
    struct s4d_error err;
    char text[1024];
    snprintf(text, sizeof text, HEADER "%s\n", row);
    assert_int_equal(read_text(&list, text, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (!strstr(err.text, said))
        fail_msg("'%s' lacks '%s'", err.text, said);
    s4d_accuracy_free(&list);
}

static void test_read(void **state)
{
    (void)state;
    struct s4d_accuracy_list list = {0};
    struct s4d_error err;
    assert_int_equal(read_text(&list,
                               HEADER "m,NCCL,all_reduce,8,4,0.5,3.5,no,,\"a, b\"\n"
                                      "m,NCCL,all_reduce,8,4,1,4,yes,odd,s\n"
                                      "m,NCCL,all_reduce,16,4,1,4,no,,s\n"
                                      "m,NCCL (NVLS),all_reduce,16,4,1,4,no,,s\n",
                               &err),
                     0);
    assert_int_equal(list.n, 4);
    assert_true(list.v[0].bytes == 524288 && list.v[0].measured_Bps == 3.5e9);
    assert_string_equal(list.v[0].source, "a, b");
    assert_false(list.v[0].outlier);
    assert_true(list.v[1].outlier);
    assert_int_equal(s4d_accuracy_group(&list, 0), 2);
    assert_int_equal(s4d_accuracy_series(&list, 0), 3);
    char *name = s4d_accuracy_name(&list.v[3]);
    assert_string_equal(name, "m-nccl-nvls-all_reduce");
    free(name);
    s4d_accuracy_free(&list);
    refused("m,NCCL,all_reduce,8,4,1,4,maybe,,s", "yes or no");
    refused("m,NCCL,all_reduce,1,4,1,4,no,,s", "ranks");
    refused("m,NCCL,all_reduce,8,4,0,4,no,,s", "total_MiB");
    refused("m,NCCL,all_reduce,8,4,1,x,no,,s", "busbw_GBps");
    refused("m,NCCL,all_reduce,8,4,1,4,no,s", "10 columns");
    refused("", "no measurement");
}

/* Measured 4 GB/s: 5 simulated are 25 % too much. Input is checked by what was held out alone. */
static void test_error(void **state)
{
    (void)state;
    struct s4d_accuracy_row row = {
        .ranks = 16, .measured_Bps = 4e9, .simulated_Bps = 5e9, .held_out_Bps = NAN};
    assert_true(s4d_accuracy_error(&row) == 25);
    row.input = true;
    assert_true(isnan(s4d_accuracy_error(&row)));
    row.fit_ranks = 32;
    row.held_out_Bps = 3e9;
    assert_true(s4d_accuracy_error(&row) == -25);
    row.fit_ranks = 16;
    assert_true(isnan(s4d_accuracy_error(&row)));
    row.input = false;
    row.outlier = true;
    assert_true(isnan(s4d_accuracy_error(&row)));
}

static void test_tables(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    int ranks[8];
    assert_int_equal(s4d_machine_load(&m, "frontier", NULL, 0, &err), 0);
    assert_int_equal(s4d_efficiency_ranks(&m, S4D_OP_ALL_GATHER, false, ranks, 8), 2);
    assert_true(ranks[0] == 64 && ranks[1] == 512);
    assert_int_equal(s4d_efficiency_ranks(&m, S4D_OP_ALL_GATHER, true, ranks, 8), 1);
    assert_int_equal(ranks[0], 8);
    s4d_efficiency_keep(&m, 512);
    assert_int_equal(s4d_efficiency_ranks(&m, S4D_OP_ALL_GATHER, false, ranks, 8), 1);
    assert_int_equal(ranks[0], 512);
    s4d_efficiency_keep(&m, S4D_KEEP_NONE);
    assert_int_equal(s4d_efficiency_ranks(&m, S4D_OP_ALL_GATHER, false, ranks, 8), 0);
    s4d_machine_free(&m);
    assert_int_equal(s4d_collective_op("all_gather"), S4D_OP_ALL_GATHER);
    assert_int_equal(s4d_collective_op("send_recv"), S4D_SEND_RECV);
    assert_int_equal(s4d_collective_op("all-gather"), S4D_COLLECTIVE_OPS);
    assert_int_equal(s4d_collective_op("gemm"), S4D_COLLECTIVE_OPS);
}

/* Times made of 5 us, 100 TFLOP/s and 1 TB/s give these back: 1000^3 takes 5 + 20 + 2 us. */
static void test_gemm_fit(void **state)
{
    (void)state;
    double size[][3] = {{1000, 1000, 1000}, {1000, 2000, 100}, {4000, 1000, 50}, {300, 200, 5000}};
    struct s4d_gemm_point p[4];
    struct s4d_gemm_fit fit;
    for (int i = 0; i < 4; i++) {
        double mn = size[i][0] * size[i][1];
        p[i] = (struct s4d_gemm_point){size[i][0], size[i][1], size[i][2],
                                       5e-6 + 2 * mn * size[i][2] / 100e12 + 2 * mn / 1e12};
    }
    assert_true(fabs(p[0].time_s - 27e-6) < 1e-15);
    assert_int_equal(s4d_gemm_fit(p, 4, &fit), 0);
    assert_true(fabs(fit.launch_s / 5e-6 - 1) < 1e-6);
    assert_true(fabs(fit.flops_per_s / 100e12 - 1) < 1e-6);
    assert_true(fabs(fit.output_Bps / 1e12 - 1) < 1e-6);
    assert_true(fabs(s4d_gemm_fit_s(&fit, &p[1]) / p[1].time_s - 1) < 1e-6);
    p[1] = p[2] = p[0];
    assert_int_equal(s4d_gemm_fit(p, 3, &fit), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_gemm_fit),
    };
    int fd = mkstemp(file);
    if (fd < 0)
        return 1;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    return failed;
}
