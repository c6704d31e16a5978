/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of a few nights say of a series: its own, or those of rates that were measured
 * of what it trains. */
#ifndef S4D_CLI_TRACK_WINDOW_H
#define S4D_CLI_TRACK_WINDOW_H

#include "cli/track/attribution.h"
#include "plots/track/store.h"

struct s4d_window_entry {
    int day;
    struct s4d_night_rates rates;
    struct s4d_exposed exposed;
};
struct s4d_window {
    bool of_rates;              /* set before it is read: which of the two */
    struct s4d_window_entry *v; /* a record each, oldest first */
    int n, cap;
};

/* Records of the last `nights` nights of the days [from, until]; rates are those with the same host
 * class, backend, workload, GPUs and grid, and no other input of both that differs. all: the list
 * that the series is of. 0 (s4d_window_free), or -1: the store's errors. */
int s4d_window_read(struct s4d_window *w, struct s4d_store *store,
                    const struct s4d_series_list *all, const struct s4d_series *series, int from,
                    int until, int nights, struct s4d_error *err);
void s4d_window_free(struct s4d_window *w);

/* Their medians; records 0: there are none. */
struct s4d_night_rates s4d_window_rates(const struct s4d_window *w);
struct s4d_exposed s4d_window_exposed(const struct s4d_window *w);

#endif
