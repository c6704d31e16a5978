/* SPDX-License-Identifier: Apache-2.0 */
/* What the numerics tests would catch: correct programs are broken in one place, and the
 * interpreter must report a fault or train differently. And what it reports of faults made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schedule/build.h"
#include "schedule/plan.h"
#include "support/memory.h"
#include "tests/lib/handmade.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/training.h"

/* ---- by hand ---- */

static struct s4d_program empty(void)
{
    struct s4d_program p = handmade();
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    return p;
}

static int floats(struct s4d_program *p, int n, bool persistent)
{
    return handmade_tensor(p, handmade_storage(p, 4 * n, persistent), S4D_F32, 0, n);
}

static void expect_fault(struct s4d_program *p, const struct s4d_interpreter_options *o,
                         const char *where, const char *text)
{
    struct s4d_error err;
    struct s4d_interpreter *in = s4d_interpreter_create(p, o);
    assert_int_equal(s4d_interpreter_run(in, 2, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_BUG);
    if (!strstr(err.where, where) || !strstr(err.text, text))
        fail_msg("'%s: %s' lacks '%s' or '%s'", err.where, err.text, where, text);
    s4d_interpreter_free(in);
}

/* b = a on x, a = in on compute: without the wait b may read a before it is written, and after its
 * bytes were given away. */
static void test_unwritten(void **state)
{
    (void)state;
    struct s4d_program p = empty();
    int in = floats(&p, 4, true), a = floats(&p, 4, false), b = floats(&p, 4, true);
    handmade_copy(&p, S4D_STREAM_COMPUTE, in, a);
    int reader = handmade_copy(&p, S4D_STREAM_X, a, b);
    s4d_order(&p, NULL, 0);
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_error err;
    o.hold.stream = S4D_STREAM_COMPUTE;
    o.hold.position = 0;
    struct s4d_interpreter *it = s4d_interpreter_create(&p, &o);
    assert_int_equal(s4d_interpreter_run(it, 2, &err), 0); /* with the wait, in any order */
    s4d_interpreter_free(it);
    p.ops[reader].n_waits = 0;
    expect_fault(&p, &o, "rank 0, stream x, op 1 (copy handmade",
                 "element 0 is read but was never");
    o.hold.stream = -1;
    o.hold.position = -1;
    p.ops[reader].n_waits = 1;
    p.tensors[b].storage = p.tensors[a].storage; /* a = a, twice */
    handmade_copy(&p, S4D_STREAM_X, a, in);
    p.ops[2].position = 0; /* a stream of its own: after op 1 gave a away */
    p.ops[2].stream = S4D_STREAM_Y;
    p.stream_length[S4D_STREAM_Y] = 1;
    o.hold.stream = S4D_STREAM_COMPUTE;
    o.hold.position = 0;
    expect_fault(&p, &o, "stream y, op 2", "is read but was never written");
    s4d_program_free(&p);
}

/* Two ops that wait for each other; and a collective whose second member waits for something that
 * never comes. */
static void test_stuck(void **state)
{
    (void)state;
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_program p = empty();
    int a = floats(&p, 1, true), b = floats(&p, 1, true);
    handmade_op(&p, S4D_OP_ZERO, S4D_STREAM_COMPUTE, &a, 1);
    handmade_op(&p, S4D_OP_ZERO, S4D_STREAM_X, &b, 1);
    s4d_order(&p, NULL, 0);
    struct s4d_wait on_x = {0, S4D_STREAM_X, 0, S4D_WAIT_DATA};
    struct s4d_wait on_compute = {0, S4D_STREAM_COMPUTE, 0, S4D_WAIT_DATA};
    p.ops[0].waits = &on_x;
    p.ops[1].waits = &on_compute;
    p.ops[0].n_waits = p.ops[1].n_waits = 1;
    expect_fault(&p, &o, "rank 0", "stuck in iteration 0: waits for op 0 of stream");
    p.ops[1].n_waits = 0;
    on_x.iteration = 1; /* x runs ahead, but ends with iteration 1 */
    expect_fault(&p, &o, "stream compute, op 0",
                 "stuck in iteration 1: waits for op 0 of stream x of iteration 2");
    s4d_program_free(&p);
}

static void test_bad_operands(void **state)
{
    (void)state;
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_program p = empty();
    int a = floats(&p, 4, true), b = floats(&p, 4, true);
    int half = handmade_tensor(&p, handmade_storage(&p, 8, true), S4D_F16, 0, 4);
    int op = handmade_copy(&p, S4D_STREAM_COMPUTE, a, b);
    s4d_order(&p, NULL, 0);
    p.tensors[b].offset = s4d_constant(1);
    expect_fault(&p, &o, "op 0", "operand out (tensor t1) reaches beyond its storage");
    p.tensors[b].offset = s4d_constant(0);
    p.ops[op].operand[1].access = S4D_READ;
    expect_fault(&p, &o, "op 0", "writes operand out, which is not declared so");
    p.ops[op].operand[1].access = S4D_WRITE;
    p.ops[op].operand[0].access = S4D_WRITE;
    expect_fault(&p, &o, "op 0", "reads operand x, which is not declared so");
    p.ops[op].operand[0].access = S4D_READ;
    p.ops[op].operand[1].tensor = half;
    expect_fault(&p, &o, "op 0", "copies f32 to f16");
    p.ops[op].kind = S4D_OP_ADD;
    p.ops[op].operand[1].access = S4D_ACCUMULATE;
    p.tensors[half].shape[0] = 3;
    expect_fault(&p, &o, "op 0", "operand x has 4 elements, expected 3");
    s4d_program_free(&p);
}

static void test_bad_collectives(void **state)
{
    (void)state;
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_program p = empty();
    p.grid = s4d_grid_make(2, 1, 1, 1);
    int a = floats(&p, 4, true), b = floats(&p, 4, true);
    int op = handmade_op(&p, S4D_OP_ALL_REDUCE, S4D_STREAM_X, (const int[]){a, b}, 2);
    s4d_order(&p, NULL, 0);
    p.ops[op].c.collective.axes = S4D_AXIS(S4D_X);
    p.ops[op].c.collective.type = S4D_F32;
    p.ops[op].c.collective.members = 3;
    p.ops[op].c.collective.count = 4;
    expect_fault(&p, &o, "stream x, op 0", "3 members, the group has 2");
    p.ops[op].c.collective.members = 2;
    p.ops[op].c.collective.count = 5;
    expect_fault(&p, &o, "stream x, op 0", "operand in has 4 elements, expected 5");
    p.ops[op].c.collective.count = 4;
    p.ops[op].c.collective.type = S4D_BF16;
    expect_fault(&p, &o, "stream x, op 0", "not of the type on the wire");
    s4d_program_free(&p);
}

/* ---- a real program, broken ---- */

struct subject {
    struct s4d_case c;
    struct s4d_program p;
    struct s4d_trained sound;
    bool *idle; /* by op: nothing depends on it */
};

/* Full recompute runs a layer's last matrix product, all-reduce and residual again though nothing
 * reads them: so do the published scripts (whole layers are recomputed). An op is idle if what it
 * writes reaches no persistent storage. */
static bool *list_idle(const struct s4d_program *p)
{
    bool *idle = s4d_calloc((size_t)p->n_ops, sizeof *idle);
    bool *read = s4d_calloc((size_t)p->n_storages, sizeof *read);
    for (int op = p->n_ops - 1; op >= 0; op--) {
        const struct s4d_op *o = &p->ops[op];
        idle[op] = true;
        for (int k = 0; k < s4d_op_kinds[o->kind].n_operands; k++) {
            int s = o->operand[k].tensor < 0 ? -1 : p->tensors[o->operand[k].tensor].storage;
            if (s >= 0 && o->operand[k].access & S4D_WRITE &&
                (read[s] || p->storages[s].persistent))
                idle[op] = false;
        }
        for (int k = 0; k < s4d_op_kinds[o->kind].n_operands && !idle[op]; k++)
            if (o->operand[k].tensor >= 0 && o->operand[k].access & S4D_READ)
                read[p->tensors[o->operand[k].tensor].storage] = true;
    }
    free(read);
    return idle;
}

static struct subject subject_make(int x, int y, int z, int data, bool planned)
{
    struct subject s = {.c = s4d_case_default(2, x, y, z, data)};
    struct s4d_error err;
    s.c.iterations = 2;
    s.c.fresh = true;
    s.c.model.seq_length = 4;
    s.c.model.vocab_size = 10;
    s.c.options.global_batch = 4;
    s.c.options.learning_rate = 0.01;
    s.c.run.planned = planned;
    assert_int_equal(s4d_build(&s.p, &s.c.model, &s.c.grid, &s.c.options, &err), 0);
    if (planned)
        s4d_plan(&s.p);
    if (s4d_train_program(&s.p, &s.c, &s.sound, &err))
        fail_msg("%s: %s", err.where, err.text);
    s.idle = list_idle(&s.p);
    return s;
}

static void subject_free(struct subject *s)
{
    s4d_trained_free(&s->sound);
    s4d_program_free(&s->p);
    free(s->idle);
}

/* The broken program is reported, or trains differently. */
static bool noticed(struct subject *s)
{
    struct s4d_trained t;
    if (s4d_train_program(&s->p, &s->c, &t, NULL))
        return true;
    struct s4d_difference d = s4d_compare(&s->c, &t, &s->sound);
    s4d_trained_free(&t);
    return d.gradient > 1e-4 || d.weight > 1e-4 || d.loss > 1e-4;
}

static void must_notice(struct subject *s, int op, const char *what)
{
    const struct s4d_op *o = &s->p.ops[op];
    if (S4D_SANITIZED && op % 5)
        return;
    if (!s->idle[op] && !noticed(s))
        fail_msg("not noticed: %s of op %d (%s %s, layer %d, micro-batch %d)", what, op,
                 s4d_op_kinds[o->kind].name, o->label.name, o->label.layer, o->label.micro_batch);
}

/* Without any one of its data and memory waits the op that was waited for is held back: whoever
 * needed it goes ahead. Order waits do not change results. */
static int without_each_wait(struct subject *s)
{
    int removed = 0;
    for (int op = 0; op < s->p.n_ops; op++)
        for (int w = 0; w < s->p.ops[op].n_waits; w++) {
            struct s4d_op *o = &s->p.ops[op];
            struct s4d_wait *waits = o->waits, gone = waits[w];
            if (gone.kind == S4D_WAIT_ORDER)
                continue;
            o->waits = s4d_calloc((size_t)o->n_waits, sizeof *waits);
            for (int i = 0, n = 0; i < o->n_waits; i++)
                if (i != w)
                    o->waits[n++] = waits[i];
            o->n_waits--;
            s->c.run.hold.stream = (int)gone.stream;
            s->c.run.hold.position = gone.position;
            must_notice(s, op, "a missing wait");
            free(o->waits);
            o->waits = waits;
            o->n_waits++;
            removed++;
        }
    return removed;
}

static void test_missing_waits(void **state)
{
    (void)state;
    static const int grids[][4] = {{2, 1, 2, 1}, {1, 2, 1, 2}, {1, 1, 4, 1}};
    for (int i = 0; i < 3; i++) {
        const int *g = grids[i];
        struct subject s = subject_make(g[0], g[1], g[2], g[3], i != 1);
        assert_true(without_each_wait(&s) > 40);
        subject_free(&s);
    }
}

static bool is_collective(const struct s4d_op *o)
{
    return s4d_op_kinds[o->kind].op_class == S4D_CLASS_COLLECTIVE;
}

/* Each collective over other ranks: x for y, y for x, data for z, z for data; and each all-reduce
 * left out. */
static void test_wrong_groups(void **state)
{
    (void)state;
    struct subject s = subject_make(2, 2, 2, 2, true);
    for (int op = 0; op < s.p.n_ops; op++) {
        struct s4d_op *o = &s.p.ops[op], sound = *o;
        if (!is_collective(o))
            continue;
        s4d_axes axes = o->c.collective.axes, other = 0;
        for (int axis = 0; axis < S4D_AXES; axis++) {
            static const int swapped[S4D_AXES] = {[S4D_X] = S4D_Y,
                                                  [S4D_Y] = S4D_X,
                                                  [S4D_Z] = S4D_DATA,
                                                  [S4D_PIPE] = S4D_PIPE,
                                                  [S4D_DATA] = S4D_Z};
            other |= axes & S4D_AXIS(axis) ? S4D_AXIS(swapped[axis]) : 0;
        }
        if (other != axes) {
            o->c.collective.axes = other;
            must_notice(&s, op, "the wrong group");
        }
        if (o->kind == S4D_OP_ALL_REDUCE) {
            o->c.collective.axes = 0;
            o->c.collective.members = 1;
            must_notice(&s, op, "leaving out the sum");
        }
        s.p.ops[op] = sound;
    }
    subject_free(&s);
}

/* A buffer's tail is zeroed again whenever the buffer is used again: once would do. */
static bool zeroed_before(const struct s4d_program *p, int op)
{
    const struct s4d_tensor *t = &p->tensors[p->ops[op].operand[0].tensor];
    for (int i = 0; i < op && p->ops[op].kind == S4D_OP_ZERO; i++) {
        const struct s4d_tensor *u = &p->tensors[p->ops[i].operand[0].tensor];
        if (p->ops[i].kind == S4D_OP_ZERO && u->storage == t->storage &&
            u->offset.base == t->offset.base)
            return true;
    }
    return false;
}

/* Every op left out (its stream goes on without it): something it wrote is missed. */
static void test_missing_ops(void **state)
{
    (void)state;
    struct subject s = subject_make(2, 1, 2, 1, false);
    int skip = s.p.n_storages; /* a storage nobody reads, for a no-op to write */
    int nothing = handmade_tensor(&s.p, handmade_storage(&s.p, 4, true), S4D_F32, 0, 1);
    for (int op = 0; op < s.p.n_ops; op++) {
        struct s4d_op sound = s.p.ops[op];
        if (zeroed_before(&s.p, op))
            continue;
        s.p.ops[op].kind = S4D_OP_ZERO;
        memset(s.p.ops[op].operand, 0, sizeof s.p.ops[op].operand);
        s.p.ops[op].operand[0].tensor = nothing;
        s.p.ops[op].operand[0].access = S4D_WRITE;
        must_notice(&s, op, "the absence");
        s.p.ops[op] = sound;
    }
    assert_int_equal(skip, s.p.n_storages - 1);
    subject_free(&s);
}

/* A plan in which an op's output lies on one of its inputs. */
static void test_wrong_plan(void **state)
{
    (void)state;
    struct subject s = subject_make(1, 2, 2, 1, true);
    int moved = 0;
    for (int op = 0; op < s.p.n_ops; op++) {
        const struct s4d_op *o = &s.p.ops[op];
        const struct s4d_operand *out = &o->operand[s4d_op_kinds[o->kind].n_operands - 1],
                                 *in = &o->operand[0];
        struct s4d_storage *to =
            &s.p.storages[s.p.tensors[out->tensor < 0 ? 0 : out->tensor].storage];
        const struct s4d_storage *from = &s.p.storages[s.p.tensors[in->tensor].storage];
        if (out->tensor < 0 || out->access != S4D_WRITE || in->access != S4D_READ || to == from ||
            to->persistent || from->persistent || from->offset == to->offset ||
            to->place != from->place || from->offset + to->bytes > s.p.arena_bytes[to->place])
            continue;
        int64_t offset = to->offset;
        to->offset = from->offset;
        must_notice(&s, op, "shared bytes");
        to->offset = offset;
        moved++;
    }
    assert_true(moved > 50);
    subject_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unwritten),     cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_bad_operands),  cmocka_unit_test(test_bad_collectives),
        cmocka_unit_test(test_missing_waits), cmocka_unit_test(test_wrong_groups),
        cmocka_unit_test(test_missing_ops),   cmocka_unit_test(test_wrong_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
