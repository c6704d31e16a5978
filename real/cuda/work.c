/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kernels by op kind, launch shapes, scratch. */
#include "real/cuda/work.h"

#include <math.h>

enum {
    STAGES = 3,
    MOST_BLOCKS = 4096,
    MOST_THREADS = 256,
    TILE_THREADS = 128, /* 16 bytes each are a tile of 16-bit elements */
    BLOCK_THREADS = 512,
    WARP = 32,
    ALIGNED = 256
};

/* Kernels that run one after the other, up to the first NULL. */
static const struct s4d_cuda_kernel *const stages[S4D_OP_KINDS][STAGES] = {
    [S4D_OP_NORM_PARTIAL] = {&s4d_cuda_norm_partial},
    [S4D_OP_NORM_APPLY] = {&s4d_cuda_norm_apply},
    [S4D_OP_NORM_BACKWARD_PARTIAL] = {&s4d_cuda_norm_backward_rows, &s4d_cuda_norm_backward_parts,
                                      &s4d_cuda_norm_backward_end},
    [S4D_OP_NORM_BACKWARD_APPLY] = {&s4d_cuda_norm_backward_apply},
    [S4D_OP_RMS_PARTIAL] = {&s4d_cuda_rms_partial},
    [S4D_OP_RMS_APPLY] = {&s4d_cuda_rms_apply},
    [S4D_OP_RMS_BACKWARD_PARTIAL] = {&s4d_cuda_rms_backward_rows, &s4d_cuda_rms_backward_parts,
                                     &s4d_cuda_rms_backward_end},
    [S4D_OP_RMS_BACKWARD_APPLY] = {&s4d_cuda_rms_backward_apply},
    [S4D_OP_ROTARY] = {&s4d_cuda_rotary},
    [S4D_OP_ACTIVATION_FORWARD] = {&s4d_cuda_activation_forward},
    [S4D_OP_ACTIVATION_BACKWARD] = {&s4d_cuda_activation_backward},
    [S4D_OP_GATED_FORWARD] = {&s4d_cuda_gated_forward},
    [S4D_OP_GATED_BACKWARD] = {&s4d_cuda_gated_backward},
    [S4D_OP_BIAS] = {&s4d_cuda_bias},
    [S4D_OP_COLUMN_SUM] = {&s4d_cuda_column_sum_parts, &s4d_cuda_column_sum_end},
    [S4D_OP_RESIDUAL] = {&s4d_cuda_residual},
    [S4D_OP_EMBEDDING_FORWARD] = {&s4d_cuda_embedding_forward},
    [S4D_OP_EMBEDDING_BACKWARD] = {&s4d_cuda_embedding_backward},
    [S4D_OP_POSITION_FORWARD] = {&s4d_cuda_position_forward},
    [S4D_OP_POSITION_BACKWARD] = {&s4d_cuda_position_backward},
    [S4D_OP_GOLDFISH] = {&s4d_cuda_goldfish},
    [S4D_OP_TOKEN_COUNT] = {&s4d_cuda_token_count},
    [S4D_OP_LOSS_MAX] = {&s4d_cuda_loss_max},
    [S4D_OP_LOSS_SUM] = {&s4d_cuda_loss_sum},
    [S4D_OP_LOSS_BACKWARD] = {&s4d_cuda_loss_backward, &s4d_cuda_loss_backward_end},
    [S4D_OP_LOSS_MEAN] = {&s4d_cuda_loss_mean},
    [S4D_OP_ADD] = {&s4d_cuda_add},
    [S4D_OP_CAST] = {&s4d_cuda_cast},
    [S4D_OP_COPY] = {&s4d_cuda_cast},
    [S4D_OP_ZERO] = {&s4d_cuda_zero},
    [S4D_OP_SQUARED_NORM] = {&s4d_cuda_squared_norm_parts, &s4d_cuda_squared_norm_end},
    [S4D_OP_CLIP_FACTOR] = {&s4d_cuda_clip_factor},
    [S4D_OP_STEP] = {&s4d_cuda_step},
    [S4D_OP_ADAMW] = {&s4d_cuda_adamw},
    [S4D_OP_SCALE_UPDATE] = {&s4d_cuda_scale_update},
};

