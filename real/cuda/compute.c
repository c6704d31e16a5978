/* SPDX-License-Identifier: Apache-2.0 */
/* The compute stream: launches, matrix products by cuBLAS, and the memory that both need. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

/* What NVIDIA's cuBLAS documentation recommends for Hopper (cublasSetWorkspace); it is enough for
 * the older ones. */
enum { WORKSPACE_BYTES = 32 << 20 };

/* Before a launch: at the end of a portion, until the one before it has ended. */
static int keep_pace(struct s4d_cuda *c, struct s4d_error *err)
{
    if (c->phase == S4D_CUDA_CAPTURES || ++c->launches % S4D_CUDA_PORTION > 0)
        return 0;
    int64_t portion = c->launches / S4D_CUDA_PORTION;
    cudaEvent_t *own = &c->portions[portion % 2], before = c->portions[(portion + 1) % 2];
    if ((!*own && s4d_cuda_take_event(c, own, err)) ||
        S4D_CUDA(err, cudaEventRecord, *own, c->streams[S4D_STREAM_COMPUTE].stream))
        return -1;
    for (cudaError_t code; before && (code = s4d_cuda_ask(before)) != cudaSuccess; sched_yield())
        if ((code != cudaErrorNotReady && s4d_cuda_check("cudaEventQuery", code, err)) ||
            s4d_cuda_poll(c, err))
            return -1;
    return 0;
}

static int launch(void *self, const struct s4d_cuda_kernel *kernel, const struct s4d_cuda_args *a,
                  struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    struct s4d_cuda_shape s = s4d_cuda_shape_of(kernel, a);
    dim3 grid = {s.grid_x, s.grid_y, 1}, block = {s.threads, 1, 1};
    void *arguments[] = {(void *)a};
    if (keep_pace(c, err))
        return -1;
    c->launched = kernel->name;
    if (!S4D_CUDA(err, cudaLaunchKernel, kernel->function[c->work.f64], grid, block, arguments,
                  s.shared_bytes, c->streams[S4D_STREAM_COMPUTE].stream))
        return 0;
    return s4d_hint(err, "the kernel was %s", kernel->name);
}

static cudaDataType data_type(enum s4d_type type)
{
    return type == S4D_F64    ? CUDA_R_64F
           : type == S4D_BF16 ? CUDA_R_16BF
           : type == S4D_F16  ? CUDA_R_16F
                              : CUDA_R_32F;
}

