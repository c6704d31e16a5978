/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d collective: nccl-tests' columns, simulated. */
#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "cli/command.h"
#include "cli/scenario.h"
#include "sim/collective/measure.h"
#include "support/option.h"
#include "support/record.h"

struct config {
    char *machine, *op, *axis, *grid, *algorithm;
    int ranks, factor;
    int64_t smallest, largest;
    bool no_fold, json;
    struct s4d_texts set;
    struct s4d_scenario_options scenario;
};

static const struct s4d_option options[] = {
    {"machine", 0, "M", S4D_OPT_TEXT, offsetof(struct config, machine),
     .help = "a machine's name, its file, or synthetic:key=value,..."},
    {"op", 0, "OP", S4D_OPT_TEXT, offsetof(struct config, op),
     .help = "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all or send_recv"},
    {"ranks", 0, "N", S4D_OPT_INT, offsetof(struct config, ranks), .min = 2, .max = 1 << 20,
     .help = "one group of N ranks"},
    {"axis", 0, "AXIS", S4D_OPT_TEXT, offsetof(struct config, axis),
     .help = "all groups of this axis (x, y, z, data; z,data; x,y,z) of --grid, side by side"},
    {"grid", 0, "GXxGYxGZxGDATA", S4D_OPT_TEXT, offsetof(struct config, grid),
     .help = "the process grid, for --axis"},
    {"minbytes", 'b', "MIN", S4D_OPT_SIZE, offsetof(struct config, smallest), .min = 4,
     .max = 68719476736, .help = "smallest size; K, M, G are binary"},
    {"maxbytes", 'e', "MAX", S4D_OPT_SIZE, offsetof(struct config, largest), .min = 4,
     .max = 68719476736, .help = "largest size"},
    {"stepfactor", 'f', "FACTOR", S4D_OPT_INT, offsetof(struct config, factor), .min = 2,
     .max = 1 << 20, .help = "from one size to the next"},
    {"algorithm", 0, "A", S4D_OPT_TEXT, offsetof(struct config, algorithm),
     .help = "auto (the library's choice) or one of `scale4d collectives`"},
    {"no-fold", 0, NULL, S4D_OPT_FLAG, offsetof(struct config, no_fold),
     .help = "simulate every link and every group"},
    {"json", 0, NULL, S4D_OPT_FLAG, offsetof(struct config, json),
     .help = "one record a size instead of the table"},
    {"set", 0, "KEY=VALUE", S4D_OPT_LIST, offsetof(struct config, set),
     .help = "another value for a key of the machine"},
    {0}};

static const struct s4d_option_group groups[] = {
    {"Collective", options, 0},
    {"Placement and differences", s4d_scenario_options, offsetof(struct config, scenario)},
    {0}};

/* Everything a run needs, checked. */
struct job {
    const struct config *config;
    struct s4d_machine machine;
    struct s4d_scenario scenario;
    struct s4d_measurement measurement;
    char op[32]; /* as nccl-tests spells it */
    double bytes[64];
    int n;
    struct s4d_measured results[64];
    struct s4d_measured_system system;
};

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

static int find_op(struct job *job, struct s4d_error *err)
{
    char known[256] = "";
    if (!job->config->op)
        return s4d_fail(err, S4D_EXIT_USAGE, "--op", "is required");
    for (int op = 0; op < S4D_COLLECTIVE_OPS; op++) {
        if (!has_algorithm(op))
            continue;
        underscores(s4d_collective_name(op), job->op, sizeof job->op);
        if (strcmp(job->op, job->config->op) == 0) {
            job->measurement.op = op;
            return 0;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", job->op);
    }
    return s4d_fail(err, S4D_EXIT_USAGE, "--op", "expected one of %s, got '%s'", known,
                    job->config->op);
}

static int find_algorithm(struct job *job, struct s4d_error *err)
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

static int find_stream(struct job *job, struct s4d_error *err)
{
    const struct config *config = job->config;
    s4d_axes axes = s4d_axes_parse(config->axis);
    int stream = 0;
    while (stream < S4D_STREAMS && (axes == 0 || s4d_streams[stream].axes != axes))
        stream++;
    if (stream == S4D_STREAMS)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis",
                        "expected x, y, z, data, z,data or x,y,z, got '%s'", config->axis);
    job->measurement.stream = stream;
    if (s4d_group_size(&job->measurement.grid, axes) < 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "--axis", "its groups have one member in the grid %s",
                        config->grid);
    return 0;
}

