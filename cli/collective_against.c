/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "cli/collective.h"
#include "support/record.h"

/* That the file is of what was simulated. */
int s4d_against_check(const struct s4d_collective_job *job, struct s4d_error *err)
{
    const struct s4d_measured_system *s = &job->system;
    if (!job->config->against)
        return 0;
    if (job->measured.ranks_per_node && job->measured.ranks_per_node != s->group_members_per_node) {
        s4d_fail(err, S4D_EXIT_DATA, job->config->against,
                 "has %d of its ranks on a node, the machine has %d", job->measured.ranks_per_node,
                 s->group_members_per_node);
        return s4d_hint(err, "--placement and node.rank_to_device say where ranks are");
    }
    return s4d_nccl_tests_check(&job->measured, job->config->against, job->op, s->members,
                                s4d_collective_bus_factor(job->measurement.op, s->members), err);
}

/* Simulated over measured bus bandwidth, less 1: from the times, which have more digits. */
static double error_of(const struct s4d_collective_job *job, int i)
{
    return job->measured.row[i].time_s / job->results[i].time_s - 1;
}

/* In percent to one digit, without a minus before a zero. */
static double percent(double part)
{
    return round(1000 * part) / 10 + 0.0;
}

struct mean {
    double sum, worst, worst_bytes; /* worst: with its sign */
    int n;
};

static struct mean mean_error(const struct s4d_collective_job *job, double least_bytes)
{
    struct mean m = {0};
    for (int i = 0; i < job->n; i++) {
        double error = error_of(job, i);
        if (job->bytes[i] < least_bytes)
            continue;
        m.sum += fabs(error);
        m.n++;
        if (m.n == 1 || fabs(error) > fabs(m.worst)) {
            m.worst = error;
            m.worst_bytes = job->bytes[i];
        }
    }
    return m;
}

enum { LARGE_BYTES = 4 << 20 };

void s4d_against_print(const struct s4d_collective_job *job)
{
    const struct s4d_measured_system *s = &job->system;
    double factor = s4d_collective_bus_factor(job->measurement.op, s->members);
    int extrapolated = 0;
    printf("# machine %s (%s), %s, %d ranks on %d node%s (%d a node)\n# against %s, %s\n#\n",
           job->machine.name, job->machine.hash, job->op, s->members, s->group_nodes,
           s->group_nodes == 1 ? "" : "s", s->group_members_per_node, job->config->against,
           job->measured.format);
    printf("# %12s %11s %11s %9s %9s %8s %10s %8s\n", "size", "measured", "simulated", "measured",
           "simulated", "error", "algorithm", "protocol");
    printf("# %12s %11s %11s %9s %9s %8s\n", "(B)", "(us)", "(us)", "(GB/s)", "(GB/s)", "(%)");
    for (int i = 0; i < job->n; i++) {
        const struct s4d_measured *r = &job->results[i];
        double measured_s = job->measured.row[i].time_s;
        printf("  %12.0f %11.2f %11.2f %9.3f %9.3f %+8.1f %10s %8s\n", job->bytes[i],
               measured_s * 1e6, r->time_s * 1e6, factor * job->bytes[i] / measured_s * 1e-9,
               s4d_collective_bus_Bps(job, i) * 1e-9, percent(error_of(job, i)),
               s4d_algorithms[r->algorithm]->name, s4d_collective_protocol(&r->cost));
        extrapolated += r->cost.extrapolated;
    }
    if (extrapolated)
        printf("# * outside the rows of the machine's efficiency table: %d of %d sizes\n",
               extrapolated, job->n);
    struct mean all = mean_error(job, 0), large = mean_error(job, LARGE_BYTES);
    printf("# error: simulated over measured bus bandwidth, less 1. Mean |error| %.1f %%, worst "
           "%+.1f %% at %.0f B\n",
           100 * all.sum / all.n, percent(all.worst), all.worst_bytes);
    if (large.n > 0 && large.n < all.n)
        printf("# From 4 MiB: mean %.1f %%, worst %+.1f %% at %.0f B\n", 100 * large.sum / large.n,
               percent(large.worst), large.worst_bytes);
}

static json_t *mean_record(const struct mean *m)
{
    if (m->n == 0)
        return json_null();
    return json_pack("{s:i, s:f, s:f, s:f}", "sizes", m->n, "mean", m->sum / m->n, "worst",
                     m->worst, "worst_bytes", m->worst_bytes);
}

/* One record: inputs, a row a size, sums. Errors are parts, not percent. */
int s4d_against_record(const struct s4d_collective_job *job, json_t *provenance,
                       struct s4d_error *err)
{
    json_t *record = s4d_collective_inputs(job), *rows = json_array();
    for (int i = 0; i < job->n; i++) {
        const struct s4d_measured *r = &job->results[i];
        json_array_append_new(
            rows,
            json_pack("{s:f, s:f, s:f, s:f, s:s, s:s, s:b}", "bytes", job->bytes[i], "measured_s",
                      job->measured.row[i].time_s, "time_s", r->time_s, "error", error_of(job, i),
                      "algorithm", s4d_algorithms[r->algorithm]->name, "protocol",
                      s4d_collective_protocol(&r->cost), "extrapolated", r->cost.extrapolated));
    }
    struct mean all = mean_error(job, 0), large = mean_error(job, LARGE_BYTES);
    json_object_set_new(record, "kind", json_string("collective-against"));
    json_object_set_new(record, "against", json_string(job->config->against));
    json_object_set_new(record, "rows", rows);
    json_object_set_new(record, "error", mean_record(&all));
    json_object_set_new(record, "error_large", mean_record(&large));
    json_object_set_new(record, "model_version", json_string(s4d_model_version));
    json_object_set(record, "provenance", provenance);
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}
