/* SPDX-License-Identifier: Apache-2.0 */
/* From an op to launches and matrix products, without a word of CUDA: what is launched, in which
 * order, with which operands and how much scratch. */
#ifndef S4D_REAL_CUDA_WORK_H
#define S4D_REAL_CUDA_WORK_H

#include "real/cuda/kernels/kernels.h"
#include "real/gemm_tuning.h" /* for: variants */

/* D = alpha op(A) op(B) + beta D of row-major matrices, `batch` of them, `apart` elements from one
 * to the next; ld is the stride of rows. op(A) is m x k, op(B) k x n. A and B are of one type.
 * Sums are in fp32, in fp64 for f64. */
struct s4d_cuda_matrix {
    void *data;
    enum s4d_type type;
    int64_t ld, apart;
};
struct s4d_cuda_product {
    const char *name; /* of the op, for messages */
    bool transpose_a, transpose_b;
    int64_t m, n, k, batch;
    double alpha, beta;
    struct s4d_cuda_matrix a, b, d;
};

/* Products in a batch: kernels tell them apart by blockIdx.z, of which CUDA has no more (CUDA C++
 * programming guide, technical specifications), and cuBLAS does not say that it goes beyond. */
enum { S4D_CUDA_MOST_BATCH = 65535 };

/* A tile's scores should stay in a last-level cache: 40 MB on A100, 50 MB on H100 (NVIDIA's
 * architecture white papers). */
#define S4D_CUDA_TILE_BYTES (32 << 20)

/* Whoever executes: both append to the compute stream. 0, or -1 (exit 69). */
struct s4d_cuda_work {
    void *self;
    int (*launch)(void *self, const struct s4d_cuda_kernel *kernel,
                  const struct s4d_cuda_args *args, struct s4d_error *err);
    /* At most S4D_CUDA_MOST_BATCH of them. */
    int (*multiply)(void *self, const struct s4d_cuda_product *product, struct s4d_error *err);
    void *scratch; /* on the device, s4d_cuda_scratch_bytes of the largest op, 256-byte aligned */
    bool f64;      /* arithmetic */
    int64_t tile_bytes; /* of attention's scores at a time; less than 64 rows of them is not done */
    const void *(*rotary_table)(void *self, const union s4d_constants *c); /* args.table */
    /* Which matrices of a gemm are turned first (real/gemm_tuning.h); NULL: none ever. */
    int (*variant)(void *self, const struct s4d_cuda_product *product);
};

/* Appends a gemm, an attention, or another kernel. */
int s4d_cuda_work_run(const struct s4d_cuda_work *w, const struct s4d_call *call,
                      struct s4d_error *err);
/* Device memory that the op needs beside its operands, which need no data yet. */
int64_t s4d_cuda_scratch_bytes(const struct s4d_cuda_work *w, const struct s4d_call *call);

/* A product with matrices turned into scratch first. */
int s4d_cuda_multiply_turned(const struct s4d_cuda_work *w, struct s4d_cuda_product product,
                             int variant, struct s4d_error *err);
int64_t s4d_cuda_turned_bytes(const struct s4d_cuda_product *product, int variant);
struct s4d_cuda_product s4d_cuda_product_of(const struct s4d_call *call); /* of a gemm */

/* Threads and blocks of a launch. */
struct s4d_cuda_shape {
    unsigned grid_x, grid_y, threads, shared_bytes;
};
struct s4d_cuda_shape s4d_cuda_shape_of(const struct s4d_cuda_kernel *kernel,
                                        const struct s4d_cuda_args *args);

/* Of shared memory, for so many threads. */
unsigned s4d_cuda_shared_bytes(const struct s4d_cuda_kernel *kernel, unsigned threads);

/* attention.c: parts of the above. */
int s4d_cuda_attention(const struct s4d_cuda_work *w, const struct s4d_call *call,
                       struct s4d_error *err);
int64_t s4d_cuda_attention_bytes(const struct s4d_cuda_work *w, const struct s4d_call *call);
/* The rows of seq rows of [cosines (d/2) | sines (d/2)], in fp64. */
void s4d_cuda_rotary_angles(const union s4d_constants *c, double *table);

#endif
