/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/backend.h"
#include "real/cuda/cuda.h"

static int open_cuda(struct s4d_device *device, const struct s4d_program *program,
                     const struct s4d_backend_options *options, struct s4d_error *err)
{
    struct s4d_cuda_options cuda = {.comm = options->comm,
                                    .tokens = options->tokens,
                                    .tf32 = options->tf32,
                                    .gemm_tuning = (enum s4d_gemm_tuning)options->gemm_tuning,
                                    .gemm_cache = options->gemm_cache,
                                    .group_timeout_s = options->group_timeout_s,
                                    .synchronous = options->synchronous,
                                    .graphs = options->cuda_graphs,
                                    .first_alone = options->first_alone};
    return s4d_cuda_open(device, program, &cuda, err);
}

extern const struct s4d_backend s4d_backend_cuda; /* found by its name */
const struct s4d_backend s4d_backend_cuda = {
    .name = "cuda",
    .about = s4d_cuda_libraries,
    .own_devices = true,
    .open = open_cuda,
    .describe = s4d_cuda_describe,
    .completed = s4d_cuda_completed,
    .choices = s4d_cuda_choices,
    .state = s4d_cuda_state,
};
