/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured of one op. */
#ifndef S4D_REAL_PROBED_H
#define S4D_REAL_PROBED_H

#include <stdbool.h>

#include "support/statistics.h"

/* A median of samples that vary by more is too noisy to use: assumed, as compare and verdict look
 * for changes of a few per cent. */
#define S4D_PROBE_NOISY 0.10

/* The same on every rank, of the attempt with the least median: what else a machine does only ever
 * adds time. Median: the mean of the medians of the ranks that measured; p99 and
 * variation: the largest of theirs. */
struct s4d_probed {
    struct s4d_statistics t;
    bool noisy;   /* that attempt's samples vary by more than S4D_PROBE_NOISY */
    double wrong; /* of a collective: elements that were not as they must be, over all ranks */
};

#endif
