/* SPDX-License-Identifier: Apache-2.0 */
#include "real/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "real/probe.h"
#include "support/memory.h"

struct s4d_calibrated_op s4d_calibration_key(const struct s4d_program *program,
                                             const struct s4d_op *op)
{
    struct s4d_calibrated_op key = {.kind = op->kind};
    switch (s4d_op_kinds[op->kind].op_class) {
    case S4D_CLASS_GEMM:
        key.c.gemm = op->c.gemm;
        break;
    case S4D_CLASS_ATTENTION:
        key.c.attention = op->c.attention;
        break;
    case S4D_CLASS_COPY: {
        const struct s4d_tensor *t = &program->tensors[op->operand[0].tensor];
        key.bytes = s4d_tensor_elements(t) * s4d_type_bytes[t->type];
        break;
    }
    default:
        key.bytes = op->bytes_read + op->bytes_written;
    }
    return key;
}

bool s4d_calibration_same(const struct s4d_calibrated_op *a, const struct s4d_calibrated_op *b)
{
    const union s4d_constants *x = &a->c, *y = &b->c;
    if (a->kind != b->kind)
        return false;
    switch (s4d_op_kinds[a->kind].op_class) {
    case S4D_CLASS_GEMM:
        return x->gemm.m == y->gemm.m && x->gemm.n == y->gemm.n && x->gemm.k == y->gemm.k &&
               x->gemm.transpose_a == y->gemm.transpose_a &&
               x->gemm.transpose_b == y->gemm.transpose_b;
    case S4D_CLASS_ATTENTION:
        return x->attention.batch == y->attention.batch && x->attention.seq == y->attention.seq &&
               x->attention.heads == y->attention.heads &&
               x->attention.kv_heads == y->attention.kv_heads &&
               x->attention.head_dim == y->attention.head_dim &&
               x->attention.causal == y->attention.causal;
    default:
        return a->bytes == b->bytes;
    }
}

static struct s4d_calibrated_op *find(const struct s4d_calibration *c,
                                      const struct s4d_calibrated_op *key)
{
    for (int i = 0; i < c->n_ops; i++)
        if (s4d_calibration_same(&c->op[i], key))
            return &c->op[i];
    return NULL;
}

static void add_op(struct s4d_calibration *c, const struct s4d_calibrated_op *measured)
{
    struct s4d_calibrated_op *there = find(c, measured);
    if (there)
        s4d_probed_keep(&there->probed, &measured->probed);
    else
        s4d_push(c->op, c->n_ops, c->cap_ops, *measured);
}

int s4d_calibrate_program(struct s4d_calibration *c, struct s4d_probe *probe,
                          const struct s4d_program *program, unsigned classes, int pass,
                          struct s4d_error *err)
{
    for (int i = 0; i < program->n_ops; i++) {
        const struct s4d_op *op = &program->ops[i];
        struct s4d_calibrated_op key = s4d_calibration_key(program, op);
        struct s4d_calibrated_op *there = find(c, &key);
        if (!(classes & 1u << s4d_op_kinds[op->kind].op_class) || (there && there->passes > pass))
            continue;
        if (s4d_probe_op(probe, program, op, &key.probed, err))
            return -1;
        add_op(c, &key);
        find(c, &key)->passes = pass + 1;
    }
    return 0;
}

static struct s4d_tensor matrix(enum s4d_type type, int64_t rows, int64_t cols)
{
    return (struct s4d_tensor){.type = type, .dims = 2, .shape = {rows, cols}, .stride = {cols, 1}};
}

/* A program of one product, of another's sizes and types. */
static int probe_product(struct s4d_calibration *c, struct s4d_probe *probe,
                         const struct s4d_program *of, const struct s4d_op *shape, int transposes,
                         int pass, struct s4d_error *err)
{
    struct s4d_op op = {.kind = S4D_OP_GEMM, .stream = S4D_STREAM_COMPUTE, .label.name = "probe"};
    enum s4d_type type[3];
    for (int i = 0; i < 3; i++) {
        type[i] = of->tensors[shape->operand[i].tensor].type;
        op.operand[i] = (struct s4d_operand){i, i == 2 ? S4D_WRITE : S4D_READ};
    }
    op.c.gemm = shape->c.gemm;
    op.c.gemm.beta = 0;
    op.c.gemm.transpose_a = transposes & 1;
    op.c.gemm.transpose_b = transposes >> 1 & 1;
    int64_t m = op.c.gemm.m, n = op.c.gemm.n, k = op.c.gemm.k;
    struct s4d_tensor tensors[3] = {
        op.c.gemm.transpose_a ? matrix(type[0], k, m) : matrix(type[0], m, k),
        op.c.gemm.transpose_b ? matrix(type[1], n, k) : matrix(type[1], k, n),
        matrix(type[2], m, n)};
    struct s4d_program program = {.tensors = tensors, .n_tensors = 3, .ops = &op, .n_ops = 1};
    program.arena_bytes[S4D_DEVICE] = of->arena_bytes[S4D_DEVICE];
    return s4d_calibrate_program(c, probe, &program, 1u << S4D_CLASS_GEMM, pass, err);
}

