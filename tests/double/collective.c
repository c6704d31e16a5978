/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives and messages of NCCL, by themselves or in a group, which is one post: its parts begin
 * together, go on side by side and end together. Of a collective every rank sends what another
 * needs of its input, and combines what it got in the order of ranks, rounding after every addition
 * as NCCL does. Between a post's start, when its outputs fill with NaNs, and its end others of the
 * host's streams run; its inputs are read somewhere between.
 *
 * Of groups what the backend does is understood: not nested, of one communicator on one stream. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "support/memory.h"
#include "tests/double/nccl.h"

enum kind { ALL_REDUCE = 1, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };
static const char *const names[] = {
    "", "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv"};

struct part {
    enum kind kind;
    const void *in;
    void *out;
    size_t count; /* of a rank's part, or of all of an all-reduce */
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer;        /* of a message */
    uint64_t number; /* of this rank's in the communicator, or with the peer, from when it begins */
    int pauses;      /* turns between begin and read */
    enum { READY, BEGUN, SENT, ENDED } state;
    unsigned char *own;
};
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

static size_t size_of(ncclDataType_t type)
{
    switch (type) {
    case ncclUint8:
    case ncclInt8:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclFloat32:
        return 4;
    case ncclInt64:
    case ncclFloat64:
        return 8;
    default:
        s4d_double_refuse("NCCL", "this type");
    }
}

static size_t bytes_in(ncclComm_t comm, const struct part *c)
{
    return size_of(c->type) * c->count * (c->kind == REDUCE_SCATTER ? (size_t)comm->size : 1);
}
static size_t bytes_out(ncclComm_t comm, const struct part *c)
{
    return size_of(c->type) * c->count * (c->kind == ALL_GATHER ? (size_t)comm->size : 1);
}

#define COMBINE(TYPE, OF, VALUE, HELD)                                                             \
    for (size_t i = 0; i < n; i++) {                                                               \
        HELD held;                                                                                 \
        memcpy(&held, to + i * sizeof held, sizeof held);                                          \
        TYPE a = VALUE(held);                                                                      \
        memcpy(&held, from + i * sizeof held, sizeof held);                                        \
        TYPE b = VALUE(held), r = op == ncclMax ? (a > b || a != a ? a : b) : a + b;               \
        held = OF(r);                                                                              \
        memcpy(to + i * sizeof held, &held, sizeof held);                                          \
    }

static void combine(unsigned char *to, const unsigned char *from, size_t n, ncclDataType_t type,
                    ncclRedOp_t op)
{
    switch (type) {
    case ncclFloat64:
        COMBINE(double, (double), (double), double)
        break;
    case ncclFloat32:
        COMBINE(float, (float), (float), float)
        break;
    case ncclBfloat16:
        COMBINE(float, s4d_bf16_of, s4d_bf16_value, uint16_t)
        break;
    case ncclFloat16:
        COMBINE(float, s4d_f16_of, (float)s4d_f16_value, uint16_t)
        break;
    case ncclInt64:
        COMBINE(int64_t, (int64_t), (int64_t), int64_t)
        break;
    case ncclInt32:
        COMBINE(int32_t, (int32_t), (int32_t), int32_t)
        break;
    default:
        s4d_double_refuse("NCCL", "a reduction of this type");
    }
}

static struct s4d_double_wish wish_of(const struct part *c)
{
    return (struct s4d_double_wish){c->kind == SEND, c->peer, c->type, (int64_t)c->count};
}

static bool is_message(const struct part *c)
{
    return c->kind == SEND || c->kind == RECEIVE;
}

/* The output is NCCL's from now on; in place, the input stays. */
static bool begin_part(ncclComm_t comm, struct part *c)
{
    const unsigned char *in = NULL;
    unsigned char *out = NULL;
    size_t n_in = bytes_in(comm, c), n_out = bytes_out(comm, c);
    if (c->kind != RECEIVE && !(in = s4d_double_reach(c->in, n_in, names[c->kind])))
        return false;
    if (c->kind != SEND && !(out = s4d_double_reach(c->out, n_out, names[c->kind])))
        return false;
    for (size_t i = 0; out && i < n_out; i++)
        if (!in || out + i < in || out + i >= in + n_in)
            out[i] = 0xff;
    c->number = is_message(c) ? s4d_double_number(comm, c->peer, c->kind == SEND) : ++comm->calls;
    c->pauses = (int)s4d_double_draw(12);
    c->state = BEGUN;
    return true;
}

static bool begin(struct post *p)
{
    struct s4d_double_wish wishes[S4D_DOUBLE_PARTS];
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        if (!begin_part(p->comm, &p->part[i]))
            return false;
        if (is_message(&p->part[i]))
            wishes[n++] = wish_of(&p->part[i]);
    }
    if (n > 0)
        s4d_double_begin(p->comm, wishes, n);
    p->begun = true;
    return true;
}

static void send_input(ncclComm_t comm, struct part *c)
{
    size_t size = size_of(c->type) * c->count;
    struct s4d_double_message head = {.comm = comm->id,
                                      .number = c->number,
                                      .kind = c->kind,
                                      .type = c->type,
                                      .op = c->op,
                                      .count = (int64_t)c->count,
                                      .bytes = (int32_t)size};
    const unsigned char *in =
        c->kind == RECEIVE ? NULL : s4d_double_reach(c->in, bytes_in(comm, c), names[c->kind]);
    bool parted = c->kind == REDUCE_SCATTER;
    c->state = SENT;
    if (in && c->kind == SEND) {
        s4d_double_send(comm->members[c->peer], &head, in);
        return;
    }
    for (int r = 0; in && r < comm->size; r++) {
        const unsigned char *part = in + (parted ? (size_t)r * size : 0);
        if (r != comm->rank)
            s4d_double_send(comm->members[r], &head, part);
        else {
            c->own = s4d_malloc(size + 1);
            memcpy(c->own, part, size);
        }
    }
}

