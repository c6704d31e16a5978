/* SPDX-License-Identifier: Apache-2.0 */
/* The toy interpreter itself: every op kind on values worked by hand and collectives on
 * four ranks. What it reports of faulty programs: test_faults.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/handmade.h"
#include "tests/lib/interpreter.h"
#include "tests/lib/pipe.h"

/* An operand of a program of one op: f64, (rows, cols), its values before, and after where they
 * change. rows 0: absent. */
enum { VALUES = 24 };
struct operand {
    int64_t rows, cols;
    double before[VALUES], after[VALUES];
    bool changes;
};
#define IN(rows, cols, ...)                                                                        \
    {                                                                                              \
        rows, cols, {__VA_ARGS__}, {0}, false                                                      \
    }
#define OUT(rows, cols, ...)                                                                       \
    {                                                                                              \
        rows, cols, {0}, {__VA_ARGS__}, true                                                       \
    }
#define NONE                                                                                       \
    {                                                                                              \
        0, 0, {0}, {0}, false                                                                      \
    }

static int matrix(struct s4d_program *p, enum s4d_type type, int64_t rows, int64_t cols)
{
    int storage = handmade_storage(p, rows * cols * s4d_type_bytes[type], true);
    int id = handmade_tensor(p, storage, type, 0, rows * cols);
    struct s4d_tensor *t = &p->tensors[id];
    t->dims = 2;
    t->shape[0] = rows;
    t->shape[1] = cols;
    t->stride[0] = cols;
    t->stride[1] = 1;
    return id;
}

static struct s4d_interpreter *start(const struct s4d_program *p)
{
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    return s4d_interpreter_create(p, &o);
}

static void run(struct s4d_interpreter *in)
{
    struct s4d_error err;
    if (s4d_interpreter_run(in, 1, &err))
        fail_msg("%s: %s", err.where, err.text);
}

static bool close_to(double a, double b)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-13 * fmax(1, fabs(b));
}

static struct s4d_program one_op(enum s4d_op_kind kind, const union s4d_constants *c,
                                 const struct operand *operands, int n)
{
    struct s4d_program p = handmade();
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    int tensors[S4D_OPERANDS];
    for (int k = 0; k < n; k++)
        tensors[k] =
            operands[k].rows ? matrix(&p, S4D_F64, operands[k].rows, operands[k].cols) : -1;
    int op = handmade_op(&p, kind, S4D_STREAM_COMPUTE, tensors, n);
    p.ops[op].c = *c;
    s4d_order(&p, NULL, 0);
    return p;
}

static bool checked[S4D_OP_KINDS];

static void check_op(enum s4d_op_kind kind, union s4d_constants c, const struct operand *operands,
                     int n)
{
    assert_int_equal(n, s4d_op_kinds[kind].n_operands);
    checked[kind] = true;
    struct s4d_program p = one_op(kind, &c, operands, n);
    struct s4d_interpreter *in = start(&p);
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < operands[k].rows * operands[k].cols; i++)
            s4d_interpreter_set(in, 0, p.ops[0].operand[k].tensor, i, operands[k].before[i]);
    run(in);
    for (int k = 0; k < n; k++)
        for (int64_t i = 0; i < operands[k].rows * operands[k].cols; i++) {
            const struct operand *o = &operands[k];
            double found = s4d_interpreter_get(in, 0, p.ops[0].operand[k].tensor, i);
            double expected = (o->changes ? o->after : o->before)[i];
            if (!close_to(found, expected))
                fail_msg("%s: %s[%d] is %.15g, expected %.15g", s4d_op_kinds[kind].name,
                         s4d_op_kinds[kind].operand[k].name, (int)i, found, expected);
        }
    s4d_interpreter_free(in);
    s4d_program_free(&p);
}
#define CHECK(kind, constants, ...)                                                                \
    check_op((kind), (constants), (const struct operand[]){__VA_ARGS__},                           \
             (int)(sizeof((const struct operand[]){__VA_ARGS__}) / sizeof(struct operand)))
