/* SPDX-License-Identifier: Apache-2.0 */
/* The time of an iteration without events: what ranks grids before any is simulated.
 *
 * Computing is every kernel of the program at the machine's rates (sim/kernel.h), communication
 * every collective of it at the library's cost over the links (sim/tune/wire.h). What overlaps is
 * told from the options, layer by layer: a pass takes the longer of computing with its blocking
 * collectives, and of the collectives that run beside it. A weight that is cached is gathered once.
 */
#ifndef S4D_SIM_TUNE_ESTIMATE_H
#define S4D_SIM_TUNE_ESTIMATE_H

#include "sim/kernel.h"
#include "sim/tune/counts.h"
#include "sim/tune/published.h"
#include "sim/tune/wire.h"

enum s4d_term {
    S4D_TERM_GEMM,
    S4D_TERM_KERNELS, /* attention, and what is bound by memory */
    S4D_TERM_GATHER_Z,
    S4D_TERM_SCATTER_Z,
    S4D_TERM_REDUCE_Y,
    S4D_TERM_REDUCE_X,
    S4D_TERM_REDUCE_DATA,
    S4D_TERM_OTHER, /* replicated parameters and scalars over {z,data}, norms over {x,y,z} */
    S4D_TERMS
};
extern const char *const s4d_term_names[S4D_TERMS];

/* Seconds of a rank's iteration, work that is hidden included; total_s is the iteration. */
struct s4d_estimate {
    double term_s[S4D_TERMS], total_s;
};

/* One pass through one layer, or through what lies outside the layers. */
struct s4d_pass {
    double gemm_s, kernel_s;
    double weight_gradient_s; /* of gemm_s: the products that OAR reduces beside */
    double blocking_s;        /* all-reduces that the next op needs */
    double beside_s;          /* all-reduces of input gradients */
    double gather_s, first_gather_s, scatter_s;
    double network_s; /* of all collectives: those of axes that leave the node */
};
enum s4d_pass_kind { S4D_PASS_FORWARD, S4D_PASS_RECOMPUTE, S4D_PASS_BACKWARD, S4D_PASSES };

/* The passes of a micro-batch, and what an iteration has once. */
struct s4d_batch_passes {
    struct s4d_pass layer[S4D_PASSES], outside[S4D_PASSES];
    struct s4d_estimate micro_batch, once; /* term_s alone */
    double gradient_s;                     /* the reduction over data */
};

struct s4d_estimator {
    const struct s4d_machine *machine;
    const struct s4d_model *model;
    struct s4d_wires *wires;
    const struct s4d_rates *rates; /* NULL: plain. The published model knows none */
};

/* First what x, y, recompute and micro-batch determine, whatever z and data are; then, of a copy of
 * that, the rest. options: micro_batch and everything but cached_layers count. */
void s4d_passes_common(struct s4d_batch_passes *passes, const struct s4d_estimator *e,
                       const struct s4d_counts *c, const struct s4d_grid *grid,
                       const struct s4d_options *options);
void s4d_passes_complete(struct s4d_batch_passes *passes, const struct s4d_estimator *e,
                         const struct s4d_counts *c, const struct s4d_grid *grid,
                         const struct s4d_options *options);
/* options: global_batch, micro_batch, cached_layers and overlap of the grid's configuration. */
struct s4d_estimate s4d_estimate_make(const struct s4d_batch_passes *passes,
                                      const struct s4d_estimator *e, const struct s4d_grid *grid,
                                      const struct s4d_options *options);

/* The published model's terms (gather, scatter and the three reductions; the others 0), total_s
 * their sum: with the authors' tables, or, table NULL, with beta and latency of the links. */
struct s4d_estimate s4d_estimate_published(const struct s4d_estimator *e,
                                           const struct s4d_counts *c, const struct s4d_grid *grid,
                                           const struct s4d_options *options,
                                           const struct s4d_published_machine *table);

#endif
