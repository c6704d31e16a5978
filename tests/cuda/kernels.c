/* SPDX-License-Identifier: Apache-2.0 */
/* Every CUDA kernel, compiled for the CPU from its own file, against the host's kernel of that op:
 * on random shapes, most of them awkward (rows apart, nothing aligned, odd widths), in every
 * storage type, with the blocks and grids that a GPU would get, with one thread, and with odd
 * numbers of both. Attention's products are plain loops here. Speaks TAP; needs no CUDA and no MPI.
 *
 *   build/tests/cuda_kernels [SEED] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/cuda/work.h"
#include "real/host/work.h"
#include "support/memory.h"
#include "support/random.h"
#include "tests/cuda/cpu_launch.h"
#include "tests/lib/numbers.h"

/* Operands: type (c compute, f any float, a accumulator, i i32), rows, columns (letters of
 * dimension), contents (of value); '?' in front: sometimes absent. In place: output and input. */
struct kernel_case {
    enum s4d_op_kind kind;
    const char *operand[S4D_OPERANDS];
    int in_place[3][2];
};

/* clang-format off */
static const struct kernel_case cases[] = {
    {S4D_OP_GEMM, {"cMKx", "cKNx", "fMNx"}, {{0}}},
    {S4D_OP_ATTENTION_FORWARD, {"cTQx", "=TOx", "aLSx"}, {{0}}},
    {S4D_OP_ATTENTION_BACKWARD, {"cTQx", "=TOx", "aLSl", "=TOx", "=TQx"}, {{0}}},
    {S4D_OP_NORM_PARTIAL, {"cTHx", "aT2x"}, {{0}}},
    {S4D_OP_NORM_APPLY, {"cTHx", "aT2s", "a1Hx", "a1Hx", "fTHx"}, {{0}}},
    {S4D_OP_NORM_BACKWARD_PARTIAL, {"cTHx", "aT2s", "a1Hx", "fTHx", "aT2x", "a1Hx", "a1Hx"}, {{0}}},
    {S4D_OP_NORM_BACKWARD_APPLY, {"cTHx", "aT2s", "a1Hx", "fTHx", "aT2x", "?fTHx", "fTHx"},
     {{6, 3}, {6, 5}}},
    {S4D_OP_RMS_PARTIAL, {"cTHx", "aT1x"}, {{0}}},
    {S4D_OP_RMS_APPLY, {"cTHx", "aT1s", "a1Hx", "fTHx"}, {{0}}},
    {S4D_OP_RMS_BACKWARD_PARTIAL, {"cTHx", "aT1s", "a1Hx", "fTHx", "aT1x", "a1Hx"}, {{0}}},
    {S4D_OP_RMS_BACKWARD_APPLY, {"cTHx", "aT1s", "a1Hx", "fTHx", "aT1x", "?fTHx", "fTHx"},
     {{6, 3}, {6, 5}}},
    {S4D_OP_ROTARY, {"cTRx"}, {{0}}},
    {S4D_OP_ACTIVATION_FORWARD, {"cTH6", "?a1Hx", "fTHx"}, {{2, 0}}},
    {S4D_OP_ACTIVATION_BACKWARD, {"cTH6", "?a1Hx", "fTHx", "fTHx"}, {{3, 2}}},
    {S4D_OP_GATED_FORWARD, {"cTG6", "fTHx"}, {{0}}},
    {S4D_OP_GATED_BACKWARD, {"cTG6", "fTHx", "fTGx"}, {{2, 0}}},
    {S4D_OP_BIAS, {"a1Hx", "cTHx"}, {{0}}},
    {S4D_OP_COLUMN_SUM, {"cTHx", "a1Hx"}, {{0}}},
    {S4D_OP_RESIDUAL, {"cTHx", "fTHx", "?a1Hx", "fTHx"}, {{3, 0}, {3, 1}}},
    {S4D_OP_EMBEDDING_FORWARD, {"iBSv", "cWHx", "fTHx"}, {{0}}},
    {S4D_OP_EMBEDDING_BACKWARD, {"iBSv", "cTHx", "aWHx"}, {{0}}},
    {S4D_OP_POSITION_FORWARD, {"aSHx", "cTHx"}, {{0}}},
    {S4D_OP_POSITION_BACKWARD, {"cTHx", "aSHx"}, {{0}}},
    {S4D_OP_GOLDFISH, {"iBUv", "iBSv"}, {{0}}},
    {S4D_OP_TOKEN_COUNT, {"iBSv", "a11x"}, {{0}}},
    {S4D_OP_LOSS_MAX, {"cTVx", "aT1x"}, {{0}}},
    {S4D_OP_LOSS_SUM, {"cTVx", "aT1x", "iBSv", "aT2x"}, {{0}}},
    {S4D_OP_LOSS_BACKWARD, {"cTVx", "aT1x", "aT2p", "iBSv", "a11p", "?a11p", "a11x", "fTVx"},
     {{7, 0}}},
    {S4D_OP_LOSS_MEAN, {"a11x", "a11p", "a11x"}, {{0}}},
    {S4D_OP_ADD, {"fTHx", "cHTx"}, {{0}}},
    {S4D_OP_ADD, {"fTHx", "cTHx"}, {{0}}},
    {S4D_OP_CAST, {"fTHx", "cHTx"}, {{0}}},
    {S4D_OP_CAST, {"fTHx", "cTHx"}, {{0}}},
    {S4D_OP_COPY, {"cTHx", "=HTx"}, {{0}}},
    {S4D_OP_COPY, {"iTHv", "iTHv"}, {{0}}},
    {S4D_OP_ZERO, {"fTHx"}, {{0}}},
    {S4D_OP_SQUARED_NORM, {"aTHx", "?a11p", "a12x"}, {{0}}},
    {S4D_OP_CLIP_FACTOR, {"aB2p", "a11x", "a11x", "a11x"}, {{0}}},
    {S4D_OP_STEP, {"?a110", "a11p"}, {{0}}},
    {S4D_OP_ADAMW, {"fTHx", "?a11p", "?a11p", "?a110", "a11p", "a11p", "aTHx", "aTHp", "aTHx",
                    "?cTHx"}, {{0}}},
    {S4D_OP_SCALE_UPDATE, {"a110", "a11p", "a11p"}, {{0}}},
};
/* clang-format on */
enum { CASES = sizeof cases / sizeof *cases, SEEDS = 6, LAUNCHES = 3, CANARY = 64 };