#define C(...)                                                                                     \
    (union s4d_constants)                                                                          \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* A = [1 2 3; 4 5 6], B = [1 0; 0 1; 1 1]: A B = [4 5; 10 11]. */
static void test_gemm(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        bool ta = t & 1, tb = t & 2;
        struct operand o[3] = {IN(2, 3, 1, 2, 3, 4, 5, 6), IN(3, 2, 1, 0, 0, 1, 1, 1),
                               OUT(2, 2, 4, 5, 10, 11)};
        static const struct operand at = IN(3, 2, 1, 4, 2, 5, 3, 6),
                                    bt = IN(2, 3, 1, 0, 1, 0, 1, 1);
        o[0] = ta ? at : o[0];
        o[1] = tb ? bt : o[1];
        union s4d_constants c = {
            .gemm = {.m = 2, .n = 2, .k = 3, .transpose_a = ta, .transpose_b = tb}};
        check_op(S4D_OP_GEMM, c, o, 3);
        c.gemm.beta = 1;
        for (int i = 0; i < 4; i++) {
            o[2].before[i] = 1;
            o[2].after[i] += 1;
        }
        check_op(S4D_OP_GEMM, c, o, 3);
    }
}

/* Two tokens, one head of size one, scale 1: q = (0, ln 3), k = (0, 1), v = (4, 8). Token 0 sees
 * itself: out 4, lse 0. Token 1: scores 0 and ln 3, weights 1/4 and 3/4, out 7, lse ln 4.
 * Backward of d_out = (1, 1): ds = p (v - out) = (0), (-3/4, 3/4); dq = ds k, dk = ds^T q, dv = p^T
 * d_out = (1 + 1/4, 3/4). */
static void test_attention(void **state)
{
    (void)state;
    const double a = log(3);
    union s4d_constants c = {.attention = {1, 2, 1, 1, 1, 1.0, true}};
    CHECK(S4D_OP_ATTENTION_FORWARD, c, IN(2, 3, 0, 0, 4, a, 1, 8), OUT(2, 1, 4, 7),
          OUT(1, 2, 0, log(4)));
    CHECK(S4D_OP_ATTENTION_BACKWARD, c, IN(2, 3, 0, 0, 4, a, 1, 8), IN(2, 1, 4, 7),
          IN(1, 2, 0, log(4)), IN(2, 1, 1, 1), OUT(2, 3, 0, -0.75 * a, 1.25, 0.75, 0.75 * a, 0.75));
    /* Not causal, token 0 has scores 0 and 0: out 6, lse ln 2. */
    c.attention.causal = false;
    CHECK(S4D_OP_ATTENTION_FORWARD, c, IN(2, 3, 0, 0, 4, a, 1, 8), OUT(2, 1, 6, 7),
          OUT(1, 2, log(2), log(4)));
    /* Four heads on two key-value heads, one token: each head returns its pair's v, and dv sums the
     * pair's d_out. lse is the score. Scale 2. */
    c = C(.attention = {1, 1, 4, 2, 1, 2.0, true});
    CHECK(S4D_OP_ATTENTION_FORWARD, c, IN(1, 8, 1, 2, 3, 4, 10, 20, 5, 6), OUT(1, 4, 5, 5, 6, 6),
          OUT(4, 1, 20, 40, 120, 160));
    CHECK(S4D_OP_ATTENTION_BACKWARD, c, IN(1, 8, 1, 2, 3, 4, 10, 20, 5, 6), IN(1, 4, 5, 5, 6, 6),
          IN(4, 1, 20, 40, 120, 160), IN(1, 4, 1, 2, 3, 4), OUT(1, 8, 0, 0, 0, 0, 0, 0, 3, 7));
}

/* Rows (1, 3) and (2, 2), width 2, epsilon 3: sums (4, 10) and (4, 8), mean 2, variance 1 and 0, 1
 * / sqrt(var + 3) = 1/2 and 1/sqrt 3; xhat (-1/2, 1/2) and (0, 0). Gain (2, 3), bias (10, 20).
 * Backward of dy = (1, 1), (0, 2): dxhat = (2, 3), (0, 6); B = (5, 1/2), (6, 0);
 * d_gain = sum dy xhat = (-1/2, 1/2); d_bias = (1, 3); dx row 0 = 1/2 (2 - 5/2 + 1/8, 3 - 5/2 -
 * 1/8) = (-3/16, 3/16), row 1 = 1/sqrt 3 (-3, 3). */
