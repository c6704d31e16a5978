/* SPDX-License-Identifier: Apache-2.0 */
/* Sends, receives and batches: order, check, and what the toy interpreter makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "schedule/check.h"
#include "schedule/plan.h"
#include "schedule/print.h"
#include "schedule/record_parts.h"
#include "schedule/timeline.h"
#include "tests/lib/handmade.h"
#include "tests/lib/interpreter.h"
#include "tests/lib/pipe.h"

enum { N = 16 };

static struct s4d_grid grid_of(int stages, int z)
{
    struct s4d_grid grid = s4d_grid_make(1, 1, z, 1);
    grid.size[S4D_PIPE] = stages;
    return grid;
}

static void good(int rc, const struct s4d_error *err)
{
    if (rc != 0)
        fail_msg("%s: %s", err->where, err->text);
}

/* ---- order ---- */

/* A post of two receives and what comes around it:
 *   0 compute[0]  z = x
 *   1 forward[0]  receive a   batch 1
 *   2 forward[1]  receive b   batch 1: both overwrite what ops 3 and 4 of the last iteration read
 *   3 compute[1]  x = a       data from forward[0], and so from the whole batch
 *   4 compute[2]  y = b       implied
 * Both receives start after compute[2] of the last iteration, for which op 2 waits: so op 1 need
 * not wait for compute[1]. */
static void test_waits(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    int t[5];
    for (int i = 0; i < 5; i++)
        t[i] = handmade_bytes(&p, handmade_storage(&p, 16, i > 1), 0, 16);
    enum { A, B, X, Y, Z };
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[X], t[Z]);
    handmade_op(&p, S4D_OP_RECEIVE, S4D_STREAM_P2P_FORWARD, &t[A], 1);
    handmade_op(&p, S4D_OP_RECEIVE, S4D_STREAM_P2P_FORWARD, &t[B], 1);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[A], t[X]);
    handmade_copy(&p, S4D_STREAM_COMPUTE, t[B], t[Y]);
    p.ops[1].batch = p.ops[2].batch = 1;
    s4d_order(&p, NULL, 0);
    static const int waits[] = {0, 0, 1, 1, 0};
    for (int i = 0; i < 5; i++)
        assert_int_equal(p.ops[i].n_waits, waits[i]);
    assert_int_equal(p.ops[2].waits[0].position, 2);
    assert_int_equal(p.ops[2].waits[0].iteration, -1);
    assert_int_equal(p.ops[3].waits[0].position, 0);
    assert_int_equal(p.ops[3].waits[0].stream, S4D_STREAM_P2P_FORWARD);
    struct s4d_clocks c = s4d_clocks_make(&p);
    assert_false(s4d_before(&p, &c, 0, 1, 0, 2));
    assert_false(s4d_before(&p, &c, 0, 2, 0, 1));
    assert_true(s4d_before(&p, &c, 0, 2, 0, 3)); /* to wait for one is to wait for all */
    assert_true(s4d_before(&p, &c, 0, 4, 1, 1)); /* the waits of all hold for each */
    s4d_clocks_free(&c);
    s4d_program_free(&p);
}

/* Without any one of the waits the check objects. */
static void check_needed(struct s4d_program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        for (int w = 0; w < p->ops[i].n_waits; w++) {
            struct s4d_op *x = &p->ops[i];
            struct s4d_wait gone = x->waits[w];
            x->waits[w] = x->waits[--x->n_waits];
            assert_int_equal(s4d_check(p, NULL), -1);
            x->waits[x->n_waits++] = x->waits[w];
            x->waits[w] = gone;
        }
}

/* Random programs whose neighbours on a stream are batches: happens-before by its definition, as
 * order and check see it, and no wait that the check does not need. */
