/* SPDX-License-Identifier: Apache-2.0 */
/* --check-finite: the first op whose output has a NaN or an infinity. */
#ifndef S4D_REAL_FINITE_H
#define S4D_REAL_FINITE_H

#include "real/device.h"

/* 0, or -1 (exit 1) naming iteration, op and element, if a float that the op has written is not
 * finite. Exempt is the minus infinity that loss-max gives to a rank without a valid column. */
int s4d_check_finite(const struct s4d_device *device, const struct s4d_call *call, int iteration,
                     struct s4d_error *err);

#endif