static void test_norm(void **state)
{
    (void)state;
    const double r3 = sqrt(3);
    union s4d_constants c = {.norm = {2, 3.0}};
#define X    IN(2, 2, 1, 3, 2, 2)
#define SUMS IN(2, 2, 4, 10, 4, 8)
#define GAIN IN(1, 2, 2, 3)
#define DY   IN(2, 2, 1, 1, 0, 2)
    CHECK(S4D_OP_NORM_PARTIAL, c, X, OUT(2, 2, 4, 10, 4, 8));
    CHECK(S4D_OP_NORM_APPLY, c, X, SUMS, GAIN, IN(1, 2, 10, 20), OUT(2, 2, 9, 21.5, 10, 20));
    CHECK(S4D_OP_NORM_BACKWARD_PARTIAL, c, X, SUMS, GAIN, DY, OUT(2, 2, 5, 0.5, 6, 0),
          {1, 2, {100, 200}, {99.5, 200.5}, true}, {1, 2, {100, 200}, {101, 203}, true});
    CHECK(S4D_OP_NORM_BACKWARD_APPLY, c, X, SUMS, GAIN, DY, IN(2, 2, 5, 0.5, 6, 0), NONE,
          OUT(2, 2, -3. / 16, 3. / 16, -r3, r3));
    CHECK(S4D_OP_NORM_BACKWARD_APPLY, c, X, SUMS, GAIN, DY, IN(2, 2, 5, 0.5, 6, 0),
          IN(2, 2, 1, 2, 3, 4), OUT(2, 2, 13. / 16, 35. / 16, 3 - r3, 4 + r3));
}

/* gelu_tanh(1) = 0.5 (1 + tanh(0.7978845608 * 1.044715)) = 0.5 (1 + tanh 0.8335625) = 0.8411920;
 * its slope at 1 is 0.5 (1 + t) + 0.5 (1 - t^2) 0.7978846 * 1.134145 with t = 0.6823839. */
static void test_activation(void **state)
{
    (void)state;
    const double t = tanh(sqrt(2 / M_PI) * 1.044715), y = 0.5 * (1 + t);
    const double slope = y + 0.5 * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715);
    assert_true(fabs(y - 0.8411920) < 1e-7 && fabs(slope - 1.0829641) < 1e-6);
    union s4d_constants c = {.activation = {S4D_GELU_TANH}};
    CHECK(S4D_OP_ACTIVATION_FORWARD, c, IN(2, 2, 1, 0, 0, -1), NONE, OUT(2, 2, y, 0, 0, y - 1));
    CHECK(S4D_OP_ACTIVATION_FORWARD, c, IN(2, 2, 0, 3, 1, 2), IN(1, 2, 1, -3),
          OUT(2, 2, y, 0, 1.9545976940877750, y - 1));
    CHECK(S4D_OP_ACTIVATION_BACKWARD, c, IN(2, 2, 0, 3, 0, 2), IN(1, 2, 1, -3),
          IN(2, 2, 1, 10, 2, 100), OUT(2, 2, slope, 5, 2 * slope, 100 * (1 - slope)));
}

/* Row (1, 7), width 2, epsilon 0: sum of squares 50, r = 1/5, xhat (1/5, 7/5), gain (2, 3).
 * Backward of dy = (1, 1): dxhat = (2, 3), B = 2/5 + 21/5 = 23/5, dx = 1/5 (2 - 1/5 B/2, 3 - 7/5
 * B/2) = (0.308, -0.044). */
