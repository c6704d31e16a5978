/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d tune: every configuration ranked by the closed forms, the best of them simulated.
 *
 * A finished simulation is a line of the records' file at once; a rerun takes it from there. Its
 * key is a hash of machine, workload, options, model version and program, as a figure's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/program_hash.h"
#include "cli/stop.h"
#include "cli/tune.h"
#include "schedule/schedule_options.h"
#include "sim/fabric.h"
#include "support/memory.h"
#include "support/progress.h"
#include "support/record.h"
#include "support/units.h"

static const char *const strategies[] = {"4d", "fsdp", "hsdp", "megatron-tp", NULL};

struct config {
    char *machine, *workload, *gpus, *records;
    struct s4d_texts set;
    int strategy, top, simulate, variants, workers;
    bool json;
    struct s4d_schedule_options schedule;
};

#define AT(field) offsetof(struct config, field)
static const struct s4d_option options[] = {
    {.name = "machine",
     .argument = "M",
     .type = S4D_OPT_TEXT,
     .offset = AT(machine),
     .help = "a name (scale4d machines), a .yaml file, or synthetic:key=value,..."},
    {.name = "workload",
     .argument = "W",
     .type = S4D_OPT_TEXT,
     .offset = AT(workload),
     .help = "a name (scale4d workloads) or a .yaml file"},
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
    {.name = "workers",
     .key = 'j',
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = AT(workers),
     .min = 1,
     .max = 4096,
     .help = "simulations at once (default: the processors)"},
    {.name = "records",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(records),
     .help = "where each finished simulation is a line at once; what it holds is not simulated "
             "again"},
    {.name = "set",
     .argument = "KEY=VALUE",
     .type = S4D_OPT_LIST,
     .offset = AT(set),
     .help = "override a value of the machine; may be repeated"},
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = AT(json),
     .help = "print a record for each number of GPUs, one JSON line, and nothing else"},
    {.name = NULL},
};

static const struct s4d_option_group groups[] = {
    {.title = "Tuning", .options = options},
    {.title = "Schedule", .options = s4d_schedule_options, .offset = AT(schedule)},
    {.title = NULL},
};

/* A run of the command. */
struct tune {
    const struct config *c;
    struct s4d_machine machine;
    struct s4d_workload workload;
    struct s4d_records records;
    json_t *provenance;
    char program[17];
    struct s4d_tuning now; /* of the number of GPUs at hand */
    int finished;
    struct s4d_error write_fault;
};

/* --- records -------------------------------------------------------------------------------- */

static void make_key(const struct tune *t, const struct s4d_choice *c, char key[17])
{
    const struct s4d_space *s = &t->now.space;
    struct s4d_options o = s4d_choice_options(s, c);
    char grid[64], overlap[128];
    s4d_overlap_format(&o.overlap, overlap, sizeof overlap);
    char *text = s4d_asprintf(
        "%s %s %d %s %d%d%d%d%d B%d b%d r%d c%d %s p%d g%d %d s%d n%g %s %s", t->machine.hash,
        t->workload.hash, s->gpus, s4d_grid_text(&c->grid, grid, sizeof grid), c->grid.order[0],
        c->grid.order[1], c->grid.order[2], c->grid.order[3], c->grid.order[4], o.global_batch,
        o.micro_batch, (int)o.recompute, o.cached_layers, overlap, o.precision, o.gradient_type,
        (int)o.gradient_reduce, o.loss_scaling, o.clip_norm, s4d_model_version, t->program);
    s4d_hash(text, strlen(text), key);
    free(text);
}

static const json_t *find_record(const struct tune *t, const char *key)
{
    for (int i = 0; i < t->records.n; i++) {
        const json_t *tune = json_object_get(t->records.v[i], "tune");
        const char *have = json_string_value(json_object_get(tune, "key"));
        if (have && strcmp(have, key) == 0)
            return t->records.v[i];
    }
    return NULL;
}

