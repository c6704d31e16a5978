/* SPDX-License-Identifier: Apache-2.0 */
/* A program under construction: what layer kinds write their ops with.
 *
 * Layers emit ops in issue order with their operands; they never state waits. Waits come from the
 * operands (schedule/order.h) and from the overlap options. Weight gathers are not emitted where a
 * weight is used: s4d_use_weight records the use, and schedule/gather.c places the gather as early
 * as the overlap options say. */
#ifndef S4D_SCHEDULE_BUILDER_H
#define S4D_SCHEDULE_BUILDER_H

#include "schedule/order.h" /* for: struct s4d_order_edge */
#include "schedule/program.h"

/* One place where a gathered weight block is used. */
struct s4d_weight_use {
    int param, block; /* block: the flat tensor of Gz shards */
    int at;           /* list index of the first op that needs it */
    struct s4d_label label;
};

/* A reduce-scatter whose result is not yet in the gradient. */
struct s4d_pending_gradient {
    int param, shard, layer;
};

/* Weight gradient buffers are shared by layers two apart, so that no more than two layers'
 * reduce-scatters are in flight. */
struct s4d_gradient_buffer {
    const char *label;
    int parity, tensor;
};

struct s4d_layer;
struct s4d_builder {
    struct s4d_program *p;
    const struct s4d_model *model;
    const struct s4d_grid *grid;
    const struct s4d_options *options;
    struct s4d_label label; /* given to the ops emitted next */
    int sequence;           /* first sequence of the micro-batch on this rank, a multiple of b */
    int tokens, targets;    /* the micro-batch's views, (b, s) */
    const struct s4d_layer *positions; /* for attention: they may turn queries and keys */
    struct s4d_weight_use *uses;
    int n_uses, cap_uses;
    struct s4d_order_edge *edges;
    int n_edges, cap_edges;
    struct s4d_pending_gradient *pending;
    int n_pending, cap_pending;
    struct s4d_gradient_buffer *buffers;
    int n_buffers, cap_buffers;
    int *cached_block;        /* by parameter: the block kept for the iteration, or -1 */
    int embedding_weight;     /* parameter of the vocabulary matrix, for a tied head; -1 */
    int tied_gradient;        /* its gradient block after the head's backward; -1 */
    int loss_sum;             /* scalar */
    int64_t sharded_elements; /* of the flat buffers, set by s4d_finish_params */
    int64_t replicated_elements;
    int master[2], gradient[2], moment1[2], moment2[2],
        working; /* storages: [0] sharded, [1] replicated */
    int scalars; /* storage of the scalar tensors */
    int n_scalars;
};

void s4d_builder_init(struct s4d_builder *b, struct s4d_program *p);
void s4d_builder_fini(struct s4d_builder *b);

/* Storages and tensors. Sizes in elements; names live as long as the program (string literals or
 * its arena). */
int s4d_add_storage(struct s4d_builder *b, const char *name, int64_t bytes, enum s4d_role role,
                    bool persistent);
int s4d_add_tensor(struct s4d_builder *b, const char *name, int storage, enum s4d_type type,
                   int64_t offset, int64_t rows, int64_t cols);
/* A fresh transient storage with one (rows, cols) tensor over it. */
int s4d_new(struct s4d_builder *b, const char *name, enum s4d_role role, enum s4d_type type,
            int64_t rows, int64_t cols);
/* The same storage seen as (rows, cols), starting `offset` elements after t's start. */
int s4d_view(struct s4d_builder *b, int tensor, int64_t offset, int64_t rows, int64_t cols,
             int64_t row_stride);
/* A persistent one-element tensor of the accumulate type, zero at the start. */
int s4d_scalar(struct s4d_builder *b, const char *name);

/* Emits an op; operands are tensor ids in the kind's order, -1 for an absent one. Access, label and
 * byte counts come from the kind's table and the tensors. The pointer is valid until the next emit.
 */
struct s4d_op *s4d_emit(struct s4d_builder *b, enum s4d_op_kind kind, enum s4d_stream stream,
                        const int *operands, int n);
#define S4D_EMIT(b, kind, stream, ...)                                                             \
    s4d_emit((b), (kind), (stream), (const int[]){__VA_ARGS__},                                    \
             (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))
/* On the compute stream, which is where most are. */
#define S4D_COMPUTE(b, kind, ...) S4D_EMIT(b, kind, S4D_STREAM_COMPUTE, __VA_ARGS__)

/* D (m,n) = op(A) op(B) [+ D], of 2-d views; m, n, k from their shapes. */
struct s4d_op *s4d_gemm(struct s4d_builder *b, int a, bool transpose_a, int w, bool transpose_b,
                        int d, bool accumulate);

/* Collectives on their axis set's stream; a group of one emits nothing. All-reduce is in place.
 * Return the op's list index, or -1. */
int s4d_all_reduce(struct s4d_builder *b, s4d_axes axes, int tensor, enum s4d_reduction reduction);
/* Over the axes of the stream: in (count), out (members, count). */
int s4d_all_gather(struct s4d_builder *b, enum s4d_stream stream, int in, int out);
int s4d_reduce_scatter_z(struct s4d_builder *b, int in, int out);
/* The op emitted next waits for op `before` of the list (an order wait); nothing for -1. */
void s4d_order_after(struct s4d_builder *b, int before);

enum s4d_type s4d_compute_type(const struct s4d_builder *b);
enum s4d_type s4d_accumulate_type(const struct s4d_builder *b); /* f32, or f64 in f64 programs */
/* "layers.3.mlp" + ".up" in the program's arena. */
const char *s4d_name(struct s4d_builder *b, const char *prefix, const char *suffix);

/* Parameters (schedule/params.c). A matrix: rows over row_axis, columns over col_axis, its shard
 * over z; rows are padded to a multiple of the row axis. A vector (rows of them, as positions are):
 * columns over col_axis, replicated over everything else. Returns the parameter's index; its
 * tensors exist after s4d_finish_params. */
int s4d_matrix(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int row_axis, int col_axis, double init_std);
int s4d_vector(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int col_axis, enum s4d_initialiser init,
               bool decay);
void s4d_finish_params(struct s4d_builder *b);
int64_t s4d_block_rows(const struct s4d_builder *b, int param); /* of this rank's block */
int64_t s4d_block_cols(const struct s4d_builder *b, int param);

/* This rank's block of a matrix, (rows/Grow, cols/Gcol), for the op emitted next: gathered over z,
 * or a view of the shard where Gz is 1. */
int s4d_use_weight(struct s4d_builder *b, int param);
/* A buffer for the block's gradient (flat, Gz shards, zero tail) and its (rows, cols) view. */
int s4d_gradient_block(struct s4d_builder *b, int param, int *flat);
/* Reduces a finished block over z and adds it to the parameter's gradient: at once, or with ORS at
 * the micro-batch's end. */
void s4d_reduce_gradient(struct s4d_builder *b, int param, int flat);
/* Adds the pending results of every layer but `except` to the gradients. */
void s4d_flush_gradients(struct s4d_builder *b, int except);

void s4d_place_gathers(struct s4d_builder *b); /* schedule/gather.c */
void s4d_emit_optimizer(
    struct s4d_builder *b); /* schedule/optimizer.c: after all gradients are reduced */
void s4d_emit_gradient_all_reduce(struct s4d_builder *b, int64_t first,
                                  int64_t last); /* elements of the sharded flat gradient */

#endif
