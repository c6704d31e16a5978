// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda/cpu_launch.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "support/error.h"

struct s4d_cpu_index {
    unsigned x, y, z;
};
s4d_cpu_index threadIdx, blockIdx, blockDim, gridDim;
enum { SHARED_BYTES = 64 << 10, STACK_BYTES = 64 << 10, MOST_THREADS = 1024 };
alignas(64) double s4d_shared[SHARED_BYTES / sizeof(double)];

typedef void (*kernel)(const struct s4d_cuda_args args);

namespace
{
/* A thread of a block: a stack of its own, kept from block to block. */
struct thread {
    unsigned char *stack;
    jmp_buf at;          /* where it waits */
    unsigned long waits; /* reached */
    bool ended;
};
thread threads[MOST_THREADS];
jmp_buf scheduler;
kernel running;
const struct s4d_cuda_args *arguments;
bool backwards; /* every second launch: the last block, and the last thread, first */
int votes[2];   /* of the waits with even and odd numbers */

void yield(thread *own)
{
    if (_setjmp(own->at) == 0)
        _longjmp(scheduler, 1);
}

void run_thread()
{
    for (;;) {
        running(*arguments);
        thread *own = &threads[threadIdx.x];
        own->ended = true;
        yield(own);
    }
}

void resume(thread *t)
{
    if (_setjmp(scheduler) != 0)
        return;
    if (t->stack)
        _longjmp(t->at, 1);
    static ucontext_t context;
    t->stack = (unsigned char *)malloc(STACK_BYTES);
    getcontext(&context);
    context.uc_stack.ss_sp = t->stack;
    context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&context, run_thread, 0);
    setcontext(&context);
}

unsigned ith(unsigned i, unsigned n)
{
    return backwards ? n - 1 - i : i;
}

/* Every thread up to its next wait, over and over. */
void run_together()
{
    for (unsigned t = 0; t < blockDim.x; t++) {
        threads[t].ended = false;
        threads[t].waits = 0;
    }
    for (bool ended = false; !ended;) {
        for (unsigned t = 0; t < blockDim.x; t++) {
            threadIdx.x = ith(t, blockDim.x);
            resume(&threads[threadIdx.x]);
        }
        ended = threads[0].ended;
        for (unsigned t = 1; t < blockDim.x; t++)
            S4D_ASSERT(threads[t].ended == ended && threads[t].waits == threads[0].waits,
                       "threads 0 and %u of a block wait at different places", t);
        votes[(threads[0].waits + 1) % 2] = 0; /* of the next wait */
    }
}
} // namespace

extern "C" int __syncthreads_or(int value)
{
    if (blockDim.x == 1)
        return value != 0;
    thread *own = &threads[threadIdx.x];
    int *vote = &votes[++own->waits % 2];
    *vote |= value != 0;
    yield(own);
    return *vote;
}

extern "C" void __syncthreads(void)
{
    if (blockDim.x > 1)
        __syncthreads_or(0);
}

/* As far behind a block's shared memory as it is long. */
static void guard(unsigned bytes, bool check)
{
    unsigned char *at = (unsigned char *)s4d_shared + bytes;
    size_t n = bytes + sizeof(double) < SHARED_BYTES - bytes ? bytes + sizeof(double)
                                                             : SHARED_BYTES - bytes;
    for (size_t i = 0; check && i < n; i++)
        S4D_ASSERT(at[i] == 0xa5, "a kernel writes beyond its %u bytes of shared memory", bytes);
    memset(at, 0xa5, n);
}

void s4d_cpu_launch(const void *function, const struct s4d_cuda_args *args, unsigned grid_x,
                    unsigned grid_y, unsigned n_threads, unsigned shared_bytes)
{
    S4D_ASSERT(n_threads >= 1 && n_threads <= MOST_THREADS, "%u threads", n_threads);
    S4D_ASSERT(shared_bytes <= SHARED_BYTES, "%u bytes of shared memory", shared_bytes);
    running = (kernel)function;
    arguments = args;
    blockDim = {n_threads, 1, 1};
    gridDim = {grid_x, grid_y, 1};
    guard(shared_bytes, false);
    backwards = !backwards;
    for (unsigned y = 0; y < grid_y; y++)
        for (unsigned x = 0; x < grid_x; x++) {
            blockIdx = {ith(x, grid_x), ith(y, grid_y), 0};
            memset(s4d_shared, 0xff, shared_bytes);
            votes[0] = votes[1] = 0;
            threadIdx.x = 0;
            if (n_threads == 1)
                running(*args);
            else
                run_together();
        }
    guard(shared_bytes, n_threads > 1); /* one alone may be told of less: tests/double/runtime.c */
}
