/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for messages sleeps until one is sent: many ranks share few processors, and MPI only
 * ever polls. A word of each rank's, in memory that the node's ranks share, says whether it sleeps;
 * made when MPI starts, which the double therefore does in the program's place. */
#include <linux/futex.h>
#include <mpi.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/double/double.h"

struct bell {
    alignas(64) _Atomic uint32_t sleeps;
};

static struct bell
    *bells; /* by rank in MPI_COMM_WORLD; NULL: not all of its ranks are of one node */
static MPI_Win window = MPI_WIN_NULL;

static void make(void)
{
    MPI_Comm node;
    MPI_Aint size;
    int world, local, unit;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, s4d_double_rank(), MPI_INFO_NULL,
                        &node);
    MPI_Comm_size(node, &local);
    if (local == world) {
        size = s4d_double_rank() == 0 ? world * (MPI_Aint)sizeof *bells : 0;
        MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, node, &bells, &window);
        MPI_Win_shared_query(window, 0, &size, &unit, &bells);
        atomic_store(&bells[s4d_double_rank()].sleeps, 0);
        MPI_Barrier(node);
    }
    MPI_Comm_free(&node);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    if (code == MPI_SUCCESS)
        make();
    return code;
}

int MPI_Finalize(void)
{
    bells = NULL;
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
    return PMPI_Finalize();
}

void s4d_double_ring(int rank)
{
    if (bells && atomic_exchange(&bells[rank].sleeps, 0))
        syscall(SYS_futex, &bells[rank].sleeps, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void s4d_double_sleep(void)
{
    const struct timespec most = {.tv_nsec = 1000000}; /* what waits for no message goes on, too */
    if (s4d_double_sends()) { /* MPI sends what is long piece by piece, when it is called */
        sched_yield();
        return;
    }
    if (!bells) {
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        return;
    }
    _Atomic uint32_t *own = &bells[s4d_double_rank()].sleeps;
    atomic_store(own, 1);
    if (!s4d_double_exchange()) /* one that was sent before */
        syscall(SYS_futex, own, FUTEX_WAIT, 1, &most, NULL, 0);
    atomic_store(own, 0);
}
