/* SPDX-License-Identifier: Apache-2.0 */
/* program_check: accepts sound programs, and names each way of breaking one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/check.h"
#include "schedule/plan.h"
#include "schedule/traffic.h"
#include "tests/lib/handmade.h"

/* On y = 2, z = 2: gather a weight, multiply, sum over y, keep.
 *   0 z-gather[0]  all-gather shard (16) -> block (32)
 *   1 compute[0]   gemm       x (4,4), w = block as (4,8) -> out (4,8)
 *   2 y[0]         all-reduce out in place
 *   3 compute[1]   add        kept (4,8) f32 += out                       */
enum { SHARD, BLOCK, X, OUT, KEPT, STORAGES };
enum { T_SHARD, T_BLOCK, T_X, T_W, T_OUT, T_KEPT };

static int matrix(struct s4d_program *p, int storage, enum s4d_type type, int rows, int cols)
{
    int t = handmade_tensor(p, storage, type, 0, 1);
    p->tensors[t].dims = 2;
    p->tensors[t].shape[0] = rows;
    p->tensors[t].shape[1] = cols;
    p->tensors[t].stride[0] = cols;
    p->tensors[t].stride[1] = 1;
    return t;
}

static void collective(struct s4d_program *p, int op, enum s4d_axis axis, int64_t count)
{
    p->ops[op].c.collective.axes = S4D_AXIS(axis);
    p->ops[op].c.collective.members = 2;
    p->ops[op].c.collective.count = count;
    p->ops[op].c.collective.type = S4D_BF16;
}

static struct s4d_program sound(void)
{
    struct s4d_program p = handmade();
    p.grid = s4d_grid_make(1, 2, 2, 1);
    handmade_storage(&p, 32, true);
    handmade_storage(&p, 64, false);
    handmade_storage(&p, 32, true);
    handmade_storage(&p, 64, false);
    handmade_storage(&p, 128, true);
    handmade_tensor(&p, SHARD, S4D_BF16, 0, 16);
    handmade_tensor(&p, BLOCK, S4D_BF16, 0, 32);
    matrix(&p, X, S4D_BF16, 4, 4);
    matrix(&p, BLOCK, S4D_BF16, 4, 8);
    matrix(&p, OUT, S4D_BF16, 4, 8);
    matrix(&p, KEPT, S4D_F32, 4, 8);
    handmade_op(&p, S4D_OP_ALL_GATHER, S4D_STREAM_Z_GATHER, (const int[]){T_SHARD, T_BLOCK}, 2);
    handmade_op(&p, S4D_OP_GEMM, S4D_STREAM_COMPUTE, (const int[]){T_X, T_W, T_OUT}, 3);
    handmade_op(&p, S4D_OP_ALL_REDUCE, S4D_STREAM_Y, (const int[]){T_OUT, T_OUT}, 2);
    handmade_op(&p, S4D_OP_ADD, S4D_STREAM_COMPUTE, (const int[]){T_OUT, T_KEPT}, 2);
    collective(&p, 0, S4D_Z, 16);
    collective(&p, 2, S4D_Y, 32);
    p.ops[1].operand[2].access = S4D_WRITE;
    p.ops[1].c.gemm.m = 4;
    p.ops[1].c.gemm.n = 8;
    p.ops[1].c.gemm.k = 4;
    s4d_order(&p, NULL, 0);
    s4d_plan(&p);
    return p;
}

