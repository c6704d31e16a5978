/* SPDX-License-Identifier: Apache-2.0 */
/* A test double of the calls of NVIDIA's libraries that real/cuda makes (its api.h lists them),
 * defined against their own headers: linked in place of the libraries, it runs the CUDA backend
 * where there is no GPU. A call that is not here is a link error; a use of one that is not
 * understood ends the program and names it; so does one that would block, as a stream's queue is
 * full.
 *
 *   memory.c    device memory cannot be read or written by the host; nor pageable memory by work
 *   order.c     streams: work is deferred, and reordered between streams by a seed
 *   events.c    events                graph.c   streams that capture, graphs and their launches
 *   runtime.c   CUDA runtime          blas.c   cuBLAS over CBLAS, column-major
 *   nccl.c      communicators         groups.c  their calls, alone or in groups
 *   collective.c   what calls do      peers.c   who sends whom     messages.c  all that by MPI
 *   bell.c      ranks that wait sleep
 *   faults.c    calls that fail when asked to
 *
 * Environment; cudaSetDevice begins anew with S4D_DOUBLE_SEED and S4D_DOUBLE_LOSE:
 *   S4D_DOUBLE_SEED=n          another order; the same again, if the program makes the same calls.
 *                              The backend does not: it asks by the clock, and waits for peers,
 *                              whose messages come when they come. So how often it asks, and what
 *                              is in flight at a call, depends on the host's speed
 *   S4D_DOUBLE_FAIL=name:n[:rank[:how]]   call n (from 1) of `name` fails, on one MPI rank or on
 *                              all (-1); how: fail, hang (it never returns), die (by SIGKILL);
 *                              late, of work: its stream stands until the host waits and no
 *                              other can go on; only then it fails, so that what is in flight is
 *                              the same on a host of any speed.
 *                              For `name` also a call's site: 0x1a2b, an address in the program
 *   S4D_DOUBLE_LOSE=kind:n     wait n (from 1; 0: each) of a kind is not done: join, of the stream
 *                              that began a capture for another; launch, of a stream of graphs that
 *                              captures nothing; outside, for a graph's event
 *   S4D_DOUBLE_CALLS=path      at the end rank 0 writes how often each was called
 *   S4D_DOUBLE_SITES=path      at the end every rank writes path.RANK: the address that each call
 *                              returns to, its name, how often; addr2line has the line
 *   S4D_DOUBLE_GPUS=n          of this node (8); S4D_DOUBLE_GPU_BYTES=n: memory of each (16 GiB);
 *                           S4D_DOUBLE_NAME=text: its name
 *   CUDA_VISIBLE_DEVICES=list  numbers of those that the program sees, as CUDA reads it
 *   CUDA_DEVICE_MAX_CONNECTIONS=n   queues of the GPU (8), which streams get in turn
 *   S4D_DOUBLE_DRIVER=n        CUDA version of the driver (that of the headers; 0: no driver)
 *
 * Names of S4D_DOUBLE_FAIL beside those of calls: kernel, product (work fails on the device);
 * collective (NCCL notices that a peer has gone); death (of this rank, in a post); join (a
 * communicator that forms never hears of this rank); lost (the GPU, at a report's copy). */
#ifndef S4D_TESTS_DOUBLE_DOUBLE_H
#define S4D_TESTS_DOUBLE_DOUBLE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

/* faults.c */
bool s4d_double_fails(const char *name); /* counts it; whether it is to fail now */
/* The same of a call, which is told by where the program made it, too. */
bool s4d_double_call_fails(const char *name, const void *caller);
/* Of tests within one process: counts begin anew, but sites keep their numbers; site i, from 0. */
void s4d_double_forget(void);
bool s4d_double_site(int i, uintptr_t *site, const char **name, long long *calls);
void s4d_double_lose_anew(void);
bool s4d_double_loses(const char *kind); /* counts a wait; whether it is to be lost */
long long s4d_double_setting(const char *variable, long long otherwise);
int s4d_double_rank(void); /* in MPI_COMM_WORLD */
void s4d_double_refuse(const char *call, const char *what) __attribute__((noreturn));

/* order.c: items of streams. step() does what the item is for, or a part of that: true when it is
 * done. It runs when all before it in its stream are done, and never within the call that appended
 * it, or only after later ones: as the seed says. It gets a copy of the data, of a stream that
 * captures every launch another one. */
