/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d tune: every configuration ranked by the closed forms, the best of them simulated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/program_hash.h"
#include "cli/stop.h"
#include "cli/tune_run.h"
#include "support/file.h"
#include "support/memory.h"
#include "support/record.h"
#include "support/units.h"

static const char *const strategies[] = {"4d", "fsdp", "hsdp", "megatron-tp", NULL};

#define AT(field) offsetof(struct s4d_tune_config, field)
static const struct s4d_option options[] = {
    S4D_OPTION_MACHINE(AT(machine)),
    S4D_OPTION_WORKLOAD(AT(workload)),
    {.name = "gpus",
     .argument = "N[,N...]",
     .type = S4D_OPT_TEXT,
     .offset = AT(gpus),
     .help = "devices; several numbers: each of them, with the same global batch"},
    {.name = "strategy",
     .argument = "4d|fsdp|hsdp|megatron-tp",
     .type = S4D_OPT_CHOICE,
     .choices = strategies,
     .offset = AT(strategy),
     .help = "grids to choose from: all; z alone; z and data; x and data"},
    {.name = "simulate",
     .argument = "K",
     .type = S4D_OPT_INT,
     .offset = AT(simulate),
     .min = 0,
     .max = 1 << 20,
     .help = "how many of the ranking to simulate, from the best on"},
    {.name = "variants",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(variants),
     .min = 1,
     .max = 1 << 20,
     .help = "the most of one grid among those simulated"},
    {.name = "top",
     .argument = "K",
     .type = S4D_OPT_INT,
     .offset = AT(top),
     .min = 1,
     .max = 1 << 20,
     .help = "how many to print"},
    S4D_OPTION_WORKERS(AT(workers)),
    {.name = "records",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(records),
     .help = "where each finished simulation is a line at once; what it holds is not simulated "
             "again"},
    {.name = "plot",
     .argument = "STEM",
     .type = S4D_OPT_TEXT,
     .offset = AT(plot),
     .help = "draw model against simulation: STEM.png, .svg, .pdf; STEM.tsv is the table"},
    S4D_OPTION_SET(AT(set)),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = AT(json),
     .help = "print a record for each number of GPUs, one JSON line, and nothing else"},
    {.name = NULL},
};

static const struct s4d_option_group groups[] = {
    {.title = "Tuning", .options = options},
    {.title = "Schedule", .options = s4d_schedule_options, .offset = AT(schedule)},
    {.title = "Placement and differences", .options = s4d_scenario_options, .offset = AT(scenario)},
    {.title = NULL},
};

/* --- the command ---------------------------------------------------------------------------- */

static int parse_gpus(const char *text, int **list, int *n, struct s4d_error *err)
{
    char *copy = s4d_strdup(text), *rest = copy, *item;
    int cap = 0, rc = 0;
    *list = NULL;
    *n = 0;
    while (rc == 0 && (item = strsep(&rest, ",")) != NULL) {
        int64_t gpus = 0;
        rc = s4d_parse_int(item, 1, 1 << 20, &gpus, err);
        s4d_push(*list, *n, cap, (int)gpus);
    }
    free(copy);
    if (rc == 0)
        return 0;
    err->exit = S4D_EXIT_USAGE;
    snprintf(err->where, sizeof err->where, "--gpus");
    return s4d_hint(err, "a number, or several with commas between them: 128,256,512");
}

static int check_outputs(const struct s4d_tune_config *c, int n, struct s4d_error *err)
{
    if (c->plot && n > 1)
        return s4d_fail(err, S4D_EXIT_USAGE, "--plot", "draws one number of GPUs, got %d", n);
    char *table = c->plot ? s4d_asprintf("%s.tsv", c->plot) : NULL;
    const struct s4d_output outputs[] = {{"--records", c->simulate > 0 ? c->records : NULL},
                                         {"--plot", table}};
    int rc = s4d_outputs_check(outputs, 2, err);
    free(table);
    return rc;
}

static int resolve(struct s4d_tune_config *c, struct s4d_error *err)
{
    struct s4d_grid grid;
    bool automatic;
    if (s4d_job_given(c->machine, c->workload, c->gpus != NULL, err))
        return -1;
    if (c->schedule.grid.given && !c->schedule.grid.automatic) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected auto, or not given: tune finds it");
        return s4d_hint(err, "scale4d simulate takes a grid");
    }
    c->schedule.grid.given = c->schedule.grid.automatic = true;
    return s4d_schedule_options_resolve(&c->schedule, 1, &grid, &automatic, err);
}

