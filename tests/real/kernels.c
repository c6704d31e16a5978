/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel of the host against the toy interpreter's, on random operands whose rows lie apart,
 * in every storage type. Speaks TAP; needs no MPI. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/host/work.h"
#include "support/memory.h"
#include "support/random.h"
#include "tests/lib/handmade.h"
#include "tests/lib/interpreter.h"
#include "tests/lib/numbers.h"

/* T rows of h columns: more than one chunk (real/host/rows.inc) and no multiple of a lane. */
enum { B = 3, S = 13, T = B * S, H = 1037, D = 6, HEADS = 4, KV = 2, V = 1100 };

struct operand {
    int64_t rows, cols; /* rows 0: absent */
    char type;          /* c compute, a accumulate, i token */
    double low, high;
};
struct kernel_case {
    enum s4d_op_kind kind;
    union s4d_constants c;
    struct operand operand[S4D_OPERANDS];
};

#define X(rows, cols)                                                                              \
    {                                                                                              \
        rows, cols, 'c', -1, 1                                                                     \
    }
#define A(rows, cols)                                                                              \
    {                                                                                              \
        rows, cols, 'a', -1, 1                                                                     \
    }
#define P(rows, cols, low, high)                                                                   \
    {                                                                                              \
        rows, cols, 'a', low, high                                                                 \
    }
#define TOKENS(rows, cols)                                                                         \
    {                                                                                              \
        rows, cols, 'i', -0.2 * V, V                                                               \
    }
#define ABSENT                                                                                     \
    {                                                                                              \
        0, 0, 0, 0, 0                                                                              \
    }
#define CONSTANT(value)                                                                            \
    {                                                                                              \
        .base = value, .limit = -1                                                                 \
    }
/* Columns of sums of a row: of x, and of x^2, as of 2 H columns. */
#define SUMS P(T, 2, 0.9 * H, 1.2 * H)
#define RMS  P(T, 1, 0.2 * H, 1.4 * H)
#define NORM .norm = {2 * H, 1e-5}

