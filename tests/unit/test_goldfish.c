/* SPDX-License-Identifier: Apache-2.0 */
/* The goldfish loss (arXiv 2406.10209): which targets are dropped. That loss and gradients are
 * those of what is kept, on every grid, is in test_llama.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/order.h"
#include "support/memory.h"
#include "tests/lib/handmade.h"
#include "tests/lib/interpreter.h"
#include "tests/lib/numbers.h"
#include "tests/lib/reference.h"
#include "workloads/workload.h"

/* Of the definition in schedule/op.h, computed apart from it with arbitrary-precision integers. */
static void test_hash(void **state)
{
    (void)state;
    assert_true(s4d_goldfish_hash(NULL, 0) == 0xefd01f60ba992926);
    assert_true(s4d_goldfish_hash((const int32_t[]){1}, 1) == 0x0d7cea42b5057e4c);
    assert_true(s4d_goldfish_hash((const int32_t[]){1, 2, 3}, 3) == 0xfd97a838d02d3759);
    assert_true(s4d_goldfish_hash((const int32_t[]){-1, 50256}, 2) == 0x53a46ded996ee719);
}

static int matrix(struct s4d_program *p, int64_t rows, int64_t cols)
{
    int storage = handmade_storage(p, rows * cols * 4, true);
    int id = handmade_tensor(p, storage, S4D_I32, 0, rows * cols);
    struct s4d_tensor *t = &p->tensors[id];
    t->dims = 2;
    t->shape[0] = rows;
    t->shape[1] = cols;
    t->stride[0] = cols;
    t->stride[1] = 1;
    return id;
}

/* The op on rows of s + 1 tokens, and that the reference drops the same. */
static void drop(int rows, int s, int k, int h, const int32_t *tokens, int32_t *targets)
{
    struct s4d_program p = handmade();
    struct s4d_error err;
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    int in = matrix(&p, rows, s + 1), out = matrix(&p, rows, s);
    int op = handmade_op(&p, S4D_OP_GOLDFISH, S4D_STREAM_COMPUTE, (const int[]){in, out}, 2);
    p.ops[op].c.goldfish.k = k;
    p.ops[op].c.goldfish.context = h;
    s4d_order(&p, NULL, 0);
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_interpreter *it = s4d_interpreter_create(&p, &o);
    for (int i = 0; i < rows * (s + 1); i++)
        s4d_interpreter_set(it, 0, in, i, tokens[i]);
    assert_int_equal(s4d_interpreter_run(it, 1, &err), 0);
    struct s4d_model m = {.seq_length = s, .goldfish_k = k, .goldfish_h = h};
    int32_t *expected = s4d_malloc((size_t)s * sizeof *expected);
    for (int i = 0; i < rows * s; i++) {
        if (i % s == 0)
            s4d_reference_targets(&m, tokens + i / s * (s + 1), expected);
        targets[i] = (int32_t)s4d_interpreter_get(it, 0, out, i);
        assert_int_equal(targets[i], expected[i % s]);
    }
    free(expected);
    s4d_interpreter_free(it);
    s4d_program_free(&p);
}

/* One token of context, k = 3: of 0..11 the hashes of 0, 1, 5, 8, 9 are multiples of 3, so the
 * tokens after 5 and after 0 are dropped, the 0 after 2 is not. */
static void test_by_hand(void **state)
{
    (void)state;
    int32_t targets[3];
    drop(1, 3, 3, 1, (const int32_t[]){5, 2, 0, 7}, targets);
    assert_int_equal(targets[0], -1);
    assert_int_equal(targets[1], 0);
    assert_int_equal(targets[2], -1);
}

/* A model's own k and h reach the op, each its place. */
static void test_of_a_model(void **state)
{
    (void)state;
    struct s4d_workload w;
    struct s4d_program p;
    struct s4d_error err;
    struct s4d_grid one = s4d_grid_make(1, 1, 1, 1);
    struct s4d_options o = s4d_options_default();
    o.global_batch = o.micro_batch = 1;
    assert_int_equal(s4d_workload_load(&w, "gpt-tiny", &err), 0);
    strcpy(w.model.head, "goldfish-cross-entropy");
    w.model.goldfish_k = 4;
    w.model.goldfish_h = 13;
    assert_int_equal(s4d_build(&p, &w.model, &one, &o, &err), 0);
    int found = 0;
    for (int i = 0; i < p.n_ops; i++)
        if (p.ops[i].kind == S4D_OP_GOLDFISH) {
            assert_int_equal(p.ops[i].c.goldfish.k, 4);
            assert_int_equal(p.ops[i].c.goldfish.context, 13);
            found++;
        }
    assert_int_equal(found, 1);
    s4d_program_free(&p);
    s4d_workload_free(&w);
}

enum { ROWS = 40, S = 500, PASSAGE = 60 };

/* About one in k, within five standard errors of a share 1/k of n; the first h - 1 targets have no
 * whole context and are kept. */
static void test_share(void **state)
{
    (void)state;
    static int32_t tokens[ROWS * (S + 1)], targets[ROWS * S];
    for (int i = 0; i < ROWS * (S + 1); i++)
        tokens[i] = (int32_t)(s4d_uniform_at(3, (uint64_t)i) * 50000);
    for (int k = 2; k <= 32; k *= 4)
        for (int h = 1; h <= 13; h += 6) {
            drop(ROWS, S, k, h, tokens, targets);
            double n = ROWS * (S + 1 - h), dropped = 0;
            for (int i = 0; i < ROWS * S; i++) {
                dropped += targets[i] < 0;
                assert_true(i % S + 1 >= h || targets[i] >= 0);
            }
            assert_true(fabs(dropped - n / k) < 5 * sqrt(n * (k - 1.0)) / k);
        }
}

/* A passage that stands in every sequence, each time elsewhere: after its first h tokens it loses
 * the same ones everywhere, some of them. */
static void test_repeated(void **state)
{
    (void)state;
    static int32_t tokens[ROWS * (S + 1)], targets[ROWS * S];
    const int k = 4, h = 13;
    int lost = 0;
    for (int i = 0; i < ROWS * (S + 1); i++) {
        int at = i % (S + 1) - 3 - 7 * (i / (S + 1)); /* in the passage */
        tokens[i] = at >= 0 && at < PASSAGE ? (int32_t)(s4d_uniform_at(9, (uint64_t)at) * 50000)
                                            : (int32_t)(s4d_uniform_at(4, (uint64_t)i) * 50000);
    }
    drop(ROWS, S, k, h, tokens, targets);
    for (int at = h; at < PASSAGE; at++) {
        lost += targets[3 + at - 1] < 0;
        for (int row = 1; row < ROWS; row++)
            assert_int_equal(targets[row * S + 3 + 7 * row + at - 1] < 0, targets[3 + at - 1] < 0);
    }
    assert_true(lost > 0 && lost < PASSAGE - h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),       cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_of_a_model), cmocka_unit_test(test_share),
        cmocka_unit_test(test_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
