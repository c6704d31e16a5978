/* SPDX-License-Identifier: Apache-2.0 */
#include "real/yields.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

/* Of Open MPI's library below MPI (4.1 and 5.0, opal/runtime/opal_progress.h); its parameter
 * mpi_yield_when_idle is read by MPI_Init alone. */
typedef bool (*setter)(bool yields);

bool s4d_mpi_yields(bool yields)
{
    static _Atomic(setter) set;
    static atomic_bool looked;
    if (!atomic_load(&looked)) {
        void *found = dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle");
        atomic_store(&set, *(setter *)&found);
        atomic_store(&looked, true);
    }
    setter f = atomic_load(&set);
    return f ? f(yields) : false;
}
