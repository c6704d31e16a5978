/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/validate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/compare.h"
#include "support/memory.h"
#include "support/statistics.h"

static double number(const json_t *record, const char *path)
{
    return s4d_compare_number(record, path);
}

static const char *text(const json_t *record, const char *object, const char *key)
{
    if (object)
        record = json_object_get(record, object);
    const char *found = json_string_value(json_object_get(record, key));
    return found ? found : "-";
}

/* The inputs without who computed, and on what. */
static json_t *program_of(const json_t *record)
{
    static const char *const others[] = {"kind",     "machine.name", "backend",     "fold",
                                         "seed",     "tokens",       "load",        "threads",
                                         "progress", "tf32",         "gemm_tuning", "cuda_graphs"};
    json_t *inputs = s4d_compare_inputs(record);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        json_object_del(inputs, others[i]);
    return inputs;
}

static int check(const struct s4d_records *records, const char *which, const char *kind,
                 struct s4d_error *err)
{
    for (int i = 0; i < records->n; i++) {
        const json_t *r = records->v[i];
        if (strcmp(text(r, NULL, "kind"), kind) != 0)
            return s4d_fail(err, S4D_EXIT_DATA, which, "record %d: expected kind %s, found %s",
                            i + 1, kind, text(r, NULL, "kind"));
        if (!(number(r, "iteration_time_s") > 0))
            return s4d_fail(err, S4D_EXIT_DATA, which, "record %d has no iteration_time_s", i + 1);
    }
    return 0;
}

static void take_samples(struct s4d_validated *row)
{
    const json_t *list = json_object_get(row->measured, "samples_s"), *sample;
    int n = (int)json_array_size(list);
    double *samples_s = s4d_calloc((size_t)n + 1, sizeof *samples_s);
    size_t i;
    json_array_foreach((json_t *)list, i, sample) samples_s[i] = json_number_value(sample);
    if (n == 0)
        samples_s[n++] = number(row->measured, "iteration_time_s");
    struct s4d_statistics s = s4d_statistics(samples_s, n);
    row->median_s = s.median;
    row->q1_s = s.q1;
    row->q3_s = s.q3;
    row->least_s = s.least;
    free(samples_s);
}

static struct s4d_validated make_row(const json_t *measured, const json_t *simulated)
{
    struct s4d_validated row = {.measured = measured,
                                .simulated = simulated,
                                .workload = text(measured, "workload", "name"),
                                .grid = text(measured, NULL, "grid"),
                                .ranks = (int)number(measured, "gpus"),
                                .simulated_s = number(simulated, "iteration_time_s")};
    take_samples(&row);
    row.error = row.simulated_s / row.median_s - 1;
    return row;
}

/* Where the workload was first seen. */
static int workload_number(const struct s4d_validation *v, const char *workload)
{
    int n = 0;
    for (int i = 0; i < v->n; i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = strcmp(v->row[i].workload, v->row[j].workload) == 0;
        if (seen)
            continue;
        if (strcmp(v->row[i].workload, workload) == 0)
            return n;
        n++;
    }
    return n;
}

static void sort(struct s4d_validation *v)
{
    int *group = s4d_malloc((size_t)(v->n + 1) * sizeof *group);
    for (int i = 0; i < v->n; i++)
        group[i] = workload_number(v, v->row[i].workload);
    for (int i = 1; i < v->n; i++) /* stable, and few */
        for (int j = i;
             j > 0 && (group[j - 1] > group[j] ||
                       (group[j - 1] == group[j] && v->row[j - 1].ranks > v->row[j].ranks));
             j--) {
            struct s4d_validated row = v->row[j];
            int g = group[j];
            v->row[j] = v->row[j - 1];
            group[j] = group[j - 1];
            v->row[j - 1] = row;
            group[j - 1] = g;
        }
    free(group);
}

int s4d_validate(struct s4d_validation *v, const struct s4d_records *measured,
                 const struct s4d_records *simulated, struct s4d_error *err)
{
    *v = (struct s4d_validation){0};
    if (check(measured, "MEASURED", "train", err) || check(simulated, "SIMULATED", "simulate", err))
        return -1;
    bool *taken = s4d_calloc((size_t)simulated->n + 1, sizeof *taken);
    for (int i = 0; i < measured->n; i++) {
        json_t *program = program_of(measured->v[i]);
        bool found = false;
        for (int j = 0; j < simulated->n && !found; j++) {
            json_t *other = taken[j] ? NULL : program_of(simulated->v[j]);
            if (other && json_equal(program, other)) {
                found = taken[j] = true;
                s4d_push(v->row, v->n, v->cap, make_row(measured->v[i], simulated->v[j]));
            }
            json_decref(other);
        }
        v->only_measured += !found;
        json_decref(program);
    }
    v->only_simulated = simulated->n - v->n;
    free(taken);
    if (v->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, "", "no measured record belongs to a simulated one");
    sort(v);
    for (int i = 0; i < v->n; i++) {
        v->mean_error += fabs(v->row[i].error) / v->n;
        v->worst_error = fmax(v->worst_error, fabs(v->row[i].error));
    }
    return 0;
}

void s4d_validation_free(struct s4d_validation *v)
{
    free(v->row);
    *v = (struct s4d_validation){0};
}

static FILE *open_file(const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (!out)
        s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    return out;
}

static int close_file(FILE *out, const char *file, struct s4d_error *err)
{
    int failed = ferror(out);
    if (fclose(out) != 0 || failed)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    return 0;
}

