/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor asks of a device: one rank's memory, streams and work.
 *
 * The executor enqueues ops in the order of the program's list, from one thread. In a stream an op
 * starts after the one before it has completed; `wait` adds completions of other streams to that.
 * Whether an enqueue returns at once (CUDA: streams and events) or when a compute op is done (the
 * host: the issuing thread is the compute stream) is the device's affair. */
#ifndef S4D_REAL_DEVICE_H
#define S4D_REAL_DEVICE_H

#include <stdint.h>

#include "schedule/program.h"

/* An operand on this rank: rows of cols elements, one row every `stride` elements. */
struct s4d_buffer {
    void *data; /* NULL: an optional operand that is absent */
    enum s4d_type type;
    int64_t rows, cols, stride;
};

/* An op with its operands on this rank. The device keeps the pointer until the op has completed. */
struct s4d_call {
    const struct s4d_op *op;
    int index;             /* in the program's list */
    const int *coordinate; /* of this rank: S4D_AXES numbers, for the op's expressions */
    struct s4d_buffer operand[S4D_OPERANDS];
};

/* Told of every op when it has completed, in order within a stream, and after those that it waits
 * for; else in any order between streams. Times are the device's clock. 0, or -1 with *err, which
 * ends the run. */
struct s4d_device_observer {
    int (*ran)(void *self, const struct s4d_call *call, int iteration, double start_s, double end_s,
               struct s4d_error *err);
    void *self;
};

struct s4d_device {
    const char *name;
    void *self;
    struct s4d_device_observer observer; /* ran may be NULL: nothing is observed, no time is read */

    /* Zeroed memory of a place, aligned to 256 bytes, until close. */
    int (*allocate)(void *self, enum s4d_place place, int64_t bytes, void **memory,
                    struct s4d_error *err);
    /* From host memory to a buffer and back, now; nothing is enqueued. Same type and shape. */
    int (*upload)(void *self, const struct s4d_buffer *to, const void *from, struct s4d_error *err);
    int (*download)(void *self, const struct s4d_buffer *from, void *to, struct s4d_error *err);

    /* Around all that an iteration enqueues; both NULL: this device does not care. One that knows
     * an iteration as a whole may let its ops start only at its end. 0, or -1 as an enqueue. */
    int (*begin)(void *self, int iteration, struct s4d_error *err);
    int (*end)(void *self, int iteration, struct s4d_error *err);
    /* What is enqueued next on `stream` starts after the first `count` ops ever enqueued on `other`
     * have completed. */
    void (*wait)(void *self, enum s4d_stream stream, enum s4d_stream other, int64_t count);
    /* Enqueue an op on its stream, one function a class: gemm; attention and other kernels; copies
     * between host and device; tasks of the host. 0, or -1: an op that ran failed (a peer, a token
     * source, the observer). */
    int (*gemm)(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err);
    int (*kernel)(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err);
    int (*copy)(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err);
    int (*host_task)(void *self, const struct s4d_call *call, int iteration, struct s4d_error *err);
    /* The same of what communicates, a collective, a send or a receive by itself (n is 1), or the n
     * ops of a batch, side by side in calls: they go on side by side, and complete together, from
     * one start to one end (schedule/program.h). */
    int (*post)(void *self, const struct s4d_call *calls, int n, int iteration,
                struct s4d_error *err);
    /* Enqueue: the stream's next free moment goes into *t_s; a one-element buffer into *value. Both
     * may be read after finish, or once a later mark of that stream has arrived. */
    int (*mark)(void *self, enum s4d_stream stream, double *t_s, struct s4d_error *err);
    int (*report)(void *self, enum s4d_stream stream, const struct s4d_buffer *scalar,
                  double *value, struct s4d_error *err);
    /* Returns when all that was enqueued has completed. */
    int (*finish)(void *self, struct s4d_error *err);

    double (*now_s)(void *self); /* seconds on the clock of mark and observer */
    void (*close)(void *self);   /* memory, streams, communicators */
};

#endif
