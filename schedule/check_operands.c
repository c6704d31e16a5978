/* SPDX-License-Identifier: Apache-2.0 */
/* Operands against the kinds' contracts: the type and shape that schedule/op.h gives each. */
#include "schedule/check_operands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int s4d_check_fail(const struct s4d_program *p, int op, struct s4d_error *err, const char *format,
                   ...)
{
    const struct s4d_op *x = &p->ops[op];
    char where[512], text[1024];
    int n = snprintf(where, sizeof where, "op %d, %s[%d] %s %.80s", op, s4d_streams[x->stream].name,
                     x->position, s4d_op_kinds[x->kind].name, x->label.name ? x->label.name : "");
    if (x->label.layer >= 0)
        n += snprintf(where + n, sizeof where - (size_t)n, ", layer %d", x->label.layer);
    if (x->label.micro_batch >= 0)
        snprintf(where + n, sizeof where - (size_t)n, ", micro-batch %d", x->label.micro_batch);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return s4d_fail(err, S4D_EXIT_BUG, where, "%s", text);
}

static bool is_float(enum s4d_type t)
{
    return t == S4D_F64 || t == S4D_F32 || t == S4D_BF16 || t == S4D_F16;
}

static const struct s4d_tensor *tensor_of(const struct s4d_program *p, int op, int k)
{
    return &p->tensors[p->ops[op].operand[k].tensor];
}

static int64_t columns(const struct s4d_tensor *t)
{
    return t->shape[t->dims - 1];
}

static int check_access(const struct s4d_program *p, int op, int k, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    const struct s4d_op_info *info = &s4d_op_kinds[x->kind];
    const struct s4d_operand *u = &x->operand[k];
    const char *name = info->operand[k].name;
    if (u->tensor == -1 && info->operand[k].optional)
        return 0;
    if (u->tensor < 0 || u->tensor >= p->n_tensors)
        return s4d_check_fail(p, op, err, "operand %s: expected a tensor, got %d", name, u->tensor);
    bool accumulates = (x->kind == S4D_OP_GEMM && x->c.gemm.beta != 0) ||
                       (x->kind == S4D_OP_SQUARED_NORM && x->c.norm2.accumulate);
    char a = info->operand[k].access;
    enum s4d_access expected = a == 'r'                  ? S4D_READ
                               : a == 'w'                ? S4D_WRITE
                               : a == 'a' || accumulates ? S4D_ACCUMULATE
                                                         : S4D_WRITE;
    if (u->access != expected)
        return s4d_check_fail(p, op, err, "operand %s: expected access %d, got %d", name, expected,
                              u->access);
    const struct s4d_tensor *t = &p->tensors[u->tensor];
    if (t->storage < 0 || t->storage >= p->n_storages || t->dims < 1 || t->dims > S4D_DIMS)
        return s4d_check_fail(p, op, err, "operand %s: %s is no view of a storage", name, t->name);
    if (s4d_tensor_elements(t) < 1)
        return s4d_check_fail(p, op, err, "operand %s: %s has no elements", name, t->name);
    int64_t first, last, bytes = p->storages[t->storage].bytes;
    s4d_tensor_range(p, u->tensor, &first, &last);
    if (first < 0 || last > bytes)
        return s4d_check_fail(p, op, err,
                              "operand %s: %s uses bytes %lld to %lld of the %lld of storage %s",
                              name, t->name, (long long)first, (long long)last, (long long)bytes,
                              p->storages[t->storage].name);
    bool host = x->kind == S4D_OP_READ_TOKENS || (x->kind == S4D_OP_HOST_TO_DEVICE && k == 0) ||
                (x->kind == S4D_OP_DEVICE_TO_HOST && k == 1);
    if (host != (p->storages[t->storage].place == S4D_PINNED_HOST))
        return s4d_check_fail(p, op, err, "operand %s: expected %s memory", name,
                              host ? "pinned host" : "device");
    return 0;
}

