/* SPDX-License-Identifier: Apache-2.0 */
/* Memory plans: by hand, and random programs against happens-before by its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "schedule/check.h"
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

static bool overlap(const struct s4d_storage *x, const struct s4d_storage *y)
{
    return x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

/* By the definition: never in use at the same time, in any two iterations. */
static bool may_share(const struct s4d_program *p, const bool *before, int s, int t)
{
    return (all_before(p, before, s, 0, t, 0) && all_before(p, before, t, 0, s, 1)) ||
           (all_before(p, before, t, 0, s, 0) && all_before(p, before, s, 0, t, 1));
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
                if (!overlap(x, y))
                    continue;
                assert_false(x->persistent || y->persistent);
                shared++;
                assert_true(may_share(&p, before, s, t));
            }
        }
        free(before);
        s4d_program_free(&p);
    }
    assert_true(shared > 20); /* else this test has tested nothing */
}

static bool is_used(const struct s4d_program *p, int storage)
{
    for (int op = 0; op < p->n_ops; op++)
        if (uses(p, op, storage))
            return true;
    return false;
}

static bool sound(const struct s4d_program *p, const bool *before)
{
    for (int s = 0; s < p->n_storages; s++)
        for (int t = 0; t < s; t++) {
            const struct s4d_storage *x = &p->storages[s], *y = &p->storages[t];
            if (overlap(x, y) && is_used(p, s) && is_used(p, t) &&
                (x->persistent || y->persistent || !may_share(p, before, s, t)))
                return false;
        }
    return true;
}

/* program_check compares neighbours alone; it finds what the definition, pair by pair, finds when
 * storages are moved to anywhere. */
static void test_checked(void **state)
{
    (void)state;
    int found[2] = {0, 0};
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct s4d_program p = handmade_random(seed, 60, 50);
        struct s4d_error err = {0};
        s4d_order(&p, NULL, 0);
        s4d_plan(&p);
        bool *before = handmade_closure(&p);
        assert_int_equal(s4d_check(&p, &err), 0);
        srand(seed);
        for (int i = 0; i < 20; i++) {
            struct s4d_storage *x = &p.storages[rand() % p.n_storages];
            int64_t was = x->offset, places = (p.arena_bytes[S4D_DEVICE] - x->bytes) / 256 + 1;
            const struct s4d_storage *y = &p.storages[rand() % p.n_storages];
            int64_t to = i % 2 ? y->offset : 256 * (rand() % places);
            x->offset = to + x->bytes <= p.arena_bytes[S4D_DEVICE] ? to : was;
            bool moved = x->offset != was, fine = sound(&p, before);
            assert_int_equal(s4d_check(&p, &err), fine ? 0 : -1);
            if (!fine) {
                assert_string_equal(err.where, "memory plan");
                x->offset = was;
            }
            found[fine] += moved;
        }
        free(before);
        s4d_program_free(&p);
    }
    assert_true(found[0] > 100 && found[1] > 100);
}

/* An all-reduce in a group of one. */
static void on_stream_x(struct s4d_program *p, int in, int out)
{
    int op = handmade_op(p, S4D_OP_ALL_REDUCE, S4D_STREAM_X, (const int[]){in, out}, 2);
    p->ops[op].c.collective.axes = s4d_streams[S4D_STREAM_X].axes;
    p->ops[op].c.collective.members = 1;
    p->ops[op].c.collective.count = 128;
    p->ops[op].c.collective.type = S4D_BF16;
}

/* a, then b on one stream, c after b on another, and b again, but not a, after c: a and b may share
 * bytes, and b and c, but not all three. */
static void test_a_ring_of_three(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    struct s4d_error err = {0};
    int t[6];
    for (int i = 0; i < 6; i++) /* a, b, c; before a, b to c, c to b */
        t[i] = handmade_tensor(&p, handmade_storage(&p, 256, i >= 3), S4D_BF16, 0, 128);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[3], t[0]);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[0], t[3]);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[5], t[1]);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[1], t[4]);
    on_stream_x(&p, t[4], t[2]);
    on_stream_x(&p, t[2], t[5]);
    s4d_order(&p, NULL, 0);
    s4d_plan(&p);
    static const struct {
        int64_t offset[3];
        int rc;
    } cases[] = {{{0, 0, 256}, 0}, {{256, 0, 0}, 0}, {{0, 256, 0}, -1}, {{0, 0, 0}, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int s = 0; s < 3; s++)
            p.storages[s].offset = 768 + cases[i].offset[s];
        if (s4d_check(&p, &err) != cases[i].rc)
            fail_msg("%zu: %s: %s", i, err.where, err.text);
    }
    s4d_program_free(&p);
}

static void test_fast(void **state)
{
    (void)state;
    struct s4d_program p = handmade_random(3, 50000, 15000);
    s4d_order(&p, NULL, 0);
    clock_t start = clock();
    s4d_plan(&p);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
    struct s4d_error err = {0};
    start = clock();
    assert_int_equal(s4d_check(&p, &err), 0);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 10);
    s4d_program_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_unordered_streams_share_nothing),
                                       cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_checked),
                                       cmocka_unit_test(test_a_ring_of_three),
                                       cmocka_unit_test(test_fast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