static void test_random(void **state)
{
    (void)state;
    int batches = 0;
    for (unsigned seed = 1; seed <= 12; seed++) {
        struct s4d_program p = handmade_random(seed, 60, 20);
        struct s4d_error err = {0};
        batches += handmade_batches(&p);
        s4d_order(&p, NULL, 0);
        int n = p.n_ops, all = 2 * n;
        bool *before = handmade_closure(&p);
        struct s4d_clocks clocks = s4d_clocks_make(&p);
        for (int b = 0; b < all; b++)
            for (int a = 0; a < all; a++)
                assert_int_equal(before[b * all + a],
                                 s4d_before(&p, &clocks, a / n, a % n, b / n, b % n));
        s4d_clocks_free(&clocks);
        free(before);
        good(s4d_check(&p, &err), &err);
        check_needed(&p);
        s4d_plan(&p);
        good(s4d_check(&p, &err), &err);
        s4d_program_free(&p);
    }
    assert_in_range(batches, 20, 200);
}

/* ---- check ---- */

static void test_sound(void **state)
{
    (void)state;
    for (int pattern = 0; pattern < PIPE_PATTERNS; pattern++)
        for (int stages = 2; stages <= 4; stages += 2) {
            struct s4d_grid grid = grid_of(stages, 2);
            struct pipe pipe;
            struct s4d_error err = {0};
            if (pattern == PIPE_SUMS)
                grid = s4d_grid_make(1, stages, 1, 1);
            pipe_make(&pipe, (enum pipe_pattern)pattern, &grid, N, true);
            for (int stage = 0; stage < pipe.stages; stage++)
                good(s4d_check(&pipe.program[stage], &err), &err);
            good(s4d_check_stages(&pipe.program[pipe.stages - 1], &err), &err);
            pipe_free(&pipe);
        }
}

/* Stage 1 of a pipe of four whose batch, ops 1 to 4, sends forward and backward and receives from
 * both; changed by f, which the check reports. */
