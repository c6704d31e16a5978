/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule/record_parts.h"

#include <math.h>
#include <string.h>

#include "schedule/flops.h"

void s4d_record_inputs(json_t *record, const struct s4d_model *model, const char *hash,
                       const struct s4d_grid *grid, const struct s4d_options *o, int micro_batch,
                       int micro_batches)
{
    char sizes[64], order[64] = "", overlap[128];
    for (int i = 0; i < S4D_AXES; i++) {
        strcat(order, i ? "," : "");
        strcat(order, s4d_axis_names[grid->order[i]]);
    }
    s4d_overlap_format(&o->overlap, overlap, sizeof overlap);
    json_object_set_new(record, "workload",
                        json_pack("{s:s, s:s}", "name", model->name, "hash", hash));
    json_object_set_new(record, "gpus", json_integer(s4d_grid_ranks(grid)));
    json_object_set_new(record, "grid", json_string(s4d_grid_text(grid, sizes, sizeof sizes)));
    json_object_set_new(record, "rank_order", json_string(order));
    json_object_set_new(record, "global_batch", json_integer(o->global_batch));
    json_object_set_new(record, "micro_batch", json_integer(micro_batch));
    json_object_set_new(record, "micro_batches", json_integer(micro_batches));
    json_object_set_new(record, "recompute", json_string(s4d_recompute_names[o->recompute]));
    json_object_set_new(record, "overlap", json_string(overlap));
    json_object_set_new(record, "cache_layers", json_integer(o->cached_layers));
    json_object_set_new(record, "precision", json_string(s4d_type_names[o->precision]));
    json_object_set_new(record, "gradient_type", json_string(s4d_type_names[o->gradient_type]));
    json_object_set_new(
        record, "gradient_reduce",
        json_string(o->gradient_reduce == S4D_REDUCE_BUCKETS ? "buckets" : "at-end"));
    json_object_set_new(record, "loss_scaling", json_boolean(o->loss_scaling));
    json_object_set_new(record, "clip_norm", json_real(o->clip_norm));
}

void s4d_record_rates(json_t *record, const struct s4d_model *model, const struct s4d_options *o,
                      double flops_formula, double flops_executed, double t_s)
{
    double tokens = (double)o->global_batch * model->seq_length;
    json_object_set_new(record, "flops_formula", json_real(flops_formula));
    json_object_set_new(record, "flops_formula_name",
                        json_string(s4d_formula_name(model, o->recompute)));
    json_object_set_new(record, "flops_per_s", json_real(flops_formula / t_s));
    json_object_set_new(record, "flops_executed_per_s", json_real(flops_executed / t_s));
    json_object_set_new(record, "tokens_per_s", json_real(tokens / t_s));
}

void s4d_record_times(json_t *record, const double e[S4D_STREAMS], const double busy_s[S4D_STREAMS],
                      const double bus_bytes[S4D_STREAMS], double iteration_time_s)
{
    double z_s = e[S4D_STREAM_Z_GATHER] + e[S4D_STREAM_Z_SCATTER];
    double data_s = e[S4D_STREAM_DATA] + e[S4D_STREAM_Z_DATA];
    double other_s =
        iteration_time_s - e[S4D_STREAM_COMPUTE] - e[S4D_STREAM_X] - e[S4D_STREAM_Y] - z_s - data_s;
    if (fabs(other_s) < 1e-9 * iteration_time_s) /* rounding of the sum */
        other_s = 0;
    json_object_set_new(record, "exposed_s",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "compute",
                                  e[S4D_STREAM_COMPUTE], "x", e[S4D_STREAM_X], "y", e[S4D_STREAM_Y],
                                  "z", z_s, "data", data_s, "other", other_s));
    json_t *busy = json_object(), *busbw = json_object();
    for (int s = 0; s < S4D_STREAMS; s++) {
        if (busy_s[s] > 0)
            json_object_set_new(busy, s4d_streams[s].name, json_real(busy_s[s]));
        if (busy_s[s] > 0 && bus_bytes[s] > 0)
            json_object_set_new(busbw, s4d_streams[s].name, json_real(bus_bytes[s] / busy_s[s]));
    }
    json_object_set_new(record, "busy_s", busy);
    json_object_set_new(record, "busbw_Bps", busbw);
}

void s4d_bus_bytes(const struct s4d_program *p, double bus_bytes[S4D_STREAMS])
{
    double received[S4D_STREAMS] = {0};
    memset(bus_bytes, 0, S4D_STREAMS * sizeof *bus_bytes);
    for (int i = 0; i < p->n_ops; i++) {
        const struct s4d_op *op = &p->ops[i];
        double *sum = op->kind == S4D_OP_RECEIVE ? received : bus_bytes;
        int members =
            s4d_op_kinds[op->kind].op_class == S4D_CLASS_COLLECTIVE ? op->c.collective.members : 0;
        if (s4d_communicates(op->kind))
            sum[op->stream] +=
                (double)s4d_collective_bytes(&op->c, op->kind) * s4d_bus_factor(op->kind, members);
    }
    for (int s = 0; s < S4D_STREAMS; s++)
        bus_bytes[s] = received[s] > bus_bytes[s] ? received[s] : bus_bytes[s];
}
