/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a test's case by MPI ranks, on a backend. */
#ifndef S4D_TESTS_RANKS_TRAIN_H
#define S4D_TESTS_RANKS_TRAIN_H

#include <mpi.h>

#include "tests/lib/training.h"

struct s4d_ranks_options {
    int backend;      /* s4d_backend_of's number */
    int progress;     /* enum s4d_progress_mode, of the host */
    bool graphs;      /* of cuda: iterations but the first are CUDA graphs */
    int removed_wait; /* of all of the program's waits; -1: none. Its op is still checked. */
};

/* Collective over comm, whose rank r is the grid's. 0, or -1 with *err. *wrong: "", or which op did
 * not run after what it waits for. On rank 0 *out has whole tensors, the same on all ranks. */
int s4d_ranks_train(const struct s4d_case *c, MPI_Comm comm, const struct s4d_ranks_options *how,
                    char wrong[256], struct s4d_trained *out, struct s4d_error *err);

/* Until it is done; who waits leaves the processor to the others. */
void s4d_ranks_wait(MPI_Request *request);

/* Waits of a case's program. Whether iterations that do not overlap need one: they do not if it is
 * for the iteration before, or for the host, which then goes first; but for the host's own. */
int s4d_ranks_waits(const struct s4d_case *c);
bool s4d_ranks_wait_needed(const struct s4d_case *c, int number);

#endif