static int find_groups(struct job *job, struct s4d_error *err)
{
    const struct config *config = job->config;
    if (config->ranks && (config->axis || config->grid))
        return s4d_fail(err, S4D_EXIT_USAGE, "--ranks", "cannot go with --axis and --grid");
    if (config->ranks) {
        job->measurement.grid = s4d_grid_make(1, 1, config->ranks, 1);
        job->measurement.stream = S4D_STREAM_Z_GATHER;
        return 0;
    }
    if (!config->axis || !config->grid)
        return s4d_fail(err, S4D_EXIT_USAGE, "--ranks", "expected --ranks, or --axis and --grid");
    if (s4d_grid_parse(config->grid, &job->measurement.grid, err))
        return -1;
    return find_stream(job, err);
}

static int find_sizes(struct job *job, struct s4d_error *err)
{
    const struct config *config = job->config;
    if (config->smallest > config->largest)
        return s4d_fail(err, S4D_EXIT_USAGE, "-b", "expected at most -e (%lld), got %lld",
                        (long long)config->largest, (long long)config->smallest);
    for (double b = (double)config->smallest; b <= (double)config->largest; b *= config->factor)
        job->bytes[job->n++] = b; /* at most 35: from 4 B to 64 GiB by 2 */
    return 0;
}

static int check(struct job *job, struct s4d_error *err)
{
    const struct config *config = job->config;
    job->measurement.fold = !config->no_fold;
    if (!config->machine)
        return s4d_fail(err, S4D_EXIT_USAGE, "--machine", "is required");
    if (find_op(job, err) || find_algorithm(job, err) || find_groups(job, err) ||
        find_sizes(job, err))
        return -1;
    if (s4d_scenario_load(&job->machine, &job->scenario, config->machine, &config->set,
                          &config->scenario, err))
        return -1;
    job->measurement.scenario = &job->scenario;
    job->measurement.machine = &job->machine;
    return 0;
}

static double bus_Bps(const struct job *job, int i)
{
    return job->bytes[i] / job->results[i].time_s *
           s4d_collective_bus_factor(job->measurement.op, job->system.members);
}

static const char *protocol_name(const struct s4d_cost *cost)
{
    static const char *const names[S4D_PROTOCOLS] = {"LL", "LL128", "Simple"};
    if (cost->measured)
        return cost->extrapolated ? "table*" : "table";
    return cost->protocol < S4D_PROTOCOLS ? names[cost->protocol] : "-";
}

static void print_head(const struct job *job)
{
    const struct s4d_measured_system *s = &job->system;
    printf("# machine %s (%s), %s, %d group%s of %d ranks on %d node%s (%d a node), %d ring "
           "channel%s\n",
           job->machine.name, job->machine.hash, job->op, s->groups, s->groups == 1 ? "" : "s",
           s->members, s->group_nodes, s->group_nodes == 1 ? "" : "s", s->group_members_per_node,
           s->channels, s->channels == 1 ? "" : "s");
    printf("#\n# %12s %14s %8s %7s %6s %11s %8s %8s %10s %8s\n", "size", "count", "type", "redop",
           "root", "time", "algbw", "busbw", "algorithm", "protocol");
    printf("# %12s %14s %8s %7s %6s %11s %8s %8s\n", "(B)", "(elements)", "", "", "", "(us)",
           "(GB/s)", "(GB/s)");
}

