/* SPDX-License-Identifier: Apache-2.0 */
/* The workload gpt-tiny as its file has it: with 16 sequences, the loss and gradients of every grid
 * of 1 to 16 ranks that divides it are the serial GPT's to 1e-5. Options at their defaults, but in
 * f32.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/training.h"
#include "workloads/workload.h"

static void test_gpt_tiny(void **state)
{
    (void)state;
    struct s4d_error err;
    struct s4d_workload w;
    struct s4d_trained expected, t;
    struct s4d_case c = s4d_case_default(4, 1, 1, 1, 1);
    assert_int_equal(s4d_workload_load(&w, "gpt-tiny", &err), 0);
    c.model = w.model;
    c.options.clip_norm = 1;
    s4d_train_reference(&c, &expected);
    int ran = 0;
    for (int i = 0; s4d_case_grid(i, &c.grid); i += S4D_SANITIZED ? 23 : 1) {
        if (s4d_divides(&c.model, &c.grid, &c.options, &err))
            continue;
        c.run.order_seed = (uint64_t)i;
        if (s4d_train(&c, &t, &err))
            fail_msg("grid %d: %s: %s", i, err.where, err.text);
        struct s4d_difference d = s4d_compare(&c, &t, &expected);
        if (!(d.gradient <= 1e-5 && d.weight <= 1e-5 && d.loss <= 1e-5 && d.grad_norm <= 1e-5))
            fail_msg("grid %d: gradient of %s differs by %g, weight of %s by %g, loss by %g", i,
                     d.gradient_of, d.gradient, d.weight_of, d.weight, d.loss);
        s4d_trained_free(&t);
        ran++;
    }
    assert_int_equal(ran, S4D_SANITIZED ? 3 : 65); /* 4 heads: not the 5 grids with Gx = 8, 16 */
    s4d_trained_free(&expected);
    s4d_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gpt_tiny)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
