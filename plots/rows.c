/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/rows.h"

#include <math.h>

#include "plots/figure.h"
#include "plots/grids.h"
#include "plots/report.h"
#include "plots/scaling.h"

static double value_of(const char *metric, const json_t *record)
{
    return s4d_metric_value(s4d_metric_find(metric), record);
}

/* --- a record ------------------------------------------------------------------------------- */

static const char *const parts[] = {"compute", "x", "y", "z", "data", "other"};
enum { PARTS = sizeof parts / sizeof *parts };

static void put_grid(const json_t *r, FILE *out)
{
    const char *grid = json_string_value(json_object_get(r, "grid"));
    fprintf(out, "\t%s\t%d", grid != NULL ? grid : "-",
            (int)json_integer_value(json_object_get(r, "micro_batch")));
}

static void merit_row(const json_t *r, const char *machine, double efficiency, FILE *out)
{
    (void)machine, (void)efficiency;
    fprintf(out, "%.6g\t%.5g", value_of("sustained", r), value_of("peak_fraction", r));
    put_grid(r, out);
    fprintf(out, "\t%.6g", value_of("iteration_time", r));
}

static void machines_row(const json_t *r, const char *machine, double efficiency, FILE *out)
{
    fprintf(out, "%.6g\t%.5g\t%.5g\t%.5g\t%s", value_of("sustained", r),
            value_of("peak_fraction", r), value_of("measured_peak_fraction", r), efficiency,
            machine);
    put_grid(r, out);
    fprintf(out, "\t%.6g", value_of("iteration_time", r));
}

static void parts_row(const json_t *r, const char *machine, double efficiency, FILE *out)
{
    const json_t *exposed = json_object_get(r, "exposed_s");
    (void)efficiency;
    fprintf(out, "%.6g", value_of("iteration_time", r));
    for (int i = 0; i < PARTS; i++)
        fprintf(out, "\t%.6g", json_number_value(json_object_get(exposed, parts[i])));
    fprintf(out, "\t%s", machine);
    put_grid(r, out);
}

/* --- what was published --------------------------------------------------------------------- */

static double published_value(const struct s4d_tables *t, const char *metric,
                              const struct s4d_point *p)
{
    const struct s4d_published *found = s4d_figure_published(t->e, t->published, metric, p);
    return found != NULL ? found->value : NAN;
}

static void published_merit(const struct s4d_tables *t, const struct s4d_point *p, FILE *out)
{
    fprintf(out, "%.6g\t%.5g\t-\t0\t%.6g", published_value(t, "sustained", p),
            published_value(t, "peak_fraction", p), published_value(t, "iteration_time", p));
}

/* A share of a peak: as published, or what the published FLOP/s are of the peak that the simulated
 * point is measured by. */
static double published_share(const struct s4d_tables *t, const char *metric,
                              const struct s4d_point *p)
{
    double value = published_value(t, metric, p);
    const json_t *r = s4d_figure_record(t->records, &t->e->series[0], p);
    if (isfinite(value))
        return value;
    return published_value(t, "sustained", p) * value_of(metric, r) / value_of("sustained", r);
}

static void published_machines(const struct s4d_tables *t, const struct s4d_point *p, FILE *out)
{
    fprintf(out, "%.6g\t%.5g\t%.5g\t%.5g\t%s\t-\t0\t%.6g", published_value(t, "sustained", p),
            published_share(t, "peak_fraction", p), published_share(t, "measured_peak_fraction", p),
            s4d_scaling_published(t->e, t->published, p, NULL), p->machine,
            published_value(t, "iteration_time", p));
}

static void published_parts(const struct s4d_tables *t, const struct s4d_point *p, FILE *out)
{
    fprintf(out, "%.6g", published_value(t, "iteration_time", p));
    for (int i = 0; i < PARTS; i++)
        fputs("\tnan", out);
    fprintf(out, "\t%s\t-\t0", p->machine);
}

/* --- the registry --------------------------------------------------------------------------- */

static void one_row(const struct s4d_tables *t, const struct s4d_series *series,
                    const struct s4d_point *p, const json_t *r, FILE *out)
{
    fprintf(out, "%s\t%s\t%d\t", series->name, p->workload, p->gpus);
    s4d_rows_kinds[t->e->rows].record(r, p->machine,
                                      s4d_scaling_simulated(t->e, t->records, series, p), out);
    fputs("\tsimulated\n", out);
}

const struct s4d_rows_kind s4d_rows_kinds[] = {
    [S4D_ROWS_MERIT] = {.columns = "series\tworkload\tgpus\tsustained_PFLOPs\tpeak_percent\tgrid\t"
                                   "micro_batch\titeration_s\tprovenance\n",
                        .simulated = one_row,
                        .published = published_merit,
                        .record = merit_row,
                        .summary = s4d_report_errors,
                        .report = s4d_report_points},
    [S4D_ROWS_PARTS] = {.columns = "series\tworkload\tgpus\titeration_s\tcompute_s\tx_s\ty_s\tz_s\t"
                                   "data_s\tother_s\tmachine\tgrid\tmicro_batch\tprovenance\n",
                        .simulated = one_row,
                        .published = published_parts,
                        .record = parts_row,
                        .needs = "exposed_s",
                        .summary = s4d_report_errors,
                        .report = s4d_report_points},
    [S4D_ROWS_MACHINES] = {.columns = "series\tworkload\tgpus\tsustained_PFLOPs\tpeak_percent\t"
                                      "measured_peak_percent\tefficiency_percent\tmachine\tgrid\t"
                                      "micro_batch\titeration_s\tprovenance\n",
                           .simulated = one_row,
                           .published = published_machines,
                           .record = machines_row,
                           .summary = s4d_report_errors,
                           .report = s4d_report_points},
    /* One published number, or record, would be of one grid, and say nothing of models. */
    [S4D_ROWS_GRIDS] = {.columns = "series\tworkload\tgpus\tmachine\tgrid\tmicro_batch\tmodel_s\t"
                                   "published_s\tlinks_s\titeration_s\tprovenance\n",
                        .simulated = s4d_grids_rows,
                        .summary = s4d_grids_summary,
                        .report = s4d_grids_report},
};