static void print_table(const struct job *job)
{
    double sum = 0;
    int extrapolated = 0;
    enum s4d_op_kind op = job->measurement.op;
    bool sums = op == S4D_OP_ALL_REDUCE || op == S4D_OP_REDUCE_SCATTER;
    bool per_rank = op == S4D_OP_ALL_GATHER || op == S4D_OP_REDUCE_SCATTER || op == S4D_ALL_TO_ALL;
    const char *redop = sums ? "sum" : "none";
    int root = op == S4D_BROADCAST ? 0 : -1;
    print_head(job);
    for (int i = 0; i < job->n; i++) {
        const struct s4d_measured *r = &job->results[i];
        double count = job->bytes[i] / 4 / (per_rank ? job->system.members : 1);
        printf("  %12.0f %14.0f %8s %7s %6d %11.2f %8.2f %8.2f %10s %8s\n", job->bytes[i], count,
               "float", redop, root, r->time_s * 1e6, job->bytes[i] / r->time_s * 1e-9,
               bus_Bps(job, i) * 1e-9, s4d_algorithms[r->algorithm]->name, protocol_name(&r->cost));
        sum += bus_Bps(job, i);
        extrapolated += r->cost.extrapolated;
    }
    if (extrapolated)
        printf("# * outside the rows of the machine's efficiency table: %d of %d sizes\n",
               extrapolated, job->n);
    printf("# Avg bus bandwidth    : %g\n", sum * 1e-9 / job->n);
}

static json_t *inputs(const struct job *job)
{
    const struct s4d_measured_system *s = &job->system;
    char grid[64];
    return json_pack(
        "{s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:b}", "kind", "collective",
        "machine", "name", job->machine.name, "hash", job->machine.hash, "op", job->op, "grid",
        s4d_grid_text(&job->measurement.grid, grid, sizeof grid), "axis",
        job->config->axis ? job->config->axis : "z", "ranks", s->members, "groups", s->groups,
        "nodes", s->group_nodes, "ranks_per_node", s->group_members_per_node, "channels",
        s->channels, "fold", job->measurement.fold);
}

static int write_records(const struct job *job, json_t *provenance, struct s4d_error *err)
{
    for (int i = 0; i < job->n; i++) {
        const struct s4d_measured *r = &job->results[i];
        json_t *record = inputs(job);
        json_t *results =
            json_pack("{s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:s}", "bytes",
                      (json_int_t)job->bytes[i], "algorithm", s4d_algorithms[r->algorithm]->name,
                      "protocol", protocol_name(&r->cost), "time_s", r->time_s, "algbw_Bps",
                      job->bytes[i] / r->time_s, "busbw_Bps", bus_Bps(job, i), "latency_s",
                      r->cost.latency_s, "efficiency", r->cost.efficiency, "extrapolated",
                      r->cost.extrapolated, "model_version", s4d_model_version);
        json_t *scenario = s4d_scenario_record(&job->scenario);
        if (scenario)
            json_object_set_new(record, "scenario", scenario);
        json_object_update_new(record, results);
        json_object_set(record, "provenance", provenance);
        int rc = s4d_record_write(record, stdout, err);
        json_decref(record);
        if (rc)
            return -1;
    }
    return 0;
}

static int measure(const struct config *config, int argc, char **argv, struct s4d_error *err)
{
    struct job job = {.config = config};
    int rc = check(&job, err);
    if (rc == 0)
        rc = s4d_measure_collective(&job.measurement, job.bytes, job.n, job.results, &job.system,
                                    err);
    if (rc == 0) {
        json_t *provenance = s4d_provenance(argc, argv);
        if (config->json) {
            rc = write_records(&job, provenance, err);
        } else {
            s4d_provenance_print(provenance, stdout);
            print_table(&job);
        }
        json_decref(provenance);
    }
    if (job.measurement.machine) {
        s4d_machine_free(&job.machine);
        s4d_scenario_free(&job.scenario);
    }
    return rc;
}

static int run(int argc, char **argv)
{
    struct config config = {.smallest = 8, .largest = 128 << 20, .factor = 2};
    struct s4d_error err = {0};
    int rc =
        s4d_options_argv(groups, s4d_command_collective.summary, argc, argv, &config, NULL, &err);
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