/* What an earlier run finished. */
static int take_finished(struct tune *t)
{
    int taken = 0;
    for (int i = 0; i < t->now.n; i++) {
        struct s4d_tuned *tuned = &t->now.tuned[i];
        char key[17];
        make_key(t, &tuned->choice, key);
        const json_t *record = find_record(t, key);
        if (!record)
            continue;
        tuned->time_s = json_number_value(json_object_get(record, "iteration_time_s"));
        tuned->memory_bytes = json_number_value(json_object_get(record, "memory_peak_bytes"));
        taken++;
    }
    return taken;
}

static void on_finished(void *context, int i, const struct s4d_result *result)
{
    struct tune *t = context;
    struct s4d_tuned *tuned = &t->now.tuned[i];
    s4d_progress("simulating", ++t->finished, t->now.n);
    if (tuned->fault.exit != S4D_EXIT_OK) {
        char grid[64];
        s4d_progress_end();
        s4d_warn("grid %s, rank %d: %s", s4d_grid_text(&tuned->choice.grid, grid, sizeof grid),
                 tuned->rank, tuned->fault.text);
        return;
    }
    char key[17];
    make_key(t, &tuned->choice, key);
    struct s4d_simulation s = s4d_tune_simulation(&t->now.space, &tuned->choice);
    json_t *record = s4d_simulation_record(&s, result);
    json_object_set_new(record, "tune",
                        json_pack("{s:s, s:f, s:f}", "key", key, "estimate_s",
                                  tuned->choice.estimate_s, "memory_estimate_bytes",
                                  tuned->choice.memory_bytes));
    json_object_set(record, "provenance", t->provenance);
    if (s4d_stop_append(&t->records, t->c->records, record, &t->write_fault) != 0)
        t->write_fault.exit = S4D_EXIT_OUTPUT;
}

/* --- one number of GPUs --------------------------------------------------------------------- */

static int check_machine(const struct tune *t, int gpus, struct s4d_error *err)
{
    const struct s4d_machine *m = &t->machine;
    struct s4d_kernels kernels = {.machine = m};
    int64_t most = (int64_t)m->fabric.nodes * m->node.devices;
    if (s4d_fabric_check(m, err) || s4d_kernels_check(&kernels, &t->c->schedule.options, err))
        return -1;
    return gpus <= most
               ? 0
               : s4d_fail(err, S4D_EXIT_DATA, "--gpus",
                          "%s has %d nodes of %d devices, %lld in all: %d are more", m->name,
                          m->fabric.nodes, m->node.devices, (long long)most, gpus);
}

static struct s4d_space space_of(const struct tune *t, int gpus)
{
    const struct s4d_options *given = &t->c->schedule.options;
    struct s4d_space s = {.machine = &t->machine,
                          .workload = &t->workload,
                          .gpus = gpus,
                          .order = t->c->schedule.rank_order,
                          .options = *given,
                          .strategy = &s4d_strategies[t->c->strategy]};
    s.vary_recompute = (int)given->recompute < 0;
    s.vary_cache = given->cached_layers < 0;
    if (s.vary_recompute)
        s.options.recompute = S4D_RECOMPUTE_FULL;
    if (s.vary_cache)
        s.options.cached_layers = 0;
    return s;
}

static void warn_short_list(const struct tune *t)
{
    if (t->c->simulate > t->now.n)
        s4d_warn("--simulate %d: %d configurations of %d GPUs fit%s; all %d are simulated",
                 t->c->simulate, t->now.ranking.n, t->now.space.gpus,
                 t->now.n < t->now.ranking.n ? " (fewer with at most --variants of one grid)" : "",
                 t->now.n);
}

/* Before anything is simulated. */
static int check_records(const struct tune *t, struct s4d_error *err)
{
    FILE *out = t->now.n > 0 ? fopen(t->c->records, "a") : NULL;
    if (t->now.n > 0 && !out)
        return s4d_fail(err, S4D_EXIT_OUTPUT, t->c->records, "cannot be written: %s",
                        strerror(errno));
    if (out)
        fclose(out);
    return 0;
}

