/* SPDX-License-Identifier: Apache-2.0 */
#ifndef S4D_SUPPORT_PROCESSORS_H
#define S4D_SUPPORT_PROCESSORS_H

/* How many processors this process may run on, at least 1: under taskset or a batch system often
 * fewer than the machine has. */
int s4d_processors(void);

#endif