static void refused(void (*f)(struct s4d_program *p), const char *where, const char *text)
{
    struct s4d_grid grid = grid_of(4, 1);
    struct pipe pipe;
    struct s4d_error err = {0};
    pipe_make(&pipe, PIPE_BOTH, &grid, N, true);
    f(&pipe.program[1]);
    assert_int_equal(s4d_check(&pipe.program[1], &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_BUG);
    if (!strstr(err.where, where) || !strstr(err.text, text))
        fail_msg("expected '%s: %s', got '%s: %s'", where, text, err.where, err.text);
    pipe_free(&pipe);
}

static void with_a_gap(struct s4d_program *p)
{
    p->ops[2].batch = 2;
    p->ops[3].batch = 1;
}
static void negative(struct s4d_program *p)
{
    p->ops[1].batch = -1;
}
static void with_a_kernel(struct s4d_program *p)
{
    p->ops[0].batch = 1;
}
static void of_two_streams(struct s4d_program *p)
{
    p->ops[3].stream = S4D_STREAM_P2P_BACKWARD;
    p->ops[4].stream = S4D_STREAM_P2P_BACKWARD;
    for (int i = 3; i < 5; i++)
        p->ops[i].position = i - 3;
    p->stream_length[S4D_STREAM_P2P_FORWARD] = p->stream_length[S4D_STREAM_P2P_BACKWARD] = 2;
}
static void that_waits_for_itself(struct s4d_program *p)
{
    static struct s4d_wait own = {0, S4D_STREAM_P2P_FORWARD, 0, S4D_WAIT_ORDER};
    p->ops[2].waits = &own;
    p->ops[2].n_waits = 1;
}
static void that_disturbs_itself(struct s4d_program *p)
{
    p->ops[3].operand[0].tensor = PIPE_OWN; /* received into what op 1 sends */
}
static void off_the_pipe(struct s4d_program *p)
{
    p->ops[1].c.message.peer = 3;
    p->ops[1].c.message.channel = S4D_CHANNEL_ENDS;
}
static void other_way(struct s4d_program *p)
{
    p->ops[1].c.message.channel = S4D_CHANNEL_BACKWARD;
}
static void of_no_channel(struct s4d_program *p)
{
    p->ops[1].c.message.channel = S4D_CHANNELS;
}
static void too_long(struct s4d_program *p)
{
    p->ops[1].c.message.count++;
}
static void other_type(struct s4d_program *p)
{
    p->ops[1].c.message.type = S4D_F16;
}
static void on_another_stream(struct s4d_program *p)
{
    p->ops[1].stream = S4D_STREAM_X;
    p->ops[1].position = 0;
    p->stream_length[S4D_STREAM_X] = 1;
    p->stream_length[S4D_STREAM_P2P_FORWARD] = 3;
    for (int i = 1; i < 5; i++) {
        p->ops[i].batch = 0;
        p->ops[i].position = i > 1 ? i - 2 : 0;
    }
}
static void of_no_stage(struct s4d_program *p)
{
    p->stage = 4;
}
static void without_a_wait(struct s4d_program *p)
{
    p->ops[5].n_waits = 0; /* adds what is received */
}

static void test_refused(void **state)
{
    (void)state;
    refused(with_a_gap, "op 3", "batch 1 after batch 2: ops of a batch are neighbours");
    refused(negative, "op 1", "batch -1");
    refused(with_a_kernel, "op 0", "no communication");
    refused(of_two_streams, "op 3", "batch 1 has ops of stream p2p-forward, too");
    refused(that_waits_for_itself, "op 2", "op 1 of its own batch 1, which completes with it");
    refused(that_disturbs_itself, "op 3", "op 1 (operand in) of the same batch uses");
    refused(off_the_pipe, "op 1", "channel ends does not lead to pipe+3 from stage 1 of 4");
    refused(other_way, "op 1", "channel backward does not lead to pipe+1");
    refused(of_no_channel, "op 1", "no such channel");
    refused(too_long, "op 1", "expected 17 contiguous elements, got 16");
    refused(other_type, "op 1", "f32, but f16 on the wire");
    refused(on_another_stream, "op 1", "does not run on this stream");
    refused(of_no_stage, "program", "stage 4 of a pipe of 4");
    refused(without_a_wait, "op 5", "a wait is missing");
}

/* Stage 0 and the last stage have nobody beyond them. */
static void test_ends(void **state)
{
    (void)state;
    struct s4d_grid grid = grid_of(2, 1);
    for (int stage = 0; stage < 2; stage++) {
        struct pipe pipe;
        struct s4d_error err = {0};
        pipe_make(&pipe, PIPE_BOTH, &grid, N, true);
        struct s4d_program *p = &pipe.program[stage];
        struct s4d_op *send = &p->ops[1];
        assert_int_equal(send->kind, S4D_OP_SEND);
        send->c.message.channel = stage ? S4D_CHANNEL_FORWARD : S4D_CHANNEL_BACKWARD;
        send->c.message.peer = stage ? 1 : -1;
        assert_int_equal(s4d_check(p, &err), -1);
        assert_non_null(strstr(err.text, stage ? "to pipe+1: stage 1 has none there"
                                               : "to pipe-1: stage 0 has none there"));
        pipe_free(&pipe);
    }
}

/* ---- the stages together ---- */

static void disagree(enum pipe_pattern pattern, bool batched, void (*f)(struct s4d_program *p),
                     int stage, const char *text)
{
    struct s4d_grid grid = grid_of(4, 1);
    struct pipe pipe;
    struct s4d_error err = {0};
    pipe_make(&pipe, pattern, &grid, N, batched);
    f(&pipe.program[stage]);
    assert_int_equal(s4d_check_stages(&pipe.program[0], &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_BUG);
    if (!strstr(err.text, text))
        fail_msg("expected '%s', got '%s: %s'", text, err.where, err.text);
    pipe_free(&pipe);
}

static void nothing(struct s4d_program *p)
{
    (void)p;
}
static void one_less(struct s4d_program *p)
{
    p->n_ops--;
    p->stream_length[p->ops[p->n_ops].stream]--;
}
static void other_grid(struct s4d_program *p)
{
    p->grid.size[S4D_DATA] = 2;
}
static void other_stage(struct s4d_program *p)
{
    p->stage = 1;
}
/* Stage 1 receives first what it then sends: nobody before it ever sends. */
static void receives_first(struct s4d_program *p)
{
    struct s4d_op send = p->ops[0];
    p->ops[0] = p->ops[1];
    p->ops[1] = send;
    p->ops[0].position = 0;
    p->ops[1].position = 1;
}
static void backward_elsewhere(struct s4d_program *p)
{
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i].c.message.channel == S4D_CHANNEL_BACKWARD &&
            s4d_op_kinds[p->ops[i].kind].op_class == S4D_CLASS_MESSAGE)
            p->ops[i].stream = S4D_STREAM_P2P_FORWARD;
}

