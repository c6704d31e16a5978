/* SPDX-License-Identifier: Apache-2.0 */
/* What the double of CUDA promises: work is deferred and reordered, but never beyond CUDA's rules;
 * wrong uses are seen. Speaks TAP.
 *
 *   mpirun -n 2 self */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <nccl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "tests/double/self/self.h"

static int rank, n_tests;
static bool failed;
static cudaEvent_t event;
cudaStream_t stream[3];
float *device, *pinned;

void report(bool good, const char *name)
{
    int own = good, all;
    MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    n_tests++;
    failed |= !all;
    if (rank == 0)
        printf("%s %d - %s\n", all ? "ok" : "not ok", n_tests, name);
}

static sigjmp_buf back;
static void came(int signal)
{
    siglongjmp(back, signal);
}

int ends_by(void (*f)(void))
{
    struct sigaction action = {.sa_handler = came}, old[2];
    sigaction(SIGSEGV, &action, &old[0]);
    sigaction(SIGABRT, &action, &old[1]);
    int signal = sigsetjmp(back, 1);
    if (signal == 0)
        f();
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGABRT, &old[1], NULL);
    return signal;
}

void set_seed(int seed)
{
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("S4D_DOUBLE_SEED", text, 1);
    GOOD(cudaSetDevice(0));
}

cudaError_t up(float *to, const float *from, int n, int on)
{
    size_t bytes = (size_t)n * sizeof(float);
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, cudaMemcpyHostToDevice, stream[on]);
}

cudaError_t down(float *to, const float *from, int n, int on)
{
    size_t bytes = (size_t)n * sizeof(float);
    return cudaMemcpy2DAsync(to, bytes, from, bytes, bytes, 1, cudaMemcpyDeviceToHost, stream[on]);
}

float read_one(const float *from)
{
    GOOD(down(pinned + 100, from, 1, 0));
    GOOD(cudaStreamSynchronize(stream[0]));
    return pinned[100];
}

/* ---- memory ---- */

static void read_device(void)
{
    pinned[0] = *(volatile float *)device;
}
static void write_device(void)
{
    *(volatile float *)device = 1;
}
static void copy_pageable(void)
{
    float here = 1;
    up(device, &here, 1, 0);
}

static void check_memory(void)
{
    float *one = NULL;
    size_t before, after, total;
    report(ends_by(read_device) == SIGSEGV, "the host cannot read device memory");
    report(ends_by(write_device) == SIGSEGV, "nor write it");
    report(ends_by(copy_pageable) == SIGABRT, "a copy of pageable memory is refused");
    report(up(device + 1023, pinned, 2, 0) == cudaErrorInvalidValue, "a copy beyond an allocation");
    GOOD(cudaMemGetInfo(&before, &total));
    GOOD(cudaMalloc((void **)&one, 1000));
    float fresh = read_one(one);
    report(fresh != fresh, "new memory is full of NaNs");
    GOOD(cudaFree(one));
    GOOD(cudaMemGetInfo(&after, &total));
    report(before == after && up(one, pinned, 1, 0) == cudaErrorInvalidValue,
           "nothing is left of it");
    report(cudaMalloc((void **)&one, total) == cudaErrorMemoryAllocation, "more than there is");
}

/* ---- order ---- */

/* 1 by stream 0 and 2 by stream 1 to one place; `waits`: 1 first. */
static float race(int seed, bool waits)
{
    set_seed(seed);
    pinned[1] = 1;
    pinned[2] = 2;
    GOOD(up(device, pinned + 1, 1, 0));
    GOOD(cudaEventRecord(event, stream[0]));
    if (waits)
        GOOD(cudaStreamWaitEvent(stream[1], event, 0));
    GOOD(up(device, pinned + 2, 1, 1));
    GOOD(cudaEventRecord(event, stream[0])); /* a later record changes nothing for a wait */
    GOOD(cudaStreamSynchronize(stream[1]));
    GOOD(cudaStreamSynchronize(stream[0]));
    return read_one(device);
}

/* A copy's source is changed before the stream was waited for. */
static float change(int seed)
{
    set_seed(seed);
    pinned[1] = 1;
    GOOD(up(device, pinned + 1, 1, 0));
    pinned[1] = 3;
    GOOD(cudaStreamSynchronize(stream[0]));
    return read_one(device);
}

