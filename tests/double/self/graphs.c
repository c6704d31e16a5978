/* SPDX-License-Identifier: Apache-2.0 */
/* Captures, graphs and launches: what CUDA's documentation says of them. */
#include <mpi.h>
#include <signal.h>

#include "tests/double/self/self.h"

static cudaEvent_t fork_event, join_event, other;
static cudaGraph_t graph;

static cudaError_t begin(void)
{
    return cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeThreadLocal);
}

static cudaError_t end(void)
{
    return cudaStreamEndCapture(stream[0], &graph);
}

static void fork_to(int on)
{
    GOOD(cudaEventRecord(fork_event, stream[0]));
    GOOD(cudaStreamWaitEvent(stream[on], fork_event, 0));
}

static void join_from(int on)
{
    GOOD(cudaEventRecord(join_event, stream[on]));
    GOOD(cudaStreamWaitEvent(stream[0], join_event, 0));
}

static cudaGraphExec_t instance_of(void)
{
    cudaGraphExec_t instance;
    GOOD(end());
    GOOD(cudaGraphInstantiate(&instance, graph, cudaGraphInstantiateFlagUseNodePriority));
    GOOD(cudaGraphDestroy(graph));
    return instance;
}

static void launch(cudaGraphExec_t instance)
{
    GOOD(cudaGraphLaunch(instance, stream[0]));
}

/* ---- what is captured runs when it is launched, and every time ---- */

static int added;
static void CUDART_CB add(void *data)
{
    added += *(int *)data;
}

static void check_launches(void)
{
    int one = 1, right = 0;
    GOOD(begin());
    GOOD(up(device, pinned, 1, 0));
    GOOD(cudaLaunchHostFunc(stream[0], add, &one));
    cudaGraphExec_t instance = instance_of();
    GOOD(cudaStreamSynchronize(stream[0]));
    report(added == 0, "what is captured does not run");
    for (int i = 1; i <= SEEDS; i++) {
        set_seed(i);
        pinned[0] = (float)i;
        launch(instance);
        right += read_one(device) == (float)i; /* a copy and a wait on the same stream */
        launch(instance);
        launch(instance);
        GOOD(cudaStreamSynchronize(stream[0]));
    }
    report(right == SEEDS && added == 3 * SEEDS,
           "it runs at every launch, and reads what is there");
    launch(instance);
    GOOD(cudaGraphExecDestroy(instance));
    GOOD(cudaStreamSynchronize(stream[0]));
    report(added == 3 * SEEDS + 1 && cudaGraphLaunch(instance, stream[0]) == cudaErrorInvalidValue,
           "a launch goes on when its graph is destroyed, which then cannot be launched");
}

/* ---- branches ---- */

/* 1 by stream 0 and 2 by stream 1 to one place, as a graph; `waits`: 1 first. */
static float race(int seed, bool waits)
{
    set_seed(seed);
    pinned[1] = 1;
    pinned[2] = 2;
    GOOD(begin());
    fork_to(1);
    GOOD(up(device, pinned + 1, 1, 0));
    if (waits)
        fork_to(1);
    GOOD(up(device, pinned + 2, 1, 1));
    join_from(1);
    cudaGraphExec_t instance = instance_of();
    launch(instance);
    float last = read_one(device);
    GOOD(cudaGraphExecDestroy(instance));
    return last;
}

/* Stream 2 reads after an event of the graph: the copy of 4 before it is done, that of 5 after it
 * perhaps not. */
static void check_external(void)
{
    cudaEvent_t start, inner;
    float ms = -1;
    int after = 0, during = 0;
    GOOD(cudaEventCreateWithFlags(&start, cudaEventDefault));
    GOOD(cudaEventCreateWithFlags(&inner, cudaEventDefault));
    report(cudaEventRecordWithFlags(inner, stream[0], cudaEventRecordExternal) ==
               cudaErrorInvalidValue,
           "an external record outside of a capture");
    for (int i = 1; i <= 5; i++)
        pinned[i] = (float)i;
    GOOD(begin());
    GOOD(cudaEventRecordWithFlags(start, stream[0], cudaEventRecordExternal));
    GOOD(up(device, pinned + 4, 1, 0));
    GOOD(cudaEventRecordWithFlags(inner, stream[0], cudaEventRecordExternal));
    GOOD(up(device + 1, pinned + 5, 1, 0));
    cudaGraphExec_t instance = instance_of();
    for (int seed = 1; seed <= SEEDS; seed++) {
        set_seed(seed);
        pinned[8] = pinned[9] = 0;
        GOOD(up(device, pinned, 2, 0));
        pinned[0] = 0;
        launch(instance);
        GOOD(cudaStreamWaitEvent(stream[2], inner, 0));
        GOOD(down(pinned + 8, device, 2, 2));
        GOOD(cudaStreamSynchronize(stream[2]));
        after += pinned[8] == 4;
        during += pinned[9] != 5;
        GOOD(cudaStreamSynchronize(stream[0]));
        GOOD(cudaEventElapsedTime(&ms, start, inner));
        GOOD(up(device + 1, pinned, 1, 0));
        GOOD(cudaStreamSynchronize(stream[0]));
    }
    report(after == SEEDS && during > 0 && ms > 0,
           "an external record is waited for from outside, in the launch, and tells the time");
    GOOD(cudaGraphExecDestroy(instance));
}

