/* SPDX-License-Identifier: Apache-2.0 */
/* What nccl.c and collective.c share. */
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
    cudaStream_t stream; /* NULL: not used yet */
    char wrong[256];
};

/* Words of the last error; the communicator's state. */
ncclResult_t s4d_double_wrong(ncclComm_t comm, ncclResult_t code, const char *why);
/* collective.c: whether work is a collective of this communicator. */
bool s4d_double_is_of(bool (*step)(void *data), const void *data, const void *comm);
/* How a call that needs a formed communicator begins: ncclSuccess, or what it returns. */
ncclResult_t s4d_double_nccl_enter(const char *call, const void *caller, ncclComm_t comm);

#endif
