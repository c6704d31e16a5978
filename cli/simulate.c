/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d simulate: one training iteration on a machine. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/explain.h"
#include "cli/job_options.h"
#include "cli/run_options.h"
#include "cli/stepwise.h"
#include "sim/tune/terms.h"
#include "support/processors.h"
#include "support/record.h"
#include "support/units.h"

struct config {
    int workers, stepwise;
    bool json;
    struct s4d_run_options run;
    struct s4d_explain_options explain;
};

#define AT(field) offsetof(struct config, field)
static const struct s4d_option options[] = {
    S4D_STEPWISE_OPTION(AT(stepwise)),
    S4D_OPTION_WORKERS(AT(workers)),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = AT(json),
     .help = "print the record, one JSON line, and nothing else"},
    {.name = NULL},
};

static const struct s4d_option_group groups[] = {
    {.title = "Simulation", .options = s4d_run_options, .offset = AT(run)},
    {.title = "How", .options = options},
    {.title = "What happened", .options = s4d_explain_options, .offset = AT(explain)},
    {.title = "Schedule", .options = s4d_schedule_options, .offset = AT(run.schedule)},
    {.title = "Placement and differences",
     .options = s4d_scenario_options,
     .offset = AT(run.scenario)},
    {.title = NULL},
};

static double get(const json_t *record, const char *key)
{
    return json_number_value(json_object_get(record, key));
}

static const char *text_of(const json_t *record, const char *key)
{
    return json_string_value(json_object_get(record, key));
}

enum { NAMES_MOST = 64 }; /* a file of differences may hold thousands */

static void print_names(const char *title, const json_t *names)
{
    size_t i;
    const json_t *name;
    if (json_array_size(names) == 0)
        return;
    printf("# %s:", title);
    json_array_foreach((json_t *)names, i, name)
    {
        if (i == NAMES_MOST)
            break;
        printf(" %s", json_string_value(name));
    }
    if (json_array_size(names) > NAMES_MOST)
        printf(" and %zu more (--json has all)", json_array_size(names) - NAMES_MOST);
    printf("\n");
}

static void print_inputs(const json_t *r)
{
    const json_t *machine = json_object_get(r, "machine"), *sim = json_object_get(r, "sim"),
                 *automatic = json_object_get(r, "auto");
    printf("# machine %s (%s)  workload %s  gpus %.0f  grid %s (GXxGYxGZxGDATA)  rank order %s\n",
           text_of(machine, "name"), text_of(machine, "hash"),
           text_of(json_object_get(r, "workload"), "name"), get(r, "gpus"), text_of(r, "grid"),
           text_of(r, "rank_order"));
    printf("# global batch %.0f = %.0f micro-batch%s of %.0f on each of Gz Gdata  precision %s  "
           "recompute %s  overlap %s\n",
           get(r, "global_batch"), get(r, "micro_batches"),
           get(r, "micro_batches") == 1 ? "" : "es", get(r, "micro_batch"), text_of(r, "precision"),
           text_of(r, "recompute"), text_of(r, "overlap"));
    if (automatic)
        printf("# grid chosen: %.0f divide, %.0f may fit, the %.0f best by the model "
               "simulated\n",
               get(automatic, "candidates"), get(automatic, "feasible"),
               get(automatic, "simulated"));
    const json_t *scenario = json_object_get(r, "scenario");
    if (scenario) {
        printf("# placement %s\n", text_of(scenario, "placement"));
        print_names("differences", json_object_get(scenario, "differences"));
    }
    printf("# simulated: %.0f class%s of GPUs, %.0f of groups, %.0f of flows, %.0f of links; %.0f "
           "ops a GPU\n",
           get(sim, "gpu_classes"), get(sim, "gpu_classes") == 1 ? "" : "es",
           get(sim, "group_classes"), get(sim, "flow_classes"), get(sim, "link_classes"),
           get(sim, "ops"));
    print_names("fitted values of the machine", json_object_get(machine, "fitted"));
    print_names("assumed values of the machine", json_object_get(machine, "assumed"));
}

static void print_breakdown(const json_t *r)
{
    static const char *const about[][2] = {
        {"compute", "the compute stream works"},
        {"x", "it waits for all-reduces over x"},
        {"y", "it waits for all-reduces over y"},
        {"z", "it waits for weights gathered or gradients scattered over z"},
        {"data", "it waits for gradients reduced over data"},
        {"other", "it waits for anything else"},
    };
    const json_t *exposed = json_object_get(r, "exposed_s");
    double total_s = get(r, "iteration_time_s");
    printf("%-10s %12s %8s\n%-10s %12s %8s\n", "part", "time", "share", "", "(ms)", "(%)");
    for (int i = 0; i < 6; i++)
        printf("%-10s %12.3f %8.2f   %s\n", about[i][0], 1e3 * get(exposed, about[i][0]),
               100 * get(exposed, about[i][0]) / total_s, about[i][1]);
    printf("%-10s %12.3f %8.2f   of rank %.0f, the last to end\n", "iteration", 1e3 * total_s,
           100.0, get(r, "slowest_rank"));
}

