/* SPDX-License-Identifier: Apache-2.0 */
/* A night's verdict as outcomes, for any format. */
#ifndef S4D_PLOTS_FORMAT_VERDICT_H
#define S4D_PLOTS_FORMAT_VERDICT_H

#include "plots/format/outcome.h"
#include "plots/track/reference.h"
#include "plots/track/verdict.h"

/* The records of the verdict's night, and of a series that has none a failure. What got worse says
 * so at the value that leads its finding; references may be NULL. Ready for a format. 0, or -1: the
 * store's errors. */
int s4d_outcomes_of_verdict(struct s4d_outcomes *outcomes, const struct s4d_verdict *verdict,
                            struct s4d_store *store, const struct s4d_references *references,
                            struct s4d_error *err);

#endif