static int64_t up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit;
}

static unsigned at_most(int64_t n, int64_t limit)
{
    return (unsigned)(n < 1 ? 1 : n < limit ? n : limit);
}

unsigned s4d_cuda_shared_bytes(const struct s4d_cuda_kernel *k, unsigned threads)
{
    unsigned bytes = k->span == S4D_SPAN_TILES ? (unsigned)k->bytes : threads * (unsigned)k->bytes;
    /* adamw keeps two numbers there */
    return bytes > 0 && bytes < 2 * sizeof(double) ? 2 * (unsigned)sizeof(double) : bytes;
}

struct s4d_cuda_shape s4d_cuda_shape_of(const struct s4d_cuda_kernel *k,
                                        const struct s4d_cuda_args *a)
{
    const struct s4d_buffer *b = &a->o[k->over];
    int64_t units = up(b->cols, S4D_CUDA_WIDE);
    struct s4d_cuda_shape s = {1, 1, at_most(up(units, WARP) * WARP, MOST_THREADS), 0};
    switch (k->span) {
    case S4D_SPAN_ROWS:
        s.grid_x = at_most(b->rows, INT32_MAX);
        break;
    case S4D_SPAN_ELEMENTS:
    case S4D_SPAN_COLUMNS:
        s.grid_x = at_most(up(units, s.threads), MOST_BLOCKS);
        s.grid_y = at_most(k->span == S4D_SPAN_ELEMENTS ? b->rows : a->parts, UINT16_MAX);
        break;
    case S4D_SPAN_TILES:
        s.grid_x = at_most(up(b->cols, S4D_CUDA_TILE), INT32_MAX);
        s.grid_y = at_most(up(b->rows, S4D_CUDA_TILE), UINT16_MAX);
        s.threads = TILE_THREADS;
        break;
    case S4D_SPAN_PARTS:
        s.grid_x = at_most(a->parts, INT32_MAX);
        s.threads = MOST_THREADS;
        break;
    case S4D_SPAN_BLOCK:
        s.threads = BLOCK_THREADS;
        break;
    case S4D_SPAN_THREAD:
        s.threads = 1;
        break;
    case S4D_SPAN_NONE:
        s4d_bug(__FILE__, __LINE__, "span", "%s covers nothing", k->name);
    }
    s.shared_bytes = s4d_cuda_shared_bytes(k, s.threads);
    return s;
}

/* Rows that follow one another are one row. */
static struct s4d_buffer flat(struct s4d_buffer b)
{
    if (b.stride == b.cols || b.rows == 1) {
        b.cols *= b.rows;
        b.stride = b.cols;
        b.rows = 1;
    }
    return b;
}

/* All operands of `n` elements if all can be; the others have one element. */
static void flatten(struct s4d_cuda_args *a, int over)
{
    int64_t n = a->o[over].rows * a->o[over].cols;
    for (int k = 0; k < S4D_OPERANDS; k++)
        if (a->o[k].data && a->o[k].rows * a->o[k].cols == n && flat(a->o[k]).rows > 1)
            return;
    for (int k = 0; k < S4D_OPERANDS; k++)
        if (a->o[k].data && a->o[k].rows * a->o[k].cols == n)
            a->o[k] = flat(a->o[k]);
}

