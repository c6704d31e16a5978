/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives by MPI's non-blocking ones, on one communicator per (group, stream), so that every
 * communicator sees its members' calls in one order whatever other streams do. */
#include <limits.h>
#include <string.h>

#include "real/host/internal.h"
#include "support/half.h"

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
    make_half(h, 0, bf16_sum, bf16_max);
    make_half(h, 1, f16_sum, f16_max);
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        h->streams[stream].comm = MPI_COMM_NULL;
        h->streams[stream].request = MPI_REQUEST_NULL;
    }
    for (int stream = 0; stream < S4D_STREAMS; stream++) {
        s4d_axes axes = s4d_streams[stream].axes;
        struct s4d_host_stream *s = &h->streams[stream];
        if (!axes || h->program->stream_length[stream] == 0)
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

int s4d_host_collective(struct s4d_host *h, struct s4d_host_stream *s, const struct s4d_call *call,
                        struct s4d_error *err)
{
    const union s4d_constants *c = &call->op->c;
    const struct s4d_buffer *in = &call->operand[0], *out = &call->operand[1];
    MPI_Datatype type = type_of(h, c->collective.type);
    const char *name = s4d_op_kinds[call->op->kind].name;
    int count = (int)c->collective.count, code = MPI_SUCCESS, index;
    if (c->collective.count > INT_MAX)
        return s4d_fail(err, S4D_EXIT_DEVICE, call->op->label.name,
                        "%s of %lld elements a rank: MPI counts to %d", name,
                        (long long)c->collective.count, INT_MAX);
    MPI_Comm_rank(s->comm, &index);
    char *own = (char *)out->data +
                (size_t)index * (size_t)count * (size_t)s4d_type_bytes[c->collective.type];
    switch (call->op->kind) {
    case S4D_OP_ALL_REDUCE:
        code = MPI_Iallreduce(in->data == out->data ? MPI_IN_PLACE : in->data, out->data, count,
                              type, op_of(h, c), s->comm, &s->request);
        break;
    case S4D_OP_ALL_GATHER:
        code = MPI_Iallgather(in->data == own ? MPI_IN_PLACE : in->data, count, type, out->data,
                              count, type, s->comm, &s->request);
        break;
    case S4D_OP_REDUCE_SCATTER:
        code = MPI_Ireduce_scatter_block(in->data, out->data, count, type, op_of(h, c), s->comm,
                                         &s->request);
        break;
    default:
        return s4d_fail(err, S4D_EXIT_BUG, name, "is no collective of the host");
    }
    return code == MPI_SUCCESS ? 0 : s4d_host_mpi_fail(err, code, name);
}
