/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs as devices, one a rank: cuBLAS and our kernels compute, NCCL carries the collectives.
 *
 * A stream of the program is a stream of CUDA; enqueueing returns at once, and a wait is an event.
 * Completions are noticed by polling from the issuing thread, which never blocks in the driver: a
 * peer that dies or a communicator that fails ends the run. */
#ifndef S4D_REAL_CUDA_CUDA_H
#define S4D_REAL_CUDA_CUDA_H

#include <jansson.h>
#include <mpi.h>

#include "real/device.h"
#include "real/gemm_tuning.h"
#include "real/tokens.h"

struct s4d_cuda_options {
    MPI_Comm comm; /* its rank r is the program's rank r */
    struct s4d_token_source tokens;
    bool tf32;        /* products of f32 matrices on tensor cores, with 10 bits of mantissa */
    bool synchronous; /* every op has completed before the next is enqueued; not with graphs */
    bool graphs;      /* iterations but the first are CUDA graphs: graph.c */
    /* The ops of iteration 0 are: a kernel is loaded when it first runs, and loading may wait for
     * what runs (CUDA C++ programming guide, lazy loading), a collective that waits for a peer that
     * loads. */
    bool first_alone;
    enum s4d_gemm_tuning gemm_tuning;
    const char *gemm_cache; /* its file; NULL: s4d_gemm_cache_file's */
    double group_timeout_s; /* in which a communicator must form; 0: 20 s and 20 ms a rank */
};

/* Collective over options->comm: a GPU of its own for every rank of a node, one communicator per
 * (group, stream). 0, or -1 (exit 69) with the same error on all ranks, that of the lowest rank
 * that had one; or S4D_BACKEND_ALONE. Close with device->close. */
int s4d_cuda_open(struct s4d_device *device, const struct s4d_program *program,
                  const struct s4d_cuda_options *options, struct s4d_error *err);

/* Of any thread: as s4d_host_describe and s4d_host_completed. */
void s4d_cuda_describe(const struct s4d_device *device, char *text, int size);
int64_t s4d_cuda_completed(const struct s4d_device *device);

/* How the program's products are multiplied, where that was tuned. */
const struct s4d_gemm_choices *s4d_cuda_choices(const struct s4d_device *device);

/* s4d_backend's state (real/mpi/backend.h). */
json_t *s4d_cuda_state(const struct s4d_device *device);

/* Versions of the libraries, in a buffer of its own. */
const char *s4d_cuda_libraries(void);

#endif
