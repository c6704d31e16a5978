/* SPDX-License-Identifier: Apache-2.0 */
/* The host's kernels: one function an op kind, for arithmetic in fp32 and in fp64.
 *
 * A kernel's text (the .inc files) is written once over REAL and compiled for both. Elements are
 * loaded from their storage type a row's chunk at a time, computed with as REALs, and rounded when
 * stored. schedule/op.h states the arithmetic of every kind. */
#ifndef S4D_REAL_HOST_WORK_H
#define S4D_REAL_HOST_WORK_H

#include <stddef.h>

#include "real/device.h"

enum { S4D_HOST_SCRATCH = 10 };

/* One worker: the op it runs, and memory that it keeps from op to op. */
struct s4d_host_work {
    const struct s4d_call *call;
    /* Long kernels stop now and then to let collectives progress; NULL: never. */
    void (*progress)(void *self);
    void *self;
    struct {
        void *v;
        size_t bytes;
    } scratch[S4D_HOST_SCRATCH];
    union s4d_constants rotary; /* whose cosines and sines scratch holds */
    bool rotary_known;
};

/* At least `bytes`, 64-byte aligned; contents are lost when it grows. */
void *s4d_host_scratch(struct s4d_host_work *w, int slot, size_t bytes);
void s4d_host_work_free(struct s4d_host_work *w);

typedef void (*s4d_host_kernel)(struct s4d_host_work *w);
/* By op kind; NULL for collectives and read-tokens. */
extern const s4d_host_kernel s4d_host_kernels_f32[S4D_OP_KINDS], s4d_host_kernels_f64[S4D_OP_KINDS];

#endif
