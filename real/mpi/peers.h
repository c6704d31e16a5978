/* SPDX-License-Identifier: Apache-2.0 */
/* Peers over MPI. */
#ifndef S4D_REAL_MPI_PEERS_H
#define S4D_REAL_MPI_PEERS_H

#include "real/mpi/world.h"
#include "real/peers.h"

/* active: how many of this node's ranks its processors can run at once, `threads` of them each; on
 * several nodes the least of them, of every node. The world outlives the peers. */
struct s4d_peers s4d_mpi_peers(const struct s4d_world *world, int threads);

#endif