static void test_rms(void **state)
{
    (void)state;
    union s4d_constants c = {.norm = {2, 0.0}};
    CHECK(S4D_OP_RMS_PARTIAL, c, IN(1, 2, 1, 7), OUT(1, 1, 50));
    CHECK(S4D_OP_RMS_APPLY, c, IN(1, 2, 1, 7), IN(1, 1, 50), GAIN, OUT(1, 2, 0.4, 4.2));
    CHECK(S4D_OP_RMS_BACKWARD_PARTIAL, c, IN(1, 2, 1, 7), IN(1, 1, 50), GAIN, IN(1, 2, 1, 1),
          OUT(1, 1, 4.6), {1, 2, {10, 20}, {10.2, 21.4}, true});
    CHECK(S4D_OP_RMS_BACKWARD_APPLY, c, IN(1, 2, 1, 7), IN(1, 1, 50), GAIN, IN(1, 2, 1, 1),
          IN(1, 1, 4.6), NONE, OUT(1, 2, 0.308, -0.044));
    CHECK(S4D_OP_RMS_BACKWARD_APPLY, c, IN(1, 2, 1, 7), IN(1, 1, 50), GAIN, IN(1, 2, 1, 1),
          IN(1, 1, 4.6), IN(1, 2, 1, 2), OUT(1, 2, 1.308, 1.956));
}

/* Head size 4, theta 4: pair 0 is (x0, x2) and turns 1 radian a token, pair 1 is (x1, x3) and turns
 * 4^(-2/4) = 1/2. Token 0 does not turn, and token 2 is the first of the next sequence. */
static void test_rotary(void **state)
{
    (void)state;
    union s4d_constants c = {.rotary = {.seq = 2, .heads = 1, .head_dim = 4, .theta = 4}};
    const double c1 = cos(1), s1 = sin(1), c2 = cos(0.5), s2 = sin(0.5);
    CHECK(S4D_OP_ROTARY, c,
          {3,
           4,
           {1, 2, 3, 4, 1, 0, 0, 1, 5, 6, 7, 8},
           {1, 2, 3, 4, c1, -s2, s1, c2, 5, 6, 7, 8},
           true});
    c.rotary.inverse = true;
    CHECK(S4D_OP_ROTARY, c, {2, 4, {1, 2, 3, 4, c1, -s2, s1, c2}, {1, 2, 3, 4, 1, 0, 0, 1}, true});
    /* Original context 4 pi: pair 0 turns 2 times in it, pair 1 once. Between low 1/2 and high 7/2,
     * pair 0 is half way: (1/2) / 4 + 1/2 = 5/8; and pair 1 a sixth: (5/6) / 8 + (1/6) / 2 = 3/16.
     */
    c = C(.rotary = {2, 1, 4, 4.0, 4.0, 0.5, 3.5, 4 * M_PI, false});
    CHECK(S4D_OP_ROTARY, c,
          {2,
           4,
           {1, 2, 3, 4, 1, 0, 0, 1},
           {1, 2, 3, 4, cos(5. / 8), -sin(3. / 16), sin(5. / 8), cos(3. / 16)},
           true});
}

/* silu(ln 3) = ln 3 / (1 + 1/3) = 3/4 ln 3, its slope s (1 + x (1 - s)) with s = 3/4. */
static void test_gated(void **state)
{
    (void)state;
    const double a = log(3), slope = 0.75 * (1 + a / 4);
    union s4d_constants c = {.activation = {S4D_SILU}};
    CHECK(S4D_OP_ACTIVATION_FORWARD, c, IN(1, 2, a, -a), NONE, OUT(1, 2, 0.75 * a, -0.25 * a));
    CHECK(S4D_OP_ACTIVATION_BACKWARD, c, IN(1, 1, a), NONE, IN(1, 1, 2), OUT(1, 1, 2 * slope));
    CHECK(S4D_OP_GATED_FORWARD, c, IN(1, 4, a, 0, 4, 5), OUT(1, 2, 3 * a, 0));
    CHECK(S4D_OP_GATED_BACKWARD, c, IN(1, 4, a, 0, 4, 5), IN(1, 2, 10, 100),
          OUT(1, 4, 40 * slope, 250, 7.5 * a, 0));
}

/* Every hash is a multiple of 1: all targets with two tokens before them are dropped; and of a k
 * beyond all hashes, none. */
