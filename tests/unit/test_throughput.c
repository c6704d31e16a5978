/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron-LM's line: every digit of one, and the loss scale from line to line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plots/format/throughput.h"

static char line[512];

/* 4 devices, 9.6e15 FLOP in 1.5 s: 9.6e15 / 1.5 / 4 = 1.6e15 = 1600 TFLOP/s each. Iteration 3 of
 * batches of 128: 384 samples. */
static void hand_worked(void **state)
{
    (void)state;
    struct s4d_throughput t = {.iterations = 100,
                               .devices = 4,
                               .global_batch = 128,
                               .flops = 9.6e15,
                               .learning_rate = 8.6e-6,
                               .has_norm = true};
    s4d_throughput_line(&t, 3, 1.5, 1.825991, 1.426, "2026-11-30 02:59:36.000125", line,
                        sizeof line);
    assert_string_equal(
        line, " [2026-11-30 02:59:36.000125] iteration        3/     100 |"
              " consumed samples:          384 | elapsed time per iteration (ms): 1500.0 |"
              " throughput per GPU (TFLOP/s/GPU): 1600.0 | learning rate: 8.600000E-06 |"
              " global batch size:   128 | lm loss: 1.825991E+00 | loss scale: 1.0 |"
              " grad norm: 1.426 | number of skipped iterations:   0 |"
              " number of nan iterations:   0 |");
}

static void small_rates_and_no_norm(void **state)
{
    (void)state;
    struct s4d_throughput t = {.iterations = 2, .devices = 2, .global_batch = 8, .flops = 1e9};
    s4d_throughput_line(&t, 1, 0.04, NAN, NAN, "t", line, sizeof line);
    assert_non_null(strstr(line, "(TFLOP/s/GPU): 0.0125 |"));
    assert_null(strstr(line, "grad norm"));
    assert_null(strstr(line, "lm loss"));
    assert_non_null(strstr(line, "number of nan iterations:   1 |"));
}

/* Scale 4, doubled after 2 good steps: 4 good -> 8 good (count 2) -> inf: 4, skipped -> inf: 2 ->
 * good: 2 -> good: 4. Never below 1. */
static void loss_scale(void **state)
{
    (void)state;
    const double norm[] = {1, 1, INFINITY, NAN, 1, 1};
    const char *scale[] = {"4.0", "8.0", "4.0", "2.0", "2.0", "4.0"};
    char want[64];
    struct s4d_throughput t = {.iterations = 6,
                               .devices = 1,
                               .flops = 1,
                               .has_norm = true,
                               .loss_scale = 4,
                               .loss_scale_interval = 2};
    for (int i = 0; i < 6; i++) {
        s4d_throughput_line(&t, i + 1, 1, 1, norm[i], "t", line, sizeof line);
        snprintf(want, sizeof want, "loss scale: %s |", scale[i]);
        assert_non_null(strstr(line, want));
        snprintf(want, sizeof want, "skipped iterations:   %d |", i == 2 || i == 3);
        assert_non_null(strstr(line, want));
    }
    for (int i = 0; i < 5; i++)
        s4d_throughput_line(&t, 7, 1, 1, NAN, "t", line, sizeof line);
    assert_non_null(strstr(line, "loss scale: 1.0 |"));
}

/* However long: cut, ended, and nothing behind it touched. */
static void a_short_buffer(void **state)
{
    (void)state;
    struct s4d_throughput t = {.iterations = 2, .devices = 1, .flops = 1};
    memset(line, 'x', sizeof line);
    s4d_throughput_line(&t, 1, 1, 1, 1, "t", line, 20);
    assert_int_equal(strlen(line), 19);
    assert_int_equal(line[20], 'x');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand_worked),
        cmocka_unit_test(small_rates_and_no_norm),
        cmocka_unit_test(loss_scale),
        cmocka_unit_test(a_short_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
