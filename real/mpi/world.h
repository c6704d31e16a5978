/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a job: who they are, and what they must agree about before they compute. */
#ifndef S4D_REAL_MPI_WORLD_H
#define S4D_REAL_MPI_WORLD_H

#include <mpi.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/error.h"

struct s4d_world {
    MPI_Comm comm;
    int rank, size;
    int local_rank, local_size; /* on this node */
    int *local_ranks;           /* world ranks of this node's processes */
    pid_t *local_pids;          /* 0: in another PID namespace, not visible from here */
    char host[256];
    void (*ending)(void *self,
                   const struct s4d_error *why); /* s4d_world_abort's first step; or NULL */
    void *ending_self;
    struct s4d_error *failed; /* NULL, or filled on every rank with the error that
                                 s4d_world_agree found: for who goes on afterwards */
};

/* Starts MPI (thread level MULTIPLE where the library has it). Rank and size are MPI's; where the
 * launcher's variables (OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, SLURM_PROCID, ...) say otherwise
 * it is an error that names both: the program was built with another MPI than it was started with.
 * 0, or -1 (exit 69). */
int s4d_world_open(struct s4d_world *w, int *argc, char ***argv, struct s4d_error *err);
void s4d_world_close(struct s4d_world *w); /* collective: ends MPI */

/* Collective. err: this rank's error, or NULL. 0 if no rank has one; else the exit code of the
 * lowest rank that has, after that rank has printed its error (with its number, unless all ranks
 * failed). */
int s4d_world_agree(const struct s4d_world *w, const struct s4d_error *err);

/* Collective: n named numbers that must be the same on all ranks. 0, or -1 on every rank (exit 64)
 * with the first name that differs and two ranks that hold different values. */
int s4d_world_same(const struct s4d_world *w, const char *const *names, const uint64_t *values,
                   int n, struct s4d_error *err);

/* Completes a request. MPI's own waiting may spin, and so take the processor from the ranks that
 * are waited for; this sleeps between looks, so it is for what is not timed. */
void s4d_world_wait(MPI_Request *request);

/* Prints the error with the rank, and ends the job at once. */
void s4d_world_abort(const struct s4d_world *w, const struct s4d_error *err)
    __attribute__((noreturn));

#endif
