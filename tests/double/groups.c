/* SPDX-License-Identifier: Apache-2.0 */
/* Posts: NCCL's calls, by themselves or in a group, which is one post. Its parts begin together, go
 * on side by side and end together. Between a post's start, when its outputs fill with NaNs, and
 * its end others of the host's streams run.
 *
 * Of groups what the backend does is understood: not nested, of one communicator on one stream. */
#include <signal.h>
#include <stdlib.h>

#include "support/memory.h"
#include "tests/double/collective.h"

struct post {
    ncclComm_t comm;
    cudaStream_t stream;
    bool begun;
    int n;
    struct part part[S4D_DOUBLE_PARTS];
};

/* Of the program's one thread that calls NCCL. */
static struct {
    bool open;
    ncclResult_t error; /* the last of its calls' */
    struct post post;
} group;

bool s4d_double_in_group(void)
{
    return group.open;
}

static bool begin(struct post *p)
{
    struct s4d_double_wish wishes[S4D_DOUBLE_PARTS];
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        if (!s4d_double_begin_part(p->comm, &p->part[i]))
            return false;
        if (s4d_double_is_message(&p->part[i]))
            wishes[n++] = s4d_double_wish_of(&p->part[i]);
    }
    if (n > 0)
        s4d_double_begin(p->comm, wishes, n);
    p->begun = true;
    return true;
}

static bool end(struct post *p)
{
    for (int i = 0; i < p->n; i++)
        free(p->part[i].own);
    return true;
}

static bool step(void *data)
{
    struct post *p = data;
    ncclComm_t comm = p->comm;
    bool ended = true;
    if (comm->aborted || s4d_double_broken())
        return end(p);
    if (!p->begun) {
        if (s4d_double_fails("death"))
            raise(SIGKILL);
        if (s4d_double_fails("collective"))
            s4d_double_wrong(comm, ncclRemoteError, "a peer is gone, as asked");
        if (s4d_double_is_held())
            return false;
        if (!begin(p))
            return end(p);
    }
    for (int i = 0; i < p->n; i++) {
        if (comm->state != ncclSuccess && comm->state != ncclInProgress)
            return false; /* until it is aborted */
        s4d_double_go_on(comm, &p->part[i]);
        ended = ended && p->part[i].state == ENDED;
    }
    return ended && end(p);
}

bool s4d_double_is_of(bool (*does)(void *data), const void *data, const void *comm)
{
    return does == step && ((const struct post *)data)->comm == comm;
}

/* Only now is it in the stream. */
static bool enqueue(ncclComm_t comm)
{
    struct post *p = comm->next;
    comm->next = NULL;
    s4d_double_append(p->stream, step, p, sizeof *p);
    free(p);
    return true;
}

static ncclResult_t launch(const struct post *post)
{
    ncclComm_t comm = post->comm;
    struct post *p = s4d_malloc(sizeof *p);
    *p = *post;
    comm->next = p;
    comm->pauses = (int)s4d_double_draw(4);
    if (comm->pauses == 0) {
        enqueue(comm);
        return ncclSuccess;
    }
    comm->step = enqueue;
    comm->state = ncclInProgress;
    return ncclInProgress;
}

