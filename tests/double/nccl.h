/* SPDX-License-Identifier: Apache-2.0 */
/* What nccl.c, groups.c, collective.c and peers.c share. */
#ifndef S4D_TESTS_DOUBLE_NCCL_H
#define S4D_TESTS_DOUBLE_NCCL_H

#include "real/cuda/api.h"
#include "tests/double/double.h"

struct ncclComm {
    uint64_t id;
    int size, rank, root; /* root: of the world that forms, in MPI's world */
    int *members;         /* ranks in MPI's world */
    uint64_t calls;       /* splits made and collectives begun by this rank */
    ncclResult_t state;   /* ncclInProgress: until step() says otherwise */
    bool (*step)(ncclComm_t comm);
    int pauses; /* questions that are answered "in progress" before step() */
    void *next; /* of what goes on */
    bool aborted, formed;
    cudaStream_t stream;            /* NULL: not used yet */
    struct s4d_double_peers *peers; /* NULL: no messages yet */
    char wrong[256];
};

/* Words of the last error; the communicator's state. */
ncclResult_t s4d_double_wrong(ncclComm_t comm, ncclResult_t code, const char *why);
/* groups.c: whether a group is open; whether work is of this communicator. */
bool s4d_double_in_group(void);
bool s4d_double_is_of(bool (*step)(void *data), const void *data, const void *comm);
/* How a call that needs a formed communicator begins: ncclSuccess, or what it returns. */
ncclResult_t s4d_double_nccl_enter(const char *call, const void *caller, ncclComm_t comm);

/* peers.c: what the members of a communicator have begun to send one another. The messages of a
 * post, when it begins: all members hear of them. */
enum { S4D_DOUBLE_PARTS = 16 }; /* of a post, at most */
struct s4d_double_wish {
    int32_t sends, peer, type; /* sends: else it receives */
    int64_t count;
};
void s4d_double_begin(ncclComm_t comm, const struct s4d_double_wish *wishes, int n);
/* The number of the next message to, or from, a peer; for s4d_double_send and _find. */
uint64_t s4d_double_number(ncclComm_t comm, int peer, bool sends);
/* Whether the peer has begun the other end of a message; if that is of another size or type, or if
 * this rank waits for ever, the communicator is wrong. */
bool s4d_double_met(ncclComm_t comm, uint64_t number, const struct s4d_double_wish *wish);
void s4d_double_peers_free(ncclComm_t comm);

#endif
