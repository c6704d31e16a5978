/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives and messages by MPI's non-blocking ones, on one communicator per (group, stream), so
 * that every communicator sees its members' calls in one order whatever other streams do. */
#include <limits.h>
#include <string.h>

#include "real/host/internal.h"
#include "support/half.h"
#include "support/memory.h"

int s4d_host_mpi_fail(struct s4d_error *err, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return s4d_fail(err, S4D_EXIT_DEVICE, what, "MPI: %s", text);
}

/* Sums and maxima of 16-bit floats, in fp32 and rounded at every member, as NCCL does. */
#define HALF_OP(name, value_of, half_of, expression)                                               \
    static void name(void *in, void *inout, int *n, MPI_Datatype *type)                            \
    {                                                                                              \
        const uint16_t *x = in;                                                                    \
        uint16_t *y = inout;                                                                       \
        (void)type;                                                                                \
        for (int i = 0; i < *n; i++) {                                                             \
            float a = (float)value_of(x[i]), b = (float)value_of(y[i]);                            \
            y[i] = half_of(expression);                                                            \
        }                                                                                          \
    }
HALF_OP(bf16_sum, s4d_bf16_value, s4d_bf16_of, a + b)
HALF_OP(bf16_max, s4d_bf16_value, s4d_bf16_of, a > b ? a : b)
HALF_OP(f16_sum, s4d_f16_value, s4d_f16_of, a + b)
HALF_OP(f16_max, s4d_f16_value, s4d_f16_of, a > b ? a : b)

static void make_half(struct s4d_host *h, int i, MPI_User_function *sum, MPI_User_function *max)
{
    MPI_Type_contiguous(2, MPI_BYTE, &h->half[i]);
    MPI_Type_commit(&h->half[i]);
    MPI_Op_create(sum, 1, &h->half_sum[i]);
    MPI_Op_create(max, 1, &h->half_max[i]);
}

int s4d_host_groups(struct s4d_host *h, struct s4d_error *err)
{
    const struct s4d_grid *grid = &h->program->grid;
    /* Stages of a pipe use different streams, but a communicator is made by all ranks. */
    int used[S4D_STREAMS];
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        used[stream] = h->program->stream_length[stream] > 0;
    MPI_Allreduce(MPI_IN_PLACE, used, S4D_STREAMS, MPI_INT, MPI_MAX, h->options.comm);
    make_half(h, 0, bf16_sum, bf16_max);
    make_half(h, 1, f16_sum, f16_max);
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        h->streams[stream].comm = MPI_COMM_NULL;
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        s4d_axes axes = s4d_streams[stream].axes;
        struct s4d_host_stream *s = &h->streams[stream];
        if (!axes || !used[stream])
            continue;
        int members[1 << 12], n = s4d_group_size(grid, axes);
        if (n > 1 << 12)
            return s4d_fail(err, S4D_EXIT_DEVICE, "", "a group of %d ranks", n);
        s4d_group_members(grid, h->rank, axes, members);
        int code = MPI_Comm_split(h->options.comm, members[0], s4d_group_index(grid, h->rank, axes),
                                  &s->comm);
        if (code == MPI_SUCCESS)
            code = MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
        if (code != MPI_SUCCESS)
            return s4d_host_mpi_fail(err, code, "MPI_Comm_split");
    }
    return 0;
}

void s4d_host_groups_free(struct s4d_host *h)
{
    for (int stream = 0; stream < S4D_STREAMS; stream++)
        if (h->streams[stream].comm != MPI_COMM_NULL)
            MPI_Comm_free(&h->streams[stream].comm);
    for (int i = 0; i < 2; i++) {
        MPI_Type_free(&h->half[i]);
        MPI_Op_free(&h->half_sum[i]);
        MPI_Op_free(&h->half_max[i]);
    }
}

