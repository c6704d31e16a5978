/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run reports: samples from all ranks, their median, the record and its text. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/devices.h"
#include "cli/run/train.h"
#include "plots/records.h"
#include "real/host_class.h"
#include "real/peak.h"
#include "schedule/flops.h"
#include "schedule/record_parts.h"
#include "support/memory.h"
#include "support/record.h"
#include "support/units.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* From the ends of iterations, NaN from the first that did not end; returns how many did. */
static int sample(const struct s4d_train *t, const double *end_s, int total, double *samples_s,
                  struct s4d_train_times *times)
{
    int ended = 0;
    while (ended < total && !isnan(end_s[ended]))
        ended++;
    times->n = ended > t->warmup ? ended - t->warmup : 0;
    times->samples_s = samples_s;
    times->first_s = ended > 0 ? end_s[0] - t->start_s : NAN;
    for (int i = 0; i < times->n; i++) {
        int at = t->warmup + i;
        samples_s[i] = end_s[at] - (at > 0 ? end_s[at - 1] : t->start_s);
    }
    double *sorted = s4d_calloc((size_t)times->n + 1, sizeof *sorted);
    memcpy(sorted, samples_s, (size_t)times->n * sizeof *sorted);
    if (times->n > 1)
        qsort(sorted, (size_t)times->n, sizeof *sorted, by_value);
    for (int i = times->n - 1; i >= 0; i--)
        if (samples_s[i] == sorted[(times->n - 1) / 2])
            times->median = t->warmup + i;
    free(sorted);
    return ended;
}

void s4d_train_own_times(struct s4d_train *t, double *samples_s, struct s4d_train_times *times)
{
    int total = t->config->iterations;
    double *end_s = s4d_malloc((size_t)(total + 1) * sizeof *end_s);
    *times = (struct s4d_train_times){.slowest_rank = -1};
    for (int i = 0; i < total; i++)
        end_s[i] = s4d_executor_end_s(t->executor, i);
    if (sample(t, end_s, total, samples_s, times) > 0)
        times->account = t->account.iterations[times->median];
    free(end_s);
}

/* An iteration begins when the last rank has ended the one before. What this rank, which was faster
 * then, waited until that moment is taken off its waiting, and what it computed before off
 * computing, so that the parts sum to the iteration. */
static void start_with_the_last(struct s4d_account_iteration *a, double surplus_s)
{
    double waited_s = a->issue_s;
    for (int s = 0; s < S4D_STREAMS; s++)
        waited_s += s == S4D_STREAM_COMPUTE ? 0 : a->exposed_s[s];
    double kept = waited_s > surplus_s ? 1 - surplus_s / waited_s : 0;
    if (surplus_s > waited_s)
        a->exposed_s[S4D_STREAM_COMPUTE] -= surplus_s - waited_s;
    a->issue_s *= kept;
    for (int s = 0; s < S4D_STREAMS; s++)
        a->exposed_s[s] *= s == S4D_STREAM_COMPUTE ? 1 : kept;
}