static void test_stages(void **state)
{
    (void)state;
    disagree(PIPE_BOTH, true, too_long, 1,
             "stage 1 sends 17 f32 on channel forward, stage 2 receives 16 f32 on channel forward");
    disagree(PIPE_BOTH, true, other_type, 1, "stage 1 sends 16 f16 on channel forward");
    disagree(PIPE_LINES, true, one_less, 1, "stage 0 receives it, stage 1 does not send it");
    disagree(PIPE_LINES, true, backward_elsewhere, 2,
             "stage 2: channel backward has messages on p2p-backward, too");
    disagree(PIPE_BOTH, true, other_grid, 1, "stage 1 has another grid");
    disagree(PIPE_BOTH, true, other_stage, 2, "the program of stage 2 is one of stage 1");
    /* All send first; each waits for the next to receive. */
    disagree(PIPE_RING, false, nothing, 0,
             "deadlock: stage 0 waits for stage 1, which is at send numbers (op 0)");
    disagree(PIPE_BOTH, false, nothing, 0, "deadlock: stage 0 waits for stage 1");
    /* One that receives first lets them all go on. */
    struct s4d_grid grid = grid_of(4, 1);
    struct pipe pipe;
    struct s4d_error err = {0};
    pipe_make(&pipe, PIPE_RING, &grid, N, false);
    receives_first(&pipe.program[1]);
    good(s4d_check_stages(&pipe.program[0], &err), &err);
    pipe_free(&pipe);
}

/* ---- the interpreter ---- */

static void run(enum pipe_pattern pattern, const struct s4d_grid *grid, int iterations,
                uint64_t seed)
{
    struct pipe pipe;
    struct s4d_error err = {0};
    struct s4d_interpreter_options options = s4d_interpreter_options_default();
    int ranks = s4d_grid_ranks(grid);
    float *expected = malloc((size_t)(ranks * N) * sizeof *expected);
    pipe_make(&pipe, pattern, grid, N, true);
    options.order_seed = seed;
    options.planned = seed % 2;
    struct s4d_interpreter *in = s4d_interpreter_create(&pipe.program[0], &options);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < N; i++)
            s4d_interpreter_set(in, r, PIPE_OWN, i, (double)pipe_initial(r, i));
    good(s4d_interpreter_run(in, iterations, &err), &err);
    pipe_expected(pattern, grid, N, iterations, expected);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < N; i++)
            if (s4d_interpreter_get(in, r, PIPE_OWN, i) != (double)expected[r * N + i])
                fail_msg("%s of %d, seed %d: rank %d has %g at %d, expected %g",
                         pipe_names[pattern], ranks, (int)seed, r,
                         s4d_interpreter_get(in, r, PIPE_OWN, i), i, (double)expected[r * N + i]);
    s4d_interpreter_free(in);
    pipe_free(&pipe);
    free(expected);
}

static void test_interpreter(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed <= 8; seed++)
        for (int stages = 2; stages <= 4; stages += 2) {
            struct s4d_grid grid = grid_of(stages, 2), y = s4d_grid_make(1, stages, 2, 1);
            run(PIPE_RING, &grid, 3, seed);
            run(PIPE_BOTH, &grid, 3, seed);
            run(PIPE_LINES, &grid, 2, seed);
            run(PIPE_SUMS, &y, 2, seed);
        }
}

/* By hand: two stages with 16 numbers; stage 0 begins with i mod 4, stage 1 with (3 + i) mod 4.
 * After one exchange both have the sum, after another twice that: of i = 1: 1 + 0 = 1, then 2; of
 * i = 2: 2 + 1 = 3, then 6. */
static void test_by_hand(void **state)
{
    (void)state;
    struct s4d_grid grid = grid_of(2, 1);
    float own[2 * N];
    pipe_expected(PIPE_RING, &grid, N, 2, own);
    assert_true(own[1] == 2 && own[N + 1] == 2 && own[2] == 6 && own[N + 2] == 6);
    /* Lines: stage 1 has both after the forward message, and sends that back: 1 + 0 = 1, and stage
     * 0 then 1 + 1 = 2. */
    pipe_expected(PIPE_LINES, &grid, N, 1, own);
    assert_true(own[1] == 2 && own[N + 1] == 1 && own[N + 15] == own[15] + 2);
}