static ncclResult_t check(ncclComm_t comm, cudaStream_t stream, const struct part *wish)
{
    const char *name = s4d_double_kinds[wish->kind];
    if (!s4d_double_is_stream(stream))
        return s4d_double_wrong(NULL, ncclInvalidUsage, "no stream");
    if (comm->stream && comm->stream != stream)
        s4d_double_refuse(name, "a communicator on two streams");
    if (wish->op != ncclSum && wish->op != ncclMax)
        s4d_double_refuse(name, "this reduction");
    if (s4d_double_is_message(wish) && (wish->peer < 0 || wish->peer >= comm->size))
        return s4d_double_wrong(NULL, ncclInvalidArgument, "no such peer");
    if (s4d_double_is_message(wish) && wish->peer == comm->rank)
        s4d_double_refuse(name, "a message to itself");
    if ((wish->kind != RECEIVE &&
         !s4d_double_is_device(wish->in, s4d_double_bytes_in(comm, wish))) ||
        (wish->kind != SEND && !s4d_double_is_device(wish->out, s4d_double_bytes_out(comm, wish))))
        return s4d_double_wrong(NULL, ncclInvalidArgument, "a buffer that is not the device's");
    if (s4d_double_overlaps_wrongly(comm, wish))
        s4d_double_refuse(name, "buffers that overlap, and not in place");
    if (s4d_double_invalid(stream))
        return s4d_double_wrong(comm, ncclUnhandledCudaError, "the capture is invalid");
    if (!comm->stream && s4d_double_capturing())
        s4d_double_refuse(name, "a capture of a communicator that never ran: it allocates");
    return ncclSuccess;
}

/* Within a group it is part of that; what is wrong with it is told now, and by the group's end. */
static ncclResult_t call(const void *caller, ncclComm_t comm, cudaStream_t stream, struct part wish)
{
    ncclResult_t code = s4d_double_nccl_enter(s4d_double_kinds[wish.kind], caller, comm);
    struct post alone = {.comm = comm, .stream = stream}, *p = group.open ? &group.post : &alone;
    if (code == ncclSuccess)
        code = check(comm, stream, &wish);
    if (code != ncclSuccess) {
        group.error = code;
        return code;
    }
    if (p->comm && p->comm != comm)
        s4d_double_refuse(s4d_double_kinds[wish.kind], "a group of two communicators");
    if (p->n == S4D_DOUBLE_PARTS)
        s4d_double_refuse(s4d_double_kinds[wish.kind], "more in a group than there is room for");
    p->comm = comm;
    p->stream = comm->stream = stream;
    p->part[p->n++] = wish;
    return group.open ? ncclSuccess : launch(p);
}

ncclResult_t ncclGroupStart(void)
{
    if (s4d_double_call_fails("ncclGroupStart", __builtin_return_address(0)))
        return s4d_double_wrong(NULL, ncclSystemError, "the double fails as asked");
    if (group.open)
        s4d_double_refuse("ncclGroupStart", "a group in a group");
    group.open = true;
    group.error = ncclSuccess;
    group.post = (struct post){.n = 0};
    return ncclSuccess;
}

/* The group ends whether or not that fails. */
ncclResult_t ncclGroupEnd(void)
{
    bool fails = s4d_double_call_fails("ncclGroupEnd", __builtin_return_address(0));
    if (!group.open)
        return s4d_double_wrong(NULL, ncclInvalidUsage, "not in a group call");
    group.open = false;
    s4d_double_turn(S4D_DOUBLE_ISSUES);
    if (fails)
        return s4d_double_wrong(group.post.comm, ncclSystemError, "the double fails as asked");
    if (group.error != ncclSuccess || group.post.n == 0)
        return group.error;
    return launch(&group.post);
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    struct part p = {
        .kind = ALL_REDUCE, .in = in, .out = out, .count = count, .type = type, .op = op};
    return call(__builtin_return_address(0), comm, stream, p);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    struct part p = {.kind = ALL_GATHER, .in = in, .out = out, .count = count, .type = type};
    p.op = ncclSum;
    return call(__builtin_return_address(0), comm, stream, p);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    struct part p = {
        .kind = REDUCE_SCATTER, .in = in, .out = out, .count = count, .type = type, .op = op};
    return call(__builtin_return_address(0), comm, stream, p);
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    struct part p = {.kind = SEND, .in = in, .count = count, .type = type, .peer = peer};
    p.op = ncclSum;
    return call(__builtin_return_address(0), comm, stream, p);
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    struct part p = {.kind = RECEIVE, .out = out, .count = count, .type = type, .peer = peer};
    p.op = ncclSum;
    return call(__builtin_return_address(0), comm, stream, p);
}
