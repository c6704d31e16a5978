/* SPDX-License-Identifier: Apache-2.0 */
#include "real/cuda/api.h"

int s4d_cuda_check(const char *call, cudaError_t code, struct s4d_error *err)
{
    if (code == cudaSuccess)
        return 0;
    return s4d_fail(err, S4D_EXIT_DEVICE, call, "CUDA: %s (%s)", cudaGetErrorString(code),
                    cudaGetErrorName(code));
}

cudaError_t s4d_cuda_ask(cudaEvent_t event)
{
    cudaError_t code = cudaEventQuery(event);
    if (code == cudaErrorNotReady)
        (void)cudaGetLastError();
    return code;
}

int s4d_cublas_check(const char *call, cublasStatus_t code, struct s4d_error *err)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return 0;
    return s4d_fail(err, S4D_EXIT_DEVICE, call, "cuBLAS: %s", cublasGetStatusString(code));
}

int s4d_nccl_check(const char *call, ncclResult_t code, ncclComm_t comm, struct s4d_error *err)
{
    if (code == ncclSuccess || code == ncclInProgress)
        return 0;
    const char *last = ncclGetLastError(comm);
    s4d_fail(err, S4D_EXIT_DEVICE, call, "NCCL: %s%s%s", ncclGetErrorString(code),
             last && *last ? ": " : "", last ? last : "");
    return s4d_hint(err, "NCCL_DEBUG=INFO in the environment makes NCCL say more");
}
