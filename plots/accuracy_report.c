/* SPDX-License-Identifier: Apache-2.0 */
/* Errors in sums: the table for a terminal, and report.md. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/accuracy.h"
#include "support/csv.h"
#include "support/memory.h"
#include "support/record.h" /* for: s4d_version, s4d_commit */

static const double large_bytes = 4 * 1048576.0;
enum { WORST = 5 };

struct sum {
    int n;
    double total, worst;
};

static void add(struct sum *sum, double error)
{
    if (!isfinite(error))
        return;
    sum->n++;
    sum->total += fabs(error);
    sum->worst = fmax(sum->worst, fabs(error));
}

static double mean(const struct sum *sum)
{
    return sum->total / sum->n;
}

struct sums {
    struct sum all, large, large_constants; /* constants: the same rows without the tables */
    int outliers, inputs, fitted; /* inputs that nothing else checks; the fit's own rows */
    int fit_ranks;
};

static void add_row(struct sums *s, const struct s4d_accuracy_row *r)
{
    double error = s4d_accuracy_error(r);
    s->outliers += r->outlier;
    if (!r->outlier && r->input && r->fit_ranks == 0)
        s->inputs++;
    if (!r->outlier && r->input && r->fit_ranks == r->ranks)
        s->fitted++;
    if (r->fit_ranks)
        s->fit_ranks = r->fit_ranks;
    add(&s->all, error);
    if (r->bytes < large_bytes || !isfinite(error))
        return;
    add(&s->large, error);
    add(&s->large_constants, 100 * (r->constants_Bps / r->measured_Bps - 1));
}

static struct sums series_sums(const struct s4d_accuracy_list *list, int from)
{
    struct sums s = {0};
    for (int i = from; i < s4d_accuracy_series(list, from); i++)
        add_row(&s, &list->v[i]);
    return s;
}

static void cell(const struct sum *sum, int width, bool worst, const char *between, FILE *out)
{
    if (sum->n == 0)
        fprintf(out, "%*s%s", width, "-", between);
    else
        fprintf(out, "%*.1f%s", width, worst ? sum->worst : mean(sum), between);
}

/* The rows whose error the project has set itself an aim for. */
static bool aimed(const struct s4d_accuracy_row *r)
{
    return strcmp(r->machine, "perlmutter") == 0 || strncmp(r->machine, "dgx-", 4) == 0;
}

static void aim_line(const struct s4d_accuracy_list *list, FILE *out)
{
    struct sum sum = {0};
    for (int i = 0; i < list->n; i++)
        if (aimed(&list->v[i]) && list->v[i].bytes >= large_bytes)
            add(&sum, s4d_accuracy_error(&list->v[i]));
    if (sum.n > 0)
        fprintf(
            out,
            "# Perlmutter and DGX, 4 MiB and more: mean |error| %.1f %% over %d rows (aim: under "
            "12 %%), largest %.1f %%\n",
            mean(&sum), sum.n, sum.worst);
}

/* The kernels of the series that number `from` begins; returns the number behind it. */
static int kernel_sums(const struct s4d_accuracy_kernels *kernels, int from, struct sum *fitted,
                       struct sum *held_out)
{
    int i = from;
    *fitted = *held_out = (struct sum){0};
    for (; i < kernels->n && strcmp(kernels->v[i].series, kernels->v[from].series) == 0; i++) {
        add(fitted, 100 * (kernels->v[i].simulated / kernels->v[i].measured - 1));
        add(held_out, 100 * (kernels->v[i].held_out / kernels->v[i].measured - 1));
    }
    return i;
}

