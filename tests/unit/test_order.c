/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: small programs by hand, and random ones against happens-before by its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tests/lib/handmade.h"

static void expect_wait(const struct s4d_program *p, int op, int i, int iteration,
                        enum s4d_stream stream, int position, enum s4d_wait_kind kind)
{
    assert_true(i < p->ops[op].n_waits);
    const struct s4d_wait *w = &p->ops[op].waits[i];
    assert_int_equal(w->iteration, iteration);
    assert_int_equal(w->stream, stream);
    assert_int_equal(w->position, position);
    assert_int_equal(w->kind, kind);
}

/* Each op beside the hazards it has; a wait is kept only for data within the iteration.
 *   0 compute[0]  a = in    a is read by op 2 of the iteration before
 *   1 compute[1]  c = in
 *   2 y[0]        b = a     data from op 0; b is read by op 3 of the iteration before
 *   3 x[0]        d = b     data from op 2; d is read by op 4 of the iteration before
 *   4 compute[2]  in += d   data from op 3; in is read by ops 0 and 1, on its own stream
 * Op 4 is after op 3, which is after op 2, and the next op 0 is after op 4 on the same stream: so
 * every hazard with the iteration before is implied. */
static void test_chain(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    int in = handmade_bytes(&p, handmade_storage(&p, 16, true), 0, 16);
    int a = handmade_bytes(&p, handmade_storage(&p, 16, false), 0, 16);
    int b = handmade_bytes(&p, handmade_storage(&p, 16, false), 0, 16);
    int c = handmade_bytes(&p, handmade_storage(&p, 16, false), 0, 16);
    int d = handmade_bytes(&p, handmade_storage(&p, 16, false), 0, 16);
    handmade_copy(&p, S4D_STREAM_COMPUTE, in, a);
    handmade_copy(&p, S4D_STREAM_COMPUTE, in, c);
    handmade_copy(&p, S4D_STREAM_Y, a, b);
    handmade_copy(&p, S4D_STREAM_X, b, d);
    handmade_op(&p, S4D_OP_ADD, S4D_STREAM_COMPUTE, (const int[]){d, in}, 2);
    s4d_order(&p, NULL, 0);
    assert_int_equal(p.ops[4].position, 2);
    assert_int_equal(p.stream_length[S4D_STREAM_COMPUTE], 3);
    static const int waits[] = {0, 0, 1, 1, 1};
    for (int i = 0; i < 5; i++)
        assert_int_equal(p.ops[i].n_waits, waits[i]);
    expect_wait(&p, 2, 0, 0, S4D_STREAM_COMPUTE, 0, S4D_WAIT_DATA);
    expect_wait(&p, 3, 0, 0, S4D_STREAM_Y, 0, S4D_WAIT_DATA);
    expect_wait(&p, 4, 0, 0, S4D_STREAM_X, 0, S4D_WAIT_DATA);
    s4d_program_free(&p);
}

/* A gather buffer used twice: the second gather must wait until the first block has been read.
 *   0 z[0]        w = shard     -1: compute[1] still reads w: memory
 *   1 compute[0]  y = w         data z[0]
 *   2 z[1]        w = shard     memory compute[0]
 *   3 compute[1]  y = w         data z[1]
 * Disjoint halves of a storage need no wait:
 *   4 x[0]        v[0..8) = q   nothing
 *   5 y[0]        v[8..16) = q  nothing
 *   6 compute[2]  u = v         data x[0] and y[0]; in the next iteration 4 and 5 wait for it */
