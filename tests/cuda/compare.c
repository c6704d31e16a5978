/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/host/work.h"
#include "support/memory.h"
#include "tests/cuda/cases.h"
#include "tests/lib/numbers.h"

enum { SEEDS = 6 };

static void fill(struct s4d_room *o, struct s4d_buffer *b, char letter,
                 const struct s4d_case_shape *s)
{
    int64_t size = s4d_type_bytes[b->type], before = s4d_draw(0, 1) ? 0 : s4d_draw(1, 9);
    b->stride = b->rows == 1 || s4d_draw(0, 2) == 0 ? b->cols : b->cols + s4d_draw(0, 9);
    o->bytes = (size_t)((before + b->rows * b->stride + 16) * size);
    o->data = s4d_malloc(o->bytes);
    memset(o->data, 0x5a, o->bytes);
    b->data = o->data + before * size;
    for (int64_t i = 0; i < b->rows * b->cols; i++)
        s4d_number_store(b->type,
                         (unsigned char *)b->data + (i / b->cols * b->stride + i % b->cols) * size,
                         s4d_draw_value(letter, s));
}

/* ||a - b|| / ||b||, infinite where one is not finite and the other differs, or where bytes that
 * are none of its elements changed. */
static double difference(const struct s4d_buffer *a, const struct s4d_buffer *b,
                         const struct s4d_room *room)
{
    double apart = 0, size = 0;
    int64_t bytes = s4d_type_bytes[a->type];
    for (int64_t i = 0; i < a->rows * a->cols; i++) {
        int64_t where = (i / a->cols * a->stride + i % a->cols) * bytes;
        double x = s4d_number_load(a->type, (unsigned char *)a->data + where);
        double y = s4d_number_load(b->type, (unsigned char *)b->data + where);
        if (x != y && (!isfinite(x) || !isfinite(y)))
            return INFINITY;
        if (isfinite(y)) {
            apart += (x - y) * (x - y);
            size += y * y;
        }
        memset((unsigned char *)a->data + where, 0x5a, (size_t)bytes);
    }
    for (size_t i = 0; i < room->bytes; i++)
        if (room->data[i] != 0x5a)
            return INFINITY;
    return apart == 0 ? 0 : a->type == S4D_I32 ? INFINITY : sqrt(apart / size);
}

struct test {
    struct s4d_case_shape shape;
    struct s4d_op op;
    struct s4d_call host, cuda;
    struct s4d_room host_room[S4D_OPERANDS], cuda_room[S4D_OPERANDS];
    int same[2]; /* output and input that are one */
};

static void copy_operand(struct test *t, int k)
{
    t->cuda_room[k] = t->host_room[k];
    t->cuda_room[k].data = s4d_malloc(t->host_room[k].bytes);
    memcpy(t->cuda_room[k].data, t->host_room[k].data, t->host_room[k].bytes);
    t->cuda.operand[k] = t->host.operand[k];
    t->cuda.operand[k].data =
        t->cuda_room[k].data + ((unsigned char *)t->host.operand[k].data - t->host_room[k].data);
}

static void swap(struct s4d_buffer *b)
{
    int64_t rows = b->rows;
    b->rows = b->cols;
    b->cols = rows;
}

static void prepare(struct test *t, const struct s4d_kernel_case *c, enum s4d_type compute)
{
    t->shape = s4d_draw_shape(c->kind);
    t->op = (struct s4d_op){.kind = c->kind, .label.name = "test"};
    t->op.c = s4d_draw_constants(c->kind, &t->shape);
    bool turn[2] = {c->kind == S4D_OP_GEMM && s4d_draw(0, 1),
                    c->kind == S4D_OP_GEMM && s4d_draw(0, 1)};
    if (c->kind == S4D_OP_GEMM) {
        t->op.c.gemm.transpose_a = turn[0];
        t->op.c.gemm.transpose_b = turn[1];
    }
    int place = (int)s4d_draw(-1, 2);
    t->same[0] = t->same[1] = -1;
    if (place >= 0 && c->in_place[place][0] != c->in_place[place][1])
        memcpy(t->same, c->in_place[place], sizeof t->same);
    for (int k = 0; k < S4D_OPERANDS && c->operand[k]; k++) {
        const char *o = c->operand[k];
        bool absent = *o == '?' && s4d_draw(0, 1) && k != t->same[1];
        struct s4d_buffer *b = &t->host.operand[k];
        o += *o == '?';
        *b = (struct s4d_buffer){.rows = s4d_case_dimension(o[1], &t->shape),
                                 .cols = s4d_case_dimension(o[2], &t->shape)};
        b->type = s4d_draw_type(*o, compute, t->host.operand[0].type);
        if (k < 2 && turn[k])
            swap(b);
        if (absent || k == t->same[0])
            continue;
        fill(&t->host_room[k], b, o[3], &t->shape);
        copy_operand(t, k);
    }
    if (t->same[0] >= 0) {
        t->host.operand[t->same[0]] = t->host.operand[t->same[1]];
        t->cuda.operand[t->same[0]] = t->cuda.operand[t->same[1]];
    }
    t->host.op = t->cuda.op = &t->op;
}

