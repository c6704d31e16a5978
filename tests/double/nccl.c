/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of NCCL: non-blocking ones alone. A call on one that is still in progress is wrong,
 * and when it is no longer only questions find out. */
#include "tests/double/nccl.h"

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

static char last[256];

ncclResult_t s4d_double_wrong(ncclComm_t comm, ncclResult_t code, const char *why)
{
    snprintf(last, sizeof last, "%s", why);
    if (comm)
        comm->state = code;
    return code;
}

ncclResult_t s4d_double_nccl_enter(const char *call, const void *caller, ncclComm_t comm)
{
    if (s4d_double_in_work())
        s4d_double_refuse(call, "a host function may not call NCCL");
    s4d_double_turn(S4D_DOUBLE_ISSUES);
    if (s4d_double_call_fails(call, caller))
        return s4d_double_wrong(comm, ncclSystemError, "the double fails as asked");
    if (s4d_double_broken())
        return s4d_double_wrong(comm, ncclUnhandledCudaError, "an error of CUDA's");
    if (s4d_double_left_behind())
        return s4d_double_wrong(comm, ncclUnhandledCudaError,
                                "the last error was device not ready");
    if (!comm)
        return s4d_double_wrong(NULL, ncclInvalidArgument, "no communicator");
    if (!comm->formed || comm->state == ncclInProgress)
        return s4d_double_wrong(NULL, ncclInvalidUsage, "a call while another is in progress");
    return comm->state;
}

ncclResult_t ncclGetVersion(int *version)
{
    if (s4d_double_call_fails("ncclGetVersion", __builtin_return_address(0)))
        return ncclSystemError;
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* The root's rank, and a number of its own. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static uint64_t number;
    uint64_t words[2] = {(uint64_t)s4d_double_rank(), ++number};
    if (s4d_double_call_fails("ncclGetUniqueId", __builtin_return_address(0)))
        return s4d_double_wrong(NULL, ncclSystemError, "the double fails as asked");
    memset(id, 0, sizeof *id);
    memcpy(id, words, sizeof words);
    return ncclSuccess;
}