/* A number's ranking and simulations, told. */
static int tell(struct s4d_tune_run *t, json_t *record, bool first, struct s4d_error *err)
{
    if (!t->c->json) {
        if (first)
            s4d_provenance_print(t->provenance, stdout);
        if (first && t->c->simulate > 0)
            printf("# what is simulated is kept in %s, and not simulated again\n", t->c->records);
        s4d_tune_print(&t->now, t->c->top, stdout);
        fflush(stdout);
        return 0;
    }
    json_t *provenance = json_copy(t->provenance);
    if (!getenv("SOURCE_DATE_EPOCH")) /* what differs between two runs */
        json_object_set_new(provenance, "tune",
                            json_pack("{s:f}", "ranking_s", t->now.ranking.ranking_s));
    json_object_set_new(record, "provenance", provenance);
    int rc = s4d_record_write(record, stdout, err);
    fflush(stdout);
    return rc;
}

static int died(const struct s4d_tuning *t)
{
    int n = 0;
    for (int i = 0; i < t->n; i++)
        n += s4d_tuned_died(&t->tuned[i]);
    return n;
}

/* Of so many numbers one that has no configuration takes nothing from the others. */
static bool passes_over(int n, int gpus, const struct s4d_error *why)
{
    bool passed = n > 1 && (why->exit == S4D_EXIT_USAGE || why->exit == S4D_EXIT_DATA);
    if (passed)
        s4d_warn("%d GPUs: %s: %s", gpus, why->where, why->text);
    return passed;
}

static int run_all(struct s4d_tune_run *t, const int *gpus, int n, struct s4d_error *err)
{
    json_t *scaling = json_array();
    int rc = 0, dead = 0, passed = 0;
    enum s4d_exit exit = S4D_EXIT_OK;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = s4d_tune_gpus(t, gpus[i], err);
        if (rc == 0) {
            json_t *record = s4d_tune_record(&t->now);
            dead += died(&t->now);
            rc = tell(t, record, json_array_size(scaling) == 0, err);
            json_array_append_new(scaling, record);
        } else if (passes_over(n, gpus[i], err)) {
            exit = passed++ ? exit : err->exit;
            rc = 0;
        }
        s4d_tune_forget(&t->now);
    }
    if (rc == 0 && json_array_size(scaling) > 1 && !t->c->json)
        s4d_tune_print_scaling(scaling, stdout);
    json_decref(scaling);
    if (rc == 0 && dead > 0) {
        s4d_fail(err, S4D_EXIT_BUG, "", "%d of the simulations did not end; the others did", dead);
        return s4d_hint(err, "the same command tries them again");
    }
    if (rc == 0 && passed > 0)
        return s4d_fail(err, exit, "--gpus", "%d of the %d numbers cannot be tuned; see above",
                        passed, n);
    return rc;
}

static int tune(struct s4d_tune_config *c, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_tune_run t = {.c = c};
    int *gpus = NULL, n = 0;
    if (resolve(c, err) || parse_gpus(c->gpus, &gpus, &n, err) || check_outputs(c, n, err)) {
        free(gpus);
        return -1;
    }
    int rc = s4d_scenario_load(&t.machine, &t.scenario, c->machine, &c->set, &c->scenario, err);
    if (rc == 0) {
        rc = s4d_workload_load(&t.workload, c->workload, err);
        if (rc == 0) {
            t.provenance = s4d_provenance(argc, argv);
            rc = s4d_program_hash(t.program, err) || s4d_records_read(&t.records, c->records, err);
            if (rc == 0) {
                s4d_stop_keeps(c->records);
                rc = run_all(&t, gpus, n, err);
            }
            s4d_records_free(&t.records);
            s4d_workload_free(&t.workload);
            json_decref(t.provenance);
        }
        s4d_machine_free(&t.machine);
        s4d_scenario_free(&t.scenario);
    }
    free(gpus);
    return rc ? -1 : 0;
}

static int run(int argc, char **argv)
{
    struct s4d_tune_config c = {.top = 20,
                                .simulate = 10,
                                .variants = 2,
                                .records = s4d_strdup("tune.jsonl"),
                                .schedule = s4d_schedule_options_default()};
    /* Not given: all are tried. */
    c.schedule.options.recompute = (enum s4d_recompute) - 1;
    c.schedule.options.cached_layers = -1;
    struct s4d_error err = {0};
    int rc = s4d_options_argv(groups,
                              "Ranks every grid, micro-batch, choice of recompute and amount of "
                              "cached layers that fits, and simulates the best. --micro-batch, "
                              "--recompute and --cache-layers fix what is else tried in every way.",
                              argc, argv, &c, NULL, &err);
    if (rc == 0)
        rc = tune(&c, argc, argv, &err);
    s4d_options_free(groups, &c);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_tune = {
    .name = "tune",
    .summary = "the fastest grid, micro-batch, recompute and caching for so many GPUs",
    .run = run,
    .options = groups,
};
