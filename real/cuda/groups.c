/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL: one communicator per (group, stream), split from the world's, so that every communicator
 * sees its members' calls in one order whatever other streams do. An op by itself is a post of its
 * own, a batch one ncclGroup: each has its own stream, waits and events.
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
    return s4d_streams[stream].axes != 0 && c->in_use[stream] > 0;
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
    MPI_Allreduce(c->program->stream_length, c->in_use, S4D_STREAMS, MPI_INT, MPI_MAX,
                  c->options.comm);
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

static int issue_message(const struct s4d_cuda_stream *s, const struct s4d_call *call,
                         const char **name, struct s4d_error *err)
{
    const union s4d_constants *k = &call->op->c;
    void *data = call->operand[0].data;
    int peer = call->coordinate[S4D_PIPE] + k->message.peer; /* the group's order is the pipe's */
    bool words = k->message.type == S4D_U16;                 /* which NCCL has not: as bytes */
    size_t count = (size_t)k->message.count * (words ? 2 : 1);
    ncclDataType_t type = type_of(k->message.type);
    if (call->op->kind == S4D_OP_SEND) {
        *name = "ncclSend";
        return S4D_NCCL(err, s->comm, ncclSend, data, count, type, peer, s->comm, s->stream);
    }
    *name = "ncclRecv";
    return S4D_NCCL(err, s->comm, ncclRecv, data, count, type, peer, s->comm, s->stream);
}

static int issue(const struct s4d_cuda_stream *s, const struct s4d_call *call, const char **name,
                 struct s4d_error *err)
{
    if (s4d_op_kinds[call->op->kind].op_class == S4D_CLASS_MESSAGE)
        return issue_message(s, call, name, err);
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

/* One ncclGroup. It ends whatever has failed in it: until then every call of NCCL's by this thread
 * is part of it, an abort too. What was wrong with a call the end would tell again. */
static int issue_batch(const struct s4d_cuda_stream *s, const struct s4d_call *calls, int n,
                       const char **name, struct s4d_error *err)
{
    if (S4D_NCCL(err, s->comm, ncclGroupStart))
        return -1;
    int rc = 0;
    for (int i = 0; i < n && !rc; i++)
        rc = issue(s, &calls[i], name, err);
    struct s4d_error *other = rc ? NULL : err;
    if (S4D_NCCL(other, s->comm, ncclGroupEnd))
        rc = -1;
    *name = "ncclGroupEnd";
    return rc;
}

int s4d_cuda_post(struct s4d_cuda *c, const struct s4d_call *calls, int n, struct s4d_error *err)
{
    struct s4d_cuda_stream *s = &c->streams[calls->op->stream];
    const char *name = NULL;
    bool message = s4d_op_kinds[calls->op->kind].op_class == S4D_CLASS_MESSAGE;
    c->launched = n > 1 ? "a batch" : message ? "a message" : "a collective";
    int rc = n > 1 ? issue_batch(s, calls, n, &name, err) : issue(s, calls, &name, err);
    /* Only then is it in the stream, and an event after it means its end. */
    for (ncclResult_t state = ncclInProgress; !rc && state == ncclInProgress;) {
        rc = S4D_NCCL(err, s->comm, ncclCommGetAsyncError, s->comm, &state) ||
             s4d_nccl_check(name, state, s->comm, err);
        if (!rc && state == ncclInProgress)
            sched_yield();
    }
    if (rc)
        s4d_cuda_name_group(c, (int)calls->op->stream, err);
    return rc ? -1 : 0;
}
