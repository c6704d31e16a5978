/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: one communicator per (group, stream), split from the world's, so that every communicator
 * sees its members' calls in one order whatever other streams do.
 *
 * Communicators are non-blocking: a call that is still in progress is polled, so that a peer that
 * has gone, or that could not join, is noticed here. */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "real/cuda/internal.h"

enum { GAVE_UP = 4717 }; /* tag of the message: do not wait for me */

static const double default_timeout_s = 300;

/* Whether another rank says that it cannot join. */
static int given_up(const struct s4d_cuda *c, struct s4d_error *err)
{
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, GAVE_UP, c->options.comm, &found, &status) != MPI_SUCCESS ||
        !found)
        return 0;
    s4d_fail(err, S4D_EXIT_DEVICE, "", "rank %d gave up", status.MPI_SOURCE);
    return -2;
}

static void tell_others(const struct s4d_cuda *c)
{
    for (int rank = 0; rank < c->size; rank++) {
        MPI_Request request;
        if (rank != c->rank &&
            MPI_Isend(NULL, 0, MPI_BYTE, rank, GAVE_UP, c->options.comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* Until the communicator has done what it was called for. `forming`: others may give up. */
static int settle(const struct s4d_cuda *c, ncclComm_t comm, const char *call, bool forming,
                  struct s4d_error *err)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    double limit_s =
        c->options.group_timeout_s > 0 ? c->options.group_timeout_s : default_timeout_s;
    double start_s = s4d_cuda_now_s(c);
    for (;;) {
        ncclResult_t state = ncclSuccess;
        if (S4D_NCCL(err, comm, ncclCommGetAsyncError, comm, &state) ||
            s4d_nccl_check(call, state, comm, err))
            return -1;
        if (state != ncclInProgress)
            return 0;
        if (s4d_cuda_now_s(c) - start_s > limit_s)
            return s4d_fail(err, S4D_EXIT_DEVICE, call, "not done after %.0f s", limit_s);
        int gone = forming ? given_up(c, err) : 0;
        if (gone)
            return gone;
        if (forming)
            nanosleep(&pause, NULL);
        else
            sched_yield();
    }
}

static int form_world(struct s4d_cuda *c, const ncclUniqueId *id, struct s4d_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (S4D_NCCL(err, NULL, ncclCommInitRankConfig, &c->world, c->size, *id, c->rank, &config))
        return -1;
    return settle(c, c->world, "ncclCommInitRankConfig", true, err);
}

static int split(struct s4d_cuda *c, int stream, struct s4d_error *err)
{
    const struct s4d_grid *grid = &c->program->grid;
    s4d_axes axes = s4d_streams[stream].axes;
    ncclComm_t *comm = &c->streams[stream].comm;
    int first[1 << 12], n = s4d_group_size(grid, axes);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (n > 1 << 12)
        return s4d_fail(err, S4D_EXIT_DEVICE, "", "a group of %d ranks", n);
    s4d_group_members(grid, c->rank, axes, first);
    if (S4D_NCCL(err, c->world, ncclCommSplit, c->world, first[0],
                 s4d_group_index(grid, c->rank, axes), comm, &config))
        return -1;
    int rc = settle(c, c->world, "ncclCommSplit", true, err); /* *comm may be NULL until then */
    return rc ? rc : settle(c, *comm, "ncclCommSplit", true, err);
}

static bool has_group(const struct s4d_cuda *c, int stream)
{
    return s4d_streams[stream].axes != 0 && c->program->stream_length[stream] > 0;
}

static int form(struct s4d_cuda *c, const ncclUniqueId *id, struct s4d_error *err)
{
    int rc = form_world(c, id, err);
    for (int stream = 0; stream < S4D_STREAMS && !rc; stream++)
        if (has_group(c, stream))
            rc = split(c, stream, err);
    if (rc == -1)
        tell_others(c);
    return rc;
}

int s4d_cuda_groups_open(struct s4d_cuda *c, struct s4d_error *err)
{
    ncclUniqueId id;
    bool any = false;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        any |= has_group(c, stream);
    if (!any)
        return 0;
    memset(&id, 0, sizeof id);
    if (s4d_cuda_agree(c, c->rank == 0 ? S4D_NCCL(err, NULL, ncclGetUniqueId, &id) : 0, err))
        return -1;
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, c->options.comm);
    return s4d_cuda_agree(c, form(c, &id, err), err);
}

/* After a failure peers may never answer: abort then, which waits for nobody. */
static void leave(const struct s4d_cuda *c, ncclComm_t comm)
{
    if (comm && c->failed)
        S4D_NCCL(NULL, comm, ncclCommAbort, comm);
    else if (comm)
        S4D_NCCL(NULL, comm, ncclCommDestroy, comm);
}

void s4d_cuda_groups_close(struct s4d_cuda *c)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        leave(c, c->streams[stream].comm);
    leave(c, c->world);
}

int s4d_cuda_groups_ask(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        ncclComm_t comm = c->streams[stream].comm;
        ncclResult_t state = ncclSuccess;
        char where[64];
        snprintf(where, sizeof where, "communicator of stream %s", s4d_streams[stream].name);
        if (comm && (S4D_NCCL(err, comm, ncclCommGetAsyncError, comm, &state) ||
                     s4d_nccl_check(where, state, comm, err)))
            return -1;
    }
    return 0;
}

static ncclDataType_t type_of(enum s4d_type type)
{
    switch (type) {
    case S4D_F64:
        return ncclFloat64;
    case S4D_F32:
        return ncclFloat32;
    case S4D_BF16:
        return ncclBfloat16;
    case S4D_F16:
        return ncclFloat16;
    case S4D_I64:
        return ncclInt64;
    case S4D_I32:
        return ncclInt32;
    default:
        return ncclUint8;
    }
}

int s4d_cuda_collective(struct s4d_cuda *c, const struct s4d_call *call, struct s4d_error *err)
{
    const union s4d_constants *k = &call->op->c;
    struct s4d_cuda_stream *s = &c->streams[call->op->stream];
    const void *in = call->operand[0].data;
    void *out = call->operand[1].data;
    size_t count = (size_t)k->collective.count;
    ncclDataType_t type = type_of(k->collective.type);
    ncclRedOp_t op = k->collective.reduction == S4D_MAX ? ncclMax : ncclSum;
    const char *name = call->op->label.name;
    int rc;
    if (k->collective.type == S4D_U16)
        return s4d_fail(err, S4D_EXIT_BUG, name, "NCCL has no 16-bit integers");
    switch (call->op->kind) {
    case S4D_OP_ALL_REDUCE:
        rc = S4D_NCCL(err, s->comm, ncclAllReduce, in, out, count, type, op, s->comm, s->stream);
        break;
    case S4D_OP_ALL_GATHER:
        rc = S4D_NCCL(err, s->comm, ncclAllGather, in, out, count, type, s->comm, s->stream);
        break;
    case S4D_OP_REDUCE_SCATTER:
        rc =
            S4D_NCCL(err, s->comm, ncclReduceScatter, in, out, count, type, op, s->comm, s->stream);
        break;
    default:
        return s4d_fail(err, S4D_EXIT_BUG, name, "is no collective of NCCL");
    }
    /* Only then is it in the stream, and an event after it means its end. */
    return rc || settle(c, s->comm, s4d_op_kinds[call->op->kind].name, false, err) ? -1 : 0;
}