/* Values of the op's expressions, and how many partial sums it makes. */
static void evaluate(struct s4d_cuda_args *a, const struct s4d_call *call)
{
    const union s4d_constants *c = &call->op->c;
    a->parts = at_most(call->operand[0].rows, S4D_CUDA_PARTS);
    switch (call->op->kind) {
    case S4D_OP_EMBEDDING_FORWARD:
    case S4D_OP_EMBEDDING_BACKWARD:
        a->first = s4d_expr_value(&c->embedding.first, call->coordinate);
        break;
    case S4D_OP_LOSS_MAX:
    case S4D_OP_LOSS_SUM:
    case S4D_OP_LOSS_BACKWARD:
        a->first = s4d_expr_value(&c->loss.first, call->coordinate);
        a->valid = s4d_expr_value(&c->loss.valid, call->coordinate);
        break;
    case S4D_OP_SQUARED_NORM:
        a->valid = s4d_expr_value(&c->norm2.valid, call->coordinate);
        a->parts = at_most(up(a->valid, S4D_CUDA_WIDE * MOST_THREADS), S4D_CUDA_MOST_PARTS);
        break;
    default:
        break;
    }
}

int64_t s4d_cuda_scratch_bytes(const struct s4d_cuda_work *w, const struct s4d_call *call)
{
    int64_t real = w->f64 ? 8 : 4, cols = call->operand[0].cols;
    struct s4d_cuda_product p;
    switch (call->op->kind) {
    case S4D_OP_GEMM:
        p = s4d_cuda_product_of(call);
        return s4d_cuda_turned_bytes(&p, w->variant ? w->variant(w->self, &p) : 0);
    case S4D_OP_NORM_BACKWARD_PARTIAL:
    case S4D_OP_RMS_BACKWARD_PARTIAL:
    case S4D_OP_COLUMN_SUM:
        return 2 * S4D_CUDA_PARTS * up(cols, S4D_CUDA_WIDE) * S4D_CUDA_WIDE * real;
    case S4D_OP_LOSS_BACKWARD:
        return call->operand[0].rows * (int64_t)sizeof(double);
    case S4D_OP_SQUARED_NORM:
        return 2 * S4D_CUDA_MOST_PARTS * (int64_t)sizeof(double);
    case S4D_OP_ATTENTION_FORWARD:
    case S4D_OP_ATTENTION_BACKWARD:
        return s4d_cuda_attention_bytes(w, call);
    default:
        return 0;
    }
}

static struct s4d_cuda_matrix matrix_of(const struct s4d_buffer *b)
{
    return (struct s4d_cuda_matrix){b->data, b->type, b->stride, 0};
}

struct s4d_cuda_product s4d_cuda_product_of(const struct s4d_call *call)
{
    const union s4d_constants *c = &call->op->c;
    return (struct s4d_cuda_product){.name = call->op->label.name,
                                     .transpose_a = c->gemm.transpose_a,
                                     .transpose_b = c->gemm.transpose_b,
                                     .m = c->gemm.m,
                                     .n = c->gemm.n,
                                     .k = c->gemm.k,
                                     .batch = 1,
                                     .alpha = 1,
                                     .beta = c->gemm.beta,
                                     .a = matrix_of(&call->operand[0]),
                                     .b = matrix_of(&call->operand[1]),
                                     .d = matrix_of(&call->operand[2])};
}

static int64_t turned_a_bytes(const struct s4d_cuda_product *p)
{
    return up(p->m * p->k * s4d_type_bytes[p->a.type], ALIGNED) * ALIGNED;
}

int64_t s4d_cuda_turned_bytes(const struct s4d_cuda_product *p, int variant)
{
    int64_t b = up(p->k * p->n * s4d_type_bytes[p->b.type], ALIGNED) * ALIGNED;
    return (variant & S4D_TURN_A ? turned_a_bytes(p) : 0) + (variant & S4D_TURN_B ? b : 0);
}

/* x becomes its transpose, at `to`; rows and cols are those that it lies in. */
static int turn(const struct s4d_cuda_work *w, struct s4d_cuda_matrix *x, bool *transposed,
                int64_t rows, int64_t cols, void *to, struct s4d_error *err)
{
    struct s4d_cuda_args a = {.parts = 1};
    a.o[0] = (struct s4d_buffer){x->data, x->type, rows, cols, x->ld};
    a.o[1] = (struct s4d_buffer){to, x->type, cols, rows, rows};
    *x = (struct s4d_cuda_matrix){to, x->type, rows, 0};
    *transposed = !*transposed;
    return w->launch(w->self, &s4d_cuda_transpose, &a, err);
}

