/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program on a device: this rank's iterations, issued op by op in the order of the list. */
#ifndef S4D_REAL_EXECUTOR_H
#define S4D_REAL_EXECUTOR_H

#include "real/device.h"

struct s4d_executor;

/* Allocates the arenas of the plan (the program has been through s4d_plan) on the device. Program
 * and device are borrowed. At most `max_iterations` will be issued. 0, or -1 (exit 69). */
int s4d_executor_create(struct s4d_executor **executor, const struct s4d_program *program, int rank,
                        struct s4d_device *device, int max_iterations, struct s4d_error *err);
void s4d_executor_free(struct s4d_executor *x);

/* Enqueues one more iteration; iterations follow one another without a barrier. 0, or -1 with what
 * failed. */
int s4d_executor_issue(struct s4d_executor *x, struct s4d_error *err);
/* Waits until all that was issued has completed. */
int s4d_executor_finish(struct s4d_executor *x, struct s4d_error *err);

/* Of iteration i. NaN until it is known; loss and norm are known when the end is. May be asked by
 * another thread. */
double s4d_executor_end_s(const struct s4d_executor *x, int iteration); /* of its last adamw */
double s4d_executor_loss(const struct s4d_executor *x, int iteration);
double s4d_executor_grad_norm(const struct s4d_executor *x,
                              int iteration); /* NaN if not computed */

/* A tensor on this rank. */
struct s4d_buffer s4d_executor_buffer(const struct s4d_executor *x, int tensor);

#endif
