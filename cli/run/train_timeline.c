/* SPDX-License-Identifier: Apache-2.0 */
/* --timeline: rank 0 writes its events, then those of one rank after the other. */
#include <stdlib.h>

#include "cli/run/train.h"
#include "schedule/timeline.h"
#include "support/memory.h"

enum { TAG = 8, BATCH = 1 << 16 };

static void write_events(struct s4d_timeline *out, const struct s4d_program *p, int rank,
                         const struct s4d_train_event *e, int n)
{
    for (int i = 0; i < n; i++)
        s4d_timeline_op(out, p, rank, e[i].op, e[i].iteration, e[i].start_s, e[i].end_s);
}

static void send_events(const struct s4d_train *t)
{
    for (int at = 0, n; at < t->n_events; at += n) {
        n = t->n_events - at < BATCH ? t->n_events - at : BATCH;
        MPI_Send(t->events + at, n * (int)sizeof *t->events, MPI_BYTE, 0, TAG, t->world->comm);
    }
}

static void receive_events(const struct s4d_train *t, struct s4d_timeline *out, int rank, int total)
{
    struct s4d_train_event *e = s4d_malloc(BATCH * sizeof *e);
    for (int at = 0, n; at < total; at += n) {
        n = total - at < BATCH ? total - at : BATCH;
        MPI_Recv(e, n * (int)sizeof *e, MPI_BYTE, rank, TAG, t->world->comm, MPI_STATUS_IGNORE);
        if (out)
            write_events(out, &t->program, rank, e, n);
    }
    free(e);
}

int s4d_train_timeline(struct s4d_train *t, const char *file, struct s4d_error *err)
{
    struct s4d_timeline *out = NULL;
    int size = t->world->size, *counts = s4d_calloc((size_t)size, sizeof *counts), rc = 0;
    MPI_Gather(&t->n_events, 1, MPI_INT, counts, 1, MPI_INT, 0, t->world->comm);
    if (t->world->rank != 0) {
        send_events(t);
    } else {
        rc = s4d_timeline_open(&out, file, err);
        for (int rank = 0; rank < size; rank++) {
            if (out)
                s4d_timeline_rank(out, &t->program, rank, "");
            if (rank > 0)
                receive_events(t, out, rank, counts[rank]);
            else if (out)
                write_events(out, &t->program, 0, t->events, t->n_events);
        }
        if (out)
            rc = s4d_timeline_close(out, err);
    }
    free(counts);
    return rc;
}
