/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever runs ops, against the host's kernels: on random shapes, most of them awkward (rows apart,
 * nothing aligned, odd widths), in every storage type. */
#ifndef S4D_TESTS_CUDA_COMPARE_H
#define S4D_TESTS_CUDA_COMPARE_H

#include <stddef.h>

#include "real/device.h"

/* Host memory that an operand lies in, with what is before, between and after its rows. */
struct s4d_room {
    unsigned char *data; /* NULL: the operand is absent, or lies in another's room */
    size_t bytes;
};

struct s4d_op_runner {
    const char *name;
    void *self;
    /* Runs an op whose operands lie in these rooms, arithmetic in fp64 or fp32. false: it failed.
     */
    bool (*run)(void *self, const struct s4d_call *call, const struct s4d_room rooms[S4D_OPERANDS],
                bool f64);
};

/* Prints TAP, after n_before other tests. Returns how many tests failed: results that differ, and
 * bytes written that are none of an operand's. */
int s4d_compare_kernels(uint64_t seed, const struct s4d_op_runner *runners, int n_runners,
                        int n_before);

#endif
