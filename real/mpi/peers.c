/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/peers.h"

#include <sched.h>

static const struct s4d_world *world_of(void *self)
{
    return self;
}

static void barrier(void *self)
{
    MPI_Request request;
    MPI_Ibarrier(world_of(self)->comm, &request);
    s4d_world_wait(&request);
}

static void reduce(void *self, double *values, int n, MPI_Op op)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, op, world_of(self)->comm, &request);
    s4d_world_wait(&request);
}

static void sum(void *self, double *values, int n)
{
    reduce(self, values, n, MPI_SUM);
}

static void maximum(void *self, double *values, int n)
{
    reduce(self, values, n, MPI_MAX);
}

/* Of this process: a launcher may have bound it to some. Together the ranks of a node have at least
 * as many, and share them where they are bound to the same. */
static int processors(const struct s4d_world *w)
{
    cpu_set_t own;
    unsigned char mine[CPU_SETSIZE] = {0}, all[CPU_SETSIZE];
    MPI_Comm node;
    int n = 0;
    if (sched_getaffinity(0, sizeof own, &own) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            mine[i] = CPU_ISSET(i, &own) != 0;
    MPI_Comm_split_type(w->comm, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &node);
    MPI_Allreduce(mine, all, CPU_SETSIZE, MPI_UNSIGNED_CHAR, MPI_MAX, node);
    MPI_Comm_free(&node);
    for (int i = 0; i < CPU_SETSIZE; i++)
        n += all[i];
    return n;
}

struct s4d_peers s4d_mpi_peers(const struct s4d_world *w, int threads)
{
    int active = processors(w) / threads;
    active = active < 1 ? 1 : active < w->local_size ? active : w->local_size;
    int least[2] = {active, active - w->local_size};
    MPI_Allreduce(MPI_IN_PLACE, least, 2, MPI_INT, MPI_MIN, w->comm);
    return (struct s4d_peers){
        .rank = w->rank,
        .size = w->size,
        .local = w->local_rank,
        .active = least[0],
        .oversubscribed = least[1] < 0,
        .self = (void *)w,
        .barrier = barrier,
        .sum = sum,
        .maximum = maximum,
    };
}
