/* SPDX-License-Identifier: Apache-2.0 */
/* The host as a device: CBLAS and our kernels compute, MPI carries the collectives.
 *
 * The issuing thread is the compute stream: enqueueing a kernel returns when it has run. What other
 * streams do (collectives, copies, reading tokens) starts when it heads its stream and its waits
 * are met, and is driven by polling: from the compute thread while it waits and between panels of a
 * GEMM, or by a thread of its own. */
#ifndef S4D_REAL_HOST_HOST_H
#define S4D_REAL_HOST_HOST_H

#include <mpi.h>

#include "real/device.h"
#include "real/tokens.h"

enum s4d_progress_mode {
    S4D_PROGRESS_PANELS, /* poll between panels of a GEMM and between heads of an attention */
    S4D_PROGRESS_THREAD, /* a thread polls; needs MPI_THREAD_SERIALIZED and a core to spare */
    S4D_PROGRESS_NONE,   /* poll between ops alone */
    S4D_PROGRESS_AUTO,   /* as s4d_host_progress chooses */
    S4D_PROGRESS_MODES
};
/* Four ranks on two processors, training real/compare-host/gpt-compare-l.yaml on each of the ten
 * grids (medians of 4 iterations, summed; nothing else took more than 2 % of a processor):
 * thread 2.87 s, panels 2.88 s. They are equal as far as that can be told, and a thread leaves
 * matrix products whole, which panels do not.
 * Where ranks share processors there is no idle one for communication to use: a rank that waits
 * gives its processor to one that computes, and polling takes from both. Four ranks on two
 * processors, gpt-compare-m on 2x1x2x1 and 1x1x2x2, iterations with overlap over those without (9
 * runs each in turns, median of ratios): none 1.05 and 0.97, panels 1.09 and 1.10, thread 1.09 and
 * 1.09. On two ranks (2x1x1x1, 1x1x2x1; 7 runs): none 1.00 and 1.02, panels 0.99 and 1.04, thread
 * 0.96 and 1.05. make bench measures all. */
#define S4D_PROGRESS_DEFAULT S4D_PROGRESS_AUTO
extern const char *const s4d_progress_names[S4D_PROGRESS_MODES + 1]; /* ends with NULL */

/* What a mode is where ranks share processors, or do not: auto is none there, else thread. */
enum s4d_progress_mode s4d_host_progress(int mode, bool oversubscribed);

struct s4d_host_options {
    MPI_Comm comm; /* its rank r is the program's rank r; duplicated as groups need */
    struct s4d_token_source tokens;
    enum s4d_progress_mode progress;
};

/* Collective over options->comm: one communicator per (group, stream). 0, or -1 (exit 69). Close
 * with device->close, on all ranks. */
int s4d_host_open(struct s4d_device *device, const struct s4d_program *program,
                  const struct s4d_host_options *options, struct s4d_error *err);

/* What this rank is doing, for messages; may be called by any thread while another runs the device.
 * The oldest op that has started and not completed, or that waits; its stream's name and index are
 * in the text: "all-reduce mlp.down (op 47, stream x), iteration 3 with rank 1". */
void s4d_host_describe(const struct s4d_device *device, char *text, int size);
/* Ops completed since open, by all streams; of any thread. */
int64_t s4d_host_completed(const struct s4d_device *device);

/* The BLAS library in use, and its threads: 0, or -1 (exit 69) if it cannot have so many. */
const char *s4d_host_blas(void);
int s4d_host_threads(int threads, struct s4d_error *err);

#endif
