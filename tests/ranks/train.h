/* SPDX-License-Identifier: Apache-2.0 */
/* Training of a test's case by MPI ranks, on a backend. */
#ifndef S4D_TESTS_RANKS_TRAIN_H
#define S4D_TESTS_RANKS_TRAIN_H

#include <mpi.h>

#include "tests/lib/training.h"

struct s4d_ranks_options {
    int backend;      /* s4d_backend_of's number */
    int progress;     /* enum s4d_progress_mode, of the host */
    int removed_wait; /* of all of the program's waits; -1: none. Its op is still checked. */
};

/* Collective over comm, whose rank r is the grid's. 0, or -1 with *err. *wrong: "", or which op did
 * not run after what it waits for. On rank 0 *out has whole tensors, the same on all ranks. */
int s4d_ranks_train(const struct s4d_case *c, MPI_Comm comm, const struct s4d_ranks_options *how,
                    char wrong[256], struct s4d_trained *out, struct s4d_error *err);

/* Waits of a case's program. */
int s4d_ranks_waits(const struct s4d_case *c);

#endif
