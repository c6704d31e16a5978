/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a machine of a calibration: numbers with their sources. */
#ifndef S4D_REAL_CALIBRATION_PARTS_H
#define S4D_REAL_CALIBRATION_PARTS_H

#include "real/calibration.h"
#include "support/machine.h"

struct s4d_quantity s4d_quantity_of(double value, enum s4d_tag tag, const char *source);
/* Its source: what was measured, with which command; and that it is too noisy, if it is. */
struct s4d_quantity s4d_quantity_measured(const struct s4d_calibration *c, double value,
                                          const char *what, bool noisy);
/* "12 shapes, 1 of them too noisy to rely on: ..." Caller frees. */
char *s4d_calibration_source(const struct s4d_calibration *c, const char *what, int n, int noisy);
int s4d_calibration_node_ranks(const struct s4d_calibration *c);
int s4d_calibration_nodes(const struct s4d_calibration *c);

/* Fills m->device. 0, or -1 (exit 65): something was not measured. */
int s4d_calibration_device(const struct s4d_calibration *c, struct s4d_machine *m,
                           struct s4d_error *err);

#endif
