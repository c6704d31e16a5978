/* SPDX-License-Identifier: Apache-2.0 */
/* A machine whose network is a SimGrid platform file and whose nodes are those of another machine.
 */
#ifndef S4D_SIM_PLATFORM_MACHINE_H
#define S4D_SIM_PLATFORM_MACHINE_H

#include "support/machine.h"

bool s4d_is_platform(const char *machine); /* ends in ".xml" */

/* device: the machine, as s4d_machine_load takes it, whose device, node and library are used; the
 * hosts chosen (s4d_platform_open) are the nodes. set: overrides. fabric.latency_s is the largest
 * of the ways between neighbouring hosts and from the first to all, for what asks for one number.
 * 0, or -1: as s4d_machine_load and s4d_platform_open; hosts that no way joins (65). */
int s4d_platform_machine(struct s4d_machine *m, const char *file, const char *hosts,
                         const char *device, const char *const *set, int n_set,
                         struct s4d_error *err);

#endif
