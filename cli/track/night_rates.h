/* SPDX-License-Identifier: Apache-2.0 */
/* What records of kind "rates" say of a few nights (keys: plots/RECORD.md). */
#ifndef S4D_CLI_TRACK_NIGHT_RATES_H
#define S4D_CLI_TRACK_NIGHT_RATES_H

#include <jansson.h>

#include "schedule/program.h" /* for: S4D_STREAMS */

/* The slowest node by its matrix products; of one node alone, the slowest of its ranks. */
struct s4d_slowest {
    char host[256]; /* "": none to compare with */
    int rank;       /* the slowest of it */
    bool is_rank;   /* it is one rank of the only node */
    double part;    /* its rate, of the median of the others; 1: none */
    int records;    /* of those read, in so many it was the slowest */
};

/* Parts of the rates that they belong to; 0: of one record. */
struct s4d_rate_noise {
    double gemm, attention, kernels, slowest, busbw[S4D_STREAMS];
};

/* Not there: NAN. */
struct s4d_night_rates {
    int records;
    double gemm_flops_per_s; /* the median node's (of one node: rank's) without the slowest */
    double gemm_s, attention_s, kernels_s; /* of a rank and iteration, mean over ranks */
    double busbw_Bps[S4D_STREAMS];
    struct s4d_rate_noise noise; /* how the records scatter (support/statistics.h: variation) */
    struct s4d_slowest slowest;
    int nodes, ranks_per_node; /* the most ranks that a node has */
};

/* Of one record; what it does not say, or says as something else than a number above 0, is not
 * there. */
struct s4d_night_rates s4d_night_rates_of(const json_t *record);
/* The medians of n >= 1; the slowest is the node that most often was, by the median part of the
 * slowest in each; nodes are the last's. */
struct s4d_night_rates s4d_night_rates_median(const struct s4d_night_rates *v, int n);
/* Standard errors of every rate's change from the one to the other, each with records. */
struct s4d_rate_noise s4d_rate_errors(const struct s4d_night_rates *before,
                                      const struct s4d_night_rates *after);

#endif
