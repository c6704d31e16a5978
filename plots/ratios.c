/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/ratios.h"

#include <math.h>
#include <string.h>

#include "plots/figure.h"

bool s4d_ratios_is_reference(const struct s4d_experiment *e, const struct s4d_series *series)
{
    for (int i = 0; i < e->n_series; i++)
        if (e->series[i].against != NULL && strcmp(e->series[i].against, series->name) == 0)
            return true;
    return false;
}

static double iteration_s(const struct s4d_experiment *e, const struct s4d_records *records,
                          const char *series, const struct s4d_point *p)
{
    for (int i = 0; i < e->n_series; i++) {
        const json_t *r = strcmp(e->series[i].name, series) == 0
                              ? s4d_figure_record(records, &e->series[i], p)
                              : NULL;
        if (r != NULL)
            return s4d_metric_value(s4d_metric_find("iteration_time"), r);
    }
    return NAN;
}

/* " (published 56, read)". */
static void put_published(const struct s4d_experiment *e,
                          const struct s4d_published_list *published, const char *metric,
                          const struct s4d_point *p, FILE *out)
{
    const struct s4d_published *found = s4d_figure_published(e, published, metric, p);
    if (found != NULL)
        fprintf(out, " (published %g, %s)", found->value, found->provenance);
}

void s4d_ratios_print(const struct s4d_experiment *e, const struct s4d_records *records,
                      const struct s4d_published_list *published, FILE *out)
{
    for (int s = 0; s < e->n_series; s++)
        for (int i = 0; i < e->n_points && e->series[s].against != NULL; i++) {
            const struct s4d_series *series = &e->series[s];
            const struct s4d_point *p = &e->point[i];
            double own = iteration_s(e, records, series->name, p),
                   other = iteration_s(e, records, series->against, p);
            if (!isfinite(own) || !isfinite(other))
                continue;
            fprintf(out, "- %s against %s, %s on %d of %s: %.1f %% less time", series->name,
                    series->against, p->workload, p->gpus, p->machine, 100 * (1 - own / other));
            put_published(e, published, "time_to_solution_reduction", p, out);
            fprintf(out, ", %.1f %% faster", 100 * (other / own - 1));
            put_published(e, published, "speedup", p, out);
            fputc('\n', out);
        }
}
