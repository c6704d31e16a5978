/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d collective: nccl-tests' columns, simulated. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/collective.h"
#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/stepwise.h"
#include "support/memory.h"
#include "support/option.h"
#include "support/quote.h"
#include "support/record.h"

static const struct s4d_option options[] = {
    S4D_OPTION_MACHINE(offsetof(struct s4d_collective_options, machine)),
    {"op", 0, "OP", S4D_OPT_TEXT, offsetof(struct s4d_collective_options, op),
     .help = "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all or send_recv"},
    {"ranks", 0, "N", S4D_OPT_INT, offsetof(struct s4d_collective_options, ranks), .min = 2,
     .max = 1 << 20, .help = "one group of N ranks"},
    {"axis", 0, "AXIS", S4D_OPT_TEXT, offsetof(struct s4d_collective_options, axis),
     .help = "all groups of this axis (x, y, z, data; z,data; x,y,z) of --grid, side by side"},
    {"grid", 0, "GXxGYxGZxGDATA", S4D_OPT_TEXT, offsetof(struct s4d_collective_options, grid),
     .help = "the process grid, for --axis"},
    {"minbytes", 'b', "MIN", S4D_OPT_SIZE, offsetof(struct s4d_collective_options, smallest),
     .min = 4, .max = 68719476736, .help = "smallest size; K, M, G are binary"},
    {"maxbytes", 'e', "MAX", S4D_OPT_SIZE, offsetof(struct s4d_collective_options, largest),
     .min = 4, .max = 68719476736, .help = "largest size"},
    {"stepfactor", 'f', "FACTOR", S4D_OPT_INT, offsetof(struct s4d_collective_options, factor),
     .min = 2, .max = 1 << 20, .help = "from one size to the next"},
    {"algorithm", 0, "A", S4D_OPT_TEXT, offsetof(struct s4d_collective_options, algorithm),
     .help = "auto (the library's choice) or one of `scale4d collectives`"},
    {"against", 0, "FILE", S4D_OPT_TEXT, offsetof(struct s4d_collective_options, against),
     .help =
         "compare with what nccl-tests (its table, or the JSON of -J), rccl-tests or scale4d-run "
         "collective measured: the sizes, and where it says them op and ranks, are the file's"},
    {"no-fold", 0, NULL, S4D_OPT_FLAG, offsetof(struct s4d_collective_options, no_fold),
     .help = "simulate every link and every group"},
    S4D_STEPWISE_OPTION(offsetof(struct s4d_collective_options, stepwise)),
    {"json", 0, NULL, S4D_OPT_FLAG, offsetof(struct s4d_collective_options, json),
     .help = "one record a size instead of the table"},
    S4D_OPTION_SET(offsetof(struct s4d_collective_options, set)),
    {0}};

static const struct s4d_option_group groups[] = {
    {"Collective", options, 0},
    {"Placement and differences", s4d_scenario_options,
     offsetof(struct s4d_collective_options, scenario)},
    {0}};

static const struct s4d_collective_options defaults = {
    .smallest = 8, .largest = 128 << 20, .factor = 2};

/* "all-reduce" as nccl-tests spells it. */
static void underscores(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", name);
    for (char *c = out; *c; c++)
        if (*c == '-')
            *c = '_';
}

static bool has_algorithm(enum s4d_op_kind op)
{
    for (int i = 0; s4d_algorithms[i]; i++)
        if (s4d_algorithms[i]->supports(op))
            return true;
    return false;
}

static int find_op(struct s4d_collective_job *job, struct s4d_error *err)
{
    char known[256] = "";
    const char *name = job->config->op;
    if (!name && job->measured.op[0])
        name = job->measured.op;
    if (!name && job->config->against)
        return s4d_fail(err, S4D_EXIT_USAGE, "--op", "is required: %s does not say which it is of",
                        job->config->against);
    for (int op = 0; op < S4D_COLLECTIVE_OPS; op++) {
        if (!has_algorithm(op))
            continue;
        underscores(s4d_collective_name(op), job->op, sizeof job->op);
        if (name && strcmp(job->op, name) == 0) {
            job->measurement.op = op;
            return 0;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", job->op);
    }
    if (!name)
        return s4d_fail(err, S4D_EXIT_USAGE, "--op", "expected one of %s, not given", known);
    if (!job->config->op)
        return s4d_fail(err, S4D_EXIT_DATA, job->config->against, "expected one of %s, got %s",
                        known, s4d_quote(name).text);
    return s4d_fail(err, S4D_EXIT_USAGE, "--op", "expected one of %s, got '%s'", known, name);
}

static int find_algorithm(struct s4d_collective_job *job, struct s4d_error *err)
{
    const char *name = job->config->algorithm;
    if (!name || strcmp(name, "auto") == 0)
        return 0;
    job->measurement.algorithm = s4d_algorithm_find(name);
    if (job->measurement.algorithm)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, "--algorithm", "expected auto or the name of one, got '%s'",
             name);
    return s4d_hint(err, "scale4d collectives lists them");
}

static int find_stream(struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_collective_options *config = job->config;
    s4d_axes axes = s4d_axes_parse(config->axis);
    int stream = 0;
    while (stream < S4D_STREAMS && (axes == 0 || s4d_streams[stream].axes != axes))
        stream++;
    if (stream == S4D_STREAMS)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis",
                        "expected x, y, z, data, z,data or x,y,z, got '%s'", config->axis);
    if (stream == S4D_STREAM_Z_GATHER && job->measurement.op == S4D_OP_REDUCE_SCATTER)
        stream = S4D_STREAM_Z_SCATTER;
    job->measurement.stream = stream;
    if (s4d_group_size(&job->measurement.grid, axes) < 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis", "its groups have one member in the grid %s",
                        config->grid);
    return 0;
}