static MPI_Datatype type_of(const struct s4d_host *h, enum s4d_type type)
{
    switch (type) {
    case S4D_F64:
        return MPI_DOUBLE;
    case S4D_F32:
        return MPI_FLOAT;
    case S4D_BF16:
        return h->half[0];
    case S4D_F16:
        return h->half[1];
    case S4D_I64:
        return MPI_INT64_T;
    case S4D_I32:
        return MPI_INT32_T;
    case S4D_U16:
        return MPI_UINT16_T;
    default:
        return MPI_UINT8_T;
    }
}

static MPI_Op op_of(const struct s4d_host *h, const union s4d_constants *c)
{
    bool max = c->collective.reduction == S4D_MAX;
    if (c->collective.type == S4D_BF16 || c->collective.type == S4D_F16) {
        int i = c->collective.type == S4D_F16;
        return max ? h->half_max[i] : h->half_sum[i];
    }
    return max ? MPI_MAX : MPI_SUM;
}

/* A tag a channel: a message meets its receive even where a pipe of two has two channels between
 * two ranks. */
static int start_message(struct s4d_host *h, struct s4d_host_stream *s, const struct s4d_call *call,
                         MPI_Request *request)
{
    const union s4d_constants *c = &call->op->c;
    MPI_Datatype type = type_of(h, c->message.type);
    int count = (int)c->message.count, peer = call->coordinate[S4D_PIPE] + c->message.peer;
    if (call->op->kind == S4D_OP_SEND)
        return MPI_Isend(call->operand[0].data, count, type, peer, (int)c->message.channel, s->comm,
                         request);
    return MPI_Irecv(call->operand[0].data, count, type, peer, (int)c->message.channel, s->comm,
                     request);
}

static int start_collective(struct s4d_host *h, struct s4d_host_stream *s,
                            const struct s4d_call *call, MPI_Request *request)
{
    const union s4d_constants *c = &call->op->c;
    const struct s4d_buffer *in = &call->operand[0], *out = &call->operand[1];
    MPI_Datatype type = type_of(h, c->collective.type);
    int count = (int)c->collective.count, index;
    MPI_Comm_rank(s->comm, &index);
    char *own = (char *)out->data +
                (size_t)index * (size_t)count * (size_t)s4d_type_bytes[c->collective.type];
    switch (call->op->kind) {
    case S4D_OP_ALL_REDUCE:
        return MPI_Iallreduce(in->data == out->data ? MPI_IN_PLACE : in->data, out->data, count,
                              type, op_of(h, c), s->comm, request);
    case S4D_OP_ALL_GATHER:
        return MPI_Iallgather(in->data == own ? MPI_IN_PLACE : in->data, count, type, out->data,
                              count, type, s->comm, request);
    case S4D_OP_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(in->data, out->data, count, type, op_of(h, c), s->comm,
                                         request);
    default:
        s4d_bug(__FILE__, __LINE__, s4d_op_kinds[call->op->kind].name,
                "is no collective of the host");
    }
}

int s4d_host_post(struct s4d_host *h, struct s4d_host_stream *s, const struct s4d_call *calls,
                  int n, struct s4d_error *err)
{
    s->at = s->n_requests = 0;
    for (int i = 0; i < n; i++) {
        const struct s4d_op *op = calls[i].op;
        const char *name = s4d_op_kinds[op->kind].name;
        bool message = s4d_op_kinds[op->kind].op_class == S4D_CLASS_MESSAGE;
        int64_t count = message ? op->c.message.count : op->c.collective.count;
        MPI_Request request = MPI_REQUEST_NULL;
        if (count > INT_MAX)
            return s4d_fail(err, S4D_EXIT_DEVICE, op->label.name,
                            "%s of %lld elements a rank: MPI counts to %d", name, (long long)count,
                            INT_MAX);
        int code = message ? start_message(h, s, &calls[i], &request)
                           : start_collective(h, s, &calls[i], &request);
        if (code != MPI_SUCCESS)
            return s4d_host_mpi_fail(err, code, name);
        s4d_push(s->requests, s->n_requests, s->cap_requests, request);
    }
    return 0;
}