static const struct kernel_case cases[] = {
    {S4D_OP_GEMM, {.gemm = {70, 45, 37, false, false, 0}}, {X(70, 37), X(37, 45), X(70, 45)}},
    {S4D_OP_GEMM, {.gemm = {70, 45, 37, true, false, 1}}, {X(37, 70), X(37, 45), X(70, 45)}},
    {S4D_OP_GEMM, {.gemm = {70, 45, 37, false, true, 0}}, {X(70, 37), X(45, 37), X(70, 45)}},
    {S4D_OP_GEMM,
     {.gemm = {300, 450, 370, true, true, 1}},
     {X(370, 300), X(450, 370), A(300, 450)}},
    {S4D_OP_ATTENTION_FORWARD,
     {.attention = {B, S, HEADS, KV, D, 0.4, true}},
     {X(T, (HEADS + 2 * KV) * D), X(T, HEADS *D), A(B *HEADS, S)}},
    {S4D_OP_ATTENTION_FORWARD,
     {.attention = {1, 150, 2, 2, 16, 0.25, false}},
     {X(150, 6 * 16), X(150, 2 * 16), A(2, 150)}},
    {S4D_OP_ATTENTION_BACKWARD,
     {.attention = {B, S, HEADS, KV, D, 0.4, true}},
     {X(T, (HEADS + 2 * KV) * D), X(T, HEADS *D), P(B *HEADS, S, 1, 3), X(T, HEADS *D),
      X(T, (HEADS + 2 * KV) * D)}},
    {S4D_OP_ATTENTION_BACKWARD,
     {.attention = {1, 150, 2, 1, 16, 0.25, false}},
     {X(150, 4 * 16), X(150, 2 * 16), P(2, 150, 4, 6), X(150, 2 * 16), X(150, 4 * 16)}},
    {S4D_OP_NORM_PARTIAL, {NORM}, {X(T, H), A(T, 2)}},
    {S4D_OP_NORM_APPLY, {NORM}, {X(T, H), SUMS, A(1, H), A(1, H), X(T, H)}},
    {S4D_OP_NORM_BACKWARD_PARTIAL,
     {NORM},
     {X(T, H), SUMS, A(1, H), X(T, H), A(T, 2), A(1, H), A(1, H)}},
    {S4D_OP_NORM_BACKWARD_APPLY,
     {NORM},
     {X(T, H), SUMS, A(1, H), X(T, H), A(T, 2), X(T, H), X(T, H)}},
    {S4D_OP_NORM_BACKWARD_APPLY,
     {NORM},
     {X(T, H), SUMS, A(1, H), X(T, H), A(T, 2), ABSENT, X(T, H)}},
    {S4D_OP_RMS_PARTIAL, {NORM}, {X(T, H), A(T, 1)}},
    {S4D_OP_RMS_APPLY, {NORM}, {X(T, H), RMS, A(1, H), X(T, H)}},
    {S4D_OP_RMS_BACKWARD_PARTIAL, {NORM}, {X(T, H), RMS, A(1, H), X(T, H), A(T, 1), A(1, H)}},
    {S4D_OP_RMS_BACKWARD_APPLY,
     {NORM},
     {X(T, H), RMS, A(1, H), X(T, H), A(T, 1), X(T, H), X(T, H)}},
    {S4D_OP_ROTARY, {.rotary = {S, 3, 10, 10000, 0, 0, 0, 0, false}}, {X(T, 30)}},
    {S4D_OP_ROTARY, {.rotary = {S, 3, 10, 10000, 8, 1, 4, 64, true}}, {X(T, 30)}},
    {S4D_OP_ACTIVATION_FORWARD,
     {.activation = {S4D_GELU_TANH}},
     {{T, H, 'c', -6, 6}, A(1, H), X(T, H)}},
    {S4D_OP_ACTIVATION_FORWARD, {.activation = {S4D_SILU}}, {{T, H, 'c', -6, 6}, ABSENT, X(T, H)}},
    {S4D_OP_ACTIVATION_BACKWARD,
     {.activation = {S4D_GELU_TANH}},
     {{T, H, 'c', -6, 6}, A(1, H), X(T, H), X(T, H)}},
    {S4D_OP_ACTIVATION_BACKWARD,
     {.activation = {S4D_SILU}},
     {{T, H, 'c', -6, 6}, ABSENT, X(T, H), X(T, H)}},
    {S4D_OP_GATED_FORWARD, {.activation = {S4D_SILU}}, {{T, 2 * H, 'c', -6, 6}, X(T, H)}},
    {S4D_OP_GATED_BACKWARD,
     {.activation = {S4D_SILU}},
     {{T, 2 * H, 'c', -6, 6}, X(T, H), X(T, 2 * H)}},
    {S4D_OP_BIAS, {.gemm = {0}}, {A(1, H), X(T, H)}},
    {S4D_OP_COLUMN_SUM, {.gemm = {0}}, {X(T, H), A(1, H)}},
    {S4D_OP_RESIDUAL, {.gemm = {0}}, {X(T, H), X(T, H), A(1, H), X(T, H)}},
    {S4D_OP_RESIDUAL, {.gemm = {0}}, {X(T, H), X(T, H), ABSENT, X(T, H)}},
    {S4D_OP_EMBEDDING_FORWARD, {.embedding = {CONSTANT(300)}}, {TOKENS(B, S), X(400, H), X(T, H)}},
    {S4D_OP_EMBEDDING_BACKWARD, {.embedding = {CONSTANT(300)}}, {TOKENS(B, S), X(T, H), X(400, H)}},
    {S4D_OP_POSITION_FORWARD, {.gemm = {0}}, {A(S, H), X(T, H)}},
    {S4D_OP_POSITION_BACKWARD, {.gemm = {0}}, {X(T, H), A(S, H)}},
    {S4D_OP_GOLDFISH, {.goldfish = {3, 4}}, {{B, S + 1, 'i', 0, V}, {B, S, 'i', 0, V}}},
    {S4D_OP_TOKEN_COUNT, {.gemm = {0}}, {TOKENS(B, S), A(1, 1)}},
    {S4D_OP_LOSS_MAX, {.loss = {CONSTANT(200), CONSTANT(1070)}}, {X(T, V), X(T, 1)}},
    {S4D_OP_LOSS_MAX, {.loss = {CONSTANT(200), CONSTANT(0)}}, {X(T, V), X(T, 1)}},
    {S4D_OP_LOSS_SUM,
     {.loss = {CONSTANT(200), CONSTANT(1070)}},
     {X(T, V), A(T, 1), TOKENS(B, S), A(T, 2)}},
    {S4D_OP_LOSS_BACKWARD,
     {.loss = {CONSTANT(200), CONSTANT(1070)}},
     {X(T, V), A(T, 1), P(T, 2, 400, 500), TOKENS(B, S), P(1, 1, 30, 40), P(1, 1, 2, 3), A(1, 1),
      X(T, V)}},
    {S4D_OP_LOSS_MEAN, {.gemm = {0}}, {A(1, 1), P(1, 1, 3, 5), A(1, 1)}},
    {S4D_OP_ADD, {.gemm = {0}}, {X(T, H), A(H, T)}},
    {S4D_OP_CAST, {.gemm = {0}}, {A(T, H), X(H, T)}},
    {S4D_OP_COPY, {.gemm = {0}}, {X(T, H), X(T, H)}},
    {S4D_OP_HOST_TO_DEVICE, {.gemm = {0}}, {TOKENS(T, H), TOKENS(T, H)}},
    {S4D_OP_DEVICE_TO_HOST, {.gemm = {0}}, {A(T, H), A(T, H)}},
    {S4D_OP_ZERO, {.gemm = {0}}, {X(T, H)}},
    {S4D_OP_SQUARED_NORM,
     {.norm2 = {CONSTANT(T * H - 1200), true}},
     {A(T, H), P(1, 1, 2, 3), P(1, 2, 0, 1)}},
    {S4D_OP_CLIP_FACTOR, {.clip = {0.5}}, {P(7, 2, 0, 1), A(1, 1), A(1, 1), A(1, 1)}},
    {S4D_OP_STEP, {.gemm = {0}}, {ABSENT, P(1, 1, 3, 4)}},
    {S4D_OP_ADAMW,
     {.adamw = {0.9, 0.95, 1e-8, 0.1}},
     {A(1, H), P(1, 1, 2, 3), P(1, 1, 0.5, 1), P(1, 1, 0, 0), P(1, 1, 0.01, 0.02), P(1, 1, 3, 3),
      A(1, H), P(1, H, 0.1, 1), A(1, H), X(1, H)}},
    {S4D_OP_SCALE_UPDATE,
     {.scale = {2000}},
     {P(1, 1, 0, 0), P(1, 1, 1024, 1024), P(1, 1, 1999, 1999)}},
    {S4D_OP_SCALE_UPDATE,
     {.scale = {2000}},
     {P(1, 1, 1, 1), P(1, 1, 1024, 1024), P(1, 1, 1999, 1999)}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* Outputs that may be an input (schedule/op.h: in place). */
static const struct in_place {
    enum s4d_op_kind kind;
    int output, input;
} in_place[] = {
    {S4D_OP_NORM_BACKWARD_APPLY, 6, 3},
    {S4D_OP_NORM_BACKWARD_APPLY, 6, 5},
    {S4D_OP_RMS_BACKWARD_APPLY, 6, 3},
    {S4D_OP_RMS_BACKWARD_APPLY, 6, 5},
    {S4D_OP_ACTIVATION_FORWARD, 2, 0},
    {S4D_OP_ACTIVATION_BACKWARD, 3, 2},
    {S4D_OP_GATED_BACKWARD, 2, 0},
    {S4D_OP_RESIDUAL, 3, 0},
    {S4D_OP_RESIDUAL, 3, 1},
    {S4D_OP_LOSS_BACKWARD, 7, 0},
};
enum { IN_PLACE = sizeof in_place / sizeof *in_place };
static const struct in_place apart = {S4D_OP_GEMM, 0, 0};

static enum s4d_type type_of(char letter, enum s4d_type compute)
{
    return letter == 'i'        ? S4D_I32
           : letter == 'c'      ? compute
           : compute == S4D_F64 ? S4D_F64
                                : S4D_F32;
}

/* A view whose rows are three elements further apart than they are long. */
static int view(struct s4d_program *p, const struct operand *o, enum s4d_type compute)
{
    enum s4d_type type = type_of(o->type, compute);
    int64_t stride = o->rows > 1 ? o->cols + 3 : o->cols;
    int storage = handmade_storage(p, o->rows * stride * s4d_type_bytes[type], true);
    int id = handmade_tensor(p, storage, type, 0, o->cols);
    struct s4d_tensor *t = &p->tensors[id];
    t->dims = 2;
    t->shape[0] = o->rows;
    t->shape[1] = o->cols;
    t->stride[0] = stride;
    t->stride[1] = 1;
    return id;
}

static struct s4d_program program_of(const struct kernel_case *c, enum s4d_type compute,
                                     const struct in_place *same)
{
    struct s4d_program p = handmade();
    int tensors[S4D_OPERANDS], n = s4d_op_kinds[c->kind].n_operands;
    p.lr = p.step = p.loss_scale = p.denominator = p.found_inf = -1;
    for (int k = 0; k < n; k++)
        tensors[k] = c->operand[k].rows ? view(&p, &c->operand[k], compute) : -1;
    if (same->output != same->input)
        tensors[same->output] = tensors[same->input];
    int op = handmade_op(&p, c->kind, S4D_STREAM_COMPUTE, tensors, n);
    p.ops[op].c = c->c;
    s4d_order(&p, NULL, 0);
    return p;
}

/* Random contents, the same for interpreter and kernel. */
static void fill(struct s4d_interpreter *in, const struct s4d_program *p,
                 const struct kernel_case *c, const struct in_place *same, struct s4d_call *call)
{
    for (int k = 0; k < s4d_op_kinds[c->kind].n_operands; k++) {
        const struct operand *o = &c->operand[k];
        if (o->rows == 0)
            continue;
        if (same->output != same->input && k == same->output) {
            call->operand[k] = call->operand[same->input];
            continue;
        }
        const struct s4d_tensor *t = &p->tensors[p->ops[0].operand[k].tensor];
        struct s4d_buffer *b = &call->operand[k];
        *b = (struct s4d_buffer){NULL, t->type, o->rows, o->cols, t->stride[0]};
        b->data = s4d_calloc((size_t)(b->rows * b->stride), (size_t)s4d_type_bytes[b->type]);
        for (int64_t i = 0; i < o->rows * o->cols; i++) {
            double u = s4d_uniform_at((uint64_t)(100 * c->kind + k), (uint64_t)i);
            double value = o->low + u * (o->high - o->low);
            int64_t at = i / o->cols * b->stride + i % o->cols;
            s4d_number_store(b->type, (unsigned char *)b->data + at * s4d_type_bytes[b->type],
                             o->type == 'i' ? floor(value) : value);
            s4d_interpreter_set(in, 0, p->ops[0].operand[k].tensor, i,
                                o->type == 'i' ? floor(value) : value);
        }
    }
}

/* ||a - b|| / ||b|| of an output; infinite where one is not finite and the other differs. */
static double difference(const struct s4d_interpreter *in, int tensor, const struct s4d_buffer *b)
{
    double apart = 0, size = 0;
    for (int64_t i = 0; i < b->rows * b->cols; i++) {
        int64_t at = i / b->cols * b->stride + i % b->cols;
        double x =
            s4d_number_load(b->type, (unsigned char *)b->data + at * s4d_type_bytes[b->type]);
        double y = s4d_interpreter_get(in, 0, tensor, i);
        if (x == y)
            size += isfinite(y) ? y * y : 0;
        else if (!isfinite(x) || !isfinite(y))
            return INFINITY;
        else {
            apart += (x - y) * (x - y);
            size += y * y;
        }
    }
    return apart == 0 ? 0 : sqrt(apart / size);
}

static double run(const struct kernel_case *c, enum s4d_type compute, const struct in_place *same,
                  const char **of)
{
    struct s4d_program p = program_of(c, compute, same);
    struct s4d_interpreter_options o = s4d_interpreter_options_default();
    struct s4d_interpreter *in = s4d_interpreter_create(&p, &o);
    int coordinate[S4D_AXES] = {0};
    struct s4d_call call = {.op = &p.ops[0], .coordinate = coordinate};
    struct s4d_host_work work = {.call = &call};
    struct s4d_error err;
    double worst = 0;
    fill(in, &p, c, same, &call);
    S4D_ASSERT(s4d_interpreter_run(in, 1, &err) == 0, "%s: %s", err.where, err.text);
    (compute == S4D_F64 ? s4d_host_kernels_f64 : s4d_host_kernels_f32)[c->kind](&work);
    for (int k = 0; k < s4d_op_kinds[c->kind].n_operands; k++) {
        if (!call.operand[k].data)
            continue;
        double d = difference(in, p.ops[0].operand[k].tensor, &call.operand[k]);
        if (d > worst) {
            worst = d;
            *of = s4d_op_kinds[c->kind].operand[k].name;
        }
    }
    for (int k = 0; k < s4d_op_kinds[c->kind].n_operands; k++)
        if (same->output == same->input || k != same->output)
            free(call.operand[k].data);
    s4d_host_work_free(&work);
    s4d_interpreter_free(in);
    s4d_program_free(&p);
    return worst;
}

static int n_tests, n_failed;

static void report(bool good, const char *name, const char *more, const char *of, double apart_by)
{
    n_failed += !good;
    printf("%s %d - %s, %s\n", good ? "ok" : "not ok", ++n_tests, name, more);
    if (!good)
        printf("# %s differs by %.3g\n", of, apart_by);
}

static void check(const struct kernel_case *c, enum s4d_type type, double tolerance)
{
    const char *of = "", *name = s4d_op_kinds[c->kind].name;
    double d = run(c, type, &apart, &of);
    report(d <= tolerance, name, s4d_type_names[type], of, d);
    for (int i = 0; i < IN_PLACE; i++)
        if (in_place[i].kind == c->kind && c->operand[in_place[i].input].rows > 0) {
            d = run(c, type, &in_place[i], &of);
            report(d <= tolerance, name, "in place", of, d);
        }
}

int main(void)
{
    /* fp32's unit is 2^-24, with sums of a thousand terms; 16-bit results are rounded once. */
    static const struct {
        enum s4d_type type;
        double tolerance;
    } types[] = {{S4D_F32, 2e-6}, {S4D_F64, 1e-14}, {S4D_BF16, 2.5e-3}, {S4D_F16, 3e-4}};
    bool tested[S4D_OP_KINDS] = {false};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int j = 0; j < CASES; j++) {
            check(&cases[j], types[i].type, types[i].tolerance);
            tested[cases[j].kind] = true;
        }
    for (int kind = 0; kind < S4D_OP_KINDS; kind++)
        if (s4d_host_kernels_f32[kind] || s4d_host_kernels_f64[kind])
            report(tested[kind], s4d_op_kinds[kind].name, "has a test", "", 0);
    printf("1..%d\n", n_tests);
    return n_failed > 0;
}
