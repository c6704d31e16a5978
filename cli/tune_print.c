/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli/tune.h"
#include "support/record.h" /* for: s4d_model_version */
#include "support/units.h"

/* --- the record ----------------------------------------------------------------------------- */

static json_t *known(double value)
{
    return value >= 0 ? json_real(value) : json_null();
}

static json_t *choice_record(const struct s4d_tuned *t)
{
    const struct s4d_choice *c = &t->choice;
    char grid[64];
    json_t *r = json_pack(
        "{s:i, s:s, s:i, s:s, s:i, s:f, s:f, s:o, s:o, s:o}", "rank", t->rank, "grid",
        s4d_grid_text(&c->grid, grid, sizeof grid), "micro_batch", c->micro_batch, "recompute",
        s4d_recompute_names[c->recompute], "cached_layers", c->cached_layers, "estimate_s",
        c->estimate_s, "memory_estimate_bytes", c->memory_bytes, "simulated_rank",
        t->simulated_rank ? json_integer(t->simulated_rank) : json_null(), "iteration_time_s",
        known(t->time_s), "memory_peak_bytes", known(t->memory_bytes));
    if (t->fault.exit != S4D_EXIT_OK)
        json_object_set_new(r, "fault", json_string(t->fault.text));
    return r;
}

json_t *s4d_tune_record(const struct s4d_tuning *t)
{
    const struct s4d_space *s = &t->space;
    const struct s4d_ranking *r = &t->ranking;
    double correlation = s4d_tune_correlation(t->tuned, t->n, S4D_TUNE_ESTIMATE);
    json_t *all = json_array();
    for (int i = 0; i < t->n; i++)
        json_array_append_new(all, choice_record(&t->tuned[i]));
    json_t *record = json_pack(
        "{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:i, s:i, s:s, s:{s:i, s:i, s:I, s:i}, s:o, s:o, "
        "s:o}",
        "kind", "tune", "model_version", s4d_model_version, "machine", "name", s->machine->name,
        "hash", s->machine->hash, "workload", "name", s->workload->model.name, "hash",
        s->workload->hash, "gpus", s->gpus, "global_batch", s->options.global_batch, "strategy",
        s->strategy->name, "ranking", "grids", r->grids, "divide", r->divide, "configurations",
        (json_int_t)r->configurations, "fit", r->n, "rank_correlation",
        isnan(correlation) ? json_null() : json_real(correlation), "best",
        t->best < 0 ? json_null() : choice_record(&t->tuned[t->best]), "configurations", all);
    json_t *scenario = s4d_scenario_record(s->scenario);
    if (scenario)
        json_object_set_new(record, "scenario", scenario);
    return record;
}

/* --- the table ------------------------------------------------------------------------------ */

static void print_head(const struct s4d_tuning *t, FILE *out)
{
    const struct s4d_space *s = &t->space;
    const struct s4d_ranking *r = &t->ranking;
    fprintf(out,
            "# machine %s (%s)  workload %s  gpus %d  global batch %d  strategy %s\n"
            "# %d grids, %d divide model and batch; %ld configurations, %d fit; ranked in %.3g s\n",
            s->machine->name, s->machine->hash, s->workload->model.name, s->gpus,
            s->options.global_batch, s->strategy->name, r->grids, r->divide, r->configurations,
            r->n, r->ranking_s);
    for (int i = 0; s->scenario && i < s->scenario->differences.n; i++)
        fprintf(out, "# %s\n", s->scenario->differences.v[i].text);
    if (t->resumed > 0)
        fprintf(out, "# %d of %d were simulated before\n", t->resumed, t->n);
    fprintf(out, "%5s %-16s %6s %-10s %6s %11s %11s %6s %8s %9s\n", "rank", "grid", "micro-",
            "recompute", "cached", "model", "simulated", "rank", "error", "memory");
    fprintf(out, "%5s %-16s %6s %-10s %6s %11s %11s %6s %8s %9s\n", "", "GXxGYxGZxGDATA", "batch",
            "", "layers", "(s)", "(s)", "", "(%)", "(GB)");
}

static void print_row(const struct s4d_tuned *t, FILE *out)
{
    const struct s4d_choice *c = &t->choice;
    char grid[64];
    fprintf(out, "%5d %-16s %6d %-10s %6d %#11.5g ", t->rank,
            s4d_grid_text(&c->grid, grid, sizeof grid), c->micro_batch,
            s4d_recompute_names[c->recompute], c->cached_layers, c->estimate_s);
    if (t->fault.exit != S4D_EXIT_OK)
        fprintf(out, "%11s %6s %8s %9.2f  %s\n", s4d_tuned_died(t) ? "failed" : "too large", "-",
                "-", c->memory_bytes / 1e9, t->fault.text);
    else if (t->time_s < 0)
        fprintf(out, "%11s %6s %8s %9.2f\n", "-", "-", "-", c->memory_bytes / 1e9);
    else
        fprintf(out, "%#11.5g %6d %+8.1f %9.2f\n", t->time_s, t->simulated_rank,
                100 * (c->estimate_s / t->time_s - 1), t->memory_bytes / 1e9);
}