/* Random numbers of one test. */
static uint64_t stream, drawn;

static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(s4d_uniform_at(stream, drawn++) * (double)(high - low + 1));
}

struct shape {
    int64_t batch, seq, h, head_dim, heads, kv, vocab, held, m, n, k;
    int64_t first, valid;
};

static struct shape draw_shape(enum s4d_op_kind kind)
{
    static const int64_t widths[] = {1, 7, 8, 64, 136, 1037};
    struct shape s = {.batch = draw(1, 3), .seq = draw(1, 19), .h = widths[draw(0, 5)]};
    if (kind == S4D_OP_ATTENTION_FORWARD || kind == S4D_OP_ATTENTION_BACKWARD)
        s.seq = draw(1, 170); /* tiles are of 64 rows */
    s.head_dim = draw(0, 1) ? 16 : 2 * draw(1, 13);
    s.kv = draw(1, 3);
    s.heads = s.kv * draw(1, 3);
    s.vocab = draw(1, 1100);
    s.held = draw(1, 30);
    s.m = draw(1, 40);
    s.n = draw(1, 40);
    s.k = draw(1, 40);
    s.first = draw(0, 20);
    s.valid = draw(0, s.vocab);
    return s;
}

static int64_t dimension(char letter, const struct shape *s)
{
    switch (letter) {
    case 'T':
        return s->batch * s->seq;
    case 'H':
        return s->h;
    case 'G':
        return 2 * s->h;
    case 'Q':
        return (s->heads + 2 * s->kv) * s->head_dim;
    case 'O':
    case 'R':
        return s->heads * s->head_dim;
    case 'L':
        return s->batch * s->heads;
    case 'S':
        return s->seq;
    case 'U':
        return s->seq + 1;
    case 'B':
        return s->batch;
    case 'V':
        return s->vocab;
    case 'W':
        return s->held;
    case 'M':
        return s->m;
    case 'N':
        return s->n;
    case 'K':
        return s->k;
    default:
        return letter - '0';
    }
}

static double value(char letter, const struct shape *s)
{
    double u = s4d_uniform_at(stream, drawn++);
    switch (letter) {
    case '6': /* where activations bend */
        return 12 * u - 6;
    case 's': /* sums of a row's squares, of 2 h columns */
        return (double)s->h * (1 + 0.2 * u);
    case 'l': /* of an lse */
        return log((double)s->seq) + u;
    case 'p':
        return 1 + 3 * u;
    case '0': /* a flag */
        return u < 0.8 ? 0 : 1;
    case 'v': /* tokens: own ones and others, some of them dropped */
        return floor(u * (double)(s->first + s->held + 12)) - 4;
    default:
        return 2 * u - 1;
    }
}

