/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path through times written by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/critical_path.h"

double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op)
{
    (void)k, (void)p, (void)op;
    return 0; /* the trace says when ops were */
}

static struct s4d_wait wait_a = {-1, S4D_STREAM_COPY_OUT, 0, S4D_WAIT_ORDER};
static struct s4d_wait wait_copy = {0, S4D_STREAM_COMPUTE, 0, S4D_WAIT_MEMORY};

/* A, adamw on the compute stream; a copy out, which the next iteration's A waits for. copy_after:
 * the position of the compute stream that the copy waits for. */
static void find(struct s4d_critical_path *path, int copy_after, const struct s4d_span *span,
                 double open_s, double close_s)
{
    enum { A, ADAMW, COPY };
    wait_copy.position = copy_after;
    struct s4d_op op[] = {
        [A] = {.kind = S4D_OP_GEMM, .waits = &wait_a, .n_waits = 1},
        [ADAMW] = {.kind = S4D_OP_ADAMW, .position = 1},
        [COPY] = {.kind = S4D_OP_DEVICE_TO_HOST,
                  .stream = S4D_STREAM_COPY_OUT,
                  .waits = &wait_copy,
                  .n_waits = 1},
    };
    struct s4d_program p = {.ops = op, .n_ops = 3};
    p.stream_length[S4D_STREAM_COMPUTE] = 2;
    p.stream_length[S4D_STREAM_COPY_OUT] = 1;
    struct s4d_rank_class ranks[] = {{.members = 1}};
    struct s4d_system system = {.ranks = ranks, .n_ranks = 1};
    struct s4d_trace t;
    struct s4d_kernels kernels = {0};
    struct s4d_rates rates;
    s4d_rates_plain(&rates);
    s4d_trace_create(&t, &system, &p);
    for (int i = 0; i < 6; i++) {
        s4d_trace_started(&t, 0, i % 3, i / 3, span[i].start_s);
        s4d_trace_ended(&t, 0, i % 3, i / 3, span[i].end_s);
    }
    s4d_trace_window(&t, true, open_s);
    s4d_trace_window(&t, false, close_s);
    struct s4d_program_index index = s4d_program_index_make(&p, &kernels, &rates);
    s4d_critical_path_find(path, &t, &index);
    s4d_program_index_free(&index);
    s4d_trace_free(&t);
}

static void expect(const struct s4d_step *s, int iteration, int op, double start_s, double end_s,
                   enum s4d_step_cause cause)
{
    assert_int_equal(s->iteration, iteration);
    assert_int_equal(s->op, op);
    assert_true(s->start_s == start_s && s->end_s == end_s);
    assert_int_equal(s->cause, cause);
}

/* Iteration 0: A 0-10, adamw 10-14, which opens the window; the copy waits for A alone: 10-20. A of
 * iteration 1 waits for that copy, of the iteration before: 20-30, adamw 30-34 closes the window.
 * So 20 s: 6 of the copy, which began 4 before the window did, 10 of A, 4 of adamw. */
static void test_first_step_before_window(void **state)
{
    (void)state;
    static const struct s4d_span span[] = {{0, 10},  {10, 14}, {10, 20},
                                           {20, 30}, {30, 34}, {30, 40}};
    struct s4d_critical_path path;
    find(&path, 0, span, 14, 34);
    assert_int_equal(path.n, 3);
    expect(&path.step[0], 0, 2, 14, 20, S4D_STEP_MEMORY);
    expect(&path.step[1], 1, 0, 20, 30, S4D_STEP_ORDER);
    expect(&path.step[2], 1, 1, 30, 34, S4D_STEP_STREAM);
    s4d_critical_path_free(&path);
}

/* The copy waits for adamw, whose end opens the window: 14-20 is a whole step, and the first. */
static void test_first_step_at_window(void **state)
{
    (void)state;
    static const struct s4d_span span[] = {{0, 10},  {10, 14}, {14, 20},
                                           {20, 30}, {30, 34}, {34, 40}};
    struct s4d_critical_path path;
    find(&path, 1, span, 14, 34);
    assert_int_equal(path.n, 3);
    expect(&path.step[0], 0, 2, 14, 20, S4D_STEP_MEMORY);
    expect(&path.step[1], 1, 0, 20, 30, S4D_STEP_ORDER);
    expect(&path.step[2], 1, 1, 30, 34, S4D_STEP_STREAM);
    s4d_critical_path_free(&path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_step_before_window),
        cmocka_unit_test(test_first_step_at_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
