/* SPDX-License-Identifier: Apache-2.0 */
/* What the records of a series have in common, kept once for all records of one shape: the text and
 * the numbers of the first of them; and where among the numbers the metrics are. */
#ifndef S4D_PLOTS_TRACK_LAYOUT_H
#define S4D_PLOTS_TRACK_LAYOUT_H

#include <stdint.h>
#include <uthash.h>

#include "plots/track/metrics.h"
#include "plots/track/pack.h"
#include "support/error.h"

struct s4d_store;

/* A metric's numbers among those of a record. */
struct s4d_slots {
    const struct s4d_metric *metric;
    char *name;
    int *slot, n;
    int over; /* the slot of what the metric is over each of them, or -1 */
};

struct s4d_layout {
    int64_t id, series;
    char *shape;             /* of s4d_pack_shape */
    struct s4d_packed first; /* the record that it was made from */
    struct s4d_slots *slots; /* in the table's order */
    int n, cap;
    UT_hash_handle hh;
};

/* The layout of a record of a series; one that is not there is stored. NULL with *err. The store's,
 * until it forgets. */
struct s4d_layout *s4d_layout_for(struct s4d_store *store, int64_t series,
                                  const struct s4d_packed *record, struct s4d_error *err);
/* NULL with *err: there is none, or it is damaged. */
struct s4d_layout *s4d_layout_get(struct s4d_store *store, int64_t id, struct s4d_error *err);
void s4d_layouts_forget(struct s4d_store *store);

/* A record's bytes from its two columns; fresh memory with '\0' behind *n bytes; NULL: damaged. */
char *s4d_layout_read(const struct s4d_layout *layout, const unsigned char *numbers,
                      size_t n_numbers, const unsigned char *text, size_t n_text, size_t *n);

#endif