static void test_stuck(void **state)
{
    (void)state;
    struct s4d_grid grid = grid_of(4, 1);
    struct s4d_interpreter_options options = s4d_interpreter_options_default();
    struct pipe pipe;
    struct s4d_error err = {0};
    pipe_make(&pipe, PIPE_RING, &grid, N, false);
    struct s4d_interpreter *in = s4d_interpreter_create(&pipe.program[0], &options);
    assert_int_equal(s4d_interpreter_run(in, 1, &err), -1);
    assert_non_null(strstr(err.text, "does not come"));
    assert_non_null(strstr(err.where, "send numbers"));
    s4d_interpreter_free(in);
    pipe_free(&pipe);
}

/* ---- what is said of them ---- */

static void test_said(void **state)
{
    (void)state;
    struct s4d_grid grid = grid_of(4, 1);
    struct pipe pipe;
    char *text = NULL;
    size_t size = 0;
    pipe_make(&pipe, PIPE_BOTH, &grid, N, true);
    const struct s4d_program *p = &pipe.program[1];
    FILE *f = open_memstream(&text, &size);
    s4d_print_program(p, f);
    fclose(f);
    static const char *const said[] = {
        "# stage 1 of 4",
        "send                            64              0  numbers: t0(16) to pipe+1, channel "
        "forward, batch 1",
        "receive                          8              0  small: -> t4(4):bf16 from pipe+1, "
        "channel backward, batch 1",
        "# p2p-forward send                 2               72",
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(text, said[i]))
            fail_msg("'%s' is not in\n%s", said[i], text);
    free(text);
    json_t *json = s4d_program_json(p);
    json_t *op = json_array_get(json_object_get(json, "ops"), 2), *c;
    c = json_object_get(op, "constants");
    assert_int_equal(json_integer_value(json_object_get(json, "stage")), 1);
    assert_int_equal(json_integer_value(json_object_get(op, "batch")), 1);
    assert_int_equal(json_integer_value(json_object_get(c, "peer")), -1);
    assert_string_equal(json_string_value(json_object_get(c, "channel")), "backward");
    assert_int_equal(json_integer_value(json_object_get(c, "bytes")), 8);
    json_decref(json);
    /* It sends 64 + 8 bytes and receives as many; the last stage sends 8 and receives 64. */
    double bus[S4D_STREAMS];
    s4d_bus_bytes(p, bus);
    assert_true(bus[S4D_STREAM_P2P_FORWARD] == 72);
    s4d_bus_bytes(&pipe.program[3], bus);
    assert_true(bus[S4D_STREAM_P2P_FORWARD] == 64);
    pipe_free(&pipe);
}

/* Each of a batch is an event of its own. */
static void test_timeline(void **state)
{
    (void)state;
    char path[] = "/tmp/test_messages.XXXXXX", text[4096] = "";
    struct s4d_grid grid = grid_of(4, 1);
    struct s4d_error err = {0};
    struct s4d_timeline *t;
    struct pipe pipe;
    close(mkstemp(path));
    pipe_make(&pipe, PIPE_RING, &grid, N, true);
    good(s4d_timeline_open(&t, path, &err), &err);
    s4d_timeline_rank(t, &pipe.program[2], 2, "");
    for (int op = 0; op < 2; op++)
        s4d_timeline_op(t, &pipe.program[2], 2, op, 0, 1e-6, 3e-6);
    good(s4d_timeline_close(t, &err), &err);
    FILE *f = fopen(path, "r");
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    unlink(path);
    static const char *const said[] = {"rank 2 (x 0, y 0, z 0, pipe 2, data 0)", "p2p-forward",
                                       "send numbers", "receive numbers", "\"bytes\":64"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (!strstr(text, said[i]))
            fail_msg("'%s' is not in\n%s", said[i], text);
    pipe_free(&pipe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),       cmocka_unit_test(test_random),
        cmocka_unit_test(test_sound),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_ends),        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_interpreter), cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_stuck),       cmocka_unit_test(test_said),
        cmocka_unit_test(test_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
