/* SPDX-License-Identifier: Apache-2.0 */
/* Where ranks share processors, Open MPI gives the processor away in every call that finds nothing
 * to do. That is right for a call that waits, as MPI_Comm_split; where waiting is done in a loop
 * around MPI_Test, or a kernel asks between its panels, it is not: a rank that computes would leave
 * for a whole time slice. */
#ifndef S4D_REAL_YIELDS_H
#define S4D_REAL_YIELDS_H

#include <stdbool.h>

/* Whether MPI's calls do, from now on. Returns whether they did; with another MPI nothing changes,
 * and it is false. Cheap, and of any thread. */
bool s4d_mpi_yields(bool yields);

#endif
