/* SPDX-License-Identifier: Apache-2.0 */
/* A program under construction: what layer kinds write their ops with.
 *
 * Layers emit ops in issue order with their operands; they never state waits. Waits come from the
 * operands (schedule/order.h) and from the overlap options. Weight gathers are not emitted where
 * the weight is used: s4d_use_weight records the use, and schedule/gather.c places the gather as
 * early as the overlap options say. */
#ifndef S4D_SCHEDULE_BUILDER_H
#define S4D_SCHEDULE_BUILDER_H

#include "schedule/order.h" /* for: struct s4d_order_edge */
#include "schedule/program.h"

struct s4d_layer;

/* One place where a gathered weight block is used. */
struct s4d_weight_use {
    int param, block; /* the tensor of the gathered block, flat, S4D_ROLE_WORKSPACE */
    int at;           /* list index before which the block is needed */
    struct s4d_label label;
    bool cached; /* gathered once an iteration */
};

struct s4d_builder {
    struct s4d_program *p;
    const struct s4d_model *model;
    const struct s4d_grid *grid;
    const struct s4d_options *options;
    struct s4d_label label; /* given to the ops emitted next */
    struct s4d_weight_use *uses;
    int n_uses, cap_uses;
    struct s4d_order_edge *edges; /* order waits by list index */
    int n_edges, cap_edges;
    int *cached_block; /* by parameter: the block kept for the iteration, or -1 */
    int flat[2], master[2], gradient[2], moment1[2],
        moment2[2]; /* storages: 0 sharded, 1 replicated */
    int *pending;   /* reduce-scatter results not yet added to the gradient: see linear.c */
    int n_pending, cap_pending;
    int barrier; /* list index that the next compute op must wait for, or -1 */
    int scalars; /* storage of all scalar tensors */
};

/* Storages and tensors. Names are copied. Sizes in elements. */
int s4d_add_storage(struct s4d_builder *b, const char *name, int64_t bytes, enum s4d_role role,
                    bool persistent);
int s4d_add_tensor(struct s4d_builder *b, const char *name, int storage, enum s4d_type type,
                   struct s4d_expr offset, int64_t rows, int64_t cols);
/* A fresh transient storage with one (rows, cols) tensor over it. */
int s4d_new(struct s4d_builder *b, const char *name, enum s4d_role role, enum s4d_type type,
            int64_t rows, int64_t cols);
/* The same storage seen with another shape; the view starts `offset` elements after t's start. */
int s4d_view(struct s4d_builder *b, int tensor, int64_t offset, int64_t rows, int64_t cols,
             int64_t row_stride);

/* Emits an op on a stream; operands are tensor ids in the kind's order, -1 for an absent one.
 * Access, label and byte counts are filled from the kind's table and the tensors. The pointer is
 * valid until the next emit. */
struct s4d_op *s4d_emit(struct s4d_builder *b, enum s4d_op_kind kind, enum s4d_stream stream,
                        const int *operands, int n);
#define S4D_EMIT(b, kind, stream, ...)                                                             \
    s4d_emit((b), (kind), (stream), (const int[]){__VA_ARGS__},                                    \
             (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

/* The newest op in the list, as an index (n_ops - 1); the op emitted next will wait for it if asked
 * (order wait). */
int s4d_last_op(const struct s4d_builder *b);
void s4d_order_after(struct s4d_builder *b, int before);

/* A collective in place over axes on that axis set's stream; nothing is emitted for a group of one.
 * Returns the op's list index, or -1. */
int s4d_all_reduce(struct s4d_builder *b, s4d_axes axes, int tensor, enum s4d_reduction reduction);
enum s4d_stream s4d_stream_of(s4d_axes axes);

/* Gemm of 2-d views, D (m,n) = op(A) op(B) [+ D]. model_share: the part of 2mnk that counts in the
 * formula on this rank. */
void s4d_gemm(struct s4d_builder *b, int a, bool ta, int w, bool tb, int d, bool accumulate);

/* Parameters. Matrix: rows over row_axis, columns over col_axis, shard over z. Vector: replicated
 * over z and over the axes that do not split it. Returns the parameter's index. Declared before
 * s4d_finish_params. */
int s4d_matrix(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int row_axis, int col_axis, double init_std);
int s4d_vector(struct s4d_builder *b, const char *name, const char *hf_name, int64_t rows,
               const int64_t *part_cols, int parts, int col_axis, enum s4d_initialiser init,
               double init_std, bool decay);
void s4d_finish_params(
    struct s4d_builder *b); /* lays out the flat buffers and sets the parameters' tensors */

/* This rank's block of a matrix, (rows/Grow, cols/Gcol), gathered over z for the op emitted next.
 */
int s4d_use_weight(struct s4d_builder *b, int param);

enum s4d_type s4d_compute_type(const struct s4d_builder *b);
enum s4d_type s4d_accumulate_type(const struct s4d_builder *b); /* f32, or f64 in f64 programs */

#endif
