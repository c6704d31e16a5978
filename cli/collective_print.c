/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/collective.h"
#include "cli/stepwise.h"
#include "support/record.h"

double s4d_collective_bus_Bps(const struct s4d_collective_job *job, int i)
{
    return job->bytes[i] / job->results[i].time_s *
           s4d_collective_bus_factor(job->measurement.op, job->system.members);
}

const char *s4d_collective_protocol(const struct s4d_cost *cost)
{
    static const char *const names[S4D_PROTOCOLS] = {"LL", "LL128", "Simple"};
    if (cost->measured)
        return cost->extrapolated ? "table*" : "table";
    return cost->protocol < S4D_PROTOCOLS ? names[cost->protocol] : "-";
}

static void print_head(const struct s4d_collective_job *job)
{
    const struct s4d_measured_system *s = &job->system;
    printf("# machine %s (%s), %s, %d group%s of %d ranks on %d node%s (%d a node), %d ring "
           "channel%s\n",
           job->machine.name, job->machine.hash, job->op, s->groups, s->groups == 1 ? "" : "s",
           s->members, s->group_nodes, s->group_nodes == 1 ? "" : "s", s->group_members_per_node,
           s->channels, s->channels == 1 ? "" : "s");
    printf("#\n# %12s %14s %8s %7s %6s %11s %8s %8s %10s %8s", "size", "count", "type", "redop",
           "root", "time", "algbw", "busbw", "algorithm", "protocol");
    if (job->stepwise)
        printf(" %11s %8s %8s %10s", "stepwise", "differs", "passes", "messages");
    printf("\n# %12s %14s %8s %7s %6s %11s %8s %8s", "(B)", "(elements)", "", "", "", "(us)",
           "(GB/s)", "(GB/s)");
    if (job->stepwise)
        printf(" %10s %8s %11s %8s", "", "", "(us)", "(%)");
    printf("\n");
}

static void print_stepwise(const struct s4d_measured *r, double fluid_s)
{
    printf(" %11.2f %8.3f %8d %10.0f", r->time_s * 1e6,
           s4d_stepwise_percent(r->time_s / fluid_s - 1), r->sent.most_passes, r->sent.messages);
}

void s4d_collective_print(const struct s4d_collective_job *job)
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
        printf("  %12.0f %14.0f %8s %7s %6d %11.2f %8.2f %8.2f %10s %8s", job->bytes[i], count,
               "float", redop, root, r->time_s * 1e6, job->bytes[i] / r->time_s * 1e-9,
               s4d_collective_bus_Bps(job, i) * 1e-9, s4d_algorithms[r->algorithm]->name,
               s4d_collective_protocol(&r->cost));
        if (job->stepwise)
            print_stepwise(&job->stepwise[i], r->time_s);
        printf("\n");
        sum += s4d_collective_bus_Bps(job, i);
        extrapolated += r->cost.extrapolated;
    }
    if (extrapolated)
        printf("# * outside the rows of the machine's efficiency table: %d of %d sizes\n",
               extrapolated, job->n);
    printf("# Avg bus bandwidth    : %g\n", sum * 1e-9 / job->n);
}

json_t *s4d_collective_inputs(const struct s4d_collective_job *job)
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

int s4d_collective_records(const struct s4d_collective_job *job, json_t *provenance,
                           struct s4d_error *err)
{
    for (int i = 0; i < job->n; i++) {
        const struct s4d_measured *r = &job->results[i];
        json_t *record = s4d_collective_inputs(job);
        json_t *results = json_pack(
            "{s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:b, s:s}", "bytes",
            (json_int_t)job->bytes[i], "algorithm", s4d_algorithms[r->algorithm]->name, "protocol",
            s4d_collective_protocol(&r->cost), "time_s", r->time_s, "algbw_Bps",
            job->bytes[i] / r->time_s, "busbw_Bps", s4d_collective_bus_Bps(job, i), "latency_s",
            r->cost.latency_s, "efficiency", r->cost.efficiency, "extrapolated",
            r->cost.extrapolated, "model_version", s4d_model_version);
        if (job->stepwise)
            json_object_set_new(
                results, "stepwise",
                s4d_stepwise_record(job->stepwise[i].time_s, r->time_s, &job->stepwise[i].sent));
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