/* In NCCL these become part of the group; nobody here means that. */
static void not_in_group(const char *call)
{
    if (s4d_double_in_group())
        s4d_double_refuse(call, "a call in a group");
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t z = (a + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9 ^ (b + 1) * 0x94d049bb133111eb;
    return z ^ z >> 29;
}

static ncclComm_t make(uint64_t id, int size, int rank)
{
    ncclComm_t comm = s4d_calloc(1, sizeof *comm);
    s4d_double_live.communicators++;
    comm->id = id;
    comm->size = size;
    comm->rank = rank;
    comm->members = s4d_calloc((size_t)size, sizeof *comm->members);
    comm->state = ncclInProgress;
    comm->pauses = (int)s4d_double_draw(4);
    return comm;
}

/* Numbers of messages while a world forms; collective calls count from 1 below them. */
enum { KIND_JOIN = 100, KIND_LIST, KIND_SPLIT, KIND_GONE };
#define JOINS ((uint64_t)1 << 62)

/* The root tells all who is who, when all have told it. */
static bool tell_list(ncclComm_t comm)
{
    int n = comm->size, world;
    int *list = comm->members;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    memset(list, 0xff, (size_t)n * sizeof *list);
    list[comm->rank] = comm->root;
    int known = 1;
    for (int from = 0; from < world; from++) {
        const struct s4d_double_message *m = s4d_double_find(comm->id, JOINS, from);
        if (!m)
            continue;
        if (m->count != n || m->op < 0 || m->op >= n || list[m->op] >= 0) {
            s4d_double_wrong(comm, ncclInvalidUsage, "ranks differ about a communicator's ranks");
            return true;
        }
        list[m->op] = from;
        known++;
    }
    if (known < n)
        return false;
    for (int r = 0; r < n; r++) {
        struct s4d_double_message head = {.comm = comm->id,
                                          .number = JOINS + 1,
                                          .kind = KIND_LIST,
                                          .bytes = n * (int)sizeof *list};
        if (r != comm->rank) {
            s4d_double_send(list[r], &head, list);
            s4d_double_drop(comm->id, JOINS, list[r]);
        }
    }
    return true;
}

static bool step_world(ncclComm_t comm)
{
    if (s4d_double_rank() == comm->root) {
        if (!tell_list(comm))
            return false;
    } else {
        const struct s4d_double_message *m = s4d_double_find(comm->id, JOINS + 1, comm->root);
        if (!m)
            return false;
        memcpy(comm->members, m->data, (size_t)m->bytes);
        s4d_double_drop(comm->id, JOINS + 1, comm->root);
    }
    comm->formed = true;
    return true;
}

static void check_config(const ncclConfig_t *config)
{
    if (!config || config->magic != 0xcafebeef || config->blocking != 0)
        s4d_double_refuse("NCCL", "a communicator that is not non-blocking");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    uint64_t words[2];
    memcpy(words, &id, sizeof words);
    *comm = NULL;
    not_in_group("ncclCommInitRankConfig");
    if (s4d_double_call_fails("ncclCommInitRankConfig", __builtin_return_address(0)))
        return s4d_double_wrong(NULL, ncclSystemError, "the double fails as asked");
    check_config(config);
    if (s4d_double_unsafe())
        return s4d_double_wrong(NULL, ncclUnhandledCudaError, "an allocation in a capture");
    if (size < 1 || rank < 0 || rank >= size)
        return s4d_double_wrong(NULL, ncclInvalidArgument, "rank");
    *comm = make(mix(words[0], words[1]), size, rank);
    (*comm)->root = (int)words[0];
    (*comm)->step = step_world;
    struct s4d_double_message head = {
        .comm = (*comm)->id, .number = JOINS, .kind = KIND_JOIN, .op = rank, .count = size};
    if (s4d_double_rank() != (*comm)->root && !s4d_double_fails("join"))
        s4d_double_send((*comm)->root, &head, NULL);
    return ncclInProgress;
}

struct split {
    ncclComm_t *to;
    int color, key;
    uint64_t number;
};

static int32_t wish_of(ncclComm_t comm, const struct split *s, int member, int32_t *key)
{
    if (member == comm->rank) {
        *key = s->key;
        return s->color;
    }
    const struct s4d_double_message *m =
        s4d_double_find(comm->id, s->number, comm->members[member]);
    *key = m->type;
    return m->op;
}

static ncclComm_t group_of(ncclComm_t comm, const struct split *s)
{
    ncclComm_t made = make(mix(comm->id, mix(s->number, (uint64_t)s->color)), comm->size, 0);
    int32_t *keys = s4d_calloc((size_t)comm->size, sizeof *keys);
    made->size = 0;
    for (int r = 0; r < comm->size; r++) {
        int32_t key;
        if (wish_of(comm, s, r, &key) != s->color)
            continue;
        int at = made->size++;
        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
            made->members[at] = made->members[at - 1];
        }
        keys[at] = key;
        made->members[at] = comm->members[r];
    }
    while (made->members[made->rank] != s4d_double_rank())
        made->rank++;
    free(keys);
    made->formed = true;
    return made;
}

static bool step_split(ncclComm_t comm)
{
    struct split *s = comm->next;
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank) {
            const struct s4d_double_message *m =
                s4d_double_find(comm->id, s->number, comm->members[r]);
            if (!m)
                return false;
            if (m->kind != KIND_SPLIT) {
                s4d_double_wrong(comm, ncclInvalidUsage, "a split meets another call");
                return true;
            }
        }
    if (s->color != NCCL_SPLIT_NOCOLOR)
        *s->to = group_of(comm, s);
    for (int r = 0; r < comm->size; r++)
        s4d_double_drop(comm->id, s->number, comm->members[r]);
    free(s);
    comm->next = NULL;
    return true;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
                           ncclConfig_t *config)
{
    ncclResult_t code = s4d_double_nccl_enter("ncclCommSplit", __builtin_return_address(0), comm);
    if (code != ncclSuccess)
        return code;
    check_config(config);
    not_in_group("ncclCommSplit");
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
        return s4d_double_wrong(NULL, ncclInvalidArgument, "color");
    struct split *s = s4d_malloc(sizeof *s);
    *made = NULL; /* until it is there */
    *s = (struct split){made, color, key, ++comm->calls};
    for (int r = 0; r < comm->size; r++) {
        struct s4d_double_message head = {
            .comm = comm->id, .number = s->number, .kind = KIND_SPLIT, .op = color, .type = key};
        if (r != comm->rank)
            s4d_double_send(comm->members[r], &head, NULL);
    }
    comm->next = s;
    comm->step = step_split;
    comm->pauses = (int)s4d_double_draw(4);
    comm->state = ncclInProgress;
    return ncclInProgress;
}