void s4d_accuracy_print(const struct s4d_accuracy_list *list,
                        const struct s4d_accuracy_kernels *kernels, FILE *out)
{
    fprintf(out,
            "# |error| of the simulated bus bandwidth in %%; a group size that the machine file "
            "was fitted on\n# is held out, or counts as no check\n#\n");
    fprintf(out, "# %-11s %-12s %-15s %7s %5s %6s %6s %6s %6s %6s %7s\n", "machine", "library",
            "operation", "fit on", "rows", "mean", "worst", ">=4MiB", "mean", "worst", "untuned");
    for (int i = 0; i < list->n; i = s4d_accuracy_series(list, i)) {
        struct sums s = series_sums(list, i);
        char fit[16] = "-";
        if (s.fit_ranks)
            snprintf(fit, sizeof fit, "%d", s.fit_ranks);
        fprintf(out, "  %-11s %-12s %-15s %7s %5d ", list->v[i].machine, list->v[i].library,
                list->v[i].op, fit, s.all.n);
        cell(&s.all, 6, false, " ", out);
        cell(&s.all, 6, true, " ", out);
        fprintf(out, "%6d ", s.large.n);
        cell(&s.large, 6, false, " ", out);
        cell(&s.large, 6, true, " ", out);
        cell(&s.large_constants, 7, false, "\n", out);
    }
    fprintf(out, "# untuned: the mean of the same rows from 4 MiB without efficiency tables\n#\n");
    fprintf(out, "# %-58s %5s %6s %6s %9s %6s\n", "kernels (FLOP/s)", "rows", "mean", "worst",
            "held out", "worst");
    for (int i = 0, next; i < kernels->n; i = next) {
        struct sum fitted, held_out;
        next = kernel_sums(kernels, i, &fitted, &held_out);
        fprintf(out, "  %-58s %5d ", kernels->v[i].series, fitted.n);
        cell(&fitted, 6, false, " ", out);
        cell(&fitted, 6, true, " ", out);
        cell(&held_out, 9, false, " ", out);
        cell(&held_out, 6, true, "\n", out);
    }
    aim_line(list, out);
}

struct reason {
    const struct s4d_accuracy_row *of;
    FILE *out;
    int found;
};

static int reason_row(void *context, char *const field[], const char *where, struct s4d_error *err)
{
    struct reason *r = context;
    (void)where;
    (void)err;
    if (strcmp(field[0], r->of->machine) == 0 && strcmp(field[1], r->of->library) == 0 &&
        strcmp(field[2], r->of->op) == 0)
        fprintf(r->out, "%s%s", r->found++ ? " " : "", field[3]);
    return 0;
}

static int worse(const void *a, const void *b)
{
    const struct s4d_accuracy_row *p = *(struct s4d_accuracy_row *const *)a,
                                  *q = *(struct s4d_accuracy_row *const *)b;
    double x = fabs(s4d_accuracy_error(p)), y = fabs(s4d_accuracy_error(q));
    return x != y ? (x < y) - (x > y) : (p > q) - (p < q);
}

static void worst_rows(const struct s4d_accuracy_list *list, int from, FILE *out)
{
    int end = s4d_accuracy_series(list, from), n = 0;
    const struct s4d_accuracy_row **row = s4d_calloc((size_t)(end - from), sizeof *row);
    for (int i = from; i < end; i++)
        if (isfinite(s4d_accuracy_error(&list->v[i])))
            row[n++] = &list->v[i];
    qsort(row, (size_t)n, sizeof *row, worse);
    fprintf(out, "| ranks | MiB | measured GB/s | simulated GB/s | error | simulated as |\n"
                 "|---:|---:|---:|---:|---:|---|\n");
    for (int i = 0; i < n && i < WORST; i++)
        fprintf(out, "| %d | %g | %.4g | %.4g | %+.1f %% | %s |\n", row[i]->ranks,
                row[i]->bytes / 1048576, row[i]->measured_Bps * 1e-9,
                s4d_accuracy_checked(row[i]) * 1e-9, s4d_accuracy_error(row[i]), row[i]->how);
    free(row);
}

static void what_is_checked(const struct sums *s, FILE *out)
{
    if (s->fit_ranks)
        fprintf(
            out,
            "Fitted on %d ranks (%d rows, which are no check); the error is of the other group "
            "sizes, simulated with the table of %d ranks alone. As shipped the machine file has "
            "all of them, so its own figures are closer. ",
            s->fit_ranks, s->fitted, s->fit_ranks);
    if (s->inputs)
        fprintf(out,
                "%d rows are the machine file's own input, of the one group size there is of their "
                "sort: no check. ",
                s->inputs);
    if (s->outliers)
        fprintf(out, "%d rows are outliers of the published log and left out. ", s->outliers);
    if (s->all.n == 0)
        fprintf(out, "Nothing is left to check.\n");
    else
        fprintf(out, "Mean |error| %.1f %%, largest %.1f %% over %d rows.\n", mean(&s->all),
                s->all.worst, s->all.n);
}