/* fp32's unit is 2^-24, and sums of a thousand terms are in another order; 16-bit results may be
 * rounded the other way. Of attention the host keeps the probabilities in fp32. */
static double tolerance_of(enum s4d_op_kind kind, enum s4d_type type)
{
    bool attention = s4d_op_kinds[kind].op_class == S4D_CLASS_ATTENTION;
    return type == S4D_F64    ? 1e-13
           : type == S4D_F32  ? 5e-6
           : type == S4D_BF16 ? (attention ? 8e-3 : 2e-3)
                              : (attention ? 1e-3 : 3e-4);
}

/* Largest difference, in tolerances; infinite if the op failed. */
static double run(const struct s4d_kernel_case *c, enum s4d_type compute,
                  const struct s4d_op_runner *runner, const char **of)
{
    struct test t = {0};
    int coordinate[S4D_AXES] = {0};
    double worst = 0;
    prepare(&t, c, compute);
    t.host.coordinate = t.cuda.coordinate = coordinate;
    struct s4d_host_work work = {.call = &t.host};
    (compute == S4D_F64 ? s4d_host_kernels_f64 : s4d_host_kernels_f32)[c->kind](&work);
    if (!runner->run(runner->self, &t.cuda, t.cuda_room, compute == S4D_F64)) {
        worst = INFINITY;
        *of = "the op failed, or wrote beyond its scratch:";
    }
    for (int k = 0; k < S4D_OPERANDS; k++) {
        if (!t.host_room[k].data)
            continue;
        double d = difference(&t.cuda.operand[k], &t.host.operand[k], &t.cuda_room[k]) /
                   tolerance_of(c->kind, t.cuda.operand[k].type);
        if (d > worst) {
            worst = d;
            *of = s4d_op_kinds[c->kind].operand[k].name;
        }
        free(t.host_room[k].data);
        free(t.cuda_room[k].data);
    }
    s4d_host_work_free(&work);
    return worst;
}

/* Of one case and type, over several shapes. */
static bool check(const struct s4d_kernel_case *c, uint64_t seed, enum s4d_type type,
                  const struct s4d_op_runner *runner)
{
    const char *of = "", *name = s4d_op_kinds[c->kind].name;
    double worst = 0;
    for (uint64_t s = 0; s < SEEDS && worst <= 1; s++) {
        s4d_draw_from(seed * 1000003 + s * 10007 + (uint64_t)type * 101 +
                      s4d_hash_text(runner->name));
        double d = run(c, type, runner, &of);
        worst = d > worst ? d : worst;
    }
    printf("%s - %s, %s, %s\n", worst <= 1 ? "ok" : "not ok", name, s4d_type_names[type],
           runner->name);
    if (worst > 1)
        printf("# seed %llu: %s differs by %.3g tolerances\n", (unsigned long long)seed, of, worst);
    return worst <= 1;
}

int s4d_compare_kernels(uint64_t seed, const struct s4d_op_runner *runners, int n_runners,
                        int n_before)
{
    static const enum s4d_type types[] = {S4D_F32, S4D_F64, S4D_BF16, S4D_F16};
    bool tested[S4D_OP_KINDS] = {false};
    int n = n_before, failed = 0;
    for (int i = 0; i < s4d_n_kernel_cases; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            for (int r = 0; r < n_runners; r++, n++) {
                tested[s4d_kernel_cases[i].kind] = true;
                failed += !check(&s4d_kernel_cases[i], seed + (uint64_t)i, types[k], &runners[r]);
            }
    for (int i = 0; i < S4D_OP_KINDS; i++)
        if (!tested[i] && s4d_host_kernels_f32[i] && s4d_op_kinds[i].op_class != S4D_CLASS_COPY) {
            printf("not ok - %s is not tested\n", s4d_op_kinds[i].name);
            failed++;
            n++;
        }
    printf("1..%d\n", n);
    return failed;
}