static void check_order(void)
{
    int first = 0, second = 0, right = 0, early = 0, late = 0, again = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        float last = race(seed, false);
        again += race(seed, false) == last;
        first += last == 1;
        second += last == 2;
        right += race(seed, true) == 2;
        float value = change(seed);
        early += value == 1;
        late += value == 3;
    }
    report(first >= 4 && second >= 4 && first + second == SEEDS,
           "without a wait both orders happen");
    report(again == SEEDS, "a seed gives the same order again");
    report(right == SEEDS, "with it one does");
    report(late >= 4 && early + late == SEEDS, "work is deferred");
}

static int asked;
static void CUDART_CB ask(void *data)
{
    asked += *(int *)data;
}

static void check_events(void)
{
    cudaEvent_t end;
    float ms = -1;
    int seven = 7, not_ready = 0, polls = 0;
    GOOD(cudaEventCreateWithFlags(&end, cudaEventDefault));
    report(cudaEventElapsedTime(&ms, event, end) == cudaErrorInvalidResourceHandle,
           "a time of an event that was not recorded");
    for (int seed = 1; seed <= SEEDS; seed++) {
        set_seed(seed);
        GOOD(cudaEventRecord(event, stream[0]));
        GOOD(cudaLaunchHostFunc(stream[0], ask, &seven));
        GOOD(cudaEventRecord(end, stream[0]));
        not_ready += cudaEventElapsedTime(&ms, event, end) == cudaErrorNotReady;
        while (cudaEventQuery(end) == cudaErrorNotReady)
            polls++;
        GOOD(cudaEventElapsedTime(&ms, event, end));
    }
    report(cudaGetLastError() == cudaErrorNotReady && cudaGetLastError() == cudaSuccess,
           "what was not ready was the last error, once");
    report(not_ready > 0 && polls > 0 && ms > 0, "events come when they come, and tell the time");
    report(asked == SEEDS * seven, "host functions run once");
    GOOD(cudaEventDestroy(end));
    report(cudaEventRecord(end, stream[0]) == cudaErrorInvalidResourceHandle, "a destroyed event");
}

/* ---- cuBLAS ---- */

static cublasHandle_t blas;

static cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                           float beta, const void *a, cudaDataType type, int lda, const void *b,
                           int ldb, float *c, int ldc, int batch, cublasComputeType_t compute)
{
    const float alpha = 1;
    return cublasGemmStridedBatchedEx(blas, ta, tb, m, n, k, &alpha, a, type, lda, 6, b, type, ldb,
                                      6, &beta, c, CUDA_R_32F, ldc, 4, batch, compute,
                                      CUBLAS_GEMM_DEFAULT);
}

/* A = [1 3 5; 2 4 6] and B = [1 4; 2 5; 3 6] by columns: A B = [22 49; 28 64]. As 3 x 2 and 2 x 3
 * matrices by columns, transposed, A^T is [1 2 3; 4 5 6] and B^T [1 2; 3 4; 5 6]: their product is
 * [22 28; 49 64]. */
