/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: one communicator per (group, stream), split from the world's, so that every communicator
 * sees its members' calls in one order whatever other streams do. Every collective is a post of its
 * own, no part of an ncclGroup: each has its own stream, waits and events.
 *
 * Communicators are non-blocking: a call that is still in progress is polled, so that a peer that
 * has gone, or that could not join, is noticed (forming.c). */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

static int form_world(struct s4d_cuda *c, const ncclUniqueId *id, struct s4d_error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    if (S4D_NCCL(err, NULL, ncclCommInitRankConfig, &c->world, c->size, *id, c->rank, &config))
        return -1;
    return s4d_cuda_settle(c, c->world, "ncclCommInitRankConfig", -1, err);
}

static int split(struct s4d_cuda *c, int stream, struct s4d_error *err)
{
    const struct s4d_grid *grid = &c->program->grid;
    s4d_axes axes = s4d_streams[stream].axes;
    ncclComm_t *comm = &c->streams[stream].comm;
    int *members = s4d_malloc((size_t)s4d_group_size(grid, axes) * sizeof *members);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    s4d_group_members(grid, c->rank, axes, members);
    int first = members[0]; /* a group's colour: no other's has it */
    free(members);
    if (S4D_NCCL(err, c->world, ncclCommSplit, c->world, first,
                 s4d_group_index(grid, c->rank, axes), comm, &config)) {
        s4d_cuda_name_group(c, stream, err);
        return -1;
    }
    /* *comm may be NULL until the first has come. */
    int rc = s4d_cuda_settle(c, c->world, "ncclCommSplit", stream, err);
    return rc ? rc : s4d_cuda_settle(c, *comm, "ncclCommSplit", stream, err);
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
        s4d_cuda_give_up(c);
    return rc;
}

static void gather_hosts(struct s4d_cuda *c)
{
    char own[S4D_CUDA_HOST] = "unknown";
    gethostname(own, sizeof own - 1);
    c->hosts = s4d_calloc((size_t)c->size, sizeof *c->hosts);
    MPI_Allgather(own, sizeof own, MPI_CHAR, c->hosts, sizeof own, MPI_CHAR, c->options.comm);
}

int s4d_cuda_groups_open(struct s4d_cuda *c, struct s4d_error *err)
{
    ncclUniqueId id;
    bool any = false;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        any |= has_group(c, stream);
    if (!any)
        return 0;
    gather_hosts(c);
    memset(&id, 0, sizeof id);
    if (s4d_cuda_agree(c, c->rank == 0 ? S4D_NCCL(err, NULL, ncclGetUniqueId, &id) : 0, err))
        return -1;
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, c->options.comm);
    int rc = form(c, &id, err);
    return rc == S4D_BACKEND_ALONE ? rc : s4d_cuda_agree(c, rc, err);
}

/* After a failure peers may never answer, be it this rank's or another's that kept all from
 * starting: abort then, which waits for nobody. */
static void leave(ncclComm_t comm, bool abort)
{
    if (comm && abort)
        S4D_NCCL(NULL, comm, ncclCommAbort, comm);
    else if (comm)
        S4D_NCCL(NULL, comm, ncclCommDestroy, comm);
}

void s4d_cuda_groups_close(struct s4d_cuda *c)
{
    bool started = false;
    if (c->graph_stays && !c->failed) /* a communicator would wait for it for ever */
        return;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        started |= c->streams[stream].issued > 0;
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        leave(c->streams[stream].comm, c->failed || !started);
    leave(c->world, c->failed || !started);
    free(c->hosts);
}

int s4d_cuda_groups_ask(struct s4d_cuda *c, struct s4d_error *err)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        ncclComm_t comm = c->streams[stream].comm;
        ncclResult_t state = ncclSuccess;
        if (comm && (S4D_NCCL(err, comm, ncclCommGetAsyncError, comm, &state) ||
                     s4d_nccl_check("ncclCommGetAsyncError", state, comm, err))) {
            const struct s4d_cuda_stream *of = &c->streams[stream];
            s4d_cuda_name_group(c, stream, err);
            if (of->head < of->n)
                s4d_cuda_name_op(c, of->items[of->head].call, of->items[of->head].iteration, err);
            return -1;
        }
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

static int issue(struct s4d_cuda_stream *s, const struct s4d_call *call, const char **name,
                 struct s4d_error *err)
{
    const union s4d_constants *k = &call->op->c;
    const void *in = call->operand[0].data;
    void *out = call->operand[1].data;
    size_t count = (size_t)k->collective.count;
    ncclDataType_t type = type_of(k->collective.type);
    ncclRedOp_t op = k->collective.reduction == S4D_MAX ? ncclMax : ncclSum;
    if (k->collective.type == S4D_U16)
        return s4d_fail(err, S4D_EXIT_BUG, call->op->label.name, "NCCL has no 16-bit integers");
    switch (call->op->kind) {
    case S4D_OP_ALL_REDUCE:
        *name = "ncclAllReduce";
        return S4D_NCCL(err, s->comm, ncclAllReduce, in, out, count, type, op, s->comm, s->stream);
    case S4D_OP_ALL_GATHER:
        *name = "ncclAllGather";
        return S4D_NCCL(err, s->comm, ncclAllGather, in, out, count, type, s->comm, s->stream);
    case S4D_OP_REDUCE_SCATTER:
        *name = "ncclReduceScatter";
        return S4D_NCCL(err, s->comm, ncclReduceScatter, in, out, count, type, op, s->comm,
                        s->stream);
    default:
        return s4d_fail(err, S4D_EXIT_BUG, call->op->label.name, "is no collective of NCCL");
    }
}

int s4d_cuda_collective(struct s4d_cuda *c, const struct s4d_call *call, struct s4d_error *err)
{
    struct s4d_cuda_stream *s = &c->streams[call->op->stream];
    const char *name = NULL;
    c->launched = "a collective";
    int rc = issue(s, call, &name, err);
    /* Only then is it in the stream, and an event after it means its end. */
    for (ncclResult_t state = ncclInProgress; !rc && state == ncclInProgress;) {
        rc = S4D_NCCL(err, s->comm, ncclCommGetAsyncError, s->comm, &state) ||
             s4d_nccl_check(name, state, s->comm, err);
        if (!rc && state == ncclInProgress)
            sched_yield();
    }
    if (rc)
        s4d_cuda_name_group(c, (int)call->op->stream, err);
    return rc ? -1 : 0;
}