int s4d_calibrate_transposes(struct s4d_calibration *c, struct s4d_probe *probe,
                             const struct s4d_program *program, int pass, struct s4d_error *err)
{
    for (int i = 0; i < program->n_ops; i++)
        for (int t = 0; t < 4 && program->ops[i].kind == S4D_OP_GEMM; t++)
            if (probe_product(c, probe, program, &program->ops[i], t, pass, err))
                return -1;
    return 0;
}

/* A program of one op, from a vector to a vector. */
static int probe_copy(struct s4d_probe *probe, enum s4d_op_kind kind, enum s4d_stream stream,
                      int64_t bytes, struct s4d_calibrated_op *point, struct s4d_error *err)
{
    struct s4d_tensor tensors[2];
    struct s4d_op op = {.kind = kind, .stream = stream, .label.name = "probe"};
    struct s4d_program program = {.tensors = tensors, .n_tensors = 2, .ops = &op, .n_ops = 1};
    for (int i = 0; i < 2; i++) {
        tensors[i] =
            (struct s4d_tensor){.type = S4D_F32, .dims = 1, .shape = {bytes / 4}, .stride = {1}};
        op.operand[i] = (struct s4d_operand){i, i ? S4D_WRITE : S4D_READ};
    }
    if (s4d_op_kinds[kind].op_class == S4D_CLASS_KERNEL)
        op.bytes_read = op.bytes_written = bytes;
    *point = s4d_calibration_key(&program, &op);
    return s4d_probe_op(probe, &program, &op, &point->probed, err);
}

int s4d_calibrate_copies(struct s4d_calibration *c, struct s4d_probe *probe, int64_t largest,
                         struct s4d_error *err)
{
    static const struct {
        enum s4d_op_kind kind;
        enum s4d_stream stream;
    } kinds[] = {{S4D_OP_COPY, S4D_STREAM_COMPUTE},
                 {S4D_OP_HOST_TO_DEVICE, S4D_STREAM_COPY_IN},
                 {S4D_OP_DEVICE_TO_HOST, S4D_STREAM_COPY_OUT}};
    struct s4d_calibrated_op point;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int64_t bytes = 4096; bytes <= largest; bytes *= 4) {
            if (probe_copy(probe, kinds[k].kind, kinds[k].stream, bytes, &point, err))
                return -1;
            add_op(c, &point);
        }
    if (probe_copy(probe, S4D_OP_COPY, S4D_STREAM_COMPUTE, 4, &point, err))
        return -1;
    s4d_probed_keep(&c->launch, &point.probed);
    return 0;
}

static void add_collective(struct s4d_calibration *c, const struct s4d_calibrated_collective *point)
{
    for (int i = 0; i < c->n_collectives; i++) {
        struct s4d_calibrated_collective *p = &c->collective[i];
        if (p->kind == point->kind && p->ranks == point->ranks && p->bytes == point->bytes) {
            s4d_probed_keep(&p->probed, &point->probed);
            return;
        }
    }
    s4d_push(c->collective, c->n_collectives, c->cap_collectives, *point);
}

int s4d_calibrate_collectives(struct s4d_calibration *c, struct s4d_probe *probe,
                              const struct s4d_grid *grid, enum s4d_stream stream, int64_t largest,
                              struct s4d_error *err)
{
    static const enum s4d_op_kind kinds[] = {S4D_OP_ALL_REDUCE, S4D_OP_ALL_GATHER,
                                             S4D_OP_REDUCE_SCATTER};
    int ranks = s4d_group_size(grid, s4d_streams[stream].axes);
    for (int k = 0; k < 3; k++)
        for (int64_t bytes = 4; bytes <= largest; bytes *= 2) {
            struct s4d_calibrated_collective point = {kinds[k], ranks, bytes, {{0}, 0, 0}};
            if (kinds[k] != S4D_OP_ALL_REDUCE && bytes % (4 * ranks) != 0)
                continue;
            if (s4d_probe_collective(probe, grid, kinds[k], stream, bytes, &point.probed, err))
                return -1;
            add_collective(c, &point);
        }
    return 0;
}

void s4d_calibration_free(struct s4d_calibration *c)
{
    free(c->op);
    free(c->collective);
    *c = (struct s4d_calibration){0};
}

double s4d_calibrated_bus_Bps(const struct s4d_calibrated_collective *c)
{
    double factor = (c->ranks - 1.0) / c->ranks * (c->kind == S4D_OP_ALL_REDUCE ? 2 : 1);
    return factor * (double)c->bytes / c->probed.t.median;
}