/* An abort reaches the others, as a connection that is closed does. */
static bool has_gone(ncclComm_t comm)
{
    for (int r = 0; r < comm->size; r++)
        if (s4d_double_find(comm->id, JOINS + 2, comm->members[r]))
            return true;
    return false;
}

static void tell_gone(ncclComm_t comm)
{
    struct s4d_double_message head = {.comm = comm->id, .number = JOINS + 2, .kind = KIND_GONE};
    for (int r = 0; comm->formed && r < comm->size; r++)
        if (r != comm->rank)
            s4d_double_send(comm->members[r], &head, NULL);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    s4d_double_turn(S4D_DOUBLE_ASKS);
    not_in_group("ncclCommGetAsyncError");
    if (s4d_double_call_fails("ncclCommGetAsyncError", __builtin_return_address(0)))
        return s4d_double_wrong(comm, ncclSystemError, "the double fails as asked");
    if (!comm)
        return s4d_double_wrong(NULL, ncclInvalidArgument, "no communicator");
    if (comm->formed && has_gone(comm))
        s4d_double_wrong(comm, ncclRemoteError, "a peer has aborted");
    if (comm->state == ncclInProgress && comm->pauses-- > 0)
        s4d_double_awake();
    else if (comm->state == ncclInProgress) {
        if (!comm->step || comm->step(comm)) {
            comm->step = NULL;
            comm->state = comm->state == ncclInProgress ? ncclSuccess : comm->state;
        } else {
            s4d_double_wants();
        }
    }
    *state = comm->state;
    return ncclSuccess;
}

/* "keep polling until all graphs referencing us die" (NCCL's commDestroySync): for ever, here, but
 * for a GPU that is in error. */
static void check_graphs(const char *call, ncclComm_t comm)
{
    if (!s4d_double_broken() && s4d_double_graphs_have(s4d_double_is_of, comm))
        s4d_double_refuse(call, "it waits for a graph with the communicator's collectives to go");
}

/* What was enqueued is done before. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    not_in_group("ncclCommDestroy");
    if (s4d_double_call_fails("ncclCommDestroy", __builtin_return_address(0)))
        return s4d_double_wrong(comm, ncclSystemError, "the double fails as asked");
    if (!comm)
        return ncclSuccess;
    if (comm->step)
        return s4d_double_wrong(NULL, ncclInvalidUsage, "destroyed while a call is in progress");
    check_graphs("ncclCommDestroy", comm);
    while (s4d_double_has(s4d_double_is_of, comm)) {
        s4d_double_turn(S4D_DOUBLE_ASKS);
        sched_yield();
    }
    s4d_double_peers_free(comm);
    free(comm->members);
    free(comm);
    s4d_double_live.communicators--;
    return ncclSuccess;
}

/* Its kernels end where they are, and those to come when they begin: it is kept for them. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    not_in_group("ncclCommAbort");
    if (s4d_double_call_fails("ncclCommAbort", __builtin_return_address(0)))
        return ncclSystemError;
    if (!comm)
        return ncclSuccess;
    check_graphs("ncclCommAbort", comm);
    free(comm->next);
    comm->next = NULL;
    comm->step = NULL;
    comm->aborted = true;
    tell_gone(comm);
    s4d_double_live.communicators--;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const words[] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };
    return code >= 0 && code < ncclNumResults ? words[code] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last;
}
