/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a simulation: inputs, then results; provenance is the caller's. */
#include "schedule/record_parts.h"
#include "sim/simulate.h"
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
    json_object_set_new(record, "model_version", json_string(s4d_model_version));
    json_object_set_new(record, "machine", machine_record(s->machine));
    s4d_record_inputs(record, &s->workload->model, s->workload->hash, &r->grid, &s->options,
                      r->micro_batch, r->micro_batches);
    json_object_set_new(record, "fold", json_boolean(s->fold));
    json_t *scenario = s4d_scenario_record(s->scenario);
    if (scenario)
        json_object_set_new(record, "scenario", scenario);
}

static void add_merit(json_t *record, const struct s4d_simulation *s, const struct s4d_result *r)
{
    const struct s4d_device *d = &s->machine->device;
    double t_s = r->run.iteration_time_s, rate = r->flops_formula / t_s;
    json_object_set_new(record, "iteration_time_s", json_real(t_s));
    json_object_set_new(record, "samples_s", json_pack("[f]", t_s));
    json_object_set_new(record, "first_iteration_s", json_real(r->run.first_iteration_s));
    s4d_record_rates(record, &s->workload->model, &s->options, r->flops_formula, r->flops_executed,
                     t_s);
    json_object_set_new(record, "peak_fraction",
                        json_real(rate / s->gpus / d->peak_flops_per_s.value));
    json_object_set_new(record, "peak_fraction_measured",
                        json_real(rate / s->gpus / d->peak_measured_flops_per_s.value));
    json_object_set_new(record, "gemm_flops_per_s",
                        r->run.gemm_time_s > 0 ? json_real(r->run.gemm_flops / r->run.gemm_time_s)
                                               : json_null());
    json_object_set_new(record, "memory_peak_bytes", json_integer(r->memory_peak_bytes));
    json_object_set_new(record, "parameters", json_integer(r->parameters));
    json_object_set_new(record, "slowest_rank", json_integer(r->run.slowest_rank));
}

json_t *s4d_simulation_record(const struct s4d_simulation *s, const struct s4d_result *r)
{
    json_t *record = json_pack("{s:s}", "kind", "simulate");
    add_inputs(record, s, r);
    add_merit(record, s, r);
    s4d_record_times(record, r->run.exposed_s, r->run.busy_s, r->bus_bytes,
                     r->run.iteration_time_s);
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
