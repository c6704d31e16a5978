/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that ranks run together, told by rank 0 in TAP. All functions are collective over
 * MPI_COMM_WORLD. */
#ifndef S4D_TESTS_RANKS_REPORT_H
#define S4D_TESTS_RANKS_REPORT_H

#include "tests/ranks/train.h"

enum { S4D_RANKS_WORDS = 2048 };

/* A test; why is shown if it is not good. How many there were; whether one was not good. */
void s4d_ranks_report(bool good, const char *name, const char *why);
int s4d_ranks_reported(void);
bool s4d_ranks_failed(void);

/* One case on the world's first ranks. why: "", or on all ranks what the lowest one with a fault
 * says. What came out must be the reference's, where there is one: to `tolerance`, 0: bit for bit.
 * out, where there is one, gets it on rank 0. */
void s4d_ranks_outcome(const struct s4d_case *c, const struct s4d_ranks_options *how,
                       const struct s4d_trained *reference, double tolerance,
                       struct s4d_trained *out, char why[S4D_RANKS_WORDS]);

/* The double of CUDA (tests/double) runs what comes next in another order. */
void s4d_ranks_seed(int seed);

#endif