static void test_goldfish(void **state)
{
    (void)state;
    union s4d_constants c = {.goldfish = {1, 2}};
    CHECK(S4D_OP_GOLDFISH, c, IN(2, 4, 5, 6, 7, 8, 1, 2, 3, 4), OUT(2, 3, 6, -1, -1, 2, -1, -1));
    c.goldfish.k = INT64_MAX;
    CHECK(S4D_OP_GOLDFISH, c, IN(2, 4, 5, 6, 7, 8, 1, 2, 3, 4), OUT(2, 3, 6, 7, 8, 2, 3, 4));
}

static void test_elementwise(void **state)
{
    (void)state;
    union s4d_constants c = {0};
    CHECK(S4D_OP_BIAS, c, IN(1, 2, 10, 20), {2, 2, {1, 2, 3, 4}, {11, 22, 13, 24}, true});
    CHECK(S4D_OP_COLUMN_SUM, c, IN(2, 2, 1, 2, 3, 4), {1, 2, {10, 20}, {14, 26}, true});
    CHECK(S4D_OP_RESIDUAL, c, IN(2, 2, 1, 2, 3, 4), IN(2, 2, 5, 5, 6, 6), NONE,
          OUT(2, 2, 6, 7, 9, 10));
    CHECK(S4D_OP_RESIDUAL, c, IN(2, 2, 1, 2, 3, 4), IN(2, 2, 5, 5, 6, 6), IN(1, 2, 10, 20),
          OUT(2, 2, 16, 27, 19, 30));
    CHECK(S4D_OP_ADD, c, IN(1, 2, 1, 2), {1, 2, {10, 20}, {11, 22}, true});
    CHECK(S4D_OP_CAST, c, IN(1, 2, 1, 2), OUT(1, 2, 1, 2));
    CHECK(S4D_OP_COPY, c, IN(1, 2, 1, 2), OUT(1, 2, 1, 2));
    CHECK(S4D_OP_HOST_TO_DEVICE, c, IN(1, 2, 1, 2), OUT(1, 2, 1, 2));
    CHECK(S4D_OP_DEVICE_TO_HOST, c, IN(1, 2, 1, 2), OUT(1, 2, 1, 2));
    CHECK(S4D_OP_ZERO, c, {1, 2, {1, 2}, {0, 0}, true});
}

/* A rank that holds rows 2 and 3 of the vocabulary; token 2 twice, so its gradients add. */
static void test_embedding(void **state)
{
    (void)state;
    union s4d_constants c = {.embedding = {s4d_constant(2)}};
    CHECK(S4D_OP_EMBEDDING_FORWARD, c, IN(1, 5, 3, 1, 2, -1, 4), IN(2, 2, 1, 2, 3, 4),
          OUT(5, 2, 3, 4, 0, 0, 1, 2, 0, 0, 0, 0));
    CHECK(S4D_OP_EMBEDDING_BACKWARD, c, IN(2, 2, 2, 3, 2, 9), IN(4, 2, 1, 2, 3, 4, 5, 6, 7, 8),
          {2, 2, {10, 20, 30, 40}, {16, 28, 33, 44}, true});
    CHECK(S4D_OP_POSITION_FORWARD, c, IN(2, 1, 10, 20),
          {4, 1, {1, 2, 3, 4}, {11, 22, 13, 24}, true});
    CHECK(S4D_OP_POSITION_BACKWARD, c, IN(4, 1, 1, 2, 3, 4), {2, 1, {10, 20}, {14, 26}, true});
}

/* Vocabulary rows 4, 5 and one padding column; two tokens with logits (0, ln 3, -), targets 4 and
 * not kept. Max ln 3; sum of exponentials 1/3 + 1; target logit 0 (a target that is not held: 0).
 * Loss ln(4/3) + ln 3 - 0 = ln 4; d = (1/4 - 1, 3/4, 0) * 8 / 2. */
