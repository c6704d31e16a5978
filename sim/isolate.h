/* SPDX-License-Identifier: Apache-2.0 */
/* Runs simulations in child processes: SimGrid allows one engine per process, and a crash stays
 * contained. */
#ifndef S4D_SIM_ISOLATE_H
#define S4D_SIM_ISOLATE_H

#include <stddef.h>

#include "support/error.h"

/* A job writes its answer of `size` bytes (no pointers in it) to result; 0, or -1 with *err. */
typedef int (*s4d_job)(void *context, int index, void *result, struct s4d_error *err);

/* Runs job 0..n-1, at most `workers` at once, each in a child; results[i] of `size` bytes;
 * errors[i].exit is 0 where it succeeded. A child that dies is an error (exit 70) that names the
 * signal. done (may be NULL) is called as each ends. Returns how many failed. */
int s4d_isolated(s4d_job job, void *context, int n, int workers, void *results, size_t size,
                 struct s4d_error *errors, void (*done)(void *context, int index));

#endif
