/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a record that both programs write alike. */
#ifndef S4D_SCHEDULE_RECORD_PARTS_H
#define S4D_SCHEDULE_RECORD_PARTS_H

#include <jansson.h>

#include "schedule/program.h"

/* What shapes the program: workload (hash: of its file), gpus, grid, rank_order, batch, recompute,
 * overlap, types, clip_norm. */
void s4d_record_inputs(json_t *record, const struct s4d_model *model, const char *hash,
                       const struct s4d_grid *grid, const struct s4d_options *options,
                       int micro_batch, int micro_batches);

/* The model's FLOPs an iteration, and rates that follow from its time: flops_*, tokens_per_s. */
void s4d_record_rates(json_t *record, const struct s4d_model *model,
                      const struct s4d_options *options, double flops_formula,
                      double flops_executed, double iteration_time_s);

/* Where one rank's iteration went: exposed_s (idle time of the compute stream by the stream it
 * waited for, its work under S4D_STREAM_COMPUTE; what is missing from the iteration is "other"),
 * busy_s and busbw_Bps of every stream that was used. All in seconds, by stream; bus_bytes as
 * s4d_bus_bytes. */
void s4d_record_times(json_t *record, const double exposed_s[S4D_STREAMS],
                      const double busy_s[S4D_STREAMS], const double bus_bytes[S4D_STREAMS],
                      double iteration_time_s);

/* Bytes of a rank's collectives in an iteration, by stream, as nccl-tests' bus bandwidth counts
 * them (s4d_bus_factor); of its messages those that it sends or those that it receives, whichever
 * are more. */
void s4d_bus_bytes(const struct s4d_program *program, double bus_bytes[S4D_STREAMS]);

#endif