static int find_groups(struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_collective_options *config = job->config;
    if (config->ranks && (config->axis || config->grid))
        return s4d_fail(err, S4D_EXIT_USAGE, "--ranks", "cannot go with --axis and --grid");
    int ranks = config->ranks;
    if (!ranks && !config->axis && !config->grid)
        ranks = job->measured.ranks;
    if (ranks == 1)
        return s4d_fail(err, S4D_EXIT_DATA, config->against, "is of 1 rank, expected 2 or more");
    if (ranks) {
        job->measurement.grid = s4d_grid_make(1, 1, ranks, 1);
        job->measurement.stream = S4D_STREAM_Z_GATHER;
        return 0;
    }
    if (config->against && !config->axis && !config->grid)
        return s4d_fail(err, S4D_EXIT_USAGE, "--ranks",
                        "is required: %s does not say how many there were", config->against);
    if (!config->axis || !config->grid)
        return s4d_fail(err, S4D_EXIT_USAGE, "--ranks", "expected --ranks, or --axis and --grid");
    if (s4d_grid_parse(config->grid, &job->measurement.grid, err))
        return -1;
    return find_stream(job, err);
}

static int find_sizes(struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_collective_options *config = job->config;
    for (int i = 0; i < job->measured.n; i++)
        s4d_push(job->bytes, job->n, job->cap, job->measured.row[i].bytes);
    if (config->against)
        return 0;
    if (config->smallest > config->largest)
        return s4d_fail(err, S4D_EXIT_USAGE, "-b", "expected at most -e (%lld), got %lld",
                        (long long)config->largest, (long long)config->smallest);
    for (double b = (double)config->smallest; b <= (double)config->largest; b *= config->factor)
        s4d_push(job->bytes, job->n, job->cap, b);
    return 0;
}

static int read_measured(struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_collective_options *config = job->config;
    if (!config->against)
        return 0;
    if (config->smallest != defaults.smallest || config->largest != defaults.largest ||
        config->factor != defaults.factor)
        return s4d_fail(err, S4D_EXIT_USAGE, "--against",
                        "cannot go with -b, -e and -f: the sizes are the file's");
    return s4d_nccl_tests_read(&job->measured, config->against, err);
}

static int check(struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_collective_options *config = job->config;
    job->measurement.fold = !config->no_fold;
    if (!config->machine)
        return s4d_fail(err, S4D_EXIT_USAGE, "--machine", "expected a machine, not given");
    if (read_measured(job, err) || find_op(job, err) || find_algorithm(job, err) ||
        find_groups(job, err) || find_sizes(job, err))
        return -1;
    if (s4d_scenario_load(&job->machine, &job->scenario, config->machine, &config->set,
                          &config->scenario, err))
        return -1;
    job->measurement.scenario = &job->scenario;
    const char *rate = s4d_differences_rates(&job->scenario.differences);
    if (rate && !config->axis) {
        s4d_fail(err, S4D_EXIT_USAGE, rate, "is of a grid's streams, --ranks has none");
        s4d_hint(err, "with --axis and --grid it holds");
        s4d_machine_free(&job->machine);
        s4d_scenario_free(&job->scenario);
        return -1;
    }
    job->measurement.machine = &job->machine;
    job->results = s4d_calloc((size_t)job->n, sizeof *job->results);
    return 0;
}

static int simulate(struct s4d_collective_job *job, struct s4d_error *err)
{
    if (job->config->stepwise && job->config->against)
        return s4d_fail(err, S4D_EXIT_USAGE, "--stepwise", "cannot go with --against");
    if (!job->config->stepwise)
        return s4d_measure_collective(&job->measurement, job->bytes, job->n, job->results,
                                      &job->system, err);
    job->stepwise = s4d_calloc((size_t)job->n, sizeof *job->stepwise);
    return s4d_stepwise_collective(&job->measurement, job->config->stepwise, job->bytes, job->n,
                                   job->results, job->stepwise, &job->system, err);
}

static int measure(const struct s4d_collective_options *config, int argc, char **argv,
                   struct s4d_error *err)
{
    struct s4d_collective_job job = {.config = config};
    int rc = check(&job, err);
    if (rc == 0)
        rc = simulate(&job, err);
    if (rc == 0)
        rc = s4d_against_check(&job, err);
    if (rc == 0) {
        json_t *provenance = s4d_provenance(argc, argv);
        if (config->json) {
            rc = config->against ? s4d_against_record(&job, provenance, err)
                                 : s4d_collective_records(&job, provenance, err);
        } else if (config->against) {
            s4d_provenance_print(provenance, stdout);
            s4d_against_print(&job);
        } else {
            s4d_provenance_print(provenance, stdout);
            s4d_collective_print(&job);
        }
        json_decref(provenance);
    }
    if (job.measurement.machine) {
        s4d_machine_free(&job.machine);
        s4d_scenario_free(&job.scenario);
    }
    s4d_nccl_tests_free(&job.measured);
    free(job.bytes);
    free(job.results);
    free(job.stepwise);
    return rc;
}

static int run(int argc, char **argv)
{
    struct s4d_collective_options config = defaults;
    struct s4d_error err = {0};
    int rc =
        s4d_options_argv(groups,
                         "Simulates one collective by size, and prints times and bandwidths in "
                         "nccl-tests' columns.",
                         argc, argv, &config, NULL, &err);
    if (rc == 0)
        rc = measure(&config, argc, argv, &err);
    s4d_options_free(groups, &config);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_collective = {
    .name = "collective",
    .summary = "times and bandwidths of one collective by size, in nccl-tests' columns",
    .run = run,
    .options = groups,
};
