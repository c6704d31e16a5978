/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate's terms beside the simulated time of the same ops. */
#ifndef S4D_SIM_TUNE_TERMS_H
#define S4D_SIM_TUNE_TERMS_H

#include <jansson.h>

#include "sim/simulate.h"

/* Of a simulation and its result, new reference: {"source" (of the published tables, or null),
 * "terms": [{"term", "published_s", "links_s", "model_s", "simulated_s"}], "total": the same
 * without "term"}. published_s: arXiv 2502.08145's model with its authors' bandwidths; links_s: the
 * same with the machine's links; model_s: sim/tune/estimate.h; simulated_s: how long the stream, or
 * the kernels, of these ops worked, of the slowest rank. Null where there is none. All count work
 * that is hidden; the totals of the first two are sums of communication, of the others an
 * iteration. NULL with *err (65): a machine that cannot be laid out. */
json_t *s4d_terms_record(const struct s4d_simulation *s, const struct s4d_result *r,
                         struct s4d_error *err);

#endif
