/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of a verdict's findings, from the store's records and simulation. */
#ifndef S4D_CLI_TRACK_CAUSE_H
#define S4D_CLI_TRACK_CAUSE_H

#include "cli/track/replay.h"
#include "plots/track/verdict.h"

struct s4d_cause_options {
    struct s4d_replay_options replay; /* workers: the processors */
    int nights;                       /* medians over so many, at most, before and since: 7 */
    int most;                         /* findings, the first of the verdict's: 20 */
};
struct s4d_cause_options s4d_cause_defaults(void);
/* --machine, --workload, --causes: over a struct s4d_cause_options. */
extern const struct s4d_option s4d_cause_table[];

/* Fills `cause` (cli/track/attribution.h) of findings about measured series of kind train that
 * changed for the worse or the better, or stand out this night; of simulated records that changed;
 * and, rates and the slowest node alone, of values outside of references and of changed rates. One
 * without: nothing to say. 0, or -1: the store's errors, a machine that is not known (65); what
 * cannot be simulated is said in the cause.
 */
int s4d_causes_find(struct s4d_verdict *verdict, struct s4d_store *store,
                    const struct s4d_cause_options *options, struct s4d_error *err);

#endif
