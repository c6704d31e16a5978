/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for communicators to form. What is still in progress says nothing of why: the ranks tell
 * one another over MPI, that one gave up, and, when it takes too long, who is there. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "real/cuda/internal.h"
#include "support/memory.h"

/* Tags of empty messages. An answer holds in its tag how many calls have settled there. */
enum { GAVE_UP = 4717, WHO_IS_THERE = 4718, HERE = 4719, MOST_SETTLED = 2 * S4D_STREAMS + 1 };

/* Jobs of 10,000 GPUs start within half a minute where nothing is wrong (MegaScale, arXiv
 * 2402.15627, section 3.5; secondary). So much for few and more for many is assumed: what takes
 * longer has more often stuck than it is slow. */
static const double least_limit_s = 20, limit_per_rank_s = 0.02;
/* Assumed, too: ranks that answer look for questions every millisecond. Rank 0 asks first; it ends
 * the job, if it is not the one that is missing. */
static const double answer_s = 1.5, most_turns_s = 3;

static int arrived(const struct s4d_cuda *c, int tag, int *from)
{
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, tag, c->options.comm, &found, &status) != MPI_SUCCESS || !found)
        return 0;
    *from = status.MPI_SOURCE;
    return MPI_Recv(NULL, 0, MPI_BYTE, *from, tag, c->options.comm, MPI_STATUS_IGNORE) ==
           MPI_SUCCESS;
}

static void tell(const struct s4d_cuda *c, int rank, int tag)
{
    MPI_Request request;
    if (MPI_Isend(NULL, 0, MPI_BYTE, rank, tag, c->options.comm, &request) == MPI_SUCCESS)
        MPI_Request_free(&request);
}

static void tell_others(const struct s4d_cuda *c, int tag)
{
    for (int rank = 0; rank < c->size; rank++)
        if (rank != c->rank)
            tell(c, rank, tag);
}

void s4d_cuda_give_up(const struct s4d_cuda *c)
{
    tell_others(c, GAVE_UP);
}

void s4d_cuda_answer(const struct s4d_cuda *c)
{
    int from;
    while (arrived(c, WHO_IS_THERE, &from))
        tell(c, from, HERE + c->settled);
}

/* settled[rank] of those that answer; -1: a rank does not. */
static void ask(const struct s4d_cuda *c, int *settled)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    double start_s = s4d_cuda_now_s(c);
    int missing = c->size - 1, from;
    for (int rank = 0; rank < c->size; rank++)
        settled[rank] = -1;
    settled[c->rank] = c->settled;
    tell_others(c, WHO_IS_THERE);
    while (missing > 0 && s4d_cuda_now_s(c) - start_s < answer_s) {
        s4d_cuda_answer(c);
        for (int n = 0; n <= MOST_SETTLED; n++)
            while (arrived(c, HERE + n, &from)) {
                settled[from] = n;
                missing--;
            }
        nanosleep(&pause, NULL);
    }
}

/* " 1 (node3), 5 (node4) and 2 more": ranks whose count is -1, or is less than this rank's. */
static int list(const struct s4d_cuda *c, const int *settled, bool silent, char *text, size_t size)
{
    enum { SHOWN = 6 };
    int n = 0;
    size_t at = 0;
    text[0] = '\0';
    for (int rank = 0; rank < c->size; rank++) {
        if (silent ? settled[rank] >= 0 : settled[rank] < 0 || settled[rank] >= c->settled)
            continue;
        if (n++ < SHOWN)
            at += (size_t)snprintf(text + at, size - at, "%s%d (%.63s)", n > 1 ? ", " : "", rank,
                                   c->hosts[rank]);
    }
    if (n > SHOWN)
        snprintf(text + at, size - at, " and %d more", n - SHOWN);
    return n;
}

static int too_long(const struct s4d_cuda *c, const char *call, int stream, double waited_s,
                    struct s4d_error *err)
{
    struct s4d_error said;
    int *settled = s4d_malloc((size_t)c->size * sizeof *settled);
    char silent[500], behind[500];
    ask(c, settled);
    int n_silent = list(c, settled, true, silent, sizeof silent);
    int n_behind = list(c, settled, false, behind, sizeof behind);
    free(settled);
    s4d_fail(&said, S4D_EXIT_DEVICE, call, "NCCL: in progress for %.0f s", waited_s);
    if (stream >= 0)
        s4d_cuda_name_group(c, stream, &said);
    else
        s4d_cuda_say(&said, "; the communicator of all %d ranks", c->size);
    if (n_silent > 0)
        s4d_cuda_say(&said, "; no answer from rank%s %s", n_silent > 1 ? "s" : "", silent);
    if (n_behind > 0)
        s4d_cuda_say(&said, "; not yet in this call: rank%s %s", n_behind > 1 ? "s" : "", behind);
    if (n_silent + n_behind == 0)
        s4d_cuda_say(&said, "; every rank is there and in this call, or past it");
    s4d_hint(&said, "%s; --group-timeout allows more than %.0f s",
             n_silent + n_behind > 0
                 ? "what those ranks' nodes and GPUs do says why"
                 : "NCCL_DEBUG=INFO makes NCCL say which network it uses, NCCL_SOCKET_IFNAME and "
                   "NCCL_IB_HCA choose another",
             waited_s);
    if (err)
        *err = said;
    return S4D_BACKEND_ALONE;
}

static double limit_of(const struct s4d_cuda *c)
{
    double given_s = c->options.group_timeout_s, turn_s = 0.1 * c->rank;
    double limit_s = given_s > 0 ? given_s : least_limit_s + limit_per_rank_s * c->size;
    if (c->rank == 0)
        return limit_s;
    return limit_s + 2 * answer_s + (turn_s < most_turns_s ? turn_s : most_turns_s);
}

int s4d_cuda_settle(struct s4d_cuda *c, ncclComm_t comm, const char *call, int stream,
                    struct s4d_error *err)
{
    const long most_ns = 1000000;
    struct timespec pause = {.tv_nsec = 20000};
    double limit_s = limit_of(c), start_s = s4d_cuda_now_s(c);
    for (;; pause.tv_nsec = pause.tv_nsec * 2 < most_ns ? pause.tv_nsec * 2 : most_ns) {
        ncclResult_t state = ncclSuccess;
        int from;
        if (S4D_NCCL(err, comm, ncclCommGetAsyncError, comm, &state) ||
            s4d_nccl_check(call, state, comm, err)) {
            if (stream >= 0)
                s4d_cuda_name_group(c, stream, err);
            return -1;
        }
        if (state != ncclInProgress) {
            c->settled++;
            return 0;
        }
        if (arrived(c, GAVE_UP, &from)) {
            s4d_fail(err, S4D_EXIT_DEVICE, "", "rank %d gave up", from);
            return -2;
        }
        s4d_cuda_answer(c);
        if (s4d_cuda_now_s(c) - start_s > limit_s)
            return too_long(c, call, stream, s4d_cuda_now_s(c) - start_s, err);
        nanosleep(&pause, NULL);
    }
}