static enum s4d_type draw_type(char letter, enum s4d_type compute, enum s4d_type first)
{
    static const enum s4d_type small[] = {S4D_F32, S4D_BF16, S4D_F16};
    switch (letter) {
    case 'i':
        return S4D_I32;
    case 'a':
        return compute == S4D_F64 ? S4D_F64 : S4D_F32;
    case 'f':
        return compute == S4D_F64 ? S4D_F64 : draw(0, 1) ? compute : small[draw(0, 2)];
    case '=':
        return first;
    default:
        return compute;
    }
}

/* An operand: `room` holds what is before, between and after its rows as well. */
struct operand {
    unsigned char *room;
    size_t bytes;
};

static void fill(struct operand *o, struct s4d_buffer *b, char letter, const struct shape *s)
{
    int64_t size = s4d_type_bytes[b->type], before = draw(0, 1) ? 0 : draw(1, 9);
    b->stride = b->rows == 1 || draw(0, 2) == 0 ? b->cols : b->cols + draw(0, 9);
    o->bytes = (size_t)((before + b->rows * b->stride + 16) * size);
    o->room = s4d_malloc(o->bytes);
    memset(o->room, 0x5a, o->bytes);
    b->data = o->room + before * size;
    for (int64_t i = 0; i < b->rows * b->cols; i++)
        s4d_number_store(b->type,
                         (unsigned char *)b->data + (i / b->cols * b->stride + i % b->cols) * size,
                         value(letter, s));
}

static union s4d_constants constants_of(enum s4d_op_kind kind, const struct shape *s)
{
    union s4d_constants c = {.gemm = {0}};
    switch (kind) {
    case S4D_OP_GEMM:
        c.gemm.m = s->m;
        c.gemm.n = s->n;
        c.gemm.k = s->k;
        c.gemm.beta = (double)draw(0, 1);
        break;
    case S4D_OP_ATTENTION_FORWARD:
    case S4D_OP_ATTENTION_BACKWARD:
        c.attention.batch = s->batch;
        c.attention.seq = s->seq;
        c.attention.heads = s->heads;
        c.attention.kv_heads = s->kv;
        c.attention.head_dim = s->head_dim;
        c.attention.scale = 0.3;
        c.attention.causal = draw(0, 2) > 0;
        break;
    case S4D_OP_ROTARY:
        c.rotary.seq = s->seq;
        c.rotary.heads = s->heads;
        c.rotary.head_dim = s->head_dim;
        c.rotary.theta = 10000;
        c.rotary.inverse = draw(0, 1) != 0;
        break;
    case S4D_OP_ACTIVATION_FORWARD:
    case S4D_OP_ACTIVATION_BACKWARD:
    case S4D_OP_GATED_FORWARD:
    case S4D_OP_GATED_BACKWARD:
        c.activation.function = draw(0, 1) ? S4D_SILU : S4D_GELU_TANH;
        break;
    case S4D_OP_EMBEDDING_FORWARD:
    case S4D_OP_EMBEDDING_BACKWARD:
        c.embedding.first = s4d_constant(s->first);
        break;
    case S4D_OP_GOLDFISH:
        c.goldfish.k = 3;
        c.goldfish.context = draw(1, 5);
        break;
    case S4D_OP_LOSS_MAX:
    case S4D_OP_LOSS_SUM:
    case S4D_OP_LOSS_BACKWARD:
        c.loss.first = s4d_constant(s->first);
        c.loss.valid = s4d_constant(s->valid);
        break;
    case S4D_OP_SQUARED_NORM:
        c.norm2.valid = s4d_constant(draw(0, s->batch * s->seq * s->h));
        c.norm2.accumulate = draw(0, 1) != 0;
        break;
    case S4D_OP_CLIP_FACTOR:
        c.clip.clip_norm = (double)draw(0, 1) * 0.5;
        break;
    case S4D_OP_ADAMW:
        c.adamw.beta1 = 0.9;
        c.adamw.beta2 = 0.95;
        c.adamw.epsilon = 1e-8;
        c.adamw.weight_decay = 0.1;
        break;
    case S4D_OP_SCALE_UPDATE:
        c.scale.interval = draw(1, 4);
        break;
    default:
        c.norm.width = 2 * s->h;
        c.norm.epsilon = 1e-5;
    }
    return c;
}

/* What executes the work: the CPU, as `launch` says: 0 as on a GPU, 1 with one thread, 2 with odd
 * grids and blocks. */
