/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives and messages do. Of a collective every rank sends what another needs of its
 * input, and combines what it got in the order of ranks, rounding after every addition as NCCL
 * does. Inputs are read somewhere between a part's begin and its end. */
#include "tests/double/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/half.h"
#include "support/memory.h"

const char *const s4d_double_kinds[] = {
    "", "ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclSend", "ncclRecv"};

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

size_t s4d_double_bytes_in(ncclComm_t comm, const struct part *c)
{
    return size_of(c->type) * c->count * (c->kind == REDUCE_SCATTER ? (size_t)comm->size : 1);
}
size_t s4d_double_bytes_out(ncclComm_t comm, const struct part *c)
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

struct s4d_double_wish s4d_double_wish_of(const struct part *c)
{
    return (struct s4d_double_wish){c->kind == SEND, c->peer, c->type, (int64_t)c->count};
}

bool s4d_double_is_message(const struct part *c)
{
    return c->kind == SEND || c->kind == RECEIVE;
}

bool s4d_double_overlaps_wrongly(ncclComm_t comm, const struct part *c)
{
    size_t own = (size_t)comm->rank * size_of(c->type) * c->count;
    const unsigned char *in = c->in, *out = c->out;
    if (s4d_double_is_message(c) || in + s4d_double_bytes_in(comm, c) <= out ||
        out + s4d_double_bytes_out(comm, c) <= in)
        return false;
    return c->kind == ALL_GATHER       ? in != out + own
           : c->kind == REDUCE_SCATTER ? out != in + own
                                       : in != out;
}

bool s4d_double_begin_part(ncclComm_t comm, struct part *c)
{
    const unsigned char *in = NULL;
    unsigned char *out = NULL;
    size_t n_in = s4d_double_bytes_in(comm, c), n_out = s4d_double_bytes_out(comm, c);
    if (c->kind != RECEIVE && !(in = s4d_double_reach(c->in, n_in, s4d_double_kinds[c->kind])))
        return false;
    if (c->kind != SEND && !(out = s4d_double_reach(c->out, n_out, s4d_double_kinds[c->kind])))
        return false;
    for (size_t i = 0; out && i < n_out; i++)
        if (!in || out + i < in || out + i >= in + n_in)
            out[i] = 0xff;
    c->number = s4d_double_is_message(c) ? s4d_double_number(comm, c->peer, c->kind == SEND)
                                         : ++comm->calls;
    c->pauses = (int)s4d_double_draw(12);
    c->state = BEGUN;
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
        c->kind == RECEIVE
            ? NULL
            : s4d_double_reach(c->in, s4d_double_bytes_in(comm, c), s4d_double_kinds[c->kind]);
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
                     "%s of %zu meets rank %d's %s of %lld, or of another type",
                     s4d_double_kinds[c->kind], c->count, r,
                     m->kind <= REDUCE_SCATTER ? s4d_double_kinds[m->kind] : "other call",
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
    unsigned char *out =
        s4d_double_reach(c->out, s4d_double_bytes_out(comm, c), s4d_double_kinds[c->kind]);
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
    struct s4d_double_wish wish = s4d_double_wish_of(c);
    if (!s4d_double_met(comm, c->number, &wish))
        return;
    if (c->kind == RECEIVE) {
        int from = comm->members[c->peer];
        const struct s4d_double_message *m = s4d_double_find(comm->id, c->number, from);
        unsigned char *out =
            m ? s4d_double_reach(c->out, s4d_double_bytes_out(comm, c), s4d_double_kinds[c->kind])
              : NULL;
        if (!out)
            return;
        memcpy(out, m->data, (size_t)m->bytes);
        s4d_double_drop(comm->id, c->number, from);
    }
    c->state = ENDED;
}

void s4d_double_go_on(ncclComm_t comm, struct part *c)
{
    if (c->state == BEGUN && c->pauses-- > 0)
        s4d_double_awake();
    else if (c->state == BEGUN)
        send_input(comm, c);
    if (c->state != SENT)
        return;
    if (s4d_double_is_message(c)) {
        go_on_message(comm, c);
    } else if (all_here(comm, c)) {
        write_output(comm, c);
        c->state = ENDED;
    }
    if (c->state != ENDED)
        s4d_double_wants();
}