static void check_products(void)
{
    static const float plain[4] = {22, 28, 49, 64}, transposed[4] = {22, 49, 28, 64};
    cublasOperation_t t = CUBLAS_OP_T, n = CUBLAS_OP_N;
    cublasComputeType_t f32 = CUBLAS_COMPUTE_32F;
    float *c = device + 64;
    for (int i = 0; i < 12; i++)
        pinned[i] = (float)(i % 6 + 1);
    GOOD(up(device, pinned, 12, 0)); /* c is full of NaNs */
    GOOD(gemm(n, n, 2, 2, 3, 0, device, CUDA_R_32F, 2, device, 3, c, 2, 2, f32));
    GOOD(gemm(t, t, 2, 2, 3, 0, device, CUDA_R_32F, 3, device, 2, c + 8, 2, 1, f32));
    GOOD(gemm(n, n, 2, 2, 3, 1, device, CUDA_R_32F, 2, device, 3, c + 8, 2, 1, f32));
    GOOD(down(pinned + 16, c, 12, 0));
    GOOD(cudaStreamSynchronize(stream[0]));
    bool good = memcmp(pinned + 16, plain, sizeof plain) == 0 &&
                memcmp(pinned + 20, plain, sizeof plain) == 0;
    for (int i = 0; i < 4; i++)
        good = good && pinned[24 + i] == transposed[i] + plain[i];
    report(good, "products by columns, a batch, transposed, added to");

    uint16_t *ones = (uint16_t *)pinned;
    for (int i = 0; i < 512; i++)
        ones[i] = s4d_bf16_of(1);
    GOOD(up(device, pinned, 256, 0));
    GOOD(gemm(t, n, 1, 1, 512, 0, device, CUDA_R_16BF, 512, device, 512, c, 1, 1, f32));
    report(read_one(c) == 512, "bf16 is summed in fp32: in bf16 512 ones are 256");

    report(gemm(n, n, 2, 2, 3, 0, device, CUDA_R_32F, 1, device, 3, c, 2, 1, f32) ==
                   CUBLAS_STATUS_INVALID_VALUE &&
               gemm(n, n, 2, 2, 3, 0, device, CUDA_R_32F, 2, device, 2, c, 2, 1, f32) ==
                   CUBLAS_STATUS_INVALID_VALUE &&
               gemm(n, n, -1, 2, 3, 0, device, CUDA_R_32F, 2, device, 3, c, 2, 1, f32) ==
                   CUBLAS_STATUS_INVALID_VALUE,
           "leading dimensions that are too small, negative sizes");
    report(gemm(n, n, 2, 2, 3, 0, device, CUDA_R_16BF, 2, device, 3, c, 2, 1, CUBLAS_COMPUTE_64F) ==
               CUBLAS_STATUS_NOT_SUPPORTED,
           "types that do not go together");

    cudaError_t asked_early = cudaSuccess;
    GOOD(cudaGetLastError());
    for (int seed = 1; asked_early == cudaSuccess && seed <= SEEDS; seed++) {
        set_seed(seed);
        for (int i = 0; i < 8; i++)
            GOOD(up(device, pinned, 12, 0));
        GOOD(cudaEventRecord(event, stream[0]));
        asked_early = cudaEventQuery(event);
    }
    report(asked_early == cudaErrorNotReady &&
               gemm(n, n, 2, 2, 3, 0, device, CUDA_R_32F, 2, device, 3, c, 2, 1, f32) ==
                   CUBLAS_STATUS_EXECUTION_FAILED &&
               cudaGetLastError() == cudaErrorNotReady && cudaGetLastError() == cudaSuccess &&
               gemm(n, n, 2, 2, 3, 0, device, CUDA_R_32F, 2, device, 3, c, 2, 1, f32) ==
                   CUBLAS_STATUS_SUCCESS,
           "a question's not ready is the last error, until it is taken");
}

/* ---- NCCL ---- */

ncclResult_t settle(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
        GOOD(ncclCommGetAsyncError(comm, &state));
    return state;
}

static ncclComm_t world, swapped;

static void overlap(void)
{
    ncclAllGather(device, device + 1, 2, ncclFloat, swapped, stream[0]);
}

static void use_two_streams(void)
{
    ncclAllReduce(device, device, 1, ncclFloat, ncclSum, swapped, stream[1]);
}

