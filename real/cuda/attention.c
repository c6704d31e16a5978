/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax attention by tiles of query rows, so that the scores of all heads never exist at once:
 * strided-batched products on either side of a softmax kernel. The backward computes the scores
 * again from lse, as FlashAttention does (arXiv 2205.14135).
 *
 * With grouped queries heads / kv_heads query heads share a key and value head: a batch takes one
 * query head of every group (matrices of queries lie heads / kv_heads head_dims apart, those of
 * keys one), so that what a batch adds to the gradients of keys and values never overlaps. */
#include "real/cuda/work.h"

/* Assumed: fewer rows leave tensor cores idle, more add nothing to a product's rate. ALIGNED: as
 * cudaMalloc aligns (CUDA C++ programming guide). */
enum { LEAST_ROWS = 64, MOST_ROWS = 1024, ALIGNED = 256 };

struct attention {
    const struct s4d_cuda_work *w;
    const struct s4d_call *call;
    int64_t batch, seq, heads, groups, shared, d;
    double scale;
    bool causal, backward;
    enum s4d_type type, real;
    int64_t rows, ld; /* of a tile */
    void *scores, *second, *p, *ds;
    /* dk and dv of a sequence, seq x groups d each: where they are summed. */
    struct s4d_cuda_matrix dk, dv;
};

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Bytes of a score: itself and, where types differ, what is multiplied; twice backward. */
static int64_t score_bytes(const struct attention *a)
{
    int64_t one = s4d_type_bytes[a->real] + (a->type != a->real ? s4d_type_bytes[a->type] : 0);
    return a->backward ? 2 * one : one;
}

static struct attention attention_of(const struct s4d_cuda_work *w, const struct s4d_call *call)
{
    const union s4d_constants *c = &call->op->c;
    struct attention a = {.w = w,
                          .call = call,
                          .batch = c->attention.batch,
                          .seq = c->attention.seq,
                          .heads = c->attention.heads,
                          .groups = c->attention.kv_heads,
                          .shared = c->attention.heads / c->attention.kv_heads,
                          .d = c->attention.head_dim,
                          .scale = c->attention.scale,
                          .causal = c->attention.causal,
                          .backward = call->op->kind == S4D_OP_ATTENTION_BACKWARD,
                          .type = call->operand[0].type,
                          .real = w->f64 ? S4D_F64 : S4D_F32};
    a.ld = (a.seq + S4D_CUDA_WIDE - 1) / S4D_CUDA_WIDE * S4D_CUDA_WIDE;
    a.rows = w->tile_bytes / (a.groups * a.ld * score_bytes(&a)) / LEAST_ROWS * LEAST_ROWS;
    a.rows = a.rows < LEAST_ROWS ? LEAST_ROWS : a.rows < MOST_ROWS ? a.rows : MOST_ROWS;
    a.rows = a.rows < a.seq ? a.rows : a.seq;
    return a;
}

static void *part(unsigned char *scratch, int64_t *at, int64_t bytes)
{
    void *here = scratch ? scratch + *at : NULL;
    *at += aligned(bytes);
    return here;
}

/* The parts of scratch (NULL: none yet); returns their bytes. */
static int64_t place(struct attention *a, unsigned char *scratch)
{
    int64_t n = a->groups * a->rows * a->ld, cols = a->groups * a->d, at = 0;
    int64_t real = n * s4d_type_bytes[a->real], half = n * s4d_type_bytes[a->type];
    int64_t sums = a->seq * cols * s4d_type_bytes[a->real];
    bool apart = a->type != a->real;
    a->scores = part(scratch, &at, real);
    a->p = apart ? part(scratch, &at, half) : a->scores;
    if (!a->backward)
        return at;
    a->second = part(scratch, &at, real);
    a->ds = apart ? part(scratch, &at, half) : a->second;
    if (apart) {
        a->dk = (struct s4d_cuda_matrix){part(scratch, &at, sums), a->real, cols, a->d};
        a->dv = (struct s4d_cuda_matrix){part(scratch, &at, sums), a->real, cols, a->d};
    }
    return at;
}

int64_t s4d_cuda_attention_bytes(const struct s4d_cuda_work *w, const struct s4d_call *call)
{
    struct attention a = attention_of(w, call);
    return place(&a, NULL);
}