void s4d_double_append(cudaStream_t stream, bool (*step)(void *data), const void *data,
                       size_t bytes);
bool s4d_double_is_stream(cudaStream_t stream);
/* Whether an item that is not done is what is() knows. */
typedef bool (*s4d_double_is)(bool (*step)(void *data), const void *data, const void *of);
bool s4d_double_has(s4d_double_is is, const void *of);
/* Why the host calls: it goes on whatever happens; or it asks whether something has happened. */
enum s4d_double_call { S4D_DOUBLE_ISSUES, S4D_DOUBLE_ASKS };
void s4d_double_turn(enum s4d_double_call call); /* perhaps some items run */
void s4d_double_awake(void);                     /* turns alone move something on */
void s4d_double_wants(void);                     /* a message does */
bool s4d_double_in_work(void);                   /* a host function runs */
/* The item that runs is to fail late: false, and its step comes again, and it is due, then. */
bool s4d_double_hold_stream(void);
bool s4d_double_is_held(void);
bool s4d_double_is_due(void);
int s4d_double_device(void);
int s4d_double_gpus(void);                /* that the program sees */
void s4d_double_finish_all(void);         /* returns when all streams are empty */
uint64_t s4d_double_draw(uint64_t below); /* 0 .. below - 1, by the seed */
/* An error of work on the device: all later calls return it, as CUDA's sticky errors. */
void s4d_double_break(cudaError_t error, const char *why);
cudaError_t s4d_double_broken(void);
/* Whether the thread's last error holds a cudaErrorNotReady that nobody took: a library that looks
 * there after a launch says that this failed. So it does here. */
bool s4d_double_left_behind(void);
void s4d_double_mend(void); /* as in a new process: after all was given back */

/* What the program has of the libraries. */
extern struct s4d_double_live {
    int streams, events, graphs, device, pinned, handles, communicators;
} s4d_double_live;

/* graph.c. Whether any stream captures; whether this one does in vain, as something illegal was
 * done. What is not allowed while any captures: it is in vain from now on, and that is the error.
 */
bool s4d_double_capturing(void);
bool s4d_double_invalid(cudaStream_t stream);
cudaError_t s4d_double_unsafe(void);
bool s4d_double_graphs_have(s4d_double_is is, const void *of); /* as s4d_double_has */
#define S4D_DOUBLE_NOT_INVALID(stream)                                                             \
    do {                                                                                           \
        if (s4d_double_invalid(stream))                                                            \
            return cudaErrorStreamCaptureInvalidated;                                              \
    } while (0)

/* How a call of CUDA's begins; `code` is what it returns when it is to fail. */
#define S4D_DOUBLE_ENTER(name, code)                                                               \
    do {                                                                                           \
        if (s4d_double_in_work())                                                                  \
            s4d_double_refuse(name, "a host function may not call CUDA");                          \
        s4d_double_turn(S4D_DOUBLE_ISSUES);                                                        \
        if (s4d_double_call_fails(name, __builtin_return_address(0)))                              \
            return code;                                                                           \
        if (s4d_double_broken())                                                                   \
            return s4d_double_broken();                                                            \
    } while (0)

/* memory.c. Where work finds `bytes` bytes at a device or pinned address: NULL, and the device
 * broken with an illegal address, if not all of them are in one allocation. */
void *s4d_double_reach(const void *address, size_t bytes, const char *who);
bool s4d_double_is_pinned(const void *address, size_t bytes);
bool s4d_double_is_device(const void *address, size_t bytes);

/* messages.c: of work that ranks do together, matched by communicator and number. */
struct s4d_double_message {
    uint64_t comm, number;
    int64_t count;
    int from; /* rank in MPI_COMM_WORLD */
    int32_t kind, type, op, bytes;
    unsigned char data[];
};
void s4d_double_send(int to, const struct s4d_double_message *head, const void *data);
/* The message of a rank, or NULL: not yet. Kept until dropped. */
const struct s4d_double_message *s4d_double_find(uint64_t comm, uint64_t number, int from);
void s4d_double_drop(uint64_t comm, uint64_t number, int from);
bool s4d_double_exchange(void); /* moves messages on; whether any came */
bool s4d_double_sends(void);    /* one of this rank's is still on its way */

/* bell.c: this rank sleeps until another one sends to it, but not for long. What a sender does. */
void s4d_double_sleep(void);
void s4d_double_ring(int rank);

#endif
