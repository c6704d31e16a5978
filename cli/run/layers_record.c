/* SPDX-License-Identifier: Apache-2.0 */
/* What layers measured: the record, and the table made of it. */
#include <stdio.h>

#include "cli/run/devices.h"
#include "cli/run/layers.h"
#include "real/gemm_tuning.h"
#include "real/mpi/backend.h"
#include "schedule/record_parts.h"
#include "support/record.h"

static void shape_text(const struct s4d_op *op, char *text, size_t size)
{
    const union s4d_constants *c = &op->c;
    if (op->kind == S4D_OP_GEMM)
        snprintf(text, size, "%lldx%lldx%lld %c%c", (long long)c->gemm.m, (long long)c->gemm.n,
                 (long long)c->gemm.k, c->gemm.transpose_a ? 't' : 'n',
                 c->gemm.transpose_b ? 't' : 'n');
    else if (s4d_op_kinds[op->kind].op_class == S4D_CLASS_ATTENTION)
        snprintf(text, size, "b%lld s%lld h%lld d%lld", (long long)c->attention.batch,
                 (long long)c->attention.seq, (long long)c->attention.heads,
                 (long long)c->attention.head_dim);
    else
        snprintf(text, size, "%lld B", (long long)(op->bytes_read + op->bytes_written));
}

static json_t *op_record(const struct s4d_layers *j, const struct s4d_layers_row *r)
{
    char shape[64];
    double t_s = r->probed.t.median, bytes = (double)(r->op->bytes_read + r->op->bytes_written);
    shape_text(r->op, shape, sizeof shape);
    json_t *one =
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:b}", "phase",
                  s4d_phase_names[r->op->label.phase], "name", r->op->label.name, "kind",
                  s4d_op_kinds[r->op->kind].name, "shape", shape, "time_s", t_s, "p99_s",
                  r->probed.t.p99, "variation", r->probed.t.variation, "noisy", r->probed.noisy);
    if (r->op->flops > 0) {
        json_object_set_new(one, "flops", json_real(r->op->flops));
        json_object_set_new(one, "flops_per_s", json_real(r->op->flops / t_s));
        json_object_set_new(one, "of_best", json_real(r->op->flops / t_s / j->best_flops_per_s));
        if (j->peak.flops_per_s > 0)
            json_object_set_new(one, "of_peak",
                                json_real(r->op->flops / t_s / j->peak.flops_per_s));
    } else {
        json_object_set_new(one, "bandwidth_Bps", json_real(bytes / t_s));
    }
    return one;
}

/* A layer's forward, its backward, or both. */
static json_t *sum_record(const struct s4d_layers *j, const char *name, enum s4d_phase from,
                          enum s4d_phase to)
{
    double t_s = 0, flops = 0, products_s = 0;
    for (int i = 0; i < j->n; i++) {
        const struct s4d_layers_row *r = &j->row[i];
        if (r->op->label.phase != from && r->op->label.phase != to)
            continue;
        t_s += r->probed.t.median;
        flops += r->op->flops;
        products_s += r->op->kind == S4D_OP_GEMM ? r->probed.t.median : 0;
    }
    json_t *sum = json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "phase", name, "time_s", t_s, "flops",
                            flops, "flops_per_s", flops / t_s, "of_best",
                            flops / t_s / j->best_flops_per_s, "gemm_share", products_s / t_s);
    if (j->peak.flops_per_s > 0)
        json_object_set_new(sum, "of_peak", json_real(flops / t_s / j->peak.flops_per_s));
    return sum;
}