static int check_type(const struct s4d_program *p, int op, int k, struct s4d_error *err)
{
    enum s4d_type t = tensor_of(p, op, k)->type;
    enum s4d_type accumulator = p->options.precision == S4D_F64 ? S4D_F64 : S4D_F32;
    char code = s4d_op_kinds[p->ops[op].kind].operand[k].contract[0];
    bool good = code == 'f'   ? is_float(t)
                : code == 'a' ? t == accumulator
                : code == 'i' ? t == S4D_I32
                : code == '=' ? t == tensor_of(p, op, 0)->type
                              : true;
    if (good)
        return 0;
    return s4d_check_fail(p, op, err, "operand %s: expected %s, got %s",
                          s4d_op_kinds[p->ops[op].kind].operand[k].name,
                          code == 'f'   ? "a floating-point type"
                          : code == 'a' ? s4d_type_names[accumulator]
                          : code == 'i' ? "i32"
                                        : "the first operand's type",
                          s4d_type_names[t]);
}

/* Binds or compares a letter of a shape. */
static bool fits(int64_t value[128], char letter, int64_t n)
{
    if (letter == '-')
        return true;
    if (letter >= '0' && letter <= '9')
        return n == letter - '0';
    if (value[(int)letter] < 0)
        value[(int)letter] = n;
    return value[(int)letter] == n;
}

static int check_shapes(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op_info *info = &s4d_op_kinds[p->ops[op].kind];
    int64_t value[128];
    memset(value, -1, sizeof value);
    for (int k = 0; k < info->n_operands; k++) {
        if (p->ops[op].operand[k].tensor < 0)
            continue;
        if (check_type(p, op, k, err) != 0)
            return -1;
        const struct s4d_tensor *t = tensor_of(p, op, k);
        const char *shape = info->operand[k].contract + 2;
        int64_t n = s4d_tensor_elements(t);
        bool good = shape[1]
                        ? fits(value, shape[0], n / columns(t)) && fits(value, shape[1], columns(t))
                        : fits(value, shape[0], n);
        if (!good)
            return s4d_check_fail(p, op, err,
                                  "operand %s: expected shape %s, got %lld rows of %lld, which "
                                  "does not agree with the other operands",
                                  info->operand[k].name, shape, (long long)(n / columns(t)),
                                  (long long)columns(t));
    }
    return 0;
}

static int expect_shape(const struct s4d_program *p, int op, int k, int64_t rows, int64_t cols,
                        struct s4d_error *err)
{
    const struct s4d_tensor *t = tensor_of(p, op, k);
    int64_t r = s4d_tensor_elements(t) / columns(t);
    if (r == rows && columns(t) == cols && t->stride[t->dims - 1] == 1)
        return 0;
    return s4d_check_fail(p, op, err, "operand %s: expected (%lld, %lld), got (%lld, %lld)",
                          s4d_op_kinds[p->ops[op].kind].operand[k].name, (long long)rows,
                          (long long)cols, (long long)r, (long long)columns(t));
}

static int check_gemm(const struct s4d_program *p, int op, struct s4d_error *err)
{
    int64_t m = p->ops[op].c.gemm.m, n = p->ops[op].c.gemm.n, k = p->ops[op].c.gemm.k;
    bool ta = p->ops[op].c.gemm.transpose_a, tb = p->ops[op].c.gemm.transpose_b;
    double beta = p->ops[op].c.gemm.beta;
    if (beta != 0 && beta != 1)
        return s4d_check_fail(p, op, err, "expected beta 0 or 1, got %g", beta);
    return expect_shape(p, op, 0, ta ? k : m, ta ? m : k, err) ||
                   expect_shape(p, op, 1, tb ? n : k, tb ? k : n, err) ||
                   expect_shape(p, op, 2, m, n, err)
               ? -1
               : 0;
}

