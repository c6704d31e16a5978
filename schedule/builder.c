/* SPDX-License-Identifier: Apache-2.0 */
/* Emitting ops: storages, tensors, operands' access and byte counts, collectives. */
#include "schedule/builder.h"

#include <stdlib.h>
#include <string.h>

void s4d_builder_init(struct s4d_builder *b, struct s4d_program *p)
{
    *b = (struct s4d_builder){.p = p, .model = &p->model, .grid = &p->grid, .options = &p->options};
    b->label =
        (struct s4d_label){.phase = S4D_PHASE_INPUT, .layer = -1, .micro_batch = -1, .name = ""};
    b->embedding_weight = b->tied_gradient = b->tokens = b->targets = -1;
    b->scalars = -1;
}

void s4d_builder_fini(struct s4d_builder *b)
{
    free(b->uses);
    free(b->edges);
    free(b->pending);
    free(b->buffers);
    free(b->cached_block);
}

enum s4d_type s4d_compute_type(const struct s4d_builder *b)
{
    return (enum s4d_type)b->options->precision;
}

enum s4d_type s4d_accumulate_type(const struct s4d_builder *b)
{
    return b->options->precision == S4D_F64 ? S4D_F64 : S4D_F32;
}

const char *s4d_name(struct s4d_builder *b, const char *prefix, const char *suffix)
{
    size_t n = strlen(prefix), m = strlen(suffix);
    char *name = s4d_arena_alloc(&b->p->memory, n + m + 1);
    memcpy(name, prefix, n);
    memcpy(name + n, suffix, m); /* thousands of names: printf takes a tenth of building */
    return name;
}

int s4d_add_storage(struct s4d_builder *b, const char *name, int64_t bytes, enum s4d_role role,
                    bool persistent)
{
    struct s4d_program *p = b->p;
    struct s4d_storage s = {
        .name = name, .bytes = bytes, .role = role, .persistent = persistent, .offset = -1};
    s4d_push(p->storages, p->n_storages, p->cap_storages, s);
    return p->n_storages - 1;
}

int s4d_add_tensor(struct s4d_builder *b, const char *name, int storage, enum s4d_type type,
                   int64_t offset, int64_t rows, int64_t cols)
{
    struct s4d_program *p = b->p;
    struct s4d_tensor t = {
        .name = name, .storage = storage, .type = type, .offset = s4d_constant(offset), .dims = 2};
    t.shape[0] = rows;
    t.shape[1] = cols;
    t.stride[0] = cols;
    t.stride[1] = 1;
    s4d_push(p->tensors, p->n_tensors, p->cap_tensors, t);
    return p->n_tensors - 1;
}

int s4d_new(struct s4d_builder *b, const char *name, enum s4d_role role, enum s4d_type type,
            int64_t rows, int64_t cols)
{
    int storage = s4d_add_storage(b, name, rows * cols * s4d_type_bytes[type], role, false);
    return s4d_add_tensor(b, name, storage, type, 0, rows, cols);
}

int s4d_view(struct s4d_builder *b, int tensor, int64_t offset, int64_t rows, int64_t cols,
             int64_t row_stride)
{
    struct s4d_program *p = b->p;
    struct s4d_tensor t = p->tensors[tensor];
    t.offset.base += offset;
    t.dims = 2;
    t.shape[0] = rows;
    t.shape[1] = cols;
    t.stride[0] = row_stride;
    t.stride[1] = 1;
    s4d_push(p->tensors, p->n_tensors, p->cap_tensors, t);
    return p->n_tensors - 1;
}

/* Scalars lie 256 bytes apart, so that each is its own range for hazards and cache lines. */
int s4d_scalar(struct s4d_builder *b, const char *name)
{
    enum { SLOTS = 16, SLOT_BYTES = 256 };
    enum s4d_type type = s4d_accumulate_type(b);
    if (b->scalars < 0)
        b->scalars = s4d_add_storage(b, "scalars", SLOTS * SLOT_BYTES, S4D_ROLE_SCALAR, true);
    S4D_ASSERT(b->n_scalars < SLOTS, "too many scalars");
    return s4d_add_tensor(b, name, b->scalars, type,
                          b->n_scalars++ * (SLOT_BYTES / s4d_type_bytes[type]), 1, 1);
}

static enum s4d_access access_of(char letter)
{
    return letter == 'r' ? S4D_READ : letter == 'w' ? S4D_WRITE : S4D_ACCUMULATE;
}

/* Recounts the device traffic from the operands, each touched once. */
static void count_bytes(const struct s4d_program *p, struct s4d_op *op)
{
    op->bytes_read = op->bytes_written = 0;
    if (s4d_communicates(op->kind))
        return;
    for (int i = 0; i < s4d_op_kinds[op->kind].n_operands; i++) {
        if (op->operand[i].tensor < 0)
            continue;
        const struct s4d_tensor *t = &p->tensors[op->operand[i].tensor];
        int64_t bytes = s4d_tensor_elements(t) * s4d_type_bytes[t->type];
        op->bytes_read += op->operand[i].access & S4D_READ ? bytes : 0;
        op->bytes_written += op->operand[i].access & S4D_WRITE ? bytes : 0;
    }
}

