/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a SimGrid platform file (XML), as SimGrid itself reads it: hosts, links and
 * routes.
 *
 * SimGrid allows one engine in a process, and the simulation needs it, so the platform lives in a
 * child process that answers questions until it is closed. sim/platform_simgrid.cpp is what runs
 * there. */
#ifndef S4D_SIM_PLATFORM_H
#define S4D_SIM_PLATFORM_H

#include <stdbool.h>

#include "support/error.h"

struct s4d_platform_link {
    char *name;
    double bandwidth_Bps, latency_s;
    bool shared; /* false: FATPIPE, every flow has the bandwidth to itself */
};

struct s4d_platform {
    char *file;
    int n_hosts, n_links;
    char **host; /* those chosen, numbers in names in ascending order */
    struct s4d_platform_link *link;
    int socket;
    int pid;
};

/* hosts: a pattern of names with * and ?, or PROPERTY=PATTERN of a host's property; NULL: all. NULL
 * with *err: no such file, SimGrid refuses it (its own words), no host matches (65). */
struct s4d_platform *s4d_platform_open(const char *file, const char *hosts, struct s4d_error *err);
void s4d_platform_close(struct s4d_platform *p);

/* The links from host a to host b, into at most `most` places, and the way's latency. Returns how
 * many, or -1: no route. */
int s4d_platform_route(struct s4d_platform *p, int a, int b, int *links, int most,
                       double *latency_s);

#endif