static int check_attention(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    int64_t T = x->c.attention.batch * x->c.attention.seq, heads = x->c.attention.heads,
            kv = x->c.attention.kv_heads, d = x->c.attention.head_dim;
    if (kv < 1 || heads % kv != 0)
        return s4d_check_fail(p, op, err, "%lld heads on %lld key-value heads", (long long)heads,
                              (long long)kv);
    if (expect_shape(p, op, 0, T, (heads + 2 * kv) * d, err) != 0 ||
        expect_shape(p, op, 1, T, heads * d, err) != 0)
        return -1;
    if (s4d_tensor_elements(tensor_of(p, op, 2)) != T * heads)
        return s4d_check_fail(p, op, err, "operand lse: expected %lld elements",
                              (long long)(T * heads));
    return 0;
}

static bool contiguous(const struct s4d_tensor *t)
{
    int64_t stride = 1;
    for (int d = t->dims - 1; d >= 0; stride *= t->shape[d--])
        if (t->stride[d] != stride && t->shape[d] != 1)
            return false;
    return true;
}

/* in is out's block at the own place in the group. */
static bool is_own_block(const struct s4d_program *p, int op)
{
    const struct s4d_op *x = &p->ops[op];
    const struct s4d_tensor *in = tensor_of(p, op, 0), *out = tensor_of(p, op, 1);
    for (int r = 0; r < s4d_grid_ranks(&p->grid); r++) {
        int c[S4D_AXES];
        s4d_grid_coordinates(&p->grid, r, c);
        int64_t own = s4d_group_index(&p->grid, r, x->c.collective.axes) * x->c.collective.count;
        if (s4d_expr_value(&in->offset, c) != s4d_expr_value(&out->offset, c) + own)
            return false;
    }
    return true;
}

static int check_aliases(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    const struct s4d_tensor *in = tensor_of(p, op, 0), *out = tensor_of(p, op, 1);
    int64_t f0, l0, f1, l1;
    s4d_tensor_range(p, x->operand[0].tensor, &f0, &l0);
    s4d_tensor_range(p, x->operand[1].tensor, &f1, &l1);
    if (in->storage != out->storage || f0 >= l1 || f1 >= l0)
        return 0;
    if (x->kind == S4D_OP_ALL_REDUCE && memcmp(&in->offset, &out->offset, sizeof in->offset) == 0)
        return 0;
    if (x->kind == S4D_OP_ALL_GATHER && is_own_block(p, op))
        return 0;
    return s4d_check_fail(p, op, err, "in and out overlap: %s",
                          x->kind == S4D_OP_ALL_REDUCE   ? "they must be the same or disjoint"
                          : x->kind == S4D_OP_ALL_GATHER ? "in must be the own block of out"
                                                         : "they must be disjoint");
}

static int check_collective(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    s4d_axes axes = x->c.collective.axes;
    int members = x->c.collective.members, size = s4d_group_size(&p->grid, axes);
    int64_t count = x->c.collective.count;
    if (axes != s4d_streams[x->stream].axes || axes == 0)
        return s4d_check_fail(p, op, err, "axes 0x%x on stream %s", axes,
                              s4d_streams[x->stream].name);
    if (members != size)
        return s4d_check_fail(p, op, err, "expected %d members, as the grid has it, got %d", size,
                              members);
    const int64_t in = x->kind == S4D_OP_REDUCE_SCATTER ? count * members : count,
                  out = x->kind == S4D_OP_ALL_GATHER ? count * members : count;
    for (int k = 0; k < 2; k++) {
        const struct s4d_tensor *t = tensor_of(p, op, k);
        int64_t expected = k == 0 ? in : out;
        if (t->type != x->c.collective.type)
            return s4d_check_fail(p, op, err, "operand %s: %s, but %s on the wire",
                                  k == 0 ? "in" : "out", s4d_type_names[t->type],
                                  s4d_type_names[x->c.collective.type]);
        if (s4d_tensor_elements(t) != expected || !contiguous(t))
            return s4d_check_fail(
                p, op, err, "operand %s: expected %lld contiguous elements, got %lld",
                k == 0 ? "in" : "out", (long long)expected, (long long)s4d_tensor_elements(t));
    }
    return check_aliases(p, op, err);
}

