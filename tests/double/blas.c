/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS over CBLAS: column-major; 16-bit matrices are summed in fp32 and rounded once. */
#include <cblas.h>
#include <cublas_v2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "support/memory.h"
#include "tests/double/double.h"

struct cublasContext {
    cudaStream_t stream;
    void *workspace;
    size_t workspace_bytes;
    cublasMath_t math;
};

#define ENTER(name, failure)                                                                       \
    do {                                                                                           \
        if (s4d_double_in_work())                                                                  \
            s4d_double_refuse(name, "a host function may not call cuBLAS");                        \
        s4d_double_turn(S4D_DOUBLE_ISSUES);                                                        \
        if (s4d_double_call_fails(name, __builtin_return_address(0)) || s4d_double_broken())       \
            return failure;                                                                        \
    } while (0)

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    ENTER("cublasCreate", CUBLAS_STATUS_NOT_INITIALIZED);
    if (s4d_double_unsafe())
        return CUBLAS_STATUS_ALLOC_FAILED;
    *handle = s4d_calloc(1, sizeof **handle);
    s4d_double_live.handles++;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    ENTER("cublasDestroy", CUBLAS_STATUS_NOT_INITIALIZED);
    free(handle);
    s4d_double_live.handles--;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    ENTER("cublasGetVersion", CUBLAS_STATUS_NOT_INITIALIZED);
    *version = handle ? CUBLAS_VERSION : 0;
    return CUBLAS_STATUS_SUCCESS;
}