/* Columns of an operand from row `row` on, one matrix a group. */
static struct s4d_cuda_matrix view(const struct attention *a, int operand, int64_t row,
                                   int64_t column, int64_t apart)
{
    const struct s4d_buffer *b = &a->call->operand[operand];
    int64_t at = (row * b->stride + column) * s4d_type_bytes[b->type];
    return (struct s4d_cuda_matrix){(unsigned char *)b->data + at, b->type, b->stride, apart};
}

/* Of query head `index` of every group, in qkv, d_qkv (operands) and out, d_out. */
static struct s4d_cuda_matrix queries(const struct attention *a, int operand, int64_t row,
                                      int64_t index)
{
    return view(a, operand, row, index * a->d, a->shared * a->d);
}
static struct s4d_cuda_matrix keys(const struct attention *a, int operand, int64_t row)
{
    return view(a, operand, row, a->heads * a->d, a->d);
}
static struct s4d_cuda_matrix values(const struct attention *a, int operand, int64_t row)
{
    return view(a, operand, row, (a->heads + a->groups) * a->d, a->d);
}

/* A tile's rows of scores, or of what becomes of them. */
static struct s4d_cuda_matrix tile(const struct attention *a, void *data, enum s4d_type type,
                                   int64_t rows)
{
    return (struct s4d_cuda_matrix){data, type, a->ld, rows * a->ld};
}

static struct s4d_cuda_matrix from(struct s4d_cuda_matrix x, int64_t matrix)
{
    x.data = (unsigned char *)x.data + matrix * x.apart * s4d_type_bytes[x.type];
    return x;
}

static int multiply(const struct attention *a, bool ta, bool tb, int64_t m, int64_t n, int64_t k,
                    double alpha, double beta, struct s4d_cuda_matrix x, struct s4d_cuda_matrix y,
                    struct s4d_cuda_matrix d, struct s4d_error *err)
{
    for (int64_t first = 0; first < a->groups; first += S4D_CUDA_MOST_BATCH) {
        int64_t rest = a->groups - first;
        struct s4d_cuda_product p = {.name = a->call->op->label.name,
                                     .transpose_a = ta,
                                     .transpose_b = tb,
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .batch =
                                         rest < S4D_CUDA_MOST_BATCH ? rest : S4D_CUDA_MOST_BATCH,
                                     .alpha = alpha,
                                     .beta = beta,
                                     .a = from(x, first),
                                     .b = from(y, first),
                                     .d = from(d, first)};
        if (a->w->multiply(a->w->self, &p, err))
            return -1;
    }
    return 0;
}

/* What the kernels are told of rows r .. r + rows - 1 of sequence `b`, that see `width` tokens. */
static struct s4d_cuda_args args_of(const struct attention *a, int64_t b, int64_t r, int64_t rows,
                                    int64_t width, int64_t index)
{
    struct s4d_cuda_args args = {.c = a->call->op->c};
    args.o[0] = (struct s4d_buffer){a->scores, a->real, a->groups * rows, width, a->ld};
    args.tile.rows = rows;
    args.tile.first = r;
    args.tile.token = b * a->seq;
    args.tile.head = index;
    args.tile.apart = a->shared;
    args.tile.lse = b * a->heads;
    return args;
}

static struct s4d_buffer as(struct s4d_buffer b, void *data, enum s4d_type type)
{
    b.data = data;
    b.type = type;
    return b;
}

/* scores = scale q k^T; p = softmax(scores); out = p v */
static int forward_tile(const struct attention *a, int64_t b, int64_t r, int64_t rows,
                        int64_t width, int64_t index, struct s4d_error *err)
{
    int64_t row = b * a->seq;
    struct s4d_cuda_args args = args_of(a, b, r, rows, width, index);
    args.o[1] = as(args.o[0], a->p, a->type);
    args.o[2] = a->call->operand[2];
    if (multiply(a, false, true, rows, width, a->d, a->scale, 0, queries(a, 0, row + r, index),
                 keys(a, 0, row), tile(a, a->scores, a->real, rows), err) ||
        a->w->launch(a->w->self, &s4d_cuda_softmax, &args, err))
        return -1;
    return multiply(a, false, false, rows, a->d, width, 1, 0, tile(a, a->p, a->type, rows),
                    values(a, 0, row), queries(a, 1, row + r, index), err);
}

