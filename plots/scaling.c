/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/scaling.h"

#include <math.h>
#include <string.h>

#include "plots/figure.h"

/* Whether p's model is there at several sizes on its machine. */
static bool is_strong(const struct s4d_experiment *e, const struct s4d_point *p)
{
    for (int i = 0; i < e->n_points; i++) {
        const struct s4d_point *q = &e->point[i];
        if (strcmp(q->machine, p->machine) == 0 && strcmp(q->workload, p->workload) == 0 &&
            q->gpus != p->gpus)
            return true;
    }
    return false;
}

const struct s4d_point *s4d_scaling_first(const struct s4d_experiment *e, const struct s4d_point *p)
{
    const struct s4d_point *first = p;
    bool strong = is_strong(e, p);
    for (int i = 0; i < e->n_points; i++) {
        const struct s4d_point *q = &e->point[i];
        if (strcmp(q->machine, p->machine) == 0 && q->gpus < first->gpus &&
            (!strong || strcmp(q->workload, p->workload) == 0))
            first = q;
    }
    return first;
}

static double percent(double rate, int gpus, double first_rate, int first_gpus)
{
    return 100 * (rate / gpus) / (first_rate / first_gpus);
}

double s4d_scaling_simulated(const struct s4d_experiment *e, const struct s4d_records *records,
                             const struct s4d_series *series, const struct s4d_point *p)
{
    const struct s4d_point *first = s4d_scaling_first(e, p);
    const struct s4d_metric *sustained = s4d_metric_find("sustained");
    const json_t *r = s4d_figure_record(records, series, p),
                 *of_first = s4d_figure_record(records, series, first);
    if (r == NULL || of_first == NULL)
        return NAN;
    return percent(s4d_metric_value(sustained, r), p->gpus, s4d_metric_value(sustained, of_first),
                   first->gpus);
}

double s4d_scaling_published(const struct s4d_experiment *e,
                             const struct s4d_published_list *published, const struct s4d_point *p,
                             bool *verified)
{
    const struct s4d_point *first = s4d_scaling_first(e, p);
    const struct s4d_published *number = s4d_figure_published(e, published, "sustained", p),
                               *of_first = s4d_figure_published(e, published, "sustained", first);
    if (number == NULL || of_first == NULL)
        return NAN;
    if (verified != NULL)
        *verified = number->verified && of_first->verified;
    return percent(number->value, p->gpus, of_first->value, first->gpus);
}

static void row(const struct s4d_experiment *e, const struct s4d_records *records,
                const struct s4d_published_list *published, const struct s4d_point *p, FILE *out)
{
    bool verified = false;
    double printed = s4d_scaling_published(e, published, p, &verified);
    fprintf(out, "| %s %s | %d | %d |", p->machine, p->workload, p->gpus,
            s4d_scaling_first(e, p)->gpus);
    if (isfinite(printed))
        fprintf(out, " %.1f | %s |", printed, verified ? "read or derived" : "unverified");
    else
        fputs(" | |", out);
    for (int s = 0; s < e->n_series; s++) {
        double simulated = s4d_scaling_simulated(e, records, &e->series[s], p);
        fprintf(out, " %.1f |", simulated);
        if (isfinite(printed))
            fprintf(out, " %+.1f |", simulated - printed);
        else
            fputs(" |", out);
    }
    fputc('\n', out);
}

void s4d_scaling_report(const struct s4d_experiment *e, const struct s4d_records *records,
                        const struct s4d_published_list *published, FILE *out)
{
    bool begun = false;
    for (int i = 0; i < e->n_points; i++) {
        const struct s4d_point *p = &e->point[i];
        if (s4d_scaling_first(e, p)->gpus == p->gpus)
            continue;
        if (!begun) {
            fprintf(out,
                    "## Efficiency of scaling\n\nFLOP/s a GPU, in %% of those of the machine's "
                    "smallest point, or, of a model at several sizes, of its smallest; "
                    "differences in points.\n\n"
                    "| point | GPUs | against | published %% | provenance |");
            for (int s = 0; s < e->n_series; s++)
                fprintf(out, " %s %% | difference |", e->series[s].name);
            fprintf(out, "\n|---|---:|---:|---:|---|");
            for (int s = 0; s < e->n_series; s++)
                fprintf(out, "---:|---:|");
            fputc('\n', out);
            begun = true;
        }
        row(e, records, published, p, out);
    }
    if (begun)
        fputc('\n', out);
}
