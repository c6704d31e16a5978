/* SPDX-License-Identifier: Apache-2.0 */
/* Memory plans: by hand, and random programs against happens-before by its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "schedule/plan.h"
#include "tests/lib/handmade.h"

/* in (persistent, 300 B) -> a (1000 B) -> b (500 B) -> c (1000 B) -> in, all on one stream.
 * a is in use at ops 0-1, b at 1-2, c at 2-3. c may take a's place: 0-1 comes before 2-3, and the
 * next iteration's op 0 comes after op 3. b overlaps both.
 * in: 0, 512 bytes long. a: 512 (1024 long). c: 512. b: 1536 (512 long). Arena 2048. */
static void test_by_hand(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    int in = handmade_bytes(&p, handmade_storage(&p, 300, true), 0, 300);
    int a = handmade_bytes(&p, handmade_storage(&p, 1000, false), 0, 1000);
    int b = handmade_bytes(&p, handmade_storage(&p, 500, false), 0, 500);
    int c = handmade_bytes(&p, handmade_storage(&p, 1000, false), 0, 1000);
    int pinned = handmade_storage(&p, 10, false);
    p.storages[pinned].place = S4D_PINNED_HOST;
    handmade_copy(&p, S4D_STREAM_COMPUTE, in, a);
    handmade_copy(&p, S4D_STREAM_COMPUTE, a, b);
    handmade_copy(&p, S4D_STREAM_COMPUTE, b, c);
    handmade_copy(&p, S4D_STREAM_COMPUTE, c, in);
    s4d_order(&p, NULL, 0);
    s4d_plan(&p);
    static const int64_t offsets[] = {0, 512, 1536, 512, 0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(p.storages[i].offset, offsets[i]);
    assert_int_equal(p.arena_bytes[S4D_DEVICE], 2048);
    assert_int_equal(p.arena_bytes[S4D_PINNED_HOST], 256);
    struct s4d_plan_summary sum = s4d_plan_summarise(&p);
    assert_int_equal(sum.by_role[S4D_ROLE_MASTER], 512);
    assert_int_equal(sum.shared, 1536);
    assert_int_equal(sum.total, 2048);
    s4d_program_free(&p);
}

/* List order is not enough: the same list with the first two ops on one stream and the last two on
 * another, joined by nothing. a and c may run at the same time. */
static void test_unordered_streams_share_nothing(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    int in = handmade_bytes(&p, handmade_storage(&p, 256, true), 0, 256);
    int out = handmade_bytes(&p, handmade_storage(&p, 256, true), 0, 256);
    int a = handmade_bytes(&p, handmade_storage(&p, 256, false), 0, 256);
    int c = handmade_bytes(&p, handmade_storage(&p, 256, false), 0, 256);
    handmade_copy(&p, S4D_STREAM_COMPUTE, in, a);
    handmade_copy(&p, S4D_STREAM_COMPUTE, a, in);
    handmade_copy(&p, S4D_STREAM_X, out, c);
    handmade_copy(&p, S4D_STREAM_X, c, out);
    s4d_order(&p, NULL, 0);
    s4d_plan(&p);
    assert_int_equal(p.storages[2].offset, 512);
    assert_int_equal(p.storages[3].offset, 768);
    /* One wait (x after compute) orders them in the iteration, but not c before the next a. */
    struct s4d_order_edge edges[] = {{1, 2, S4D_WAIT_ORDER}};
    s4d_order(&p, edges, 1);
    s4d_plan(&p);
    assert_int_not_equal(p.storages[2].offset, p.storages[3].offset);
    s4d_program_free(&p);
}

static bool uses(const struct s4d_program *p, int op, int storage)
{
    for (int k = 0; k < s4d_op_kinds[p->ops[op].kind].n_operands; k++)
        if (p->tensors[p->ops[op].operand[k].tensor].storage == storage)
            return true;
    return false;
}

/* All uses of storage s in iteration i come before all of storage t in iteration j. */
static bool all_before(const struct s4d_program *p, const bool *before, int s, int i, int t, int j)
{
    int n = p->n_ops;
    for (int a = 0; a < n; a++)
        for (int b = 0; uses(p, a, s) && b < n; b++)
            if (uses(p, b, t) && !before[(j * n + b) * 2 * n + i * n + a])
                return false;
    return true;
}

static void test_random(void **state)
{
    (void)state;
    int shared = 0;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct s4d_program p = handmade_random(seed, 80, 30);
        s4d_order(&p, NULL, 0);
        s4d_plan(&p);
        bool *before = handmade_closure(&p);
        for (int s = 0; s < p.n_storages; s++) {
            const struct s4d_storage *x = &p.storages[s];
            assert_int_equal(x->offset % 256, 0);
            assert_true(x->offset >= 0 && x->offset + x->bytes <= p.arena_bytes[S4D_DEVICE]);
            for (int t = 0; t < s; t++) {
                const struct s4d_storage *y = &p.storages[t];
                if (x->offset >= y->offset + y->bytes || y->offset >= x->offset + x->bytes)
                    continue;
                assert_false(x->persistent || y->persistent);
                shared++;
                assert_true(
                    (all_before(&p, before, s, 0, t, 0) && all_before(&p, before, t, 0, s, 1)) ||
                    (all_before(&p, before, t, 0, s, 0) && all_before(&p, before, s, 0, t, 1)));
            }
        }
        free(before);
        s4d_program_free(&p);
    }
    assert_true(shared > 20); /* else this test has tested nothing */
}

static void test_fast(void **state)
{
    (void)state;
    struct s4d_program p = handmade_random(3, 50000, 15000);
    s4d_order(&p, NULL, 0);
    clock_t start = clock();
    s4d_plan(&p);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_unordered_streams_share_nothing),
                                       cmocka_unit_test(test_random), cmocka_unit_test(test_fast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
