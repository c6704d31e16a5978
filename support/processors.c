/* SPDX-License-Identifier: Apache-2.0 */
#include "support/processors.h"

#include <sched.h>
#include <unistd.h>

int s4d_processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t holds */
    return online > 0 ? (int)online : 1;
}