static void print_rows(const struct s4d_tuning *t, int top, FILE *out)
{
    for (int i = 0, next = 0; i < t->ranking.n; i++) {
        struct s4d_tuned plain = {.choice = t->ranking.v[i], .rank = i + 1, .time_s = -1};
        bool simulated = next < t->n && t->tuned[next].rank == i + 1;
        if (simulated || i < top)
            print_row(simulated ? &t->tuned[next] : &plain, out);
        next += simulated;
    }
}

/* How the published model ranks them, whose every term is communication. */
static void print_published(const struct s4d_tuning *t, FILE *out)
{
    double tables = s4d_tune_correlation(t->tuned, t->n, S4D_TUNE_PUBLISHED),
           links = s4d_tune_correlation(t->tuned, t->n, S4D_TUNE_LINKS);
    if (isnan(links))
        return;
    fprintf(out, "\n# of the communication model of arXiv 2502.08145 and simulation: ");
    if (!isnan(tables))
        fprintf(out, "%.3f with its authors' bandwidths, ", tables);
    fprintf(out, "%.3f with those of the links", links);
}

int s4d_tune_write(const struct s4d_tuning *t, const char *file, struct s4d_error *err)
{
    FILE *out = fopen(file, "w");
    if (!out)
        return s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno));
    fprintf(out,
            "# machine %s  workload %s  gpus %d  global batch %d\nrank\tgrid\tmicro_batch\t"
            "recompute\tcached_layers\tmodel_s\tsimulated_s\tsimulated_rank\tpublished_s\t"
            "links_s\n",
            t->space.machine->name, t->space.workload->model.name, t->space.gpus,
            t->space.options.global_batch);
    for (int i = 0; i < t->n; i++) {
        const struct s4d_tuned *u = &t->tuned[i];
        char grid[64];
        if (u->time_s >= 0)
            fprintf(out, "%d\t%s\t%d\t%s\t%d\t%.6g\t%.6g\t%d\t%.6g\t%.6g\n", u->rank,
                    s4d_grid_text(&u->choice.grid, grid, sizeof grid), u->choice.micro_batch,
                    s4d_recompute_names[u->choice.recompute], u->choice.cached_layers,
                    u->choice.estimate_s, u->time_s, u->simulated_rank, u->published_s, u->links_s);
    }
    bool bad = ferror(out) != 0;
    return fclose(out) != 0 || bad
               ? s4d_fail(err, S4D_EXIT_OUTPUT, file, "cannot be written: %s", strerror(errno))
               : 0;
}

/* The fastest against the one that the model ranks first, and against the second fastest. */
static void print_verdict(const struct s4d_tuning *t, FILE *out)
{
    const struct s4d_tuned *best = &t->tuned[t->best], *second = NULL;
    char grid[64], time[32];
    for (int i = 0; i < t->n; i++)
        if (t->tuned[i].simulated_rank == 2)
            second = &t->tuned[i];
    fprintf(out, "# best: grid %s, micro-batch %d, recompute %s, %d cached layers: %s simulated",
            s4d_grid_text(&best->choice.grid, grid, sizeof grid), best->choice.micro_batch,
            s4d_recompute_names[best->choice.recompute], best->choice.cached_layers,
            s4d_format_time(best->time_s, time, sizeof time));
    if (second)
        fprintf(out, ", %.1f %% faster than the second", 100 * (second->time_s / best->time_s - 1));
    if (best->rank != t->tuned[0].rank && t->tuned[0].time_s >= 0)
        fprintf(out, ", %.1f %% faster than the model's first",
                100 * (t->tuned[0].time_s / best->time_s - 1));
    double correlation = s4d_tune_correlation(t->tuned, t->n, S4D_TUNE_ESTIMATE);
    if (!isnan(correlation))
        fprintf(out,
                "\n# rank correlation of model and simulation (Spearman), %d configurations: %.3f",
                t->n, correlation);
    print_published(t, out);
    fprintf(out, "\n");
}

void s4d_tune_print(const struct s4d_tuning *t, int top, FILE *out)
{
    print_head(t, out);
    print_rows(t, top, out);
    if (t->best >= 0)
        print_verdict(t, out);
}

static double get(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

void s4d_tune_print_scaling(const json_t *records, FILE *out)
{
    size_t i;
    json_t *r;
    double first_s = 0;
    fprintf(out, "\n%8s %-16s %6s %-10s %12s %9s %11s\n", "gpus", "grid", "micro-", "recompute",
            "iteration", "speed-up", "efficiency");
    fprintf(out, "%8s %-16s %6s %-10s %12s %9s %11s\n", "", "", "batch", "", "(s)", "", "(%)");
    json_array_foreach((json_t *)records, i, r)
    {
        const json_t *best = json_object_get(r, "best");
        double time_s = get(best, "iteration_time_s"), gpus = get(r, "gpus");
        if (!json_is_object(best))
            continue;
        first_s = first_s > 0 ? first_s : time_s * gpus;
        fprintf(out, "%8.0f %-16s %6.0f %-10s %#12.5g %9.2f %11.1f\n", gpus,
                json_string_value(json_object_get(best, "grid")), get(best, "micro_batch"),
                json_string_value(json_object_get(best, "recompute")), time_s,
                first_s / get(json_array_get(records, 0), "gpus") / time_s,
                100 * first_s / (time_s * gpus));
    }
}
