/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels, and the one argument that all of them take.
 *
 * A kernel's text (the .cu files) is written once over REAL and compiled for fp32 and fp64
 * arithmetic. Elements are loaded from their storage type, WIDE at a time and 16 bytes an access
 * where they lie so, computed with as REALs, and rounded when stored. schedule/op.h states the
 * arithmetic of every kind. Every kernel is correct for any block of threads, and any number of
 * blocks in the directions that its span uses, and adds in an order that depends on these and on
 * shapes alone: no atomics. */
#ifndef S4D_REAL_CUDA_KERNELS_KERNELS_H
#define S4D_REAL_CUDA_KERNELS_KERNELS_H

#include "real/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Passed by value: at most 4 KiB. */
struct s4d_cuda_args {
    struct s4d_buffer o[S4D_OPERANDS];
    union s4d_constants c;
    int64_t first, valid; /* the op's expressions on this rank */
    int64_t parts;        /* of a sum over rows or elements: partial sums, added in order */
    void *scratch;        /* s4d_cuda_scratch_bytes, 256-byte aligned */
    const void *table;    /* of rotary: seq rows of [cosines (d/2) | sines (d/2)], REALs */
    struct {              /* of attention: query rows first .. first + rows - 1 of a sequence */
        int64_t rows, first;
        int64_t token;       /* the sequence's first row in out and d_out */
        int64_t head, apart; /* the first head, and the one after it: g apart; column head d of out
                              */
        int64_t lse;         /* row of lse of head 0 */
    } tile;
};

/* What a launch covers. */
enum s4d_cuda_span {
    S4D_SPAN_NONE,     /* no kernel: the end of a list of stages */
    S4D_SPAN_ROWS,     /* a block a row of operand `over` */
    S4D_SPAN_ELEMENTS, /* a thread WIDE elements of operand `over` */
    S4D_SPAN_COLUMNS,  /* a thread WIDE columns of a part of the rows of operand `over` */
    S4D_SPAN_TILES,    /* a block S4D_CUDA_TILE rows and columns of operand `over` */
    S4D_SPAN_PARTS,    /* a block a part */
    S4D_SPAN_BLOCK,    /* one block */
    S4D_SPAN_THREAD    /* one thread */
};

struct s4d_cuda_kernel {
    const char *name;
    const void *function[2]; /* arithmetic in fp32, in fp64; of one struct s4d_cuda_args */
    enum s4d_cuda_span span;
    int over;       /* operand */
    int bytes;      /* of shared memory, a thread; of tiles, a block */
    bool flattened; /* operands of consecutive rows are one row to it */
};

/* WIDE: 16-bit elements of a 16-byte access. TILE: a warp's threads, one a bank of shared memory
 * (CUDA C++ programming guide). PARTS, MOST_PARTS: of a sum over all elements; assumed, enough for
 * every multiprocessor of a chip (132 on H100). */
enum { S4D_CUDA_WIDE = 8, S4D_CUDA_TILE = 32, S4D_CUDA_PARTS = 128, S4D_CUDA_MOST_PARTS = 1024 };

/* By file. */
extern const struct s4d_cuda_kernel s4d_cuda_activation_forward, s4d_cuda_activation_backward,
    s4d_cuda_gated_forward, s4d_cuda_gated_backward, s4d_cuda_bias, s4d_cuda_residual,
    s4d_cuda_position_forward, s4d_cuda_position_backward, s4d_cuda_add, s4d_cuda_cast,
    s4d_cuda_zero;
extern const struct s4d_cuda_kernel s4d_cuda_column_sum_parts, s4d_cuda_column_sum_end;
extern const struct s4d_cuda_kernel s4d_cuda_norm_partial, s4d_cuda_norm_apply,
    s4d_cuda_norm_backward_rows, s4d_cuda_norm_backward_parts, s4d_cuda_norm_backward_end,
    s4d_cuda_norm_backward_apply, s4d_cuda_rms_partial, s4d_cuda_rms_apply,
    s4d_cuda_rms_backward_rows, s4d_cuda_rms_backward_parts, s4d_cuda_rms_backward_end,
    s4d_cuda_rms_backward_apply;
extern const struct s4d_cuda_kernel s4d_cuda_rotary, s4d_cuda_embedding_forward,
    s4d_cuda_embedding_backward;
extern const struct s4d_cuda_kernel s4d_cuda_goldfish, s4d_cuda_token_count, s4d_cuda_loss_max,
    s4d_cuda_loss_sum, s4d_cuda_loss_backward, s4d_cuda_loss_backward_end, s4d_cuda_loss_mean;
extern const struct s4d_cuda_kernel s4d_cuda_squared_norm_parts, s4d_cuda_squared_norm_end,
    s4d_cuda_clip_factor, s4d_cuda_step, s4d_cuda_adamw, s4d_cuda_scale_update;
/* x, out: out = transpose(x), of the same type. */
extern const struct s4d_cuda_kernel s4d_cuda_transpose;
/* softmax: scores, p, lse. Its backward: scores, dp, lse, out, d_out, p, ds. p may be scores, ds
 * may be dp. */
extern const struct s4d_cuda_kernel s4d_cuda_softmax, s4d_cuda_softmax_backward;

#ifdef __cplusplus
}
#endif

#endif