/* 0, or -1 with *err: no configuration, or a file that cannot be written. */
static int tune_gpus(struct tune *t, int gpus, struct s4d_error *err)
{
    if (check_machine(t, gpus, err))
        return -1;
    t->now = (struct s4d_tuning){.space = space_of(t, gpus), .best = -1};
    if (s4d_space_rank(&t->now.space, &t->now.ranking, err))
        return -1;
    t->now.n = s4d_tune_pick(&t->now.ranking, t->c->simulate, t->c->variants, &t->now.tuned);
    if (check_records(t, err))
        return -1;
    warn_short_list(t);
    t->finished = t->now.resumed = take_finished(t);
    struct s4d_tune_watch watch = {on_finished, t};
    s4d_tune_simulate(&t->now.space, t->now.tuned, t->now.n, t->c->workers, &watch);
    s4d_progress_end();
    if (t->write_fault.exit != S4D_EXIT_OK) {
        *err = t->write_fault;
        return -1;
    }
    t->now.best = s4d_tune_order(t->now.tuned, t->now.n);
    return 0;
}

static void forget(struct s4d_tuning *now)
{
    s4d_ranking_free(&now->ranking);
    free(now->tuned);
    *now = (struct s4d_tuning){.best = -1};
}

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

static int resolve(struct config *c, struct s4d_error *err)
{
    struct s4d_grid grid;
    bool automatic;
    if (!c->machine || !c->workload || !c->gpus)
        return s4d_fail(err, S4D_EXIT_USAGE,
                        !c->machine    ? "--machine"
                        : !c->workload ? "--workload"
                                       : "--gpus",
                        "not given");
    if (c->schedule.grid.given && !c->schedule.grid.automatic) {
        s4d_fail(err, S4D_EXIT_USAGE, "--grid", "expected auto, or not given: tune finds it");
        return s4d_hint(err, "scale4d simulate takes a grid");
    }
    c->schedule.grid.given = c->schedule.grid.automatic = true;
    return s4d_schedule_options_resolve(&c->schedule, 1, &grid, &automatic, err);
}

static int run_all(struct tune *t, const int *gpus, int n, struct s4d_error *err)
{
    json_t *scaling = json_array();
    int rc = 0, died = 0;
    for (int i = 0; i < n && rc == 0; i++) {
        rc = tune_gpus(t, gpus[i], err);
        if (rc == 0) {
            json_t *record = s4d_tune_record(&t->now);
            for (int j = 0; j < t->now.n; j++)
                died += s4d_tuned_died(&t->now.tuned[j]);
            if (t->c->json) {
                json_t *provenance = json_copy(t->provenance);
                if (!getenv("SOURCE_DATE_EPOCH")) /* what differs between two runs */
                    json_object_set_new(provenance, "tune",
                                        json_pack("{s:f}", "ranking_s", t->now.ranking.ranking_s));
                json_object_set_new(record, "provenance", provenance);
                rc = s4d_record_write(record, stdout, err);
            } else {
                if (i == 0)
                    s4d_provenance_print(t->provenance, stdout);
                s4d_tune_print(&t->now, t->c->top, stdout);
            }
            json_array_append_new(scaling, record);
        }
        forget(&t->now);
        fflush(stdout);
    }
    if (rc == 0 && n > 1 && !t->c->json)
        s4d_tune_print_scaling(scaling, stdout);
    json_decref(scaling);
    if (rc == 0 && died > 0) {
        s4d_fail(err, S4D_EXIT_BUG, "", "%d of the simulations did not end; the others did", died);
        rc = s4d_hint(err, "the same command tries them again");
    }
    return rc;
}

static int tune(struct config *c, int argc, char **argv, struct s4d_error *err)
{
    struct tune t = {.c = c};
    int *gpus = NULL, n = 0;
    if (resolve(c, err) || parse_gpus(c->gpus, &gpus, &n, err)) {
        free(gpus);
        return -1;
    }
    int rc = s4d_machine_load(&t.machine, c->machine, (const char *const *)c->set.v, c->set.n, err);
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
    }
    free(gpus);
    return rc ? -1 : 0;
}

static int run(int argc, char **argv)
{
    struct config c = {.workers = (int)sysconf(_SC_NPROCESSORS_ONLN),
                       .top = 20,
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
