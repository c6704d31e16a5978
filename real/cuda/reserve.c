/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the GPU that others take after the arena. */
#include <stdio.h>
#include <stdlib.h>

#include "real/cuda/internal.h"
#include "support/units.h"

/* What a communicator takes at its first collective, with two members and with more: 544 and 688 MB
 * (NVIDIA/nccl issue 964: four A100, NVLink; secondary). It is nearly all buffers of connections,
 * for each protocol one, of which the simple one's has the size that NCCL_BUFFSIZE asks for. */
static const double pair_bytes = 544e6, group_bytes = 688e6;
/* NCCL 2.28.9, src/init.cc and src/include/device.h (read): LL 8 lines x 512 threads x 8 steps of
 * 16 B, LL128 120 elements x 640 threads x 8 steps of 8 B, simple 4 MiB. Within a connection's 9.2
 * MiB the others' sizes cannot be told from what was measured; they are taken to stay. */
static const double fixed_buffer_bytes = 524288 + 4915200, simple_buffer_bytes = 4194304;
/* Kernels of cuBLAS and ours are loaded at their first launch, and some take memory for registers
 * that do not fit: assumed, as no figure was found. (The context is there already.) */
static const double driver_bytes = 0.5e9;

/* NCCL connects at the first collective since 2.22 (src/init.cc, NCCL_RUNTIME_CONNECT: read);
 * before, when the communicator forms, and what is free now is without it. */
static bool connects_late(void)
{
    const char *set = getenv("NCCL_RUNTIME_CONNECT");
    int version = 0;
    if (S4D_NCCL(NULL, NULL, ncclGetVersion, &version)) /* not known: more is kept, not less */
        version = NCCL_VERSION(2, 22, 0);
    return version >= NCCL_VERSION(2, 22, 0) && !(set && atoi(set) == 0);
}

static double buffers_grown(void)
{
    const char *set = getenv("NCCL_BUFFSIZE");
    int64_t bytes = 0;
    if (!set || s4d_parse_int(set, 1, INT64_MAX, &bytes, NULL))
        return 1;
    return (fixed_buffer_bytes + (double)bytes) / (fixed_buffer_bytes + simple_buffer_bytes);
}

int s4d_cuda_reserve(const struct s4d_cuda *c, double *bytes, int *communicators,
                     struct s4d_error *err)
{
    const char *set = getenv("SCALE4D_GPU_RESERVE");
    bool late = connects_late();
    *communicators = 0;
    *bytes = driver_bytes;
    for (int stream = 0; stream < S4D_STREAMS && late; stream++) {
        int members = s4d_group_size(&c->program->grid, s4d_streams[stream].axes);
        if (!c->streams[stream].comm || members < 2)
            continue;
        *bytes += (members == 2 ? pair_bytes : group_bytes) * buffers_grown();
        ++*communicators;
    }
    if (!set || s4d_parse_bytes(set, bytes, err) == 0)
        return 0;
    if (err) {
        err->exit = S4D_EXIT_USAGE;
        snprintf(err->where, sizeof err->where, "SCALE4D_GPU_RESERVE");
    }
    return -1;
}