/* "unconditionally resets the workspace back to the default" */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    ENTER("cublasSetStream", CUBLAS_STATUS_NOT_INITIALIZED);
    if (!s4d_double_is_stream(stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->workspace = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    ENTER("cublasSetWorkspace", CUBLAS_STATUS_NOT_INITIALIZED);
    if ((uintptr_t)workspace % 256 != 0 || !s4d_double_is_device(workspace, bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    ENTER("cublasSetMathMode", CUBLAS_STATUS_NOT_INITIALIZED);
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* A column-major matrix, one of `batch`. */
struct matrix {
    void *data;
    cudaDataType type;
    int rows, cols, ld; /* as it lies in memory */
    long long apart;
    bool transposed;
};
struct product {
    struct matrix a, b, c;
    int m, n, k, batch;
    double alpha, beta;
    bool tf32;
    void *workspace;
    size_t workspace_bytes;
};

static size_t size_of(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static float load(cudaDataType type, const void *at, bool tf32)
{
    uint16_t half;
    uint32_t bits;
    float x;
    if (type == CUDA_R_32F) {
        memcpy(&x, at, sizeof x);
        if (!tf32)
            return x;
        memcpy(&bits, at, sizeof bits); /* 10 of the 23 bits of the mantissa, to nearest even */
        bits = (bits + 0xfff + (bits >> 13 & 1)) & ~(uint32_t)0x1fff;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    memcpy(&half, at, sizeof half);
    return type == CUDA_R_16BF ? s4d_bf16_value(half) : (float)s4d_f16_value(half);
}

static void store(cudaDataType type, void *at, float x)
{
    if (type == CUDA_R_32F) {
        memcpy(at, &x, sizeof x);
        return;
    }
    uint16_t half = type == CUDA_R_16BF ? s4d_bf16_of(x) : s4d_f16_of(x);
    memcpy(at, &half, sizeof half);
}

/* Matrix `i` of the batch as floats, packed. */
static float *floats_of(const struct matrix *x, int i, bool tf32)
{
    size_t size = size_of(x->type);
    float *packed = s4d_malloc((size_t)x->rows * (size_t)x->cols * sizeof *packed + 1);
    for (int col = 0; col < x->cols; col++)
        for (int row = 0; row < x->rows; row++) {
            int64_t at = i * x->apart + (int64_t)col * x->ld + row;
            packed[(size_t)col * (size_t)x->rows + (size_t)row] =
                load(x->type, (const unsigned char *)x->data + at * (int64_t)size, tf32);
        }
    return packed;
}

static int order_of(const struct matrix *x)
{
    return x->transposed ? CblasTrans : CblasNoTrans;
}

static void multiply_floats(const struct product *p, int i)
{
    float *a = floats_of(&p->a, i, p->tf32), *b = floats_of(&p->b, i, p->tf32);
    float *c = s4d_calloc((size_t)p->m * (size_t)p->n, sizeof *c);
    size_t size = size_of(p->c.type);
    if (p->k > 0)
        cblas_sgemm(CblasColMajor, order_of(&p->a), order_of(&p->b), p->m, p->n, p->k,
                    (float)p->alpha, a, p->a.rows, b, p->b.rows, 0, c, p->m);
    for (int col = 0; col < p->n; col++)
        for (int row = 0; row < p->m; row++) {
            int64_t at = (i * p->c.apart + (int64_t)col * p->c.ld + row) * (int64_t)size;
            float sum = c[(size_t)col * (size_t)p->m + (size_t)row];
            if (p->beta != 0) /* else C is not read */
                sum +=
                    (float)p->beta * load(p->c.type, (const unsigned char *)p->c.data + at, false);
            store(p->c.type, (unsigned char *)p->c.data + at, sum);
        }
    free(a);
    free(b);
    free(c);
}

static void multiply_doubles(const struct product *p, int i)
{
    double *c = (double *)p->c.data + i * p->c.apart;
    for (int col = 0; p->beta == 0 && col < p->n; col++)
        memset(c + (int64_t)col * p->c.ld, 0, (size_t)p->m * sizeof *c);
    cblas_dgemm(CblasColMajor, order_of(&p->a), order_of(&p->b), p->m, p->n, p->k, p->alpha,
                (const double *)p->a.data + i * p->a.apart, p->a.ld,
                (const double *)p->b.data + i * p->b.apart, p->b.ld, p->beta, c, p->c.ld);
}

static bool reach(struct matrix *x, int batch)
{
    long long n = (batch - 1) * x->apart + (long long)(x->cols - 1) * x->ld + x->rows;
    if (x->rows == 0 || x->cols == 0)
        return true;
    x->data = s4d_double_reach(x->data, (size_t)n * size_of(x->type), "a matrix");
    return x->data != NULL;
}

static bool run(void *data)
{
    struct product *p = data;
    if (s4d_double_fails("product"))
        s4d_double_break(cudaErrorLaunchFailure, "a product fails as asked");
    if (s4d_double_broken() || !reach(&p->a, p->batch) || !reach(&p->b, p->batch) ||
        !reach(&p->c, p->batch))
        return true;
    void *workspace =
        p->workspace ? s4d_double_reach(p->workspace, p->workspace_bytes, "a workspace") : NULL;
    if (workspace) /* it is cuBLAS's while a product runs */
        memset(workspace, 0xff, p->workspace_bytes < 4096 ? p->workspace_bytes : 4096);
    for (int i = 0; i < p->batch; i++) {
        if (p->c.type == CUDA_R_64F)
            multiply_doubles(p, i);
        else
            multiply_floats(p, i);
    }
    return true;
}

/* Of cublasGemmEx's table, the rows that the backend may use. */
static bool is_known(cudaDataType a, cudaDataType c, cublasComputeType_t compute)
{
    switch (compute) {
    case CUBLAS_COMPUTE_64F:
        return a == CUDA_R_64F && c == CUDA_R_64F;
    case CUBLAS_COMPUTE_32F:
        return (a == CUDA_R_16BF || a == CUDA_R_16F || a == CUDA_R_32F) &&
               (c == a || c == CUDA_R_32F);
    case CUBLAS_COMPUTE_32F_FAST_TF32:
        return a == CUDA_R_32F && c == CUDA_R_32F;
    default:
        s4d_double_refuse("cublasGemmStridedBatchedEx", "this type of computation");
    }
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transa,
                                          cublasOperation_t transb, int m, int n, int k,
                                          const void *alpha, const void *a, cudaDataType a_type,
                                          int lda, long long a_apart, const void *b,
                                          cudaDataType b_type, int ldb, long long b_apart,
                                          const void *beta, void *c, cudaDataType c_type, int ldc,
                                          long long c_apart, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm)
{
    ENTER("cublasGemmStridedBatchedEx", CUBLAS_STATUS_EXECUTION_FAILED);
    bool ta = transa == CUBLAS_OP_T, tb = transb == CUBLAS_OP_T;
    if (!handle || !s4d_double_is_stream(handle->stream))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if ((!ta && transa != CUBLAS_OP_N) || (!tb && transb != CUBLAS_OP_N) ||
        algorithm != CUBLAS_GEMM_DEFAULT)
        s4d_double_refuse("cublasGemmStridedBatchedEx", "a conjugate, or an algorithm");
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < most(1, ta ? k : m) ||
        ldb < most(1, tb ? n : k) || ldc < most(1, m) || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (batch > 65535) /* blockIdx.z; nothing says that more are allowed */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if ((uintptr_t)a % size_of(a_type) || (uintptr_t)b % size_of(b_type) ||
        (uintptr_t)c % size_of(c_type))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (a_type != b_type || !is_known(a_type, c_type, compute))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m == 0 || n == 0 || batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    bool f64 = compute == CUBLAS_COMPUTE_64F; /* the scale's type; in host memory, read now */
    if (s4d_double_invalid(handle->stream) || s4d_double_left_behind())
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (s4d_double_capturing() && !handle->workspace)
        s4d_double_refuse("cublasGemmStridedBatchedEx", "a capture without a workspace");
    struct product p = {.a = {(void *)a, a_type, ta ? k : m, ta ? m : k, lda, a_apart, ta},
                        .b = {(void *)b, b_type, tb ? n : k, tb ? k : n, ldb, b_apart, tb},
                        .c = {c, c_type, m, n, ldc, c_apart, false},
                        .m = m,
                        .n = n,
                        .k = k,
                        .batch = batch,
                        .alpha = f64 ? *(const double *)alpha : (double)*(const float *)alpha,
                        .beta = f64 ? *(const double *)beta : (double)*(const float *)beta,
                        .tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32,
                        .workspace = handle->workspace,
                        .workspace_bytes = handle->workspace_bytes};
    s4d_double_append(handle->stream, run, &p, sizeof p);
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    default:
        return "unknown error";
    }
}