static void check_communicators(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    if (rank == 0)
        GOOD(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    bool early = ncclCommInitRankConfig(&world, 2, id, rank, &config) == ncclInProgress &&
                 ncclCommSplit(world, 0, 0, &swapped, &config) == ncclInvalidUsage;
    report(early, "a communicator that forms cannot be used");
    GOOD(settle(world));
    ncclCommSplit(world, 0, -rank, &swapped, &config); /* rank 1 is its rank 0 */
    GOOD(settle(world));
    GOOD(settle(swapped));
}

/* Rank r has 10 r + 1, 10 r + 2: sums 12 14, gathered by the swapped order 11 12 1 2; of the sums
 * rank 1, its rank 0, gets 12 and rank 0 gets 14. */
static void check_collectives(void)
{
    static const float gathered[4] = {11, 12, 1, 2};
    float *out = device + 8;
    pinned[0] = (float)(10 * rank + 1);
    pinned[1] = (float)(10 * rank + 2);
    bool good = true;
    for (int seed = 1; seed <= 8; seed++) {
        set_seed(seed);
        GOOD(up(device, pinned, 2, 0));
        ncclAllReduce(device, out, 2, ncclFloat, ncclSum, swapped, stream[0]);
        good = good && settle(swapped) == ncclSuccess;
        ncclAllGather(device, out + 2, 2, ncclFloat, swapped, stream[0]);
        good = good && settle(swapped) == ncclSuccess;
        ncclReduceScatter(device, out + 6, 1, ncclFloat, ncclSum, swapped, stream[0]);
        good = good && settle(swapped) == ncclSuccess;
        GOOD(down(pinned + 8, out, 7, 0));
        GOOD(cudaStreamSynchronize(stream[0]));
        good = good && pinned[8] == 12 && pinned[9] == 14 &&
               memcmp(pinned + 10, gathered, sizeof gathered) == 0 &&
               pinned[14] == (rank == 1 ? 12 : 14);
    }
    report(good, "collectives, in the order of a split's keys");
    report(ends_by(use_two_streams) == SIGABRT, "a communicator on two streams is refused");
    report(ends_by(overlap) == SIGABRT, "buffers that overlap, and not in place, are refused");
}

/* ---- messages and groups ---- */

static void to_peer(ncclComm_t comm, int n)
{
    ncclSend(device, (size_t)n, ncclFloat, 1 - rank, comm, stream[0]);
    settle(comm);
}

static void from_peer(ncclComm_t comm, int n)
{
    ncclRecv(device + 16, (size_t)n, ncclFloat, 1 - rank, comm, stream[0]);
    settle(comm);
}

/* Both send the other 10 r + 1, 10 r + 2 at once, and sum the first: 12. */
static bool exchange(int seed)
{
    set_seed(seed);
    pinned[0] = (float)(10 * rank + 1);
    pinned[1] = (float)(10 * rank + 2);
    GOOD(up(device, pinned, 2, 0));
    GOOD(ncclGroupStart());
    GOOD(ncclSend(device, 2, ncclFloat, 1 - rank, world, stream[0]));
    GOOD(ncclAllReduce(device, device + 8, 1, ncclFloat, ncclSum, world, stream[0]));
    GOOD(ncclRecv(device + 16, 2, ncclFloat, 1 - rank, world, stream[0]));
    ncclResult_t code = ncclGroupEnd();
    bool good = (code == ncclSuccess || code == ncclInProgress) && settle(world) == ncclSuccess;
    GOOD(down(pinned + 8, device + 8, 10, 0));
    GOOD(cudaStreamSynchronize(stream[0]));
    return good && pinned[8] == 12 && pinned[16] == (float)(10 * (1 - rank) + 1) &&
           pinned[17] == (float)(10 * (1 - rank) + 2);
}

/* Two by themselves, the other way round on the other rank. */
static bool one_by_one(int seed)
{
    set_seed(seed);
    pinned[0] = (float)rank;
    GOOD(up(device, pinned, 1, 0));
    rank == 0 ? to_peer(world, 1) : from_peer(world, 1);
    rank == 0 ? from_peer(world, 1) : to_peer(world, 1);
    return read_one(device + 16) == (float)(1 - rank);
}

static ncclComm_t other_comm(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;
    config.blocking = 0;
    ncclCommSplit(world, 0, rank, &comm, &config);
    GOOD(settle(world));
    GOOD(settle(comm));
    return comm;
}

/* What a communicator is in after what both ranks did; the stream stands still until it is aborted.
 */
static bool ends_wrong(ncclComm_t comm, const char *words)
{
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess || state == ncclInProgress)
        GOOD(ncclCommGetAsyncError(comm, &state));
    bool good = state == ncclInvalidUsage && strstr(ncclGetLastError(comm), words);
    MPI_Barrier(MPI_COMM_WORLD); /* an abort is an error of the other's, too */
    GOOD(ncclCommAbort(comm));
    GOOD(cudaStreamSynchronize(stream[0]));
    return good;
}

static ncclComm_t second;
static void nest(void)
{
    ncclGroupStart();
}
static void use_another(void)
{
    ncclSend(device, 1, ncclFloat, 1 - rank, second, stream[0]);
}
static void ask_within(void)
{
    ncclResult_t state;
    ncclCommGetAsyncError(second, &state);
}
static void send_to_itself(void)
{
    ncclSend(device, 1, ncclFloat, rank, second, stream[0]);
}