/* Reported, with `where` and `text` in the message. */
static void expect(struct s4d_program *p, const char *where, const char *text)
{
    struct s4d_error err = {0};
    assert_int_equal(s4d_check(p, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_BUG);
    if (!strstr(err.where, where) || !strstr(err.text, text))
        fail_msg("expected '%s: %s', got '%s: %s'", where, text, err.where, err.text);
    s4d_program_free(p);
}

static void test_sound(void **state)
{
    (void)state;
    struct s4d_program p = sound();
    struct s4d_error err = {0};
    if (s4d_check(&p, &err) != 0)
        fail_msg("%s: %s", err.where, err.text);
    struct s4d_traffic t = s4d_traffic_count(&p);
    assert_int_equal(t.bytes[S4D_OP_ALL_GATHER - S4D_OP_ALL_REDUCE][S4D_STREAM_Z_GATHER], 64);
    assert_int_equal(t.bytes[0][S4D_STREAM_Y], 64);
    assert_int_equal(t.calls[0][S4D_STREAM_Y], 1);
    s4d_program_free(&p);
    for (unsigned seed = 100; seed < 120; seed++) {
        p = handmade_random(seed, 200, 40);
        s4d_order(&p, NULL, 0);
        assert_int_equal(s4d_check(&p, &err), 0);
        s4d_plan(&p);
        if (s4d_check(&p, &err) != 0)
            fail_msg("%s: %s", err.where, err.text);
        s4d_program_free(&p);
    }
}

/* In random programs no wait is superfluous: without it the check must object. */
static void test_every_wait_is_needed(void **state)
{
    (void)state;
    for (unsigned seed = 200; seed < 210; seed++) {
        struct s4d_program p = handmade_random(seed, 100, 20);
        s4d_order(&p, NULL, 0);
        for (int i = 0; i < p.n_ops; i++)
            for (int w = 0; w < p.ops[i].n_waits; w++) {
                struct s4d_op *x = &p.ops[i];
                struct s4d_wait gone = x->waits[w];
                x->waits[w] = x->waits[--x->n_waits];
                struct s4d_error err = {0};
                assert_int_equal(s4d_check(&p, &err), -1);
                x->waits[x->n_waits++] = x->waits[w];
                x->waits[w] = gone;
            }
        s4d_program_free(&p);
    }
}

static void test_waits(void **state)
{
    (void)state;
    struct s4d_program p = sound();
    assert_int_equal(p.ops[1].n_waits, 1);
    p.ops[1].n_waits = 0;
    expect(&p, "op 1, compute[0] gemm", "a wait is missing");
    p = sound(); /* the gather of the next iteration overwrites what the gemm reads */
    assert_int_equal(p.ops[0].n_waits, 1);
    assert_int_equal(p.ops[0].waits[0].iteration, -1);
    p.ops[0].n_waits = 0;
    expect(&p, "op 0, z-gather[0] all-gather", "of the next iteration");
    p = sound();
    p.ops[1].waits[0] = (struct s4d_wait){0, S4D_STREAM_COMPUTE, 1, S4D_WAIT_DATA};
    expect(&p, "op 1", "deadlock");
    p = sound();
    p.ops[1].waits[0].position = 1;
    expect(&p, "op 1", "names no op");
    p = sound();
    p.ops[1].waits[0].iteration = -2;
    expect(&p, "op 1", "names no op");
    p = sound();
    p.ops[3].position = 0;
    expect(&p, "op 3", "position 1");
    p = sound();
    p.stream_length[S4D_STREAM_Y] = 2;
    expect(&p, "program", "stream y has 1 ops, not 2");
}

static void test_reads(void **state)
{
    (void)state;
    struct s4d_program p = sound();
    p.tensors[T_X].storage = handmade_storage(&p, 32, false);
    p.storages[STORAGES].offset = 1024; /* its own place, past the others */
    p.arena_bytes[S4D_DEVICE] = 2048;
    expect(&p, "op 1", "no op before it has written");
    /* The first half alone is written. */
    p = sound();
    p.tensors[T_BLOCK].shape[0] = 16;
    p.tensors[T_SHARD].shape[0] = 8;
    p.ops[0].c.collective.count = 8;
    expect(&p, "op 1", "no op before it has written");
    /* A sum into bytes that hold nothing. */
    p = sound();
    p.ops[1].c.gemm.beta = 1;
    p.ops[1].operand[2].access = S4D_ACCUMULATE;
    expect(&p, "op 1", "operand d: reads bytes");
}

static void test_operands(void **state)
{
    (void)state;
    struct s4d_program p = sound();
    p.ops[0].c.collective.count = 15;
    expect(&p, "op 0", "expected 15 contiguous elements, got 16");
    p = sound();
    p.ops[2].c.collective.members = 4;
    expect(&p, "op 2", "expected 2 members");
    p = sound();
    p.ops[2].c.collective.axes = S4D_AXIS(S4D_X);
    expect(&p, "op 2", "axes 0x1 on stream y");
    p = sound();
    p.ops[2].c.collective.type = S4D_F16;
    expect(&p, "op 2", "f16 on the wire");
    p = sound();
    p.ops[1].operand[2].access = S4D_READ;
    expect(&p, "op 1", "operand d: expected access 2, got 1");
    p = sound();
    p.ops[1].operand[1].tensor = 99;
    expect(&p, "op 1", "operand b: expected a tensor, got 99");
    p = sound();
    p.ops[1].operand[1].tensor = -1;
    expect(&p, "op 1", "operand b: expected a tensor, got -1");
    p = sound();
    p.storages[OUT].bytes = 62;
    expect(&p, "op 1", "uses bytes 0 to 64 of the 62");
    p = sound();
    p.ops[1].c.gemm.transpose_b = true;
    expect(&p, "op 1", "operand b: expected (8, 4), got (4, 8)");
    p = sound();
    p.tensors[T_KEPT].shape[0] = 3;
    expect(&p, "op 3", "operand out: expected shape n");
    p = sound();
    p.tensors[T_W].type = S4D_F16;
    expect(&p, "op 1", "operand b: expected the first operand's type, got f16");
    p = sound();
    p.storages[X].place = S4D_PINNED_HOST;
    expect(&p, "op 1", "operand a: expected device memory");
    p = sound();
    p.ops[2].kind = S4D_OP_COPY;
    expect(&p, "op 2", "does not run on this stream");
}

static void test_aliases(void **state)
{
    (void)state;
    /* An all-gather whose shard is the own block of its output, and one that is not. */
    struct s4d_program p = sound();
    struct s4d_error err = {0};
    p.storages[BLOCK].persistent = true;
    p.tensors[T_SHARD].storage = BLOCK;
    p.tensors[T_SHARD].offset.stride[S4D_Z] = 16;
    s4d_order(&p, NULL, 0);
    s4d_plan(&p);
    if (s4d_check(&p, &err) != 0)
        fail_msg("%s: %s", err.where, err.text);
    p.tensors[T_SHARD].offset.stride[S4D_Z] = 15;
    expect(&p, "op 0", "in must be the own block");
    /* An all-reduce into a shifted copy of itself. */
    p = sound();
    p.storages[OUT].bytes = 128;
    int shifted = handmade_tensor(&p, OUT, S4D_BF16, 8, 32);
    p.ops[2].operand[1].tensor = shifted;
    expect(&p, "op 2", "the same or disjoint");
    /* A reduce-scatter in place. */
    p = sound();
    int part = handmade_tensor(&p, OUT, S4D_BF16, 16, 16);
    p.ops[2].kind = S4D_OP_REDUCE_SCATTER;
    p.ops[2].operand[1].tensor = part;
    p.ops[2].c.collective.count = 16;
    expect(&p, "op 2", "they must be disjoint");
}

static void test_plan(void **state)
{
    (void)state;
    struct s4d_program p = sound();
    p.storages[OUT].offset = p.storages[BLOCK].offset;
    expect(&p, "memory plan", "may be in use at the same time");
    p = sound();
    p.storages[OUT].offset = p.storages[KEPT].offset;
    expect(&p, "memory plan", "may be in use at the same time");
    p = sound();
    p.storages[OUT].offset = p.arena_bytes[S4D_DEVICE];
    expect(&p, "memory plan", "outside the arena");
    p = sound();
    p.storages[OUT].offset += 8;
    expect(&p, "memory plan", "not aligned");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),    cmocka_unit_test(test_every_wait_is_needed),
        cmocka_unit_test(test_waits),    cmocka_unit_test(test_reads),
        cmocka_unit_test(test_operands), cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