static void test_reuse(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    int shard = handmade_bytes(&p, handmade_storage(&p, 8, true), 0, 8);
    int w = handmade_bytes(&p, handmade_storage(&p, 8, false), 0, 8);
    int y = handmade_bytes(&p, handmade_storage(&p, 8, false), 0, 8);
    int v = handmade_storage(&p, 16, false);
    int low = handmade_bytes(&p, v, 0, 8), high = handmade_bytes(&p, v, 8, 8),
        all = handmade_bytes(&p, v, 0, 16);
    int u = handmade_bytes(&p, handmade_storage(&p, 16, false), 0, 16);
    handmade_copy(&p, S4D_STREAM_Z_GATHER, shard, w);
    handmade_copy(&p, S4D_STREAM_COMPUTE, w, y);
    handmade_copy(&p, S4D_STREAM_Z_GATHER, shard, w);
    handmade_copy(&p, S4D_STREAM_COMPUTE, w, y);
    handmade_copy(&p, S4D_STREAM_X, shard, low);
    handmade_copy(&p, S4D_STREAM_Y, shard, high);
    handmade_copy(&p, S4D_STREAM_COMPUTE, all, u);
    struct s4d_order_edge edge = {.before = 3, .after = 5, .kind = S4D_WAIT_ORDER};
    s4d_order(&p, &edge, 1);
    expect_wait(&p, 0, 0, -1, S4D_STREAM_COMPUTE, 1, S4D_WAIT_MEMORY);
    expect_wait(&p, 1, 0, 0, S4D_STREAM_Z_GATHER, 0, S4D_WAIT_DATA);
    expect_wait(&p, 2, 0, 0, S4D_STREAM_COMPUTE, 0, S4D_WAIT_MEMORY);
    expect_wait(&p, 3, 0, 0, S4D_STREAM_Z_GATHER, 1, S4D_WAIT_DATA);
    expect_wait(&p, 4, 0, -1, S4D_STREAM_COMPUTE, 2, S4D_WAIT_MEMORY);
    expect_wait(&p, 5, 0, 0, S4D_STREAM_COMPUTE, 1, S4D_WAIT_ORDER); /* implies compute[2], -1 */
    expect_wait(&p, 6, 0, 0, S4D_STREAM_X, 0, S4D_WAIT_DATA);
    expect_wait(&p, 6, 1, 0, S4D_STREAM_Y, 0, S4D_WAIT_DATA);
    for (int i = 0; i < 6; i++)
        assert_int_equal(p.ops[i].n_waits, 1);
    assert_int_equal(p.ops[6].n_waits, 2);
    s4d_program_free(&p);
}

/* Whether two ops use common bytes and one of them writes. */
static bool hazard(const struct s4d_program *p, int a, int b)
{
    for (int i = 0; i < s4d_op_kinds[p->ops[a].kind].n_operands; i++)
        for (int j = 0; j < s4d_op_kinds[p->ops[b].kind].n_operands; j++) {
            const struct s4d_operand *u = &p->ops[a].operand[i], *v = &p->ops[b].operand[j];
            int64_t f0, l0, f1, l1;
            s4d_tensor_range(p, u->tensor, &f0, &l0);
            s4d_tensor_range(p, v->tensor, &f1, &l1);
            if (p->tensors[u->tensor].storage == p->tensors[v->tensor].storage && f0 < l1 &&
                f1 < l0 && ((u->access | v->access) & S4D_WRITE))
                return true;
        }
    return false;
}

static void check_random(unsigned seed)
{
    struct s4d_program p = handmade_random(seed, 60, 12);
    struct s4d_order_edge edges[] = {{3, 9, S4D_WAIT_ORDER}, {20, 21, S4D_WAIT_ORDER}};
    s4d_order(&p, edges, 2);
    int n = p.n_ops, N = 2 * n;
    bool *before = handmade_closure(&p);
    struct s4d_clocks clocks = s4d_clocks_make(&p);
    for (int b = 0; b < N; b++)
        for (int a = 0; a < N; a++) {
            bool is = before[b * N + a];
            if (a < b && hazard(&p, a % n, b % n))
                assert_true(is);
            assert_int_equal(is, s4d_before(&p, &clocks, a / n, a % n, b / n, b % n));
        }
    assert_true(before[9 * N + 3] && before[21 * N + 20]);
    s4d_clocks_free(&clocks);
    free(before);
    /* No wait is implied by the rest: without it, its op is not known to be done. */
    for (int b = 0; b < n; b++)
        for (int w = 0; w < p.ops[b].n_waits; w++) {
            struct s4d_wait gone = p.ops[b].waits[w], *last = &p.ops[b].waits[--p.ops[b].n_waits];
            p.ops[b].waits[w] = *last;
            before = handmade_closure(&p);
            bool still = false;
            for (int a = 0; a < N; a++)
                if (p.ops[a % n].stream == gone.stream && p.ops[a % n].position == gone.position &&
                    a / n == 1 + gone.iteration)
                    still = before[(n + b) * N + a];
            assert_false(still);
            free(before);
            *last = p.ops[b].waits[w];
            p.ops[b].waits[w] = gone;
            p.ops[b].n_waits++;
        }
    s4d_program_free(&p);
}

static void test_random(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 25; seed++)
        check_random(seed);
}

static void test_fast(void **state)
{
    (void)state;
    struct s4d_program p = handmade_random(7, 50000, 5000);
    clock_t start = clock();
    s4d_order(&p, NULL, 0);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 2);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_reuse),
                                       cmocka_unit_test(test_random), cmocka_unit_test(test_fast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