static void check_groups(void)
{
    bool good = true;
    GOOD(ncclGroupStart());
    report(ends_by(nest) == SIGABRT && ends_by(ask_within) == SIGABRT,
           "a group in a group, or a question, is refused");
    GOOD(ncclGroupEnd());
    report(ncclGroupEnd() == ncclInvalidUsage, "the end of no group");
    GOOD(ncclGroupStart());
    good = ncclSend(pinned, 1, ncclFloat, 1 - rank, world, stream[0]) == ncclInvalidArgument;
    report(good && ncclGroupEnd() == ncclInvalidArgument && exchange(1),
           "what is wrong in a group is told, again by its end, and nothing of it is done");
    second = other_comm();
    GOOD(ncclGroupStart());
    ncclRecv(device, 1, ncclFloat, 1 - rank, world, stream[0]);
    report(ends_by(use_another) == SIGABRT && ends_by(send_to_itself) == SIGABRT,
           "a group of two communicators is refused, and a message to itself");
    ncclSend(pinned, 1, ncclFloat, 1 - rank, world, stream[0]); /* so that none of it is done */
    report(ncclGroupEnd() == ncclInvalidArgument, "a group with an error is none");
    GOOD(ncclCommDestroy(second));
}

static void check_messages(void)
{
    int right = 0, serial = 0, stuck = 0;
    for (int seed = 1; seed <= 8; seed++) {
        right += exchange(seed);
        serial += one_by_one(seed);
        ncclComm_t comm = other_comm();
        to_peer(comm, 1);
        from_peer(comm, 1);
        stuck += ends_wrong(comm, "a deadlock: rank ");
    }
    report(right == 8, "in a group messages meet, beside a sum");
    report(serial == 8, "by themselves they do where one sends as the other receives");
    report(stuck == 8, "both send first: a deadlock, which is an error");
    ncclComm_t comm = other_comm();
    rank == 0 ? to_peer(comm, 2) : from_peer(comm, 1);
    report(ends_wrong(comm, rank == 0 ? "ncclSend of 2 meets rank 1's ncclRecv of 1"
                                      : "ncclRecv of 1 meets rank 0's ncclSend of 2"),
           "a message of another size than its receive is an error of both");
    comm = other_comm();
    if (rank == 0)
        to_peer(comm, 1);
    else
        ncclRecv(device, 1, ncclInt32, 0, comm, stream[0]);
    settle(comm);
    report(ends_wrong(comm, "or of another type"), "of another type, too");
}

static void check_mismatch(void)
{
    ncclAllReduce(device, device, (size_t)(2 - rank), ncclFloat, ncclSum, swapped, stream[0]);
    ncclResult_t state = ncclSuccess;
    while (state == ncclSuccess || state == ncclInProgress)
        GOOD(ncclCommGetAsyncError(swapped, &state));
    report(state == ncclInvalidUsage && strstr(ncclGetLastError(swapped), "ncclAllReduce of"),
           "counts that differ are an error of the communicator");
    GOOD(cudaEventRecord(event, stream[0]));
    bool stuck = true;
    for (int i = 0; i < 1000; i++)
        stuck = stuck && cudaEventQuery(event) == cudaErrorNotReady;
    GOOD(ncclCommAbort(swapped));
    GOOD(cudaStreamSynchronize(stream[0]));
    report(stuck, "its stream stands still until it is aborted");
    GOOD(ncclCommDestroy(world));
}

int main(int argc, char **argv)
{
    int level, size;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2) {
        fprintf(stderr, "self_test: expected 2 ranks, found %d\n  hint: mpirun -n 2\n", size);
        MPI_Finalize();
        return 64;
    }
    set_seed(1);
    GOOD(cudaMalloc((void **)&device, 4096));
    GOOD(cudaHostAlloc((void **)&pinned, 4096, cudaHostAllocDefault));
    for (int i = 0; i < 3; i++)
        GOOD(cudaStreamCreateWithPriority(&stream[i], cudaStreamNonBlocking, 0));
    GOOD(cudaEventCreateWithFlags(&event, cudaEventDefault));
    check_memory();
    check_order();
    check_events();
    GOOD(cublasCreate(&blas));
    GOOD(cublasSetStream(blas, stream[0]));
    check_products();
    check_communicators();
    check_collectives();
    check_messages();
    check_groups();
    check_graphs(swapped);
    check_mismatch();
    if (rank == 0)
        printf("1..%d\n", n_tests);
    MPI_Finalize();
    return failed;
}
