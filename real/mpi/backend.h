/* SPDX-License-Identifier: Apache-2.0 */
/* What can compute: a row for each backend, whether this build has it or not. Which it has is a
 * matter of what was linked, or can be loaded. */
#ifndef S4D_REAL_MPI_BACKEND_H
#define S4D_REAL_MPI_BACKEND_H

#include <jansson.h>
#include <mpi.h>
#include <stdbool.h>

#include "real/device.h"
#include "real/gemm_tuning.h"
#include "real/tokens.h"

struct s4d_backend_options {
    MPI_Comm comm; /* its rank r is the program's rank r */
    struct s4d_token_source tokens;
    int threads, progress; /* of host: of BLAS; enum s4d_progress_mode */
    bool tf32;             /* of cuda: products of f32 matrices may round them to tf32 */
    int gemm_tuning;       /* of cuda: enum s4d_gemm_tuning; and its file, NULL: the usual one */
    const char *gemm_cache;
    double group_timeout_s; /* in which a communicator must form; 0: as the backend thinks */
    bool cuda_graphs;       /* of cuda: iterations but the first are graphs */
    bool synchronous;       /* every op has completed before the next is issued */
    bool first_alone;       /* those of iteration 0 have, where kernels are loaded as they run */
};

/* What open returns, beside 0 and -1, on a rank whose error others do not share, as they may never
 * answer: the job is to be ended at once (s4d_world_abort), and nothing is released. */
enum { S4D_BACKEND_ALONE = -3 };

struct s4d_backend {
    const char *name;
    const char *absent;         /* why it cannot be used; NULL: it can, and the rest is set */
    const char *(*about)(void); /* its libraries */
    bool own_devices;           /* a rank computes with what no other rank of its node uses */
    /* Collective. 0, or -1 (exit 69), or S4D_BACKEND_ALONE. Close with device->close, on all ranks.
     */
    int (*open)(struct s4d_device *device, const struct s4d_program *program,
                const struct s4d_backend_options *options, struct s4d_error *err);
    /* Of an open device, by any thread: what this rank is doing, for messages; ops completed. */
    void (*describe)(const struct s4d_device *device, char *text, int size);
    int64_t (*completed)(const struct s4d_device *device);
    /* How an open device multiplies; NULL: this backend has no choice. */
    const struct s4d_gemm_choices *(*choices)(const struct s4d_device *device);
    /* What is known now of the device that this rank has open: "name", and what tells one device
     * from another and how it fares (plots/RECORD.md, provenance.devices). A new object; what
     * cannot be known is not in it. */
    json_t *(*state)(const struct s4d_device *device);
};

enum { S4D_BACKENDS = 2 };
extern const struct s4d_backend s4d_backend_host;
const struct s4d_backend *s4d_backend_of(int number);         /* loads it; never NULL */
extern const char *const s4d_backend_names[S4D_BACKENDS + 1]; /* ends with NULL */

#endif