static cublasComputeType_t compute_type(const struct s4d_cuda *c, enum s4d_type type)
{
    if (type == S4D_F64)
        return CUBLAS_COMPUTE_64F;
    return type == S4D_F32 && c->options.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

static bool fits(int64_t n)
{
    return n >= 0 && n <= INT_MAX;
}

/* cuBLAS sees a row-major matrix as its transpose: D^T = op(B)^T op(A)^T. */
static int multiply(void *self, const struct s4d_cuda_product *p, struct s4d_error *err)
{
    struct s4d_cuda *c = self;
    const float alpha = (float)p->alpha, beta = (float)p->beta;
    bool f64 = p->a.type == S4D_F64;
    const void *scale[2] = {f64 ? (const void *)&p->alpha : &alpha,
                            f64 ? (const void *)&p->beta : &beta};
    if (!fits(p->m) || !fits(p->n) || !fits(p->k) || !fits(p->a.ld) || !fits(p->b.ld) ||
        !fits(p->d.ld) || !fits(p->batch))
        return s4d_fail(err, S4D_EXIT_DEVICE, p->name, "a matrix beyond %d rows or columns",
                        INT_MAX);
    if (keep_pace(c, err))
        return -1;
    c->launched = "a product";
    if (!S4D_CUBLAS(err, cublasGemmStridedBatchedEx, c->cublas,
                    p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                    p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->n, (int)p->m, (int)p->k,
                    scale[0], p->b.data, data_type(p->b.type), (int)p->b.ld, p->b.apart, p->a.data,
                    data_type(p->a.type), (int)p->a.ld, p->a.apart, scale[1], p->d.data,
                    data_type(p->d.type), (int)p->d.ld, p->d.apart, (int)p->batch,
                    compute_type(c, p->a.type), CUBLAS_GEMM_DEFAULT))
        return 0;
    return s4d_hint(err, "the product was %s: %lld x %lld x %lld of %s into %s, batch %lld",
                    p->name, (long long)p->m, (long long)p->n, (long long)p->k,
                    s4d_type_names[p->a.type], s4d_type_names[p->d.type], (long long)p->batch);
}

static bool same_angles(const union s4d_constants *a, const union s4d_constants *b)
{
    return a->rotary.seq == b->rotary.seq && a->rotary.head_dim == b->rotary.head_dim &&
           a->rotary.theta == b->rotary.theta && a->rotary.factor == b->rotary.factor &&
           a->rotary.low == b->rotary.low && a->rotary.high == b->rotary.high &&
           a->rotary.original == b->rotary.original;
}

static const void *rotary_table(void *self, const union s4d_constants *k)
{
    const struct s4d_cuda *c = self;
    for (int i = 0; i < c->n_tables; i++)
        if (same_angles(&c->tables[i].c, k))
            return c->tables[i].data;
    s4d_bug(__FILE__, __LINE__, "table", "no angles were prepared for a rotary op");
}

static int upload_table(struct s4d_cuda *c, const union s4d_constants *k, void *data,
                        struct s4d_error *err)
{
    int64_t n = k->rotary.seq * k->rotary.head_dim;
    struct s4d_buffer b = {data, c->work.f64 ? S4D_F64 : S4D_F32, 1, n, n};
    double *angles = s4d_malloc((size_t)n * sizeof *angles);
    float *rounded = (float *)angles;
    s4d_cuda_rotary_angles(k, angles);
    for (int64_t i = 0; i < n && !c->work.f64; i++)
        rounded[i] = (float)angles[i];
    int rc = s4d_cuda_upload(c, &b, angles, err);
    free(angles);
    return rc;
}

static int prepare_table(struct s4d_cuda *c, const union s4d_constants *k, struct s4d_error *err)
{
    struct s4d_cuda_table table = {.c = *k};
    size_t bytes = (size_t)(k->rotary.seq * k->rotary.head_dim) * (c->work.f64 ? 8 : 4);
    for (int i = 0; i < c->n_tables; i++)
        if (same_angles(&c->tables[i].c, k))
            return 0;
    if (s4d_cuda_malloc("angles of rotary positions", bytes, &table.data, err))
        return -1;
    s4d_push(c->tables, c->n_tables, c->cap_tables, table);
    return upload_table(c, k, table.data, err);
}

/* What an op needs on the device beside its operands; more scratch than there is means to wait
 * until nothing uses the old one. */
static int prepare(struct s4d_cuda *c, const struct s4d_call *call, struct s4d_error *err)
{
    int64_t bytes = s4d_cuda_scratch_bytes(&c->work, call);
    if (call->op->kind == S4D_OP_ROTARY && prepare_table(c, &call->op->c, err))
        return -1;
    if (bytes <= c->scratch_bytes)
        return 0;
    if (c->scratch_bytes > 0 &&
        (S4D_CUDA(err, cudaStreamSynchronize, c->streams[S4D_STREAM_COMPUTE].stream) ||
         S4D_CUDA(err, cudaFree, c->work.scratch)))
        return -1;
    c->work.scratch = NULL;
    c->scratch_bytes = 0;
    if (s4d_cuda_malloc("scratch of kernels", (size_t)bytes, &c->work.scratch, err))
        return -1;
    c->scratch_bytes = bytes;
    return 0;
}

struct s4d_call s4d_cuda_outline(const struct s4d_program *p, const struct s4d_op *op)
{
    struct s4d_call call = {.op = op};
    for (int k = 0; k < s4d_op_kinds[op->kind].n_operands; k++) {
        if (op->operand[k].tensor < 0)
            continue;
        const struct s4d_tensor *t = &p->tensors[op->operand[k].tensor];
        struct s4d_buffer *b = &call.operand[k];
        *b = (struct s4d_buffer){NULL, t->type, 1, t->shape[t->dims - 1],
                                 t->dims > 1 ? t->stride[t->dims - 2] : t->shape[t->dims - 1]};
        for (int d = 0; d < t->dims - 1; d++)
            b->rows *= t->shape[d];
    }
    return call;
}

static bool is_computed(const struct s4d_op *op)
{
    enum s4d_op_class of = s4d_op_kinds[op->kind].op_class;
    return of == S4D_CLASS_GEMM || of == S4D_CLASS_ATTENTION || of == S4D_CLASS_KERNEL;
}

int s4d_cuda_compute_open(struct s4d_cuda *c, struct s4d_error *err)
{
    c->work = (struct s4d_cuda_work){.self = c,
                                     .launch = launch,
                                     .multiply = multiply,
                                     .rotary_table = rotary_table,
                                     .variant = s4d_cuda_variant,
                                     .f64 = c->program->options.precision == S4D_F64,
                                     .tile_bytes = S4D_CUDA_TILE_BYTES};
    /* Sums of 16-bit products stay in fp32, those over parts of k too. */
    if (S4D_CUBLAS(err, cublasCreate, &c->cublas) ||
        S4D_CUBLAS(err, cublasSetStream, c->cublas, c->streams[S4D_STREAM_COMPUTE].stream) ||
        s4d_cuda_malloc("cuBLAS's workspace", WORKSPACE_BYTES, &c->workspace, err) ||
        S4D_CUBLAS(err, cublasSetWorkspace, c->cublas, c->workspace, WORKSPACE_BYTES) ||
        S4D_CUBLAS(err, cublasSetMathMode, c->cublas,
                   CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION))
        return -1;
    return 0;
}

int s4d_cuda_compute_plan(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int i = 0; i < c->program->n_ops; i++) {
        const struct s4d_op *op = &c->program->ops[i];
        struct s4d_call call;
        if (!is_computed(op))
            continue;
        call = s4d_cuda_outline(c->program, op);
        if (prepare(c, &call, err))
            return -1;
    }
    return 0;
}

void s4d_cuda_compute_close(struct s4d_cuda *c)
{
    if (c->cublas)
        S4D_CUBLAS(NULL, cublasDestroy, c->cublas);
    if (c->workspace)
        S4D_CUDA(NULL, cudaFree, c->workspace);
    if (c->work.scratch)
        S4D_CUDA(NULL, cudaFree, c->work.scratch);
    for (int i = 0; i < c->n_tables; i++)
        S4D_CUDA(NULL, cudaFree, c->tables[i].data);
    free(c->tables);
    for (int i = 0; i < 2; i++)
        s4d_cuda_give_event(c, c->portions[i]);
    s4d_gemm_choices_free(&c->choices);
}

int s4d_cuda_compute(struct s4d_cuda *c, const struct s4d_call *call, struct s4d_error *err)
{
    S4D_ASSERT(call->op->stream == S4D_STREAM_COMPUTE, "%s is not on the compute stream",
               call->op->label.name);
    return prepare(c, call, err) || s4d_cuda_work_run(&c->work, call, err) ? -1 : 0;
}
