/* SPDX-License-Identifier: Apache-2.0 */
#include "real/host/work.h"

#include <stdlib.h>

#include "support/memory.h"

void *s4d_host_scratch(struct s4d_host_work *w, int slot, size_t bytes)
{
    if (w->scratch[slot].bytes < bytes) {
        free(w->scratch[slot].v);
        bytes = (bytes + 4095) / 4096 * 4096;
        w->scratch[slot].v = aligned_alloc(64, bytes);
        S4D_ASSERT(w->scratch[slot].v, "no memory for %zu bytes of a kernel's scratch", bytes);
        w->scratch[slot].bytes = bytes;
    }
    return w->scratch[slot].v;
}

void s4d_host_work_free(struct s4d_host_work *w)
{
    for (int i = 0; i < S4D_HOST_SCRATCH; i++)
        free(w->scratch[i].v);
    *w = (struct s4d_host_work){0};
}
