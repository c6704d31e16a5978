/* SPDX-License-Identifier: Apache-2.0 */
/* What of a record both programs fill alike: the inputs that shape the program, and where the time
 * of an iteration went. */
#ifndef S4D_SCHEDULE_RECORD_INPUTS_H
#define S4D_SCHEDULE_RECORD_INPUTS_H

#include <jansson.h>

#include "schedule/program.h"

/* workload, gpus, grid, rank_order, batch, recompute, overlap, ..., clip_norm. hash: of the
 * workload's file. */
void s4d_record_inputs(json_t *record, const struct s4d_model *model, const char *hash,
                       const struct s4d_grid *grid, const struct s4d_options *options,
                       int micro_batch, int micro_batches);

#endif
