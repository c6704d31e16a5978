/* SPDX-License-Identifier: Apache-2.0 */
/* One collective or message of NCCL's, as part of a post: what groups.c and collective.c share. */
#ifndef S4D_TESTS_DOUBLE_COLLECTIVE_H
#define S4D_TESTS_DOUBLE_COLLECTIVE_H

#include "tests/double/nccl.h"

enum kind { ALL_REDUCE = 1, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };
extern const char *const s4d_double_kinds[]; /* NCCL's names, by kind */

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

/* What it reads and writes on this rank; a message only one of them. */
size_t s4d_double_bytes_in(ncclComm_t comm, const struct part *c);
size_t s4d_double_bytes_out(ncclComm_t comm, const struct part *c);
bool s4d_double_is_message(const struct part *c);
struct s4d_double_wish s4d_double_wish_of(const struct part *c);

/* Of buffers that overlap NCCL allows those that are in place: an all-reduce's are the same, an
 * all-gather reads its own part of the output, a reduce-scatter writes its own of the input. */
bool s4d_double_overlaps_wrongly(ncclComm_t comm, const struct part *c);

/* The output is NCCL's from now on: it fills with NaNs, but for what is in place. False: a buffer
 * is not the device's, which is broken. */
bool s4d_double_begin_part(ncclComm_t comm, struct part *c);
/* A turn: it sends, or ends when what it needs of others is there; c->state says which. A rank that
 * is at another call makes the communicator wrong. */
void s4d_double_go_on(ncclComm_t comm, struct part *c);

#endif