static void test_loss(void **state)
{
    (void)state;
    const double a = log(3);
    union s4d_constants c = {.loss = {s4d_constant(4), s4d_constant(2)}};
#define LOGITS  IN(2, 3, 0, a, 99, 0, a, 99)
#define MAX     IN(2, 1, a, a)
#define TARGETS IN(1, 2, 4, -1)
    CHECK(S4D_OP_TOKEN_COUNT, c, IN(2, 2, 4, -1, 0, 5), OUT(1, 1, 3));
    CHECK(S4D_OP_LOSS_MAX, c, LOGITS, OUT(2, 1, a, a));
    CHECK(S4D_OP_LOSS_SUM, c, LOGITS, MAX, IN(1, 2, 5, 6), OUT(2, 2, 4. / 3, a, 4. / 3, 0));
    CHECK(S4D_OP_LOSS_BACKWARD, c, LOGITS, MAX, IN(2, 2, 4. / 3, 0, 4. / 3, 0), TARGETS,
          IN(1, 1, 2), IN(1, 1, 8), {1, 1, {100}, {100 + log(4)}, true},
          OUT(2, 3, -3, 3, 0, 0, 0, 0));
    CHECK(S4D_OP_LOSS_BACKWARD, c, LOGITS, MAX, IN(2, 2, 4. / 3, 0, 4. / 3, 0), TARGETS,
          IN(1, 1, 2), NONE, {1, 1, {100}, {100 + log(4)}, true},
          OUT(2, 3, -0.375, 0.375, 0, 0, 0, 0));
    CHECK(S4D_OP_LOSS_MEAN, c, IN(1, 1, 6), IN(1, 1, 4), OUT(1, 1, 1.5));
    /* Only padding: nothing is the maximum, nothing is summed. */
    c.loss.valid = s4d_constant(0);
    CHECK(S4D_OP_LOSS_MAX, c, LOGITS, OUT(2, 1, -INFINITY, -INFINITY));
    CHECK(S4D_OP_LOSS_SUM, c, LOGITS, MAX, TARGETS, OUT(2, 2, 0, 0, 0, 0));
}

static void test_norm_and_clip(void **state)
{
    (void)state;
    union s4d_constants c = {.norm2 = {s4d_constant(2), false}};
    CHECK(S4D_OP_SQUARED_NORM, c, IN(1, 3, 6, 8, INFINITY), IN(1, 1, 2), OUT(1, 2, 25, 0));
    CHECK(S4D_OP_SQUARED_NORM, c, IN(1, 3, 3, 4, 5), NONE, OUT(1, 2, 25, 0));
    c = C(.norm2 = {s4d_constant(0), true});
    CHECK(S4D_OP_SQUARED_NORM, c, IN(1, 3, 3, 4, 5), NONE, {1, 2, {7, 1}, {7, 1}, true});
    c = C(.norm2 = {s4d_constant(3), true});
    CHECK(S4D_OP_SQUARED_NORM, c, IN(1, 3, 3, 4, INFINITY), NONE,
          {1, 2, {7, 0}, {INFINITY, 1}, true});
    c = C(.clip = {2.0});
    CHECK(S4D_OP_CLIP_FACTOR, c, IN(2, 2, 9, 0, 16, 0), OUT(1, 1, 5), OUT(1, 1, 0),
          OUT(1, 1, 2 / (5 + 1e-6)));
    CHECK(S4D_OP_CLIP_FACTOR, c, IN(2, 2, 1, 0, 0, 1), OUT(1, 1, 1), OUT(1, 1, 1), OUT(1, 1, 1));
    c = C(.clip = {0.0});
    CHECK(S4D_OP_CLIP_FACTOR, c, IN(1, 2, 9, 0), OUT(1, 1, 3), OUT(1, 1, 0), OUT(1, 1, 1));
}

/* Second step, b1 = 1/2, b2 = 3/4, g = 8 / 2 * 1/4 = 1, m = 1, v = 3: m' = 1/2 + 1/2 = 1, v' = 9/4
 * + 1/4 = 5/2; bias corrections 3/4 and 7/16: (4/3) / (sqrt(40/7) + 1) + 0.5 * 10, times lr 0.1. */