struct cpu {
    int launch;
    bool f64;
    void *table;
};

static int launch(void *self, const struct s4d_cuda_kernel *k, const struct s4d_cuda_args *a,
                  struct s4d_error *err)
{
    struct cpu *cpu = self;
    struct s4d_cuda_shape s = s4d_cuda_shape_of(k, a);
    (void)err;
    if (cpu->launch == 1)
        s.threads = 1;
    if (cpu->launch == 2) {
        s.threads = (unsigned)draw(2, 77);
        s.grid_x = (unsigned)draw(1, 5);
        s.grid_y = s.grid_y > 1 ? (unsigned)draw(1, 5) : 1;
    }
    unsigned shared = s.threads * (unsigned)k->bytes;
    s4d_cpu_launch(k->function[cpu->f64], a, s.grid_x, s.grid_y, s.threads,
                   shared < 16 ? 16 : shared);
    return 0;
}

static double at(const struct s4d_cuda_matrix *x, int64_t batch, int64_t i, int64_t j)
{
    int64_t where = batch * x->apart + i * x->ld + j;
    return s4d_number_load(x->type, (unsigned char *)x->data + where * s4d_type_bytes[x->type]);
}

static int multiply(void *self, const struct s4d_cuda_product *p, struct s4d_error *err)
{
    (void)self, (void)err;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < p->k; l++)
                    sum += (p->transpose_a ? at(&p->a, b, l, i) : at(&p->a, b, i, l)) *
                           (p->transpose_b ? at(&p->b, b, j, l) : at(&p->b, b, l, j));
                sum *= p->alpha;
                if (p->beta != 0)
                    sum += p->beta * at(&p->d, b, i, j);
                s4d_number_store(p->d.type,
                                 (unsigned char *)p->d.data +
                                     (b * p->d.apart + i * p->d.ld + j) * s4d_type_bytes[p->d.type],
                                 sum);
            }
    return 0;
}

static const void *rotary_table(void *self, const union s4d_constants *c)
{
    struct cpu *cpu = self;
    int64_t n = c->rotary.seq * c->rotary.head_dim;
    double *angles = s4d_malloc((size_t)n * sizeof *angles);
    s4d_cuda_rotary_angles(c, angles);
    free(cpu->table);
    cpu->table = s4d_malloc((size_t)n * sizeof *angles);
    for (int64_t i = 0; i < n; i++)
        s4d_number_store(cpu->f64 ? S4D_F64 : S4D_F32,
                         (unsigned char *)cpu->table + i * (cpu->f64 ? 8 : 4), angles[i]);
    free(angles);
    return cpu->table;
}

/* The op on the CUDA kernels, with exactly the scratch that it asks for. */
static bool run_cuda(const struct s4d_call *call, int how, bool f64)
{
    struct cpu cpu = {how, f64, NULL};
    struct s4d_cuda_work w = {.self = &cpu,
                              .launch = launch,
                              .multiply = multiply,
                              .rotary_table = rotary_table,
                              .f64 = f64};
    struct s4d_error err;
    int64_t bytes = s4d_cuda_scratch_bytes(&w, call);
    unsigned char *scratch = aligned_alloc(256, (size_t)(bytes + CANARY + 255) / 256 * 256);
    memset(scratch, 0xff, (size_t)(bytes + CANARY));
    w.scratch = scratch;
    bool good = s4d_cuda_work_run(&w, call, &err) == 0;
    for (int i = 0; i < CANARY; i++)
        good = good && scratch[bytes + i] == 0xff;
    free(scratch);
    free(cpu.table);
    return good;
}

/* ||a - b|| / ||b||, infinite where one is not finite and the other differs, or where bytes that
 * are none of its elements changed. */
static double difference(const struct s4d_buffer *a, const struct s4d_buffer *b,
                         const struct operand *room)
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
        if (room->room[i] != 0x5a)
            return INFINITY;
    return apart == 0 ? 0 : a->type == S4D_I32 ? INFINITY : sqrt(apart / size);
}

struct test {
    struct shape shape;
    struct s4d_op op;
    struct s4d_call host, cuda;
    struct operand host_room[S4D_OPERANDS], cuda_room[S4D_OPERANDS];
    int same[2]; /* output and input that are one */
};

static void copy_operand(struct test *t, int k)
{
    t->cuda_room[k] = t->host_room[k];
    t->cuda_room[k].room = s4d_malloc(t->host_room[k].bytes);
    memcpy(t->cuda_room[k].room, t->host_room[k].room, t->host_room[k].bytes);
    t->cuda.operand[k] = t->host.operand[k];
    t->cuda.operand[k].data =
        t->cuda_room[k].room + ((unsigned char *)t->host.operand[k].data - t->host_room[k].room);
}

