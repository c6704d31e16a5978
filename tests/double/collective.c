/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of NCCL: every rank sends what another needs of its input, and combines what it got
 * in the order of ranks, rounding after every addition as NCCL does. Between a collective's start,
 * when its output fills with NaNs, and its end others of the host's streams run; its input is read
 * somewhere between. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "support/memory.h"
#include "tests/double/nccl.h"

enum kind { ALL_REDUCE = 1, ALL_GATHER, REDUCE_SCATTER };
static const char *const names[] = {"", "ncclAllReduce", "ncclAllGather", "ncclReduceScatter"};

struct collective {
    ncclComm_t comm;
    cudaStream_t stream;
    enum kind kind;
    const void *in;
    void *out;
    size_t count; /* of a rank's part, or of all of an all-reduce */
    ncclDataType_t type;
    ncclRedOp_t op;
    uint64_t number; /* of this rank's in the communicator, from when it begins */
    enum { READY, BEGUN, SENT } state;
    int pauses; /* turns between begin and read */
    unsigned char *own;
};

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

static size_t parts_in(const struct collective *c)
{
    return c->kind == REDUCE_SCATTER ? (size_t)c->comm->size : 1;
}
static size_t parts_out(const struct collective *c)
{
    return c->kind == ALL_GATHER ? (size_t)c->comm->size : 1;
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

/* The output is NCCL's from now on; in place, the input stays. */
static bool begin(struct collective *c)
{
    size_t size = size_of(c->type) * c->count;
    const unsigned char *in = s4d_double_reach(c->in, size * parts_in(c), names[c->kind]);
    unsigned char *out = s4d_double_reach(c->out, size * parts_out(c), names[c->kind]);
    if (!in || !out)
        return false;
    for (size_t i = 0; i < size * parts_out(c); i++)
        if (out + i < in || out + i >= in + size * parts_in(c))
            out[i] = 0xff;
    return true;
}

static void send_input(struct collective *c)
{
    size_t size = size_of(c->type) * c->count;
    const unsigned char *in = s4d_double_reach(c->in, size * parts_in(c), names[c->kind]);
    bool parted = c->kind == REDUCE_SCATTER;
    for (int r = 0; in && r < c->comm->size; r++) {
        const unsigned char *part = in + (parted ? (size_t)r * size : 0);
        struct s4d_double_message head = {.comm = c->comm->id,
                                          .number = c->number,
                                          .kind = c->kind,
                                          .type = c->type,
                                          .op = c->op,
                                          .count = (int64_t)c->count,
                                          .bytes = (int32_t)size};
        if (r != c->comm->rank)
            s4d_double_send(c->comm->members[r], &head, part);
        else {
            c->own = s4d_malloc(size + 1);
            memcpy(c->own, part, size);
        }
    }
}

/* Whether all have sent; a rank that is at another collective is an error, and no end. */
static bool all_here(const struct collective *c)
{
    for (int r = 0; r < c->comm->size; r++) {
        if (r == c->comm->rank)
            continue;
        const struct s4d_double_message *m =
            s4d_double_find(c->comm->id, c->number, c->comm->members[r]);
        if (!m)
            return false;
        if (m->kind != (int)c->kind || m->type != (int)c->type || m->op != (int)c->op ||
            m->count != (int64_t)c->count) {
            snprintf(c->comm->wrong, sizeof c->comm->wrong,
                     "%s of %zu meets rank %d's %s of %lld, or of another type", names[c->kind],
                     c->count, r, m->kind <= REDUCE_SCATTER ? names[m->kind] : "other call",
                     (long long)m->count);
            s4d_double_wrong(c->comm, ncclInvalidUsage, c->comm->wrong);
            return false;
        }
    }
    return true;
}

static void write_output(struct collective *c)
{
    size_t size = size_of(c->type) * c->count;
    unsigned char *out = s4d_double_reach(c->out, size * parts_out(c), names[c->kind]);
    for (int r = 0; out && r < c->comm->size; r++) {
        const struct s4d_double_message *m =
            s4d_double_find(c->comm->id, c->number, c->comm->members[r]);
        const unsigned char *from = r == c->comm->rank ? c->own : m->data;
        if (c->kind == ALL_GATHER)
            memcpy(out + (size_t)r * size, from, size);
        else if (r == 0)
            memcpy(out, from, size);
        else
            combine(out, from, c->count, c->type, c->op);
        if (r != c->comm->rank)
            s4d_double_drop(c->comm->id, c->number, c->comm->members[r]);
    }
}

static bool end(struct collective *c)
{
    free(c->own);
    return true;
}

static bool step(void *data)
{
    struct collective *c = data;
    if (c->comm->aborted || s4d_double_broken())
        return end(c);
    if (c->state == READY) {
        if (s4d_double_fails("death"))
            raise(SIGKILL);
        if (s4d_double_fails("collective"))
            s4d_double_wrong(c->comm, ncclRemoteError, "a peer is gone, as asked");
        if (s4d_double_is_held())
            return false;
        if (!begin(c))
            return end(c);
        c->number = ++c->comm->calls;
        c->pauses = (int)s4d_double_draw(12);
        c->state = BEGUN;
    }
    if (c->comm->state != ncclSuccess && c->comm->state != ncclInProgress)
        return false; /* until it is aborted */
    if (c->state == BEGUN && c->pauses-- <= 0) {
        send_input(c);
        c->state = SENT;
    }
    if (c->state != SENT || !all_here(c))
        return false;
    write_output(c);
    return end(c);
}

bool s4d_double_is_of(bool (*does)(void *data), const void *data, const void *comm)
{
    return does == step && ((const struct collective *)data)->comm == comm;
}

/* Only now is it in the stream. */
static bool enqueue(ncclComm_t comm)
{
    struct collective *c = comm->next;
    comm->next = NULL;
    s4d_double_append(c->stream, step, c, sizeof *c);
    free(c);
    return true;
}

static ncclResult_t call(const void *caller, struct collective wish)
{
    ncclComm_t comm = wish.comm;
    ncclResult_t code = s4d_double_nccl_enter(names[wish.kind], caller, comm);
    if (code != ncclSuccess)
        return code;
    if (!s4d_double_is_stream(wish.stream))
        return s4d_double_wrong(NULL, ncclInvalidUsage, "no stream");
    if (comm->stream && comm->stream != wish.stream)
        s4d_double_refuse(names[wish.kind], "a communicator on two streams");
    if (wish.op != ncclSum && wish.op != ncclMax)
        s4d_double_refuse(names[wish.kind], "this reduction");
    size_t size = size_of(wish.type) * wish.count;
    if (!s4d_double_is_device(wish.in, size * parts_in(&wish)) ||
        !s4d_double_is_device(wish.out, size * parts_out(&wish)))
        return s4d_double_wrong(NULL, ncclInvalidArgument, "a buffer that is not the device's");
    if (s4d_double_invalid(wish.stream))
        return s4d_double_wrong(comm, ncclUnhandledCudaError, "the capture is invalid");
    if (!comm->stream && s4d_double_capturing())
        s4d_double_refuse(names[wish.kind],
                          "a capture of a communicator that never ran: it allocates");
    comm->stream = wish.stream;
    struct collective *c = s4d_malloc(sizeof *c);
    *c = wish;
    comm->next = c;
    comm->pauses = (int)s4d_double_draw(4);
    if (comm->pauses == 0) {
        enqueue(comm);
        return ncclSuccess;
    }
    comm->step = enqueue;
    comm->state = ncclInProgress;
    return ncclInProgress;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return call(__builtin_return_address(0), (struct collective){.comm = comm,
                                                                 .stream = stream,
                                                                 .kind = ALL_REDUCE,
                                                                 .in = in,
                                                                 .out = out,
                                                                 .count = count,
                                                                 .type = type,
                                                                 .op = op});
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return call(__builtin_return_address(0), (struct collective){.comm = comm,
                                                                 .stream = stream,
                                                                 .kind = ALL_GATHER,
                                                                 .in = in,
                                                                 .out = out,
                                                                 .count = count,
                                                                 .type = type,
                                                                 .op = ncclSum});
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return call(__builtin_return_address(0), (struct collective){.comm = comm,
                                                                 .stream = stream,
                                                                 .kind = REDUCE_SCATTER,
                                                                 .in = in,
                                                                 .out = out,
                                                                 .count = count,
                                                                 .type = type,
                                                                 .op = op});
}