static int series_section(const struct s4d_accuracy_list *list, int from, const char *reasons,
                          FILE *out, struct s4d_error *err)
{
    const struct s4d_accuracy_row *r = &list->v[from];
    struct sums s = series_sums(list, from);
    char *name = s4d_accuracy_name(r);
    fprintf(out, "## %s, %s: %s\n\n", r->machine, r->library, r->op);
    what_is_checked(&s, out);
    fprintf(out, "\n![measured and simulated](%s.png)\n\n", name);
    free(name);
    if (s.all.n > 0) {
        fprintf(out, "The worst rows:\n\n");
        worst_rows(list, from, out);
        fputc('\n', out);
    }
    struct reason reason = {.of = r, .out = out};
    if (s4d_csv_read(reasons, "machine,library,op,reason", reason_row, &reason, err))
        return -1;
    fprintf(out, "%sMeasured: %s.\n\n", reason.found ? "\n\n" : "", r->source);
    return 0;
}

static void kernel_section(const struct s4d_accuracy_kernels *kernels, FILE *out)
{
    fprintf(out,
            "## Kernels\n\nHeld out: of a GEMM, the three terms fitted on every second shape and "
            "the error of the others; of attention, the rate of a sequence length interpolated "
            "between its neighbours. The machine files' own values are those fitted on all "
            "shapes, or the measured rates themselves.\n\n"
            "| kernels | rows | machine file: mean | worst | held out: mean | worst | |\n"
            "|---|---:|---:|---:|---:|---:|---|\n");
    for (int i = 0, next; i < kernels->n; i = next) {
        struct sum fitted, held_out;
        next = kernel_sums(kernels, i, &fitted, &held_out);
        fprintf(out, "| %s | %d | ", kernels->v[i].series, fitted.n);
        cell(&fitted, 0, false, " % | ", out);
        cell(&fitted, 0, true, " % | ", out);
        cell(&held_out, 0, false, " % | ", out);
        cell(&held_out, 0, true, " % | ", out);
        fprintf(out, "%s |\n", kernels->v[i].note);
    }
    fprintf(out, "\n| kernel | | measured TFLOP/s | machine file | error | held out | error |\n"
                 "|---|---|---:|---:|---:|---:|---:|\n");
    for (int i = 0; i < kernels->n; i++) {
        const struct s4d_accuracy_kernel *k = &kernels->v[i];
        fprintf(out, "| %s | %s | %.4g | %.4g | %+.1f %% |", k->series, k->label,
                k->measured * 1e-12, k->simulated * 1e-12, 100 * (k->simulated / k->measured - 1));
        if (isfinite(k->held_out))
            fprintf(out, " %.4g | %+.1f %% |\n", k->held_out * 1e-12,
                    100 * (k->held_out / k->measured - 1));
        else
            fprintf(out, " | |\n");
    }
}

static int write_report(const struct s4d_accuracy_list *list,
                        const struct s4d_accuracy_kernels *kernels, const char *reasons, FILE *out,
                        struct s4d_error *err)
{
    fprintf(out,
            "# How far the models are from measurements\n\nscale4d %s (%s). Bus bandwidth as "
            "nccl-tests defines it; error: 100 (simulated / measured - 1). What a machine file was "
            "fitted on is never its own check: where its efficiency table has several group sizes, "
            "all but the middle one are taken away and the others predicted; where it has one, "
            "there is no check. Machines without such tables use the library's constants alone. "
            "RCCL's rows end at 512 ranks and are the input of Frontier's table: beyond them the "
            "simulator extrapolates, and says so.\n\n```\n",
            s4d_version, s4d_commit);
    s4d_accuracy_print(list, kernels, out);
    fprintf(out, "```\n\n");
    for (int i = 0; i < list->n; i = s4d_accuracy_series(list, i))
        if (series_section(list, i, reasons, out, err))
            return -1;
    kernel_section(kernels, out);
    return 0;
}

int s4d_accuracy_report(const struct s4d_accuracy_list *list,
                        const struct s4d_accuracy_kernels *kernels, const char *reasons,
                        const char *folder, struct s4d_error *err)
{
    char *file = s4d_asprintf("%s/report.md", folder);
    FILE *out = fopen(file, "w");
    int rc = out == NULL
                 ? s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno))
                 : write_report(list, kernels, reasons, out, err);
    if (out != NULL) {
        bool bad = ferror(out) != 0;
        if ((fclose(out) != 0 || bad) && rc == 0)
            rc = s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written");
    }
    free(file);
    return rc;
}