/* Where a channel's message goes, or comes from, as seen from a stage; 0: nowhere. */
static int peer_of(const struct s4d_program *p, enum s4d_op_kind kind,
                   enum s4d_pipe_channel channel)
{
    int last = p->grid.size[S4D_PIPE] - 1, up = kind == S4D_OP_SEND ? 1 : -1;
    if (channel == S4D_CHANNEL_ENDS)
        return p->stage == 0 ? last : p->stage == last ? -last : 0;
    return channel == S4D_CHANNEL_FORWARD ? up : -up;
}

static int check_message(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    const struct s4d_tensor *t = tensor_of(p, op, 0);
    const char *to = x->kind == S4D_OP_SEND ? "to" : "from";
    int peer = x->c.message.peer, pipe = p->grid.size[S4D_PIPE];
    enum s4d_pipe_channel channel = x->c.message.channel;
    if ((int)channel < 0 || channel >= S4D_CHANNELS)
        return s4d_check_fail(p, op, err, "no such channel");
    if (peer == 0 || peer != peer_of(p, x->kind, channel))
        return s4d_check_fail(p, op, err, "channel %s does not lead %s pipe%+d from stage %d of %d",
                              s4d_channel_names[channel], to, peer, p->stage, pipe);
    if (p->stage + peer < 0 || p->stage + peer >= pipe)
        return s4d_check_fail(p, op, err, "%s pipe%+d: stage %d has none there in a pipe of %d", to,
                              peer, p->stage, pipe);
    if (t->type != x->c.message.type)
        return s4d_check_fail(p, op, err, "operand %s: %s, but %s on the wire",
                              s4d_op_kinds[x->kind].operand[0].name, s4d_type_names[t->type],
                              s4d_type_names[x->c.message.type]);
    if (s4d_tensor_elements(t) != x->c.message.count || !contiguous(t))
        return s4d_check_fail(p, op, err, "operand %s: expected %lld contiguous elements, got %lld",
                              s4d_op_kinds[x->kind].operand[0].name, (long long)x->c.message.count,
                              (long long)s4d_tensor_elements(t));
    return 0;
}

static bool stream_takes(enum s4d_stream stream, enum s4d_op_kind kind)
{
    switch (s4d_op_kinds[kind].op_class) {
    case S4D_CLASS_COLLECTIVE:
        return s4d_streams[stream].axes != 0 && s4d_streams[stream].axes != S4D_AXIS(S4D_PIPE);
    case S4D_CLASS_MESSAGE:
        return s4d_streams[stream].axes == S4D_AXIS(S4D_PIPE);
    case S4D_CLASS_COPY:
        return stream == (kind == S4D_OP_HOST_TO_DEVICE ? S4D_STREAM_COPY_IN : S4D_STREAM_COPY_OUT);
    case S4D_CLASS_HOST:
        return stream == S4D_STREAM_HOST;
    default:
        return stream == S4D_STREAM_COMPUTE;
    }
}

int s4d_check_operands(const struct s4d_program *p, int op, struct s4d_error *err)
{
    const struct s4d_op *x = &p->ops[op];
    for (int k = 0; k < s4d_op_kinds[x->kind].n_operands; k++)
        if (check_access(p, op, k, err) != 0)
            return -1;
    if (!stream_takes(x->stream, x->kind))
        return s4d_check_fail(p, op, err, "a kind that does not run on this stream");
    if (check_shapes(p, op, err) != 0)
        return -1;
    if (x->kind == S4D_OP_GEMM)
        return check_gemm(p, op, err);
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_ATTENTION)
        return check_attention(p, op, err);
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_COLLECTIVE)
        return check_collective(p, op, err);
    if (s4d_op_kinds[x->kind].op_class == S4D_CLASS_MESSAGE)
        return check_message(p, op, err);
    return 0;
}
