/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that watches this rank: SIGTERM (the end of a job slot, a launcher that ends the job),
 * peers on this node that are gone, and an op that never completes. It speaks and ends the process,
 * whatever the other threads are stuck in; the launcher then ends the other ranks. */
#ifndef S4D_REAL_WATCH_H
#define S4D_REAL_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#include "support/error.h"

struct s4d_watch {
    int rank;
    const char *host;
    double timeout_s; /* nothing completed for so long: exit 75; 0: never */
    double limit_s;   /* so long after the start, whatever completes: exit 75; 0: never */
    int n_peers;
    const int *peer_rank;
    const pid_t *peer_pid; /* 0: not watched */
    /* All three are called by the watching thread. Completed only grows; describe says what the
     * rank is at; interrupted does what is left to do before the process ends (NULL: nothing): of
     * SIGTERM why is NULL. It may be called twice. */
    int64_t (*completed)(void *self);
    void (*describe)(void *self, char *text, int size);
    void (*interrupted)(void *self, const struct s4d_error *why);
    void *self;
};

/* Before any thread exists (MPI starts some): SIGTERM is for the watching thread alone, and a write
 * beyond the limit on the size of a file fails, instead of ending the process. */
void s4d_watch_prepare(void);
/* *watch is copied. 0, or -1 (exit 69). */
int s4d_watch_start(const struct s4d_watch *watch, struct s4d_error *err);
/* Last of all that is done before the process ends, whatever is watched then and after its
 * `interrupted`: for who watches one thing after another. Set while nothing is watched; NULL:
 * nothing. */
void s4d_watch_at_end(void (*ending)(void *self, const struct s4d_error *why), void *self);
/* Before ranks may end in any order. */
void s4d_watch_stop(void);

#endif
