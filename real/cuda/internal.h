/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA device share. */
#ifndef S4D_REAL_CUDA_INTERNAL_H
#define S4D_REAL_CUDA_INTERNAL_H

#include <stdatomic.h>

#include "real/cuda/api.h"
#include "real/cuda/cuda.h"
#include "real/cuda/work.h"
#include "real/mpi/backend.h"
#include "real/position.h"

/* Something enqueued: an op, or a note. In flight until `end` has come, or its graph's launch has
 * ended. */
struct s4d_cuda_item {
    const struct s4d_call *call; /* the first of n ops, of a batch more than one; NULL: a note */
    int n, iteration;
    int64_t number; /* ops enqueued on the stream up to here */
    cudaEvent_t start,
        end; /* NULL: start where nobody asks, end in a graph too; the graph's there */
    struct s4d_cuda_graph *graph;    /* NULL: it was enqueued by itself */
    cudaEvent_t within;              /* while its graph is captured: what other streams wait for */
    enum s4d_stream stream;          /* of a note */
    const struct s4d_buffer *scalar; /* of a note: goes to a slot, and from there to *value */
    enum s4d_type type;
    double *value, *t_s; /* t_s: where the time goes */
    int slot;
};

struct s4d_cuda;
typedef int (*s4d_cuda_append)(struct s4d_cuda *c, const struct s4d_cuda_item *item,
                               struct s4d_error *err);

/* An iteration as a graph; its parts in the order of the executor's walk. */
struct s4d_cuda_graph {
    cudaGraphExec_t instance; /* NULL: it is to be captured */
    struct s4d_cuda_part {
        const struct s4d_call *call; /* NULL: a note */
        cudaEvent_t start, end;      /* as an item's */
        int slot;
    } * parts;
    int n, cap, at;
    cudaEvent_t over; /* after the latest launch */
    enum { S4D_CUDA_ENDED, S4D_CUDA_FILLS, S4D_CUDA_LAUNCHED } state;
};

struct s4d_cuda_stream {
    cudaStream_t stream;
    ncclComm_t comm;             /* NULL: no group */
    struct s4d_cuda_item *items; /* items[head .. n) are in flight */
    int head, n, cap;
    int64_t issued; /* ops */
};

struct s4d_cuda_at {
    const struct s4d_call *call; /* NULL: no op */
    int iteration;
};

/* Of a host's name; of reports at a time: assumed, more than iterations are in flight. */
enum { S4D_CUDA_HOST = 64, S4D_CUDA_SLOTS = 1024 };
/* How far the host runs ahead: ops of a stream; and launches, of which one op may have thousands,
 * in two portions. What a stream's queue in the driver does not hold (about 1024; NVIDIA documents
 * no number) blocks in there, where nobody asks whether a peer has gone. */
enum { S4D_CUDA_IN_FLIGHT = 200, S4D_CUDA_PORTION = 100 };
enum { S4D_CUDA_GRAPHS = 2 };

enum { S4D_CUDA_NAME = 256, S4D_CUDA_PCI = 32 }; /* bytes of these texts */

struct s4d_cuda {
    const struct s4d_program *program;
    struct s4d_cuda_options options;
    struct s4d_device *device;
    int rank, size;
    char name[S4D_CUDA_NAME], pci[S4D_CUDA_PCI]; /* of the GPU; its address on the node's bus */
    int64_t device_bytes;                        /* of its memory */
    struct s4d_position position;
    struct s4d_cuda_stream streams[S4D_STREAMS];
    cudaStream_t transfer; /* of uploads and downloads */
    cudaStream_t origin;   /* of graphs; NULL: none are asked for */
    struct s4d_cuda_graph graphs[S4D_CUDA_GRAPHS];
    struct s4d_cuda_graph *graph; /* of the iteration that is issued, if phase says so */
    enum { S4D_CUDA_EAGER, S4D_CUDA_CAPTURES, S4D_CUDA_REPLAYS } phase;
    _Atomic bool has_launched;
    int in_use[S4D_STREAMS]; /* by any rank: stages of a pipe use different streams */
    ncclComm_t world;
    char (*hosts)[S4D_CUDA_HOST]; /* of all ranks; NULL: not known yet */
    int settled;                  /* calls that form communicators and have come to their end */
    cublasHandle_t cublas;
    void *workspace;
    struct s4d_cuda_work work;
    struct s4d_gemm_choices choices; /* the same on all ranks */
    int64_t scratch_bytes;
    struct s4d_cuda_table {
        union s4d_constants c;
        void *data;
    } * tables; /* of rotary positions */
    int n_tables, cap_tables;
    struct {
        void *data;
        size_t bytes;
        enum s4d_place place;
    } memory[4];
    int n_memory;
    unsigned char *stage; /* pinned, of uploads and downloads */
    double *slots;        /* pinned, of reports */
    bool slot_used[S4D_CUDA_SLOTS];
    int next_slot;

