/* SPDX-License-Identifier: Apache-2.0 */
/* What the links carry in the second iteration, and which of them collectives are held up by.
 *
 * Bytes are those of the collectives of the second iteration's ops. Times and shares are of the
 * window that iteration_time_s measures, as the engine shares the links from one change to the
 * next. Data that a library moves at an efficiency below 1 occupies more of a link than its bytes:
 * shares are of what is occupied, bytes are the data. */
#ifndef S4D_SIM_LINK_USE_H
#define S4D_SIM_LINK_USE_H

#include <stdint.h>
#include <stdio.h>

#include "sim/executor.h"

/* Of one link of a class. */
struct s4d_link_use {
    double bytes;
    double busy_s;     /* any flow crosses it */
    double occupied_s; /* integral of its occupied share: mean use is occupied_s / window */
    double peak;       /* largest occupied share, in [0, 1] */
    double now;        /* share since the last change; for the observer */
};

/* How long groups of a stream were held up by the same kinds of links: those that are full and on
 * the way of a flow. */
struct s4d_bound {
    enum s4d_stream stream;
    uint32_t kinds; /* bit i: s4d_link_uses.kind[i]; 0: the latency before the flows */
    double group_s; /* seconds, summed over the stream's groups */
};

enum { S4D_LINK_KINDS = 32 };
struct s4d_link_uses {
    const struct s4d_system *system;
    const struct s4d_program *program;
    struct s4d_link_use *link; /* by link class */
    double *use;               /* by link class: latest answer of the engine; for the observer */
    const char *kind[S4D_LINK_KINDS];
    int n_kinds;
    int *kind_of; /* by link class */
    struct s4d_bound *bound;
    int n_bounds, cap_bounds;
    struct s4d_running *running; /* flows under way; for the observer */
    int n_running, cap_running;
    bool open, closed;
    double since_s, open_s, close_s;
};

void s4d_link_uses_create(struct s4d_link_uses *u, const struct s4d_system *system,
                          const struct s4d_program *program);
void s4d_link_uses_free(struct s4d_link_uses *u);
/* For an observer's functions, with the uses as their context. */
void s4d_link_uses_flow(void *uses, const struct s4d_flow_event *event);
void s4d_link_uses_rates(void *uses, const struct s4d_engine *engine);
void s4d_link_uses_window(void *uses, bool open, double now_s);

/* One line a link of the cluster, also of those that nothing crosses: link, kind, class (of links
 * that are used alike; -: nothing crosses it), capacity_Bps, bytes, busy_s, mean_use, peak_use. */
void s4d_link_uses_write(const struct s4d_link_uses *u, FILE *out);

#endif
