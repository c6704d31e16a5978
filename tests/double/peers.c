/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends whom: every member of a communicator hears what the others have begun, post by post. So
 * a message waits for its receive, as NCCL's may; and members that wait for one another for ever,
 * in NCCL until somebody ends them, are an error of the communicator.
 *
 * What a member has begun only grows, and it begins nothing more before its latest post has ended.
 * So where, by what is known here, each of some members waits for another of them, none of them
 * ever goes on, however old that knowledge is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/double/nccl.h"

/* Numbers of messages: of posts, and of data from a sender to a receiver. */
#define POSTS    ((uint64_t)1 << 60)
#define MESSAGES ((uint64_t)1 << 61)
enum { KIND_POST = 200 };

struct s4d_double_peers {
    uint64_t posts, *heard;    /* own; of each member */
    int64_t *sends, *receives; /* [member * size + peer]: begun */
    int64_t *sent, *received;  /* numbers given, by peer */
    struct end {
        struct s4d_double_wish *v;
        int n, cap;
    } * ends; /* [2 * member + sends]: all that a member has begun with this one */
};

static struct s4d_double_peers *peers_of(ncclComm_t comm)
{
    size_t n = (size_t)comm->size;
    if (comm->peers)
        return comm->peers;
    struct s4d_double_peers *p = comm->peers = s4d_calloc(1, sizeof *p);
    p->heard = s4d_calloc(n, sizeof *p->heard);
    p->sends = s4d_calloc(n * n, sizeof *p->sends);
    p->receives = s4d_calloc(n * n, sizeof *p->receives);
    p->sent = s4d_calloc(n, sizeof *p->sent);
    p->received = s4d_calloc(n, sizeof *p->received);
    p->ends = s4d_calloc(2 * n, sizeof *p->ends);
    return p;
}

void s4d_double_peers_free(ncclComm_t comm)
{
    struct s4d_double_peers *p = comm->peers;
    for (int i = 0; p && i < 2 * comm->size; i++)
        free(p->ends[i].v);
    if (p) {
        free(p->heard);
        free(p->sends);
        free(p->receives);
        free(p->sent);
        free(p->received);
        free(p->ends);
    }
    free(p);
    comm->peers = NULL;
}

static void note(ncclComm_t comm, int member, const struct s4d_double_wish *wishes, int n)
{
    struct s4d_double_peers *p = peers_of(comm);
    for (int i = 0; i < n; i++) {
        const struct s4d_double_wish *w = &wishes[i];
        struct end *end = &p->ends[2 * member + (w->sends != 0)];
        ++*((w->sends ? p->sends : p->receives) + member * comm->size + w->peer);
        if (w->peer == comm->rank)
            s4d_push(end->v, end->n, end->cap, *w);
    }
}

static void listen(ncclComm_t comm)
{
    struct s4d_double_peers *p = peers_of(comm);
    for (int m = 0; m < comm->size; m++) {
        const struct s4d_double_message *said;
        while (m != comm->rank &&
               (said = s4d_double_find(comm->id, POSTS + p->heard[m], comm->members[m]))) {
            struct s4d_double_wish wishes[S4D_DOUBLE_PARTS];
            memcpy(wishes, said->data, (size_t)said->bytes);
            note(comm, m, wishes, said->bytes / (int)sizeof *wishes);
            s4d_double_drop(comm->id, POSTS + p->heard[m]++, comm->members[m]);
        }
    }
}

void s4d_double_begin(ncclComm_t comm, const struct s4d_double_wish *wishes, int n)
{
    struct s4d_double_peers *p = peers_of(comm);
    struct s4d_double_message head = {.comm = comm->id,
                                      .number = POSTS + p->posts++,
                                      .kind = KIND_POST,
                                      .bytes = n * (int)sizeof *wishes};
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank)
            s4d_double_send(comm->members[r], &head, wishes);
    note(comm, comm->rank, wishes, n);
}

uint64_t s4d_double_number(ncclComm_t comm, int peer, bool sends)
{
    struct s4d_double_peers *p = peers_of(comm);
    return MESSAGES + (uint64_t)(sends ? p->sent[peer]++ : p->received[peer]++);
}

/* Member m has begun what member o has not. */
static bool waits_for(ncclComm_t comm, int m, int o)
{
    const struct s4d_double_peers *p = comm->peers;
    int there = m * comm->size + o, back = o * comm->size + m;
    return p->sends[there] > p->receives[back] || p->receives[there] > p->sends[back];
}

/* Those who wait for one another for ever: of all, those are left out who may yet go on. */
static bool is_stuck(ncclComm_t comm)
{
    bool *stuck = s4d_malloc((size_t)comm->size * sizeof *stuck), changed = true;
    memset(stuck, true, (size_t)comm->size * sizeof *stuck);
    while (changed) {
        changed = false;
        for (int m = 0; m < comm->size; m++) {
            bool waits = false;
            for (int o = 0; o < comm->size; o++)
                waits = waits || (stuck[o] && o != m && waits_for(comm, m, o));
            changed = changed || (stuck[m] && !waits);
            stuck[m] = stuck[m] && waits;
        }
    }
    bool own = stuck[comm->rank];
    free(stuck);
    return own;
}

bool s4d_double_met(ncclComm_t comm, uint64_t number, const struct s4d_double_wish *wish)
{
    listen(comm);
    const struct end *end = &comm->peers->ends[2 * wish->peer + (wish->sends == 0)];
    int i = (int)(number - MESSAGES);
    if (i < end->n && end->v[i].count == wish->count && end->v[i].type == wish->type)
        return true;
    if (i < end->n)
        snprintf(comm->wrong, sizeof comm->wrong,
                 "%s of %lld meets rank %d's %s of %lld, or of another type",
                 wish->sends ? "ncclSend" : "ncclRecv", (long long)wish->count, wish->peer,
                 wish->sends ? "ncclRecv" : "ncclSend", (long long)end->v[i].count);
    else if (is_stuck(comm))
        snprintf(comm->wrong, sizeof comm->wrong,
                 "a deadlock: rank %d's %s waits for rank %d, which waits, and so round",
                 comm->rank, wish->sends ? "ncclSend" : "ncclRecv", wish->peer);
    else
        return false;
    s4d_double_wrong(comm, ncclInvalidUsage, comm->wrong);
    return false;
}