    cudaEvent_t *events, *inner; /* free ones; and those of captures, which graph.c keeps apart */
    int n_events, cap_events, n_inner, cap_inner;
    cudaEvent_t base; /* came at base_s */
    int64_t launches;
    cudaEvent_t portions[2]; /* ends of the latest */
    double origin_s, base_s, polled_s, asked_nccl_s;

    /* What is being enqueued, and what of it was last: a kernel's name, or another word. */
    struct s4d_cuda_at enqueuing;
    const char *launched;

    /* A token source failed, in a thread of CUDA's. */
    _Atomic bool task_failed;
    struct s4d_error task_error;
    bool wait_failed, failed, graph_stays; /* the last: it could not be destroyed */
    struct s4d_error wait_error;
};

/* reserve.c: bytes that NCCL, for so many communicators, and the driver will take after the arena;
 * or what SCALE4D_GPU_RESERVE says. 0, or -1 (exit 64). */
int s4d_cuda_reserve(const struct s4d_cuda *c, double *bytes, int *communicators,
                     struct s4d_error *err);

/* memory.c */
int s4d_cuda_allocate(void *self, enum s4d_place place, int64_t bytes, void **memory,
                      struct s4d_error *err);
int s4d_cuda_upload(void *self, const struct s4d_buffer *to, const void *from,
                    struct s4d_error *err);
int s4d_cuda_download(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err);
/* Of the device; *memory stays as it was where there is none. */
int s4d_cuda_malloc(const char *what, size_t bytes, void **memory, struct s4d_error *err);
int s4d_cuda_memory_open(struct s4d_cuda *c, struct s4d_error *err);
void s4d_cuda_memory_close(struct s4d_cuda *c);

/* compute.c: cuBLAS, launches, what they keep on the device. */
int s4d_cuda_compute_open(struct s4d_cuda *c, struct s4d_error *err);
int s4d_cuda_compute_plan(struct s4d_cuda *c, struct s4d_error *err); /* what the ops need */
void s4d_cuda_compute_close(struct s4d_cuda *c);
int s4d_cuda_compute(struct s4d_cuda *c, const struct s4d_call *call, struct s4d_error *err);

/* Types and shapes of an op's operands, without data. */
struct s4d_call s4d_cuda_outline(const struct s4d_program *program, const struct s4d_op *op);

/* tune.c: collective, before scratch is planned; and what was chosen for a product. */
int s4d_cuda_tune(struct s4d_cuda *c, struct s4d_error *err);
int s4d_cuda_variant(void *self, const struct s4d_cuda_product *product);

/* groups.c: NCCL. */
int s4d_cuda_groups_open(struct s4d_cuda *c, struct s4d_error *err);
void s4d_cuda_groups_close(struct s4d_cuda *c);
int s4d_cuda_groups_ask(struct s4d_cuda *c, struct s4d_error *err); /* whether one has failed */
int s4d_cuda_post(struct s4d_cuda *c, const struct s4d_call *calls, int n, struct s4d_error *err);

/* forming.c: until a communicator has done what it was called for, while ranks form it. stream:
 * whose it will be, -1: all ranks'. 0; -1: it failed, here; -2: another rank gave up; or
 * S4D_BACKEND_ALONE, when that takes longer than it may. */
