/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a simulation: inputs, then results; provenance is the caller's. */
#include <string.h>

#include "schedule/flops.h"
#include "schedule/op.h"
#include "sim/simulate.h"
#include "sim/simulate_one.h"
#include "support/record.h" /* for: s4d_model_version */

static void collect_tag(void *context, const char *key, enum s4d_tag tag, const char *source,
                        double value)
{
    json_t **lists = context;
    (void)source, (void)value;
    if (tag == S4D_TAG_FITTED)
        json_array_append_new(lists[0], json_string(key));
    else if (tag == S4D_TAG_ASSUMED)
        json_array_append_new(lists[1], json_string(key));
}

static json_t *machine_record(const struct s4d_machine *m)
{
    json_t *lists[2] = {json_array(), json_array()};
    s4d_machine_visit(m, collect_tag, lists);
    return json_pack("{s:s, s:s, s:o, s:o}", "name", m->name, "hash", m->hash, "fitted", lists[0],
                     "assumed", lists[1]);
}

static void add_inputs(json_t *record, const struct s4d_simulation *s, const struct s4d_result *r)
{
    const struct s4d_options *o = &s->options;
    char grid[64], order[64] = "", overlap[128];
    for (int i = 0; i < S4D_AXES; i++) {
        strcat(order, i ? "," : "");
        strcat(order, s4d_axis_names[r->grid.order[i]]);
    }
    s4d_overlap_format(&o->overlap, overlap, sizeof overlap);
    json_object_set_new(record, "model_version", json_string(s4d_model_version));
    json_object_set_new(record, "machine", machine_record(s->machine));
    json_object_set_new(
        record, "workload",
        json_pack("{s:s, s:s}", "name", s->workload->model.name, "hash", s->workload->hash));
    json_object_set_new(record, "gpus", json_integer(s->gpus));
    json_object_set_new(record, "grid", json_string(s4d_grid_text(&r->grid, grid, sizeof grid)));
    json_object_set_new(record, "rank_order", json_string(order));
    json_object_set_new(record, "global_batch", json_integer(o->global_batch));
    json_object_set_new(record, "micro_batch", json_integer(r->micro_batch));
    json_object_set_new(record, "micro_batches", json_integer(r->micro_batches));
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
    json_object_set_new(record, "fold", json_boolean(s->fold));
}

static void add_merit(json_t *record, const struct s4d_simulation *s, const struct s4d_result *r)
{
    const struct s4d_device *d = &s->machine->device;
    double t_s = r->run.iteration_time_s, rate = r->flops_formula / t_s;
    double tokens = (double)s->options.global_batch * s->workload->model.seq_length;
    json_object_set_new(record, "iteration_time_s", json_real(t_s));
    json_object_set_new(record, "samples_s", json_pack("[f]", t_s));
    json_object_set_new(record, "first_iteration_s", json_real(r->run.first_iteration_s));
    json_object_set_new(record, "flops_formula", json_real(r->flops_formula));
    json_object_set_new(record, "flops_formula_name",
                        json_string(s4d_formula_name(&s->workload->model, s->options.recompute)));
    json_object_set_new(record, "flops_per_s", json_real(rate));
    json_object_set_new(record, "flops_executed_per_s", json_real(r->flops_executed / t_s));
    json_object_set_new(record, "peak_fraction",
                        json_real(rate / s->gpus / d->peak_flops_per_s.value));
    json_object_set_new(record, "peak_fraction_measured",
                        json_real(rate / s->gpus / d->peak_measured_flops_per_s.value));
    json_object_set_new(record, "gemm_flops_per_s",
                        r->run.gemm_time_s > 0 ? json_real(r->run.gemm_flops / r->run.gemm_time_s)
                                               : json_null());
    json_object_set_new(record, "tokens_per_s", json_real(tokens / t_s));
    json_object_set_new(record, "memory_peak_bytes", json_integer(r->memory_peak_bytes));
    json_object_set_new(record, "parameters", json_integer(r->parameters));
    json_object_set_new(record, "slowest_rank", json_integer(r->run.slowest_rank));
}

struct s4d_exposed s4d_exposed(const struct s4d_run *run)
{
    const double *e = run->exposed_s;
    struct s4d_exposed x = {
        .compute_s = e[S4D_STREAM_COMPUTE],
        .x_s = e[S4D_STREAM_X],
        .y_s = e[S4D_STREAM_Y],
        .z_s = e[S4D_STREAM_Z_GATHER] + e[S4D_STREAM_Z_SCATTER],
        .data_s = e[S4D_STREAM_DATA] + e[S4D_STREAM_Z_DATA],
    };
    x.other_s = run->iteration_time_s - x.compute_s - x.x_s - x.y_s - x.z_s - x.data_s;
    if (x.other_s < 1e-9 * run->iteration_time_s) /* rounding of the sum */
        x.other_s = 0;
    return x;
}

static void add_breakdown(json_t *record, const struct s4d_result *r)
{
    struct s4d_exposed x = s4d_exposed(&r->run);
    json_object_set_new(record, "exposed_s",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "compute", x.compute_s, "x",
                                  x.x_s, "y", x.y_s, "z", x.z_s, "data", x.data_s, "other",
                                  x.other_s));
    json_t *busy = json_object(), *busbw = json_object();
    for (int s = 0; s < S4D_STREAMS; s++) {
        if (r->run.busy_s[s] > 0)
            json_object_set_new(busy, s4d_streams[s].name, json_real(r->run.busy_s[s]));
        if (r->run.busy_s[s] > 0 && r->bus_bytes[s] > 0)
            json_object_set_new(busbw, s4d_streams[s].name,
                                json_real(r->bus_bytes[s] / r->run.busy_s[s]));
    }
    json_object_set_new(record, "busy_s", busy);
    json_object_set_new(record, "busbw_Bps", busbw);
}

json_t *s4d_simulation_record(const struct s4d_simulation *s, const struct s4d_result *r)
{
    json_t *record = json_pack("{s:s}", "kind", "simulate");
    add_inputs(record, s, r);
    add_merit(record, s, r);
    add_breakdown(record, r);
    json_object_set_new(record, "sim",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:I}", "gpu_classes",
                                  r->gpu_classes, "group_classes", r->group_classes, "flow_classes",
                                  r->flow_classes, "link_classes", r->link_classes, "ops", r->n_ops,
                                  "collectives", (json_int_t)r->run.collectives, "extrapolated",
                                  (json_int_t)r->run.extrapolated));
    if (s->grid_auto)
        json_object_set_new(record, "auto",
                            json_pack("{s:i, s:i, s:i}", "candidates", r->candidates, "feasible",
                                      r->feasible, "simulated", r->simulated));
    return record;
}
