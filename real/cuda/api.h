/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of NVIDIA's libraries that this folder makes, each through one of the macros below; no
 * other file of the project makes any.
 *
 *   CUDA runtime (12.4 and later)
 *     cudaGetDeviceCount cudaSetDevice cudaGetDevice cudaGetDeviceProperties
 *     cudaDeviceGetPCIBusId cudaDriverGetVersion cudaRuntimeGetVersion
 *     cudaMemGetInfo cudaDeviceGetStreamPriorityRange
 *     cudaMalloc cudaFree cudaHostAlloc cudaFreeHost cudaMemsetAsync cudaMemcpy2DAsync
 *     cudaStreamCreateWithPriority cudaStreamDestroy cudaStreamSynchronize cudaStreamWaitEvent
 *     cudaEventCreateWithFlags cudaEventDestroy cudaEventRecord cudaEventRecordWithFlags
 *     cudaEventQuery cudaEventElapsedTime
 *     cudaStreamBeginCapture cudaStreamEndCapture cudaGraphInstantiate cudaGraphLaunch
 *     cudaGraphDestroy cudaGraphExecDestroy
 *     cudaLaunchKernel cudaLaunchHostFunc cudaGetLastError cudaGetErrorName cudaGetErrorString
 *   cuBLAS
 *     cublasCreate cublasDestroy cublasSetStream cublasSetWorkspace cublasSetMathMode
 *     cublasGemmStridedBatchedEx cublasGetVersion cublasGetStatusString
 *   NCCL (2.18 and later)
 *     ncclGetVersion ncclGetUniqueId ncclCommInitRankConfig ncclCommSplit ncclCommGetAsyncError
 *     ncclCommDestroy ncclCommAbort ncclAllReduce ncclAllGather ncclReduceScatter
 *     ncclSend ncclRecv ncclGroupStart ncclGroupEnd
 *     ncclGetErrorString ncclGetLastError
 *
 * What the calls rely on: streams are non-blocking ones (none waits for the legacy stream); copies
 * of the arena are between it and pinned memory; a communicator is non-blocking, so that a call may
 * return ncclInProgress and is then polled. */
#ifndef S4D_REAL_CUDA_API_H
#define S4D_REAL_CUDA_API_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
/* nccl.h up to 2.23 has ncclBfloat16 only where cuda_bf16.h has said so, which it does in C++
 * alone; the library has it. */
#ifndef __CUDA_BF16_TYPES_EXIST__
#define __CUDA_BF16_TYPES_EXIST__
#endif
#include <nccl.h>

#include "support/error.h"

#if NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error "NCCL 2.18 or later is needed (ncclCommSplit)"
#endif

/* 0, or -1 (exit 69) with the call's name and the library's words for the code it returned. The
 * rank and its host are put before them where ranks report (real/mpi/world.h, s4d_cuda_agree). */
int s4d_cuda_check(const char *call, cudaError_t code, struct s4d_error *err);
int s4d_cublas_check(const char *call, cublasStatus_t code, struct s4d_error *err);
/* comm may be NULL. ncclInProgress is no failure. */
int s4d_nccl_check(const char *call, ncclResult_t code, ncclComm_t comm, struct s4d_error *err);
/* cudaEventQuery, its cudaErrorNotReady forgotten at once: the thread's last error would hold it,
 * and a library that looks there after its next launch would take it for a failure of that. */
cudaError_t s4d_cuda_ask(cudaEvent_t event);

#define S4D_CUDA(err, call, ...)       s4d_cuda_check(#call, call(__VA_ARGS__), err)
#define S4D_CUBLAS(err, call, ...)     s4d_cublas_check(#call, call(__VA_ARGS__), err)
#define S4D_NCCL(err, comm, call, ...) s4d_nccl_check(#call, call(__VA_ARGS__), comm, err)

#endif