static void swap(struct s4d_buffer *b)
{
    int64_t rows = b->rows;
    b->rows = b->cols;
    b->cols = rows;
}

static void prepare(struct test *t, const struct kernel_case *c, enum s4d_type compute)
{
    t->shape = draw_shape(c->kind);
    t->op = (struct s4d_op){.kind = c->kind, .label.name = "test"};
    t->op.c = constants_of(c->kind, &t->shape);
    bool turn[2] = {c->kind == S4D_OP_GEMM && draw(0, 1), c->kind == S4D_OP_GEMM && draw(0, 1)};
    t->op.c.gemm.transpose_a |= turn[0];
    t->op.c.gemm.transpose_b |= turn[1];
    int place = (int)draw(-1, 2);
    t->same[0] = t->same[1] = -1;
    if (place >= 0 && c->in_place[place][0] != c->in_place[place][1])
        memcpy(t->same, c->in_place[place], sizeof t->same);
    for (int k = 0; k < S4D_OPERANDS && c->operand[k]; k++) {
        const char *o = c->operand[k];
        bool absent = *o == '?' && draw(0, 1) && k != t->same[1];
        struct s4d_buffer *b = &t->host.operand[k];
        o += *o == '?';
        *b = (struct s4d_buffer){.rows = dimension(o[1], &t->shape),
                                 .cols = dimension(o[2], &t->shape)};
        b->type = draw_type(*o, compute, t->host.operand[0].type);
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
static double run(const struct kernel_case *c, enum s4d_type compute, int how, const char **of)
{
    struct test t = {0};
    int coordinate[S4D_AXES] = {0};
    double worst = 0;
    prepare(&t, c, compute);
    t.host.coordinate = t.cuda.coordinate = coordinate;
    struct s4d_host_work work = {.call = &t.host};
    (compute == S4D_F64 ? s4d_host_kernels_f64 : s4d_host_kernels_f32)[c->kind](&work);
    if (!run_cuda(&t.cuda, how, compute == S4D_F64)) {
        worst = INFINITY;
        *of = "scratch, or the op itself,";
    }
    for (int k = 0; k < S4D_OPERANDS; k++) {
        if (!t.host_room[k].room)
            continue;
        double d = difference(&t.cuda.operand[k], &t.host.operand[k], &t.cuda_room[k]) /
                   tolerance_of(c->kind, t.cuda.operand[k].type);
        if (d > worst) {
            worst = d;
            *of = s4d_op_kinds[c->kind].operand[k].name;
        }
        free(t.host_room[k].room);
        free(t.cuda_room[k].room);
    }
    s4d_host_work_free(&work);
    return worst;
}

int main(int argc, char **argv)
{
    static const enum s4d_type types[] = {S4D_F32, S4D_F64, S4D_BF16, S4D_F16};
    static const char *const launches[LAUNCHES] = {"as launched", "one thread", "odd blocks"};
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    bool tested[S4D_OP_KINDS] = {false};
    int n = 0, failed = 0;
    for (int i = 0; i < CASES; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            for (int how = 0; how < LAUNCHES; how++) {
                const char *of = "";
                double worst = 0;
                tested[cases[i].kind] = true;
                for (uint64_t s = 0; s < SEEDS && worst <= 1; s++) {
                    stream = seed * 1000003 + s * 10007 + (uint64_t)(i * 64 + (int)k * 8 + how);
                    drawn = 0;
                    double d = run(&cases[i], types[k], how, &of);
                    worst = d > worst ? d : worst;
                }
                bool good = worst <= 1;
                failed += !good;
                printf("%s %d - %s, %s, %s\n", good ? "ok" : "not ok", ++n,
                       s4d_op_kinds[cases[i].kind].name, s4d_type_names[types[k]], launches[how]);
                if (!good)
                    printf("# seed %llu: %s differs by %.3g tolerances\n", (unsigned long long)seed,
                           of, worst);
            }
    for (int i = 0; i < S4D_OP_KINDS; i++)
        if (!tested[i] && s4d_host_kernels_f32[i] && s4d_op_kinds[i].op_class != S4D_CLASS_COPY) {
            printf("not ok %d - %s is not tested\n", ++n, s4d_op_kinds[i].name);
            failed++;
        }
    printf("1..%d\n", n);
    return failed > 0;
}