json_t *s4d_layers_record(const struct s4d_layers *j, int argc, char **argv)
{
    const struct s4d_program *p = &j->program;
    json_t *record = json_pack("{s:s, s:s, s:s}", "kind", "layers", "model_version",
                               s4d_model_version, "backend", s4d_backend_names[j->config->backend]);
    json_t *ops = json_array(), *provenance = s4d_provenance(argc, argv);
    s4d_record_inputs(record, &p->model, j->workload.hash, &p->grid, &p->options,
                      p->options.micro_batch, p->micro_batches);
    for (int i = 0; i < j->n; i++)
        json_array_append_new(ops, op_record(j, &j->row[i]));
    json_object_set_new(record, "layer", json_integer(j->layer));
    json_object_set_new(record, "tf32", json_boolean(j->config->tf32));
    json_object_set_new(record, "gemm_tuning",
                        json_string(s4d_gemm_tuning_names[j->config->gemm_tuning]));
    json_object_set_new(record, "best_gemm_flops_per_s", json_real(j->best_flops_per_s));
    json_object_set_new(record, "best_gemm_n",
                        j->best_n ? json_integer((json_int_t)j->best_n) : json_null());
    json_object_set_new(record, "peak_flops_per_s",
                        j->peak.source ? json_real(j->peak.flops_per_s) : json_null());
    json_object_set_new(record, "peak_source",
                        j->peak.source ? json_string(j->peak.source) : json_null());
    json_object_set_new(record, "ops", ops);
    json_object_set_new(record, "sums",
                        json_pack("[o, o, o]",
                                  sum_record(j, "forward", S4D_PHASE_FORWARD, S4D_PHASE_FORWARD),
                                  sum_record(j, "backward", S4D_PHASE_BACKWARD, S4D_PHASE_BACKWARD),
                                  sum_record(j, "layer", S4D_PHASE_FORWARD, S4D_PHASE_BACKWARD)));
    json_object_set_new(provenance, "devices", s4d_devices_provenance(j->devices, NULL));
    json_object_set_new(record, "provenance", provenance);
    return record;
}

static double get(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void print_row(const json_t *r)
{
    const char *name = json_string_value(json_object_get(r, "name")),
               *shape = json_string_value(json_object_get(r, "shape"));
    bool flops = json_object_get(r, "flops_per_s") != NULL;
    char peak[16] = "-", best[16] = "-";
    if (flops)
        snprintf(best, sizeof best, "%.1f", 100 * get(r, "of_best"));
    if (json_object_get(r, "of_peak"))
        snprintf(peak, sizeof peak, "%.1f", 100 * get(r, "of_peak"));
    printf("%-9s %-16s %-24s %-24s %11.2f%c %10.3f %-8s %8s %8s\n",
           json_string_value(json_object_get(r, "phase")), name ? name : "all",
           name ? json_string_value(json_object_get(r, "kind")) : "", shape ? shape : "",
           1e6 * get(r, "time_s"), json_is_true(json_object_get(r, "noisy")) ? '!' : ' ',
           flops ? 1e-12 * get(r, "flops_per_s") : 1e-9 * get(r, "bandwidth_Bps"),
           flops ? "TFLOP/s" : "GB/s", best, peak);
}

void s4d_layers_print(const struct s4d_layers *j, const json_t *record)
{
    const json_t *r;
    size_t i;
    char square[48] = "of the layer";
    s4d_provenance_print(json_object_get(record, "provenance"), stdout);
    if (j->best_n)
        snprintf(square, sizeof square, "%lld x %lld x %lld", (long long)j->best_n,
                 (long long)j->best_n, (long long)j->best_n);
    printf("# layer %d of %s, %s, %d sequences; best product: %.3f TFLOP/s, %s; ", j->layer,
           j->program.model.name, s4d_type_names[j->program.options.precision],
           j->program.options.micro_batch, 1e-12 * j->best_flops_per_s, square);
    if (j->peak.source)
        printf("advertised: %.1f TFLOP/s (%s)\n", 1e-12 * j->peak.flops_per_s, j->peak.source);
    else
        printf("nothing is advertised of this device that is known here\n");
    printf("# medians; a variation above %.0f %% is too noisy to use (!)\n", 100 * S4D_PROBE_NOISY);
    printf("%-9s %-16s %-24s %-24s %11s  %10s %-8s %8s %8s\n", "phase", "name", "kind", "shape",
           "time", "rate", "", "of best", "of peak");
    printf("%-9s %-16s %-24s %-24s %11s  %10s %-8s %8s %8s\n", "", "", "", "", "(us)", "", "",
           "(%)", "(%)");
    json_array_foreach(json_object_get(record, "ops"), i, r) print_row(r);
    json_array_foreach(json_object_get(record, "sums"), i, r) print_row(r);
}