static void test_adamw(void **state)
{
    (void)state;
    union s4d_constants c = {.adamw = {0.5, 0.75, 1.0, 0.5}};
    const double w = 10 - 0.1 * (4. / 3 / (sqrt(40. / 7) + 1) + 5);
    CHECK(S4D_OP_ADAMW, c, IN(1, 1, 8), IN(1, 1, 2), IN(1, 1, 0.25), IN(1, 1, 0), IN(1, 1, 0.1),
          IN(1, 1, 2), {1, 1, {1}, {1}, true}, {1, 1, {3}, {2.5}, true}, {1, 1, {10}, {w}, true},
          OUT(1, 1, w));
    CHECK(S4D_OP_ADAMW, c, IN(1, 1, 1), NONE, NONE, NONE, IN(1, 1, 0.1), IN(1, 1, 2),
          {1, 1, {1}, {1}, true}, {1, 1, {3}, {2.5}, true}, {1, 1, {10}, {w}, true}, NONE);
    CHECK(S4D_OP_ADAMW, c, IN(1, 1, NAN), NONE, NONE, IN(1, 1, 1), IN(1, 1, 0.1), IN(1, 1, 2),
          IN(1, 1, 1), IN(1, 1, 3), IN(1, 1, 10), IN(1, 1, 9));
    CHECK(S4D_OP_STEP, c, IN(1, 1, 0), {1, 1, {4}, {5}, true});
    CHECK(S4D_OP_STEP, c, IN(1, 1, 1), IN(1, 1, 4));
    CHECK(S4D_OP_STEP, c, NONE, {1, 1, {4}, {5}, true});
    c = C(.scale = {3});
    CHECK(S4D_OP_SCALE_UPDATE, c, IN(1, 1, 0), IN(1, 1, 8), {1, 1, {1}, {2}, true});
    CHECK(S4D_OP_SCALE_UPDATE, c, IN(1, 1, 0), {1, 1, {8}, {16}, true}, {1, 1, {2}, {0}, true});
    CHECK(S4D_OP_SCALE_UPDATE, c, IN(1, 1, 1), {1, 1, {8}, {4}, true}, {1, 1, {2}, {0}, true});
    CHECK(S4D_OP_SCALE_UPDATE, c, IN(1, 1, 1), IN(1, 1, 1), {1, 1, {2}, {0}, true});
}

/* Grid 2x2x1x1 in the order y, x: ranks 0 1 2 3 are (x,y) = 00 01 10 11, so the x groups are {0,2}
 * and {1,3}. Rank r's input is (r + 1) * (1, 10). */
static void collective(enum s4d_op_kind kind, enum s4d_reduction reduction, int64_t in_n,
                       int64_t out_n, bool in_place, const double expected[4][4])
{
    struct s4d_program p = handmade();
    checked[kind] = true;
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    p.grid = s4d_grid_make(2, 2, 1, 1);
    int in = matrix(&p, S4D_F32, 1, in_n), out = in_place ? in : matrix(&p, S4D_F32, 1, out_n);
    int op = handmade_op(&p, kind, S4D_STREAM_X, (const int[]){in, out}, 2);
    p.ops[op].c.collective.axes = S4D_AXIS(S4D_X);
    p.ops[op].c.collective.members = 2;
    p.ops[op].c.collective.type = S4D_F32;
    p.ops[op].c.collective.reduction = reduction;
    p.ops[op].c.collective.count = kind == S4D_OP_REDUCE_SCATTER ? in_n / 2 : in_n;
    s4d_order(&p, NULL, 0);
    struct s4d_interpreter *it = start(&p);
    for (int rank = 0; rank < 4; rank++)
        for (int64_t i = 0; i < in_n; i++)
            s4d_interpreter_set(it, rank, in, i, (rank + 1) * (i ? 10 : 1));
    run(it);
    for (int rank = 0; rank < 4; rank++)
        for (int64_t i = 0; i < out_n; i++)
            assert_true(s4d_interpreter_get(it, rank, out, i) == expected[rank][i]);
    s4d_interpreter_free(it);
    s4d_program_free(&p);
}