int s4d_train_gather(struct s4d_train *t, double *samples_s, struct s4d_train_times *times,
                     struct s4d_error *err)
{
    int total = t->config->iterations, size = t->world->size;
    double *own = s4d_malloc((size_t)(total + 1) * sizeof *own);
    double *all = s4d_malloc((size_t)(total + 1) * (size_t)size * sizeof *all);
    double *latest = s4d_malloc((size_t)(total + 1) * sizeof *latest);
    int chosen[2] = {0, 0}; /* slowest rank, median iteration */
    *times = (struct s4d_train_times){0};
    (void)err;
    for (int i = 0; i < total; i++)
        own[i] = s4d_executor_end_s(t->executor, i);
    MPI_Gather(own, total, MPI_DOUBLE, all, total, MPI_DOUBLE, 0, t->world->comm);
    if (t->world->rank == 0 && total > 0) {
        for (int i = 0; i < total; i++)
            for (int rank = 0; rank < size; rank++)
                if (rank == 0 || all[rank * total + i] > latest[i])
                    latest[i] = all[rank * total + i];
        sample(t, latest, total, samples_s, times);
        for (int rank = 1; rank < size; rank++)
            if (all[rank * total + times->median] > all[chosen[0] * total + times->median])
                chosen[0] = rank;
        chosen[1] = times->median;
    }
    double iteration_s = times->n > 0 ? samples_s[times->median - t->warmup] : 0;
    MPI_Bcast(chosen, 2, MPI_INT, 0, t->world->comm);
    MPI_Bcast(&iteration_s, 1, MPI_DOUBLE, 0, t->world->comm);
    struct s4d_account_iteration account = t->account.iterations[chosen[1]];
    if (total > 0) {
        double own_s = own[chosen[1]] - (chosen[1] > 0 ? own[chosen[1] - 1] : t->start_s);
        if (own_s > iteration_s)
            start_with_the_last(&account, own_s - iteration_s);
    }
    MPI_Bcast(&account, (int)sizeof account, MPI_BYTE, chosen[0], t->world->comm);
    times->slowest_rank = chosen[0];
    times->account = account;
    free(own);
    free(all);
    free(latest);
    return 0;
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void s4d_train_inputs(json_t *record, const struct s4d_train *t)
{
    const struct s4d_train_config *c = t->config;
    const struct s4d_program *p = &t->program;
    json_object_set_new(record, "backend", json_string(t->backend->name));
    char *host_class =
        s4d_host_class(c->host_class, t->backend->name, t->world->local_size, t->world->host);
    json_object_set_new(record, "host_class", json_string(host_class));
    free(host_class);
    s4d_record_inputs(record, &p->model, t->workload.hash, &p->grid, &p->options,
                      p->options.micro_batch, p->micro_batches);
    json_object_set_new(record, "seed", json_integer(c->seed));
    json_object_set_new(record, "tokens",
                        json_string(c->tokens ? c->tokens
                                    : c->text ? c->text
                                              : "random"));
    json_object_set_new(record, "load", c->load ? json_string(c->load) : json_null());
    json_object_set_new(record, "iterations", json_integer(c->iterations));
    json_object_set_new(record, "warmup", json_integer(t->warmup));
    json_object_set_new(record, "threads", json_integer(c->threads));
    json_object_set_new(record, "tf32", json_boolean(c->tf32));
    json_object_set_new(record, "progress", json_string(s4d_progress_names[t->progress]));
}

/* Of all ranks' devices together, what is advertised of their products; where one is not known by
 * its name, nothing. */
static void add_peak(json_t *record, const struct s4d_train *t)
{
    double flops_per_s = 0;
    const char *source = NULL;
    size_t i;
    json_t *device;
    json_array_foreach(t->devices[0], i, device)
    {
        const char *name = json_string_value(json_object_get(device, "name"));
        struct s4d_peak peak =
            s4d_advertised_peak(name ? name : "", t->program.options.precision, t->config->tf32);
        if (!peak.source)
            return;
        flops_per_s += peak.flops_per_s;
        source = source ? source : peak.source;
    }
    if (!source)
        return;
    double rate = json_number_value(json_object_get(record, "flops_per_s"));
    json_object_set_new(record, "peak_fraction", json_real(rate / flops_per_s));
    json_object_set_new(record, "peak_flops_per_s", json_real(flops_per_s));
    json_object_set_new(record, "peak_source", json_string(source));
}

static void add_times(json_t *record, const struct s4d_train *t,
                      const struct s4d_train_times *times)
{
    const struct s4d_program *p = &t->program;
    const struct s4d_account_iteration *a = &times->account;
    json_t *samples = json_array();
    double bus_bytes[S4D_STREAMS];
    for (int i = 0; i < times->n; i++)
        json_array_append_new(samples, json_real(times->samples_s[i]));
    double t_s = times->n > 0 ? times->samples_s[times->median - t->warmup] : NAN;
    json_object_set_new(record, "iteration_time_s", number_or_null(t_s));
    json_object_set_new(record, "samples_s", samples);
    json_object_set_new(record, "first_iteration_s", number_or_null(times->first_s));
    json_object_set_new(record, "parameters", json_integer(s4d_program_parameters(p)));
    json_object_set_new(record, "memory_peak_bytes", json_integer(p->arena_bytes[S4D_DEVICE]));
    if (times->n == 0)
        return;
    s4d_record_rates(record, &p->model, &p->options,
                     s4d_formula_flops(&p->model, p->options.global_batch, p->options.recompute),
                     s4d_program_executed_flops(p), t_s);
    add_peak(record, t);
    json_object_set_new(record, "gemm_flops_per_s", number_or_null(a->gemm_flops / a->gemm_s));
    json_object_set_new(record, "gemm_share", number_or_null(a->gemm_s / t_s));
    json_object_set_new(record, "issue_share", number_or_null(a->issue_s / t_s));
    json_object_set_new(record, "slowest_rank",
                        times->slowest_rank < 0 ? json_null() : json_integer(times->slowest_rank));
    s4d_bus_bytes(p, bus_bytes);
    s4d_record_times(record, a->exposed_s, a->busy_s, bus_bytes, t_s);
}

static void add_losses(json_t *record, const struct s4d_train *t, int completed)
{
    json_t *loss = json_array(), *norm = json_array();
    for (int i = 0; i < completed; i++) {
        json_array_append_new(loss, number_or_null(s4d_executor_loss(t->executor, i)));
        json_array_append_new(norm, number_or_null(s4d_executor_grad_norm(t->executor, i)));
    }
    json_object_set_new(record, "loss", loss);
    json_object_set_new(record, "grad_norm", norm);
}

/* How products were multiplied where that could be chosen, and what it gained: the time as the
 * matrices lie over the time of the choice. */
static void add_tuning(json_t *record, const struct s4d_train *t)
{
    if (!t->backend->choices)
        return;
    const struct s4d_gemm_choices *c = t->backend->choices(&t->device);
    json_t *list = json_array();
    for (int i = 0; i < c->n; i++) {
        const struct s4d_gemm_choice *v = &c->v[i];
        json_array_append_new(
            list,
            json_pack("{s:I, s:I, s:I, s:b, s:b, s:s, s:s, s:s, s:f, s:f}", "m",
                      (json_int_t)v->of.m, "n", (json_int_t)v->of.n, "k", (json_int_t)v->of.k,
                      "transpose_a", v->of.transpose_a, "transpose_b", v->of.transpose_b, "type",
                      s4d_type_names[v->of.type], "d_type", s4d_type_names[v->of.d_type], "variant",
                      s4d_gemm_variant_names[v->variant], "time_s", v->t_s[v->variant], "gain",
                      v->t_s[0] / v->t_s[v->variant]));
    }
    json_object_set_new(record, "cuda_graphs", json_boolean(t->config->cuda_graphs));
    json_object_set_new(record, "gemm_tuning",
                        json_string(s4d_gemm_tuning_names[t->config->gemm_tuning]));
    json_object_set_new(record, "gemm_choices", list);
}

static double get(const json_t *record, const char *key)
{
    const json_t *v = json_object_get(record, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

static void print_human(const json_t *r, int completed)
{
    const json_t *exposed = json_object_get(r, "exposed_s"), *part;
    double t_s = get(r, "iteration_time_s");
    const char *name;
    char time[32], flops[32], peak[64] = "", slowest[32] = "unknown"; /* where ranks are gone */
    if (json_is_integer(json_object_get(r, "slowest_rank")))
        snprintf(slowest, sizeof slowest, "%.0f", get(r, "slowest_rank"));
    if (json_object_get(r, "peak_fraction"))
        snprintf(peak, sizeof peak, "  %.1f %% of the advertised peak",
                 100 * get(r, "peak_fraction"));
    if (!isnan(t_s)) {
        printf("%10s %12s %12s %12s %10s %10s\n", "iteration", "formula", "executed", "tokens",
               "gemm", "memory");
        printf("%10s %12s %12s %12s %10s %10s\n", "(s)", "(GFLOP/s)", "(GFLOP/s)", "(1/s)",
               "(% of t)", "(GB)");
        printf("%10.4f %12.2f %12.2f %12.1f %10.1f %10.3f\n", t_s, get(r, "flops_per_s") / 1e9,
               get(r, "flops_executed_per_s") / 1e9, get(r, "tokens_per_s"),
               100 * get(r, "gemm_share"), get(r, "memory_peak_bytes") / 1e9);
        printf("\n%-10s %12s %8s\n%-10s %12s %8s\n", "part", "time", "share", "", "(ms)", "(%)");
        json_object_foreach((json_t *)exposed, name, part)
            printf("%-10s %12.3f %8.2f\n", name, 1e3 * json_number_value(part),
                   100 * json_number_value(part) / t_s);
        printf("# median of %zu iterations %s  %s by the formula%s  slowest rank %s\n",
               json_array_size(json_object_get(r, "samples_s")),
               s4d_format_time(t_s, time, sizeof time),
               s4d_format_flops(get(r, "flops_per_s"), flops, sizeof flops), peak, slowest);
    }
    size_t n = json_array_size(json_object_get(r, "loss"));
    const json_t *last = n > 0 ? json_array_get(json_object_get(r, "loss"), n - 1) : NULL;
    if (last)
        printf("# loss %.6f after %d iterations  %s\n",
               json_is_number(last) ? json_number_value(last) : NAN, completed,
               json_is_true(json_object_get(r, "interrupted")) ? "INTERRUPTED" : "OK");
}

/* In one piece, whole or not there, whoever else adds to the file. */
static int append_record(const char *name, json_t *record, struct s4d_error *err)
{
    struct s4d_records records = {0};
    int rc = s4d_records_append(&records, name, json_incref(record), err);
    s4d_records_free(&records);
    return rc;
}

int s4d_train_report(const struct s4d_train *t, const struct s4d_train_times *times, int completed,
                     bool interrupted, struct s4d_error *err)
{
    int rc = 0;
    json_t *record = json_pack("{s:s}", "kind", "train");
    json_t *provenance = s4d_provenance(t->argc, t->argv);
    json_object_set_new(provenance, "blas", json_string(t->backend->about()));
    if (t->devices[0])
        json_object_set_new(provenance, "devices",
                            s4d_devices_provenance(t->devices[0], t->devices[1]));
    json_object_set_new(record, "model_version", json_string(s4d_model_version));
    s4d_train_inputs(record, t);
    add_tuning(record, t);
    add_times(record, t, times);
    add_losses(record, t, completed);
    json_object_set_new(record, "completed", json_integer(completed));
    json_object_set_new(record, "interrupted", json_boolean(interrupted));
    if (t->preflight)
        json_object_set(record, "preflight", t->preflight);
    json_object_set(record, "provenance", provenance);
    if (t->config->record) /* before standard output, which may block */
        rc = append_record(t->config->record, record, err);
    if (t->hooks.keep)
        rc = t->hooks.keep(t->hooks.self, record, rc ? NULL : err) || rc ? -1 : 0;
    else if (!t->config->json)
        print_human(record, completed);
    else if (s4d_record_write(record, stdout, rc ? NULL : err))
        rc = -1;
    fflush(stdout);
    json_decref(provenance);
    json_decref(record);
    return rc;
}