int s4d_validation_data(const struct s4d_validation *v, const char *file, struct s4d_error *err)
{
    FILE *out = open_file(file, err);
    if (!out)
        return -1;
    fputs("# number\tworkload\tranks\tgrid\tmedian_ms\tq1_ms\tq3_ms\tsimulated_ms\terror_percent\n",
          out);
    for (int i = 0; i < v->n; i++) {
        const struct s4d_validated *r = &v->row[i];
        fprintf(out, "%d\t%s\t%d\t%s\t%.6g\t%.6g\t%.6g\t%.6g\t%.3f\n",
                workload_number(v, r->workload), r->workload, r->ranks, r->grid, 1e3 * r->median_s,
                1e3 * r->q1_s, 1e3 * r->q3_s, 1e3 * r->simulated_s, 100 * r->error);
    }
    return close_file(out, file, err);
}

/* Mean of |error| over the rows of some ranks (0: all) and of a workload (NULL: all). */
static double mean_of(const struct s4d_validation *v, int ranks, const char *workload, int *n)
{
    double sum = 0;
    *n = 0;
    for (int i = 0; i < v->n; i++) {
        const struct s4d_validated *r = &v->row[i];
        if ((ranks && r->ranks != ranks) || (workload && strcmp(workload, r->workload) != 0))
            continue;
        sum += fabs(r->error);
        ++*n;
    }
    return *n ? sum / *n : NAN;
}

static void report_means(const struct s4d_validation *v, FILE *out)
{
    fputs("| of | points | mean error (%) |\n|---|---|---|\n", out);
    for (int i = 0; i < v->n; i++) {
        int n;
        bool seen = false;
        for (int j = 0; j < i && !seen; j++)
            seen = v->row[j].ranks == v->row[i].ranks;
        double mean = mean_of(v, v->row[i].ranks, NULL, &n);
        if (!seen)
            fprintf(out, "| %d rank%s | %d | %.1f |\n", v->row[i].ranks,
                    v->row[i].ranks == 1 ? "" : "s", n, 100 * mean);
    }
    for (int i = 0; i < v->n; i++) {
        int n;
        double mean = mean_of(v, 0, v->row[i].workload, &n);
        if (i == 0 || strcmp(v->row[i].workload, v->row[i - 1].workload) != 0)
            fprintf(out, "| %s | %d | %.1f |\n", v->row[i].workload, n, 100 * mean);
    }
    fprintf(out, "| **all** | %d | **%.1f** |\n\n", v->n, 100 * v->mean_error);
}

static void report_rows(const struct s4d_validation *v, FILE *out)
{
    fputs("| workload | ranks | grid | measured (ms) | quartiles | least | simulated (ms) | error "
          "(%) | computing, measured | simulated |\n"
          "|---|---|---|---|---|---|---|---|---|---|\n",
          out);
    for (int i = 0; i < v->n; i++) {
        const struct s4d_validated *r = &v->row[i];
        fprintf(out, "| %s | %d | %s | %.3f | %.3f to %.3f | %.3f | %.3f | %+.1f | %.3f | %.3f |\n",
                r->workload, r->ranks, r->grid, 1e3 * r->median_s, 1e3 * r->q1_s, 1e3 * r->q3_s,
                1e3 * r->least_s, 1e3 * r->simulated_s, 100 * r->error,
                1e3 * number(r->measured, "exposed_s.compute"),
                1e3 * number(r->simulated, "exposed_s.compute"));
    }
}

int s4d_validation_report(const struct s4d_validation *v, const char *file, struct s4d_error *err)
{
    FILE *out = open_file(file, err);
    if (!out)
        return -1;
    const json_t *r = v->row[0].measured;
    fprintf(out,
            "# Simulated against measured\n\n"
            "Mean error %.1f %%, worst %.1f %%, over %d iterations' times on %s (%s, %s; %s). The "
            "error is |simulated / median measured - 1|. Grids are GXxGYxGZxGDATA.\n\n",
            100 * v->mean_error, 100 * v->worst_error, v->n, text(r, "provenance", "host"),
            text(r, NULL, "backend"), text(r, "provenance", "blas"), text(r, "provenance", "time"));
    if (v->only_measured || v->only_simulated)
        fprintf(out, "Without a partner: %d measured, %d simulated.\n\n", v->only_measured,
                v->only_simulated);
    report_means(v, out);
    report_rows(v, out);
    return close_file(out, file, err);
}

void s4d_validation_print(const struct s4d_validation *v, FILE *out)
{
    fprintf(out, "%-16s %5s %-12s %12s %12s %12s %8s\n%-16s %5s %-12s %12s %12s %12s %8s\n",
            "workload", "ranks", "grid", "measured", "(least)", "simulated", "error", "", "", "",
            "(ms)", "(ms)", "(ms)", "(%)");
    for (int i = 0; i < v->n; i++) {
        const struct s4d_validated *r = &v->row[i];
        fprintf(out, "%-16s %5d %-12s %12.3f %12.3f %12.3f %+8.1f\n", r->workload, r->ranks,
                r->grid, 1e3 * r->median_s, 1e3 * r->least_s, 1e3 * r->simulated_s, 100 * r->error);
    }
    fprintf(out, "# %d points, mean error %.1f %%, worst %.1f %%\n", v->n, 100 * v->mean_error,
            100 * v->worst_error);
}