int s4d_cuda_settle(struct s4d_cuda *c, ncclComm_t comm, const char *call, int stream,
                    struct s4d_error *err);
void s4d_cuda_give_up(const struct s4d_cuda *c); /* tells the others, which wait in settle */
void s4d_cuda_answer(const struct s4d_cuda *c);  /* to ranks that ask who is there */

/* select.c: a GPU of its own for this rank; and the same outcome on all ranks, rc and *err being
 * this rank's. A rank that only gave up because another did has rc -2. */
int s4d_cuda_select(struct s4d_cuda *c, struct s4d_error *err);
int s4d_cuda_device_name(char name[S4D_CUDA_NAME], struct s4d_error *err); /* "NVIDIA H200" */
int s4d_cuda_agree(const struct s4d_cuda *c, int rc, struct s4d_error *err);

/* trouble.c: says more of an error (NULL: there is no room for it). That a call failed in an op;
 * and, when an entry of the device fails, what work on the GPU it may come from. */
void s4d_cuda_say(struct s4d_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* to its text; err is not NULL */
void s4d_cuda_name_op(const struct s4d_cuda *c, const struct s4d_call *call, int iteration,
                      struct s4d_error *err);
void s4d_cuda_name_group(const struct s4d_cuda *c, int stream, struct s4d_error *err);
void s4d_cuda_explain(struct s4d_cuda *c, struct s4d_error *err);
/* CUDA's words for an error of the GPU, which another library told in its own. */
void s4d_cuda_say_gpu(const struct s4d_cuda *c, struct s4d_error *err);

/* streams.c */
int s4d_cuda_streams_open(struct s4d_cuda *c, struct s4d_error *err);
void s4d_cuda_streams_close(struct s4d_cuda *c);
double s4d_cuda_now_s(const struct s4d_cuda *c);
/* Appends to a stream whatever `append` calls, between the events that tell of it. */
int s4d_cuda_enqueue(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item item,
                     s4d_cuda_append append, struct s4d_error *err);
int s4d_cuda_wait(struct s4d_cuda *c, enum s4d_stream stream, enum s4d_stream other, int64_t count,
                  struct s4d_error *err);
int s4d_cuda_drain(struct s4d_cuda *c, struct s4d_error *err);
int s4d_cuda_take_slot(struct s4d_cuda *c, int *slot, struct s4d_error *err);
/* For graph.c: events of a pool; the item is in flight; takes what has ended off the streams; the
 * zero of elapsed times becomes *event, which has come, if the old one is far away. */
int s4d_cuda_take_event(struct s4d_cuda *c, cudaEvent_t *event, struct s4d_error *err);
void s4d_cuda_give_event(struct s4d_cuda *c, cudaEvent_t event);
void s4d_cuda_push(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item);
int s4d_cuda_poll(struct s4d_cuda *c, struct s4d_error *err);
int s4d_cuda_rebase(struct s4d_cuda *c, cudaEvent_t *event, struct s4d_error *err);

/* graph.c: begin and end are around an iteration; between them an enqueue of a stream that is taken
 * goes here, and every wait. */
int s4d_cuda_graphs_open(struct s4d_cuda *c, struct s4d_error *err);
void s4d_cuda_graphs_close(struct s4d_cuda *c);
int s4d_cuda_graph_begin(struct s4d_cuda *c, int iteration, struct s4d_error *err);
int s4d_cuda_graph_end(struct s4d_cuda *c, struct s4d_error *err);
bool s4d_cuda_graph_takes(const struct s4d_cuda *c, enum s4d_stream stream);
int s4d_cuda_graph_enqueue(struct s4d_cuda *c, enum s4d_stream stream, struct s4d_cuda_item *item,
                           s4d_cuda_append append, struct s4d_error *err);
int s4d_cuda_graph_wait(struct s4d_cuda *c, enum s4d_stream stream,
                        const struct s4d_cuda_item *item, struct s4d_error *err);
int s4d_cuda_graphs_ask(struct s4d_cuda *c, struct s4d_error *err); /* which launches have ended */

#endif