/* Whether all have sent; a rank that is at another collective is an error, and no end. */
static bool all_here(ncclComm_t comm, const struct part *c)
{
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank)
            continue;
        const struct s4d_double_message *m = s4d_double_find(comm->id, c->number, comm->members[r]);
        if (!m)
            return false;
        if (m->kind != (int)c->kind || m->type != (int)c->type || m->op != (int)c->op ||
            m->count != (int64_t)c->count) {
            snprintf(comm->wrong, sizeof comm->wrong,
                     "%s of %zu meets rank %d's %s of %lld, or of another type", names[c->kind],
                     c->count, r, m->kind <= REDUCE_SCATTER ? names[m->kind] : "other call",
                     (long long)m->count);
            s4d_double_wrong(comm, ncclInvalidUsage, comm->wrong);
            return false;
        }
    }
    return true;
}

static void write_output(ncclComm_t comm, struct part *c)
{
    size_t size = size_of(c->type) * c->count;
    unsigned char *out = s4d_double_reach(c->out, bytes_out(comm, c), names[c->kind]);
    for (int r = 0; out && r < comm->size; r++) {
        const struct s4d_double_message *m = s4d_double_find(comm->id, c->number, comm->members[r]);
        const unsigned char *from = r == comm->rank ? c->own : m->data;
        if (c->kind == ALL_GATHER)
            memcpy(out + (size_t)r * size, from, size);
        else if (r == 0)
            memcpy(out, from, size);
        else
            combine(out, from, c->count, c->type, c->op);
        if (r != comm->rank)
            s4d_double_drop(comm->id, c->number, comm->members[r]);
    }
}

/* A send ends when its receive has begun, a receive when what was sent is here. */
static void go_on_message(ncclComm_t comm, struct part *c)
{
    struct s4d_double_wish wish = wish_of(c);
    if (!s4d_double_met(comm, c->number, &wish))
        return;
    if (c->kind == RECEIVE) {
        int from = comm->members[c->peer];
        const struct s4d_double_message *m = s4d_double_find(comm->id, c->number, from);
        unsigned char *out =
            m ? s4d_double_reach(c->out, bytes_out(comm, c), names[c->kind]) : NULL;
        if (!out)
            return;
        memcpy(out, m->data, (size_t)m->bytes);
        s4d_double_drop(comm->id, c->number, from);
    }
    c->state = ENDED;
}

static void go_on(ncclComm_t comm, struct part *c)
{
    if (c->state == BEGUN && c->pauses-- > 0)
        s4d_double_awake();
    else if (c->state == BEGUN)
        send_input(comm, c);
    if (c->state != SENT)
        return;
    if (is_message(c)) {
        go_on_message(comm, c);
    } else if (all_here(comm, c)) {
        write_output(comm, c);
        c->state = ENDED;
    }
    if (c->state != ENDED)
        s4d_double_wants();
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
        go_on(comm, &p->part[i]);
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

/* Of buffers that overlap NCCL allows those that are in place: an all-reduce's are the same, an
 * all-gather reads its own part of the output, a reduce-scatter writes its own of the input. */
static bool overlaps_wrongly(ncclComm_t comm, const struct part *c)
{
    size_t own = (size_t)comm->rank * size_of(c->type) * c->count;
    const unsigned char *in = c->in, *out = c->out;
    if (is_message(c) || in + bytes_in(comm, c) <= out || out + bytes_out(comm, c) <= in)
        return false;
    return c->kind == ALL_GATHER       ? in != out + own
           : c->kind == REDUCE_SCATTER ? out != in + own
                                       : in != out;
}

static ncclResult_t check(ncclComm_t comm, cudaStream_t stream, const struct part *wish)
{
    const char *name = names[wish->kind];
    if (!s4d_double_is_stream(stream))
        return s4d_double_wrong(NULL, ncclInvalidUsage, "no stream");
    if (comm->stream && comm->stream != stream)
        s4d_double_refuse(name, "a communicator on two streams");
    if (wish->op != ncclSum && wish->op != ncclMax)
        s4d_double_refuse(name, "this reduction");
    if (is_message(wish) && (wish->peer < 0 || wish->peer >= comm->size))
        return s4d_double_wrong(NULL, ncclInvalidArgument, "no such peer");
    if (is_message(wish) && wish->peer == comm->rank)
        s4d_double_refuse(name, "a message to itself");
    if ((wish->kind != RECEIVE && !s4d_double_is_device(wish->in, bytes_in(comm, wish))) ||
        (wish->kind != SEND && !s4d_double_is_device(wish->out, bytes_out(comm, wish))))
        return s4d_double_wrong(NULL, ncclInvalidArgument, "a buffer that is not the device's");
    if (overlaps_wrongly(comm, wish))
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
    ncclResult_t code = s4d_double_nccl_enter(names[wish.kind], caller, comm);
    struct post alone = {.comm = comm, .stream = stream}, *p = group.open ? &group.post : &alone;
    if (code == ncclSuccess)
        code = check(comm, stream, &wish);
    if (code != ncclSuccess) {
        group.error = code;
        return code;
    }
    if (p->comm && p->comm != comm)
        s4d_double_refuse(names[wish.kind], "a group of two communicators");
    if (p->n == S4D_DOUBLE_PARTS)
        s4d_double_refuse(names[wish.kind], "more in a group than there is room for");
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