static void check_branches(void)
{
    int first = 0, second = 0, right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        float last = race(seed, false);
        first += last == 1;
        second += last == 2;
        right += race(seed, true) == 2;
    }
    report(first >= 4 && second >= 4 && first + second == SEEDS,
           "branches of a graph run in any order");
    report(right == SEEDS, "unless one waits for the other");
}

/* ---- what is not allowed ---- */

static bool invalidated(void)
{
    return end() == cudaErrorStreamCaptureInvalidated && !graph;
}

static void check_unsafe(void)
{
    void *memory = NULL;
    const cudaError_t no = cudaErrorStreamCaptureUnsupported;
    GOOD(cudaEventRecord(other, stream[1]));
    GOOD(begin());
    bool good = cudaMalloc(&memory, 8) == no && invalidated();
    GOOD(begin());
    good = good && cudaFree(device) == no && invalidated();
    GOOD(begin());
    good = good && cudaHostAlloc(&memory, 8, cudaHostAllocDefault) == no && invalidated();
    GOOD(begin());
    good = good && cudaEventQuery(other) == no && invalidated();
    GOOD(begin());
    good = good && cudaStreamSynchronize(stream[0]) == no &&
           up(device, pinned, 1, 0) == cudaErrorStreamCaptureInvalidated && invalidated();
    report(good, "allocating, asking and synchronizing end a capture");
}

static void record_captured(void)
{
    GOOD(begin());
    fork_to(1);
    cudaEventRecordWithFlags(fork_event, stream[0], cudaEventRecordExternal);
}

static void check_boundaries(void)
{
    cudaGraph_t second = NULL;
    report(ends_by(record_captured) == SIGABRT,
           "an event that parts streams of a capture is none that a graph records");
    GOOD(end());
    GOOD(cudaGraphDestroy(graph));
    GOOD(cudaEventRecord(other, stream[1]));
    GOOD(begin());
    report(cudaStreamWaitEvent(stream[0], other, 0) == cudaErrorStreamCaptureIsolation &&
               invalidated(),
           "a captured wait for what is not captured");

    GOOD(begin());
    fork_to(1);
    GOOD(up(device, pinned, 1, 1));
    report(cudaStreamEndCapture(stream[1], &second) == cudaErrorStreamCaptureUnmatched &&
               end() == cudaErrorStreamCaptureUnjoined && !graph,
           "a capture ends where it began, when all is joined");
    GOOD(up(device, pinned, 1, 1));
    GOOD(cudaStreamSynchronize(stream[1]));

    GOOD(begin());
    GOOD(cudaEventRecord(other, stream[0]));
    report(cudaEventQuery(other) == cudaErrorStreamCaptureUnsupported && invalidated() &&
               cudaEventQuery(other) == cudaErrorCapturedEvent &&
               cudaStreamWaitEvent(stream[1], other, 0) == cudaErrorInvalidValue,
           "nobody may ask for a captured event");

    GOOD(begin());
    GOOD(cudaEventRecord(other, stream[0]));
    GOOD(cudaStreamBeginCapture(stream[1], cudaStreamCaptureModeThreadLocal));
    report(cudaStreamWaitEvent(stream[1], other, 0) == cudaErrorStreamCaptureMerge &&
               invalidated() &&
               cudaStreamEndCapture(stream[1], &second) == cudaErrorStreamCaptureInvalidated,
           "two captures cannot be merged");
}

/* ---- NCCL ---- */

static ncclComm_t shared;

static void destroy_too_early(void)
{
    ncclCommDestroy(shared);
}

/* Rank r puts r + i into a sum: 1 + 2 i. */
static void check_collectives(ncclComm_t comm)
{
    int right = 0, rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    GOOD(begin());
    fork_to(1);
    GOOD(up(device, pinned, 1, 1));
    join_from(1);
    ncclAllReduce(device, device + 1, 1, ncclFloat, ncclSum, comm, stream[0]);
    GOOD(settle(comm));
    cudaGraphExec_t instance = instance_of();
    for (int i = 1; i <= SEEDS; i++) {
        set_seed(i);
        pinned[0] = (float)(rank + i);
        launch(instance);
        right += read_one(device + 1) == (float)(1 + 2 * i);
    }
    report(right == SEEDS, "collectives of a graph meet those of the same launch");
    shared = comm;
    report(ends_by(destroy_too_early) == SIGABRT, "a communicator in a graph cannot be destroyed");
    GOOD(cudaGraphExecDestroy(instance));
}

void check_graphs(ncclComm_t comm)
{
    GOOD(cudaEventCreateWithFlags(&fork_event, cudaEventDefault));
    GOOD(cudaEventCreateWithFlags(&join_event, cudaEventDefault));
    GOOD(cudaEventCreateWithFlags(&other, cudaEventDefault));
    check_launches();
    check_branches();
    check_external();
    check_unsafe();
    check_boundaries();
    check_collectives(comm);
}