/* p and ds from scores and dp = d_out v^T; dq = ds k; dk += ds^T q; dv += p^T d_out */
static int backward_tile(const struct attention *a, int64_t b, int64_t r, int64_t rows,
                         int64_t width, int64_t index, double beta, struct s4d_error *err)
{
    int64_t row = b * a->seq;
    struct s4d_cuda_args args = args_of(a, b, r, rows, width, index);
    struct s4d_cuda_matrix q = queries(a, 0, row + r, index), d_o = queries(a, 3, row + r, index);
    struct s4d_cuda_matrix p = tile(a, a->p, a->type, rows), ds = tile(a, a->ds, a->type, rows);
    args.o[1] = as(args.o[0], a->second, a->real);
    args.o[2] = a->call->operand[2];
    args.o[3] = a->call->operand[1];
    args.o[4] = a->call->operand[3];
    args.o[5] = as(args.o[0], a->p, a->type);
    args.o[6] = as(args.o[0], a->ds, a->type);
    if (multiply(a, false, true, rows, width, a->d, a->scale, 0, q, keys(a, 0, row),
                 tile(a, a->scores, a->real, rows), err) ||
        multiply(a, false, true, rows, width, a->d, 1, 0, d_o, values(a, 0, row),
                 tile(a, a->second, a->real, rows), err) ||
        a->w->launch(a->w->self, &s4d_cuda_softmax_backward, &args, err))
        return -1;
    if (multiply(a, false, false, rows, a->d, width, 1, 0, ds, keys(a, 0, row),
                 queries(a, 4, row + r, index), err) ||
        multiply(a, true, false, width, a->d, rows, 1, beta, ds, q, a->dk, err))
        return -1;
    return multiply(a, true, false, width, a->d, rows, 1, beta, p, d_o, a->dv, err);
}

/* The sums of a sequence's dk or dv, rounded into their columns of d_qkv. */
static int round_sums(const struct attention *a, struct s4d_cuda_matrix from,
                      struct s4d_cuda_matrix to, struct s4d_error *err)
{
    struct s4d_cuda_args args = {.c = a->call->op->c};
    int64_t cols = a->groups * a->d;
    args.o[0] = (struct s4d_buffer){from.data, from.type, a->seq, cols, from.ld};
    args.o[1] = (struct s4d_buffer){to.data, to.type, a->seq, cols, to.ld};
    return a->w->launch(a->w->self, &s4d_cuda_cast, &args, err);
}

/* From the last tile, which sees all tokens and so writes all of dk and dv, to the first. */
static int run_sequence(struct attention *a, int64_t b, struct s4d_error *err)
{
    bool apart = a->type != a->real;
    struct s4d_cuda_matrix dk = {0}, dv = {0};
    if (a->backward) {
        dk = keys(a, 4, b * a->seq);
        dv = values(a, 4, b * a->seq);
        if (!apart) {
            a->dk = dk;
            a->dv = dv;
        }
    }
    for (int64_t r = (a->seq - 1) / a->rows * a->rows; r >= 0; r -= a->rows)
        for (int64_t i = 0; i < a->shared; i++) {
            int64_t rows = a->seq - r < a->rows ? a->seq - r : a->rows;
            int64_t width = a->causal ? r + rows : a->seq;
            double beta = r + rows == a->seq && i == 0 ? 0 : 1;
            if (a->backward ? backward_tile(a, b, r, rows, width, i, beta, err)
                            : forward_tile(a, b, r, rows, width, i, err))
                return -1;
        }
    if (a->backward && apart)
        return round_sums(a, a->dk, dk, err) || round_sums(a, a->dv, dv, err) ? -1 : 0;
    return 0;
}

int s4d_cuda_attention(const struct s4d_cuda_work *w, const struct s4d_call *call,
                       struct s4d_error *err)
{
    struct attention a = attention_of(w, call);
    place(&a, w->scratch);
    for (int64_t b = 0; b < a.batch; b++)
        if (run_sequence(&a, b, err))
            return -1;
    return 0;
}
