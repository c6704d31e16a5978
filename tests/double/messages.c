/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks of MPI_COMM_WORLD. All that has arrived is kept until it is asked for, so
 * that no rank ever waits for another's order. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "real/yields.h"
#include "support/memory.h"
#include "tests/double/double.h"

enum { TAG = 29717 };

static struct sent {
    MPI_Request request;
    struct s4d_double_message *message;
} * sent;
static struct s4d_double_message **arrived;
static int n_sent, cap_sent, n_arrived, cap_arrived;

void s4d_double_send(int to, const struct s4d_double_message *head, const void *data)
{
    struct sent s = {.message = s4d_malloc(sizeof *head + (size_t)head->bytes)};
    *s.message = *head;
    s.message->from = s4d_double_rank();
    if (head->bytes > 0)
        memcpy(s.message->data, data, (size_t)head->bytes);
    MPI_Isend(s.message, (int)(sizeof *head + (size_t)head->bytes), MPI_BYTE, to, TAG,
              MPI_COMM_WORLD, &s.request);
    s4d_push(sent, n_sent, cap_sent, s);
    s4d_double_ring(to);
}

bool s4d_double_sends(void)
{
    return n_sent > 0;
}

static void end_sends(void)
{
    for (int i = n_sent - 1; i >= 0; i--) {
        int done = 0;
        MPI_Test(&sent[i].request, &done, MPI_STATUS_IGNORE);
        if (done) {
            free(sent[i].message);
            sent[i] = sent[--n_sent];
        }
    }
}

/* yields: whether MPI's calls that wait do. */
static void take_arrived(bool yields)
{
    for (int found = 1, bytes;;) {
        MPI_Message from;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &found, &from, &status);
        if (!found)
            return;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        struct s4d_double_message *message = s4d_malloc((size_t)bytes);
        s4d_mpi_yields(yields);
        MPI_Mrecv(message, bytes, MPI_BYTE, &from, MPI_STATUS_IGNORE);
        s4d_mpi_yields(false);
        s4d_push(arrived, n_arrived, cap_arrived, message);
    }
}

bool s4d_double_exchange(void)
{
    int before = n_arrived;
    bool yields = s4d_mpi_yields(false);
    end_sends();
    take_arrived(yields);
    s4d_mpi_yields(yields);
    return n_arrived > before;
}

static int where(uint64_t comm, uint64_t number, int from)
{
    int i = n_arrived - 1;
    while (i >= 0 &&
           (arrived[i]->comm != comm || arrived[i]->number != number || arrived[i]->from != from))
        i--;
    return i;
}

const struct s4d_double_message *s4d_double_find(uint64_t comm, uint64_t number, int from)
{
    int i = where(comm, number, from);
    return i < 0 ? NULL : arrived[i];
}

void s4d_double_drop(uint64_t comm, uint64_t number, int from)
{
    int i = where(comm, number, from);
    if (i < 0)
        return;
    free(arrived[i]);
    arrived[i] = arrived[--n_arrived];
}
