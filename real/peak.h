/* SPDX-License-Identifier: Apache-2.0 */
/* What is advertised of GPUs that are known by name. */
#ifndef S4D_REAL_PEAK_H
#define S4D_REAL_PEAK_H

#include <stdbool.h>

#include "schedule/op.h"

struct s4d_peak {
    double flops_per_s; /* dense; 0: not known */
    const char *source;
};
/* Of matrix products of this type by a device of this name, as CUDA has it ("NVIDIA H200"); f32
 * with tf32: that are rounded so. */
struct s4d_peak s4d_advertised_peak(const char *device, enum s4d_type type, bool tf32);

#endif