static void print_human(const json_t *r)
{
    double gpus = get(r, "gpus"), rate = get(r, "flops_per_s");
    print_inputs(r);
    printf("%10s %12s %12s %12s %8s %8s %12s %10s\n", "iteration", "formula", "per GPU", "executed",
           "peak", "measured", "tokens", "memory");
    printf("%10s %12s %12s %12s %8s %8s %12s %10s\n", "(s)", "(PFLOP/s)", "(TFLOP/s)", "(TFLOP/s)",
           "(%)", "peak (%)", "(1/s)", "(GB)");
    printf("%10.6g %12.3f %12.3f %12.3f %8.2f %8.2f %12.0f %10.2f\n", get(r, "iteration_time_s"),
           rate / 1e15, rate / gpus / 1e12, get(r, "flops_executed_per_s") / gpus / 1e12,
           100 * get(r, "peak_fraction"), 100 * get(r, "peak_fraction_measured"),
           get(r, "tokens_per_s"), get(r, "memory_peak_bytes") / 1e9);
    printf("\n");
    print_breakdown(r);
    char time[32], flops[32];
    const json_t *stepwise = json_object_get(r, "stepwise");
    if (stepwise)
        s4d_stepwise_print(stepwise, stdout);
    printf("# iteration %s  %s by the formula %s  %.1f %% of the advertised peak  OK\n",
           s4d_format_time(get(r, "iteration_time_s"), time, sizeof time),
           s4d_format_flops(rate, flops, sizeof flops), text_of(r, "flops_formula_name"),
           100 * get(r, "peak_fraction"));
}

static int print(const struct s4d_simulation *s, const struct s4d_result *result, json_t *summary,
                 bool json, int argc, char **argv, struct s4d_error *err)
{
    json_t *record = s4d_simulation_record(s, result), *provenance = s4d_provenance(argc, argv);
    json_t *terms = summary ? s4d_terms_record(s, result, err) : NULL;
    int rc = summary && !terms ? -1 : 0;
    if (s->stepwise)
        json_object_set_new(record, "stepwise",
                            s4d_stepwise_record(result->stepwise_time_s,
                                                result->run.iteration_time_s, &result->sent));
    if (terms) {
        json_object_set_new(summary, "model", terms);
        json_object_set(record, "explain", summary);
    }
    if (!getenv("SOURCE_DATE_EPOCH")) /* the one number that differs between two runs */
        json_object_set_new(provenance, "sim", json_pack("{s:f}", "wall_s", result->wall_s));
    if (rc == 0 && json) {
        json_object_set(record, "provenance", provenance);
        rc = s4d_record_write(record, stdout, err);
    } else if (rc == 0) {
        s4d_provenance_print(provenance, stdout);
        print_human(record);
        if (summary)
            s4d_explain_print(record, stdout);
    }
    if (result->run.extrapolated > 0)
        s4d_warn("%ld of %ld collectives lie outside the machine's efficiency table",
                 result->run.extrapolated, result->run.collectives);
    json_decref(provenance);
    json_decref(record);
    return rc;
}

static int simulate(struct config *c, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_run_inputs in;
    struct s4d_simulation *s = &in.simulation;
    struct s4d_result result;
    struct s4d_explaining explaining;
    if (s4d_run_inputs_load(&in, &c->run, err))
        return -1;
    s->workers = c->workers ? c->workers : s4d_processors();
    s->stepwise = c->stepwise;
    int rc = s4d_explain_begin(&explaining, &c->explain, c->run.gpus, argc, argv, err);
    s->explain = explaining.any ? &explaining.wanted : NULL;
    if (rc == 0)
        rc = s4d_simulate(s, &result, err);
    if (rc == 0)
        rc = print(s, &result, s4d_explain_summary(&explaining), c->json, argc, argv, err);
    s4d_explain_end(&explaining);
    s4d_run_inputs_free(&in);
    return rc;
}

static int run(int argc, char **argv)
{
    struct config c = {.run = s4d_run_options_default()};
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Simulates one training iteration and prints its time, FLOP/s, "
                              "exposed communication and memory.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0)
        rc = simulate(&c, argc, argv, &err);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_simulate = {
    .name = "simulate",
    .summary = "time, FLOP/s and exposed communication of training on a machine",
    .run = run,
    .options = groups,
};
