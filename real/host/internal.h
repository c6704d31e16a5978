/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the host device share. */
#ifndef S4D_REAL_HOST_INTERNAL_H
#define S4D_REAL_HOST_INTERNAL_H

#include <pthread.h>

#include "real/host/host.h"
#include "real/host/work.h"
#include "real/position.h"

/* Something enqueued: an op, or a note to take when the stream gets there. */
struct s4d_host_item {
    const struct s4d_call *call; /* the first of n ops, of a batch more than one; NULL: a note */
    int n, iteration;
    int64_t needed[S4D_STREAMS]; /* ops that must have completed */
    const struct s4d_buffer *scalar;
    double *value, *t_s;
};

struct s4d_host_stream {
    struct s4d_host_item *items; /* items[head .. n) are to come */
    int head, n, cap;
    int64_t needed[S4D_STREAMS]; /* of the next item */
    bool running;                /* items[head] is a post in flight */
    double start_s;
    MPI_Request *requests; /* of that; those before `at` have ended */
    int at, n_requests, cap_requests;
    MPI_Comm comm; /* MPI_COMM_NULL: no group */
};

struct s4d_host {
    const struct s4d_program *program;
    struct s4d_host_options options;
    struct s4d_device *device;
    struct s4d_host_stream streams[S4D_STREAMS];
    struct s4d_host_work work;
    const s4d_host_kernel *kernels;
    struct s4d_host_work copies; /* of whoever polls */
    int rank;
    double origin_s;
    double polled_s; /* last, from a kernel or between kernels */
    void *memory[4];
    int n_memory;
    MPI_Datatype half[2]; /* bf16, f16 on the wire */
    MPI_Op half_sum[2], half_max[2];

    struct s4d_position position; /* for other threads */

    /* With a progress thread: everything above is used under the lock. */
    bool threaded, stop;
    bool computing; /* a kernel runs: the thread polls, not who waits for an op */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool failed;
    struct s4d_error error;
};

/* collectives.c */
int s4d_host_groups(struct s4d_host *h, struct s4d_error *err); /* communicators, types, sums */
void s4d_host_groups_free(struct s4d_host *h);
/* Starts n ops that communicate, each with its request in s. */
int s4d_host_post(struct s4d_host *h, struct s4d_host_stream *s, const struct s4d_call *calls,
                  int n, struct s4d_error *err);
/* MPI's words for a return code of `what`. Returns -1. */
int s4d_host_mpi_fail(struct s4d_error *err, int code, const char *what);

/* streams.c */
int s4d_host_enqueue(struct s4d_host *h, enum s4d_stream stream, struct s4d_host_item item,
                     struct s4d_error *err);
void s4d_host_poll_from_kernel(void *self);
int s4d_host_drain(struct s4d_host *h, struct s4d_error *err);
int s4d_host_thread_start(struct s4d_host *h, struct s4d_error *err);
void s4d_host_thread_stop(struct s4d_host *h);
double s4d_host_now_s(const struct s4d_host *h);

#endif