int s4d_cuda_multiply_turned(const struct s4d_cuda_work *w, struct s4d_cuda_product p, int variant,
                             struct s4d_error *err)
{
    unsigned char *room = w->scratch;
    S4D_ASSERT(p.batch == 1 || variant == 0, "%s is a batch", p.name);
    if (variant & S4D_TURN_A) {
        int64_t bytes = turned_a_bytes(&p);
        if (turn(w, &p.a, &p.transpose_a, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k,
                 room, err))
            return -1;
        room += bytes;
    }
    if ((variant & S4D_TURN_B) && turn(w, &p.b, &p.transpose_b, p.transpose_b ? p.n : p.k,
                                       p.transpose_b ? p.k : p.n, room, err))
        return -1;
    return w->multiply(w->self, &p, err);
}

static int run_gemm(const struct s4d_cuda_work *w, const struct s4d_call *call,
                    struct s4d_error *err)
{
    struct s4d_cuda_product p = s4d_cuda_product_of(call);
    return s4d_cuda_multiply_turned(w, p, w->variant ? w->variant(w->self, &p) : 0, err);
}

static void check_types(const struct s4d_cuda_work *w, const struct s4d_call *call)
{
    for (int k = 0; k < s4d_op_kinds[call->op->kind].n_operands; k++) {
        const struct s4d_buffer *b = &call->operand[k];
        S4D_ASSERT(!b->data || b->type > S4D_F16 || (b->type == S4D_F64) == w->f64, "%s: %s is %s",
                   s4d_op_kinds[call->op->kind].name, s4d_op_kinds[call->op->kind].operand[k].name,
                   s4d_type_names[b->type]);
    }
}

static int run_kernels(const struct s4d_cuda_work *w, const struct s4d_call *call,
                       struct s4d_error *err)
{
    struct s4d_cuda_args a = {.c = call->op->c, .scratch = w->scratch};
    const struct s4d_cuda_kernel *const *stage = stages[call->op->kind];
    S4D_ASSERT(stage[0], "no kernel for %s", s4d_op_kinds[call->op->kind].name);
    check_types(w, call);
    evaluate(&a, call);
    if (call->op->kind == S4D_OP_ROTARY)
        a.table = w->rotary_table(w->self, &call->op->c);
    for (int i = 0; i < STAGES && stage[i]; i++) {
        for (int k = 0; k < S4D_OPERANDS; k++)
            a.o[k] = call->operand[k];
        if (stage[i]->flattened)
            flatten(&a, stage[i]->over);
        if (w->launch(w->self, stage[i], &a, err))
            return -1;
    }
    return 0;
}

int s4d_cuda_work_run(const struct s4d_cuda_work *w, const struct s4d_call *call,
                      struct s4d_error *err)
{
    switch (call->op->kind) {
    case S4D_OP_GEMM:
        return run_gemm(w, call, err);
    case S4D_OP_ATTENTION_FORWARD:
    case S4D_OP_ATTENTION_BACKWARD:
        return s4d_cuda_attention(w, call, err);
    default:
        return run_kernels(w, call, err);
    }
}

void s4d_cuda_rotary_angles(const union s4d_constants *c, double *table)
{
    int64_t half = c->rotary.head_dim / 2;
    for (int64_t i = 0; i < half; i++) {
        double frequency = s4d_rotary_frequency(c, i);
        for (int64_t t = 0; t < c->rotary.seq; t++) {
            table[t * 2 * half + i] = cos((double)t * frequency);
            table[t * 2 * half + half + i] = sin((double)t * frequency);
        }
    }
}