static void test_collectives(void **state)
{
    (void)state;
    static const double sum[4][4] = {{4, 40}, {6, 60}, {4, 40}, {6, 60}};
    static const double max[4][4] = {{3, 30}, {4, 40}, {3, 30}, {4, 40}};
    static const double gathered[4][4] = {
        {1, 10, 3, 30}, {2, 20, 4, 40}, {1, 10, 3, 30}, {2, 20, 4, 40}};
    static const double scattered[4][4] = {{4}, {6}, {40}, {60}};
    for (int in_place = 0; in_place < 2; in_place++) {
        collective(S4D_OP_ALL_REDUCE, S4D_SUM, 2, 2, in_place, sum);
        collective(S4D_OP_ALL_REDUCE, S4D_MAX, 2, 2, in_place, max);
    }
    collective(S4D_OP_ALL_GATHER, S4D_SUM, 2, 4, false, gathered);
    collective(S4D_OP_REDUCE_SCATTER, S4D_SUM, 2, 1, false, scattered);
}

/* Stage 0 sends (1, 10), which stage 1 has then; tests/unit/test_messages.c has more of them. */
static void test_messages(void **state)
{
    (void)state;
    struct pipe pipe;
    struct s4d_error err;
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_interpreter_options options = s4d_interpreter_options_default();
    grid.size[S4D_PIPE] = 2;
    checked[S4D_OP_SEND] = checked[S4D_OP_RECEIVE] = true;
    pipe_make(&pipe, PIPE_LINES, &grid, 4, false);
    struct s4d_interpreter *it = s4d_interpreter_create(&pipe.program[0], &options);
    s4d_interpreter_set(it, 0, PIPE_OWN, 1, 1);
    s4d_interpreter_set(it, 0, PIPE_OWN, 2, 10);
    assert_int_equal(s4d_interpreter_run(it, 1, &err), 0);
    assert_true(s4d_interpreter_get(it, 1, PIPE_OWN, 1) == 1 &&
                s4d_interpreter_get(it, 1, PIPE_OWN, 2) == 10);
    s4d_interpreter_free(it);
    pipe_free(&pipe);
}

static void count_up(void *context, int iteration, int64_t sequence, int32_t *tokens, int count)
{
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(1000 * iteration + 100 * sequence + i) + *(const int *)context;
}

/* Two data replicas with two sequences each read 0, 1 and 2, 3; the second iteration reads its own.
 */
static void test_read_tokens(void **state)
{
    (void)state;
    struct s4d_program p = handmade();
    struct s4d_error err;
    int base = 7;
    checked[S4D_OP_READ_TOKENS] = true;
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    p.grid = s4d_grid_make(1, 1, 1, 2);
    int tokens = matrix(&p, S4D_I32, 2, 3);
    int op = handmade_op(&p, S4D_OP_READ_TOKENS, S4D_STREAM_HOST, &tokens, 1);
    p.ops[op].c.read_tokens.first = s4d_constant(0);
    p.ops[op].c.read_tokens.first.stride[S4D_DATA] = 2;
    s4d_order(&p, NULL, 0);
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    o.tokens = count_up;
    o.context = &base;
    struct s4d_interpreter *in = s4d_interpreter_create(&p, &o);
    assert_int_equal(s4d_interpreter_run(in, 2, &err), 0);
    for (int rank = 0; rank < 2; rank++)
        for (int i = 0; i < 6; i++)
            assert_true(s4d_interpreter_get(in, rank, tokens, i) ==
                        1000 + 100 * (2 * rank + i / 3) + i % 3 + base);
    s4d_interpreter_free(in);
    s4d_program_free(&p);
}

/* The last test: no kind was forgotten above. */
static void test_every_kind(void **state)
{
    (void)state;
    for (int kind = 0; kind < S4D_OP_KINDS; kind++)
        if (!checked[kind])
            fail_msg("%s has no test", s4d_op_kinds[kind].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_norm),        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_loss),        cmocka_unit_test(test_norm_and_clip),
        cmocka_unit_test(test_adamw),       cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_read_tokens), cmocka_unit_test(test_rms),
        cmocka_unit_test(test_rotary),      cmocka_unit_test(test_gated),
        cmocka_unit_test(test_goldfish),    cmocka_unit_test(test_messages),
        cmocka_unit_test(test_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
