/* SPDX-License-Identifier: Apache-2.0 */
/* From what calibrate measured to the machine's file. (Apart from cli/run/calibrate.c, where struct
 * s4d_device is another than the machine's.) */
#ifndef S4D_CLI_RUN_CALIBRATE_WRITE_H
#define S4D_CLI_RUN_CALIBRATE_WRITE_H

#include "real/calibration.h"

/* Whether a topology file (NULL: none) is one of nodes with so many devices. 0, or -1 (exit 65). */
int s4d_calibrate_check_topology(const char *topology, int devices, struct s4d_error *err);

/* Beside the file and renamed: never half a machine. With a topology file (support/nccl_topology.h)
 * its node stands in the machine, with NCCL's constants, and the tables of collectives say what
 * part of those links' rate was measured. 0, or -1: 65, 74. */
int s4d_calibrate_write(const struct s4d_calibration *c, const char *topology, const char *file,
                        struct s4d_error *err);

#endif