struct s4d_op *s4d_emit(struct s4d_builder *b, enum s4d_op_kind kind, enum s4d_stream stream,
                        const int *operands, int n)
{
    const struct s4d_op_info *info = &s4d_op_kinds[kind];
    S4D_ASSERT(n == info->n_operands, "%s takes %d operands, given %d", info->name,
               info->n_operands, n);
    struct s4d_op op = {.kind = kind, .stream = stream, .label = b->label};
    for (int i = 0; i < S4D_OPERANDS; i++) {
        op.operand[i].tensor = i < n ? operands[i] : -1;
        op.operand[i].access = i < n ? access_of(info->operand[i].access) : S4D_READ;
        S4D_ASSERT(i >= n || operands[i] >= 0 || info->operand[i].optional, "%s needs %s",
                   info->name, info->operand[i].name);
    }
    count_bytes(b->p, &op);
    s4d_push(b->p->ops, b->p->n_ops, b->p->cap_ops, op);
    return &b->p->ops[b->p->n_ops - 1];
}

/* A: (m,k) or transposed (k,m); B: (k,n) or (n,k); D: (m,n). */
struct s4d_op *s4d_gemm(struct s4d_builder *b, int a, bool transpose_a, int w, bool transpose_b,
                        int d, bool accumulate)
{
    const struct s4d_tensor *ta = &b->p->tensors[a], *tb = &b->p->tensors[w],
                            *td = &b->p->tensors[d];
    int64_t m = ta->shape[transpose_a ? 1 : 0], k = ta->shape[transpose_a ? 0 : 1];
    int64_t n = tb->shape[transpose_b ? 0 : 1], kb = tb->shape[transpose_b ? 1 : 0];
    S4D_ASSERT(k == kb && td->shape[0] == m && td->shape[1] == n, "gemm %s: shapes do not meet",
               b->label.name);
    struct s4d_op *op = S4D_COMPUTE(b, S4D_OP_GEMM, a, w, d);
    op->c.gemm.m = m;
    op->c.gemm.n = n;
    op->c.gemm.k = k;
    op->c.gemm.transpose_a = transpose_a;
    op->c.gemm.transpose_b = transpose_b;
    op->c.gemm.beta = accumulate ? 1 : 0;
    op->operand[2].access = accumulate ? S4D_ACCUMULATE : S4D_WRITE;
    count_bytes(b->p, op);
    op->flops = op->model_flops = 2.0 * (double)m * (double)n * (double)k;
    return op;
}

static enum s4d_stream stream_of(s4d_axes axes)
{
    for (int s = 0; s < S4D_STREAMS; s++)
        if (s4d_streams[s].axes == axes)
            return (enum s4d_stream)s;
    s4d_bug(__FILE__, __LINE__, "stream", "no stream for axes %#x", axes);
}

static int emit_collective(struct s4d_builder *b, enum s4d_op_kind kind, enum s4d_stream stream,
                           int in, int out, int64_t count, enum s4d_reduction reduction)
{
    struct s4d_op *op = S4D_EMIT(b, kind, stream, in, out);
    op->c.collective.axes = s4d_streams[stream].axes;
    op->c.collective.reduction = reduction;
    op->c.collective.type = b->p->tensors[out].type;
    op->c.collective.count = count;
    op->c.collective.members = s4d_group_size(b->grid, s4d_streams[stream].axes);
    return b->p->n_ops - 1;
}

int s4d_all_reduce(struct s4d_builder *b, s4d_axes axes, int tensor, enum s4d_reduction reduction)
{
    if (s4d_group_size(b->grid, axes) == 1)
        return -1;
    int64_t count = s4d_tensor_elements(&b->p->tensors[tensor]);
    return emit_collective(b, S4D_OP_ALL_REDUCE, stream_of(axes), tensor, tensor, count, reduction);
}

int s4d_all_gather(struct s4d_builder *b, enum s4d_stream stream, int in, int out)
{
    int64_t count = s4d_tensor_elements(&b->p->tensors[in]);
    return emit_collective(b, S4D_OP_ALL_GATHER, stream, in, out, count, S4D_SUM);
}

int s4d_reduce_scatter_z(struct s4d_builder *b, int in, int out)
{
    int64_t count = s4d_tensor_elements(&b->p->tensors[out]);
    return emit_collective(b, S4D_OP_REDUCE_SCATTER, S4D_STREAM_Z_SCATTER, in, out, count, S4D_SUM);
}

void s4d_order_after(struct s4d_builder *b, int before)
{
    struct s4d_order_edge edge = {.before = before, .after = b->p->n_ops, .kind = S4D_WAIT_ORDER};
    if (before >= 0)
        s4d_push(b->edges, b->n_edges, b->cap_edges, edge);
}
