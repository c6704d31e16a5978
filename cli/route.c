/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d route: the links between two ranks of a machine. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/scenario.h"
#include "sim/cluster.h"
#include "support/option.h"
#include "support/record.h"
#include "support/units.h"

struct options {
    char *machine;
    int gpus;
    struct s4d_texts set;
    struct s4d_scenario_options scenario;
    bool json;
};
static const struct s4d_option rows[] = {
    S4D_OPTION_MACHINE(offsetof(struct options, machine)),
    {.name = "gpus",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct options, gpus),
     .min = 1,
     .max = 1 << 24,
     .help = "only the machine's first N devices (default: all)"},
    S4D_OPTION_SET(offsetof(struct options, set)),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print one JSON line"},
    {0},
};
static const struct s4d_option_group groups[] = {
    {"Options", rows, 0},
    {"Placement and differences", s4d_scenario_options, offsetof(struct options, scenario)},
    {0}};

struct way {
    int rank[2];
    struct s4d_path path;
    double latency_s;
};

static void print(const struct s4d_cluster *c, const struct way *w)
{
    char text[32];
    printf("# machine %s (%s), rank %d to rank %d, latency %s\n", c->machine->name,
           c->machine->hash, w->rank[0], w->rank[1],
           s4d_format_time(w->latency_s, text, sizeof text));
    printf("%-24s %-11s %12s %7s\n", "# link", "kind", "capacity", "weight");
    double narrowest = INFINITY;
    for (int i = 0; i < w->path.n; i++) {
        const struct s4d_link *link = &c->links[w->path.link[i]];
        char *name = s4d_link_name(c, w->path.link[i]);
        narrowest = fmin(narrowest, link->capacity_Bps / w->path.weight[i]);
        printf("%-24s %-11s %12s %7d\n", name, link->kind,
               s4d_format_bandwidth(link->capacity_Bps, text, sizeof text), w->path.weight[i]);
        free(name);
    }
    printf("# %d links, the narrowest carries %s\n", w->path.n,
           s4d_format_bandwidth(narrowest, text, sizeof text));
}

static int write_record(const struct s4d_cluster *c, const struct way *w, int argc, char **argv,
                        struct s4d_error *err)
{
    json_t *links = json_array();
    for (int i = 0; i < w->path.n; i++) {
        const struct s4d_link *link = &c->links[w->path.link[i]];
        char *name = s4d_link_name(c, w->path.link[i]);
        json_array_append_new(links, json_pack("{s:s, s:s, s:f, s:i}", "name", name, "kind",
                                               link->kind, "capacity_Bps", link->capacity_Bps,
                                               "weight", w->path.weight[i]));
        free(name);
    }
    json_t *record =
        json_pack("{s:s, s:{s:s, s:s}, s:i, s:i, s:i, s:f, s:o, s:o}", "kind", "route", "machine",
                  "name", c->machine->name, "hash", c->machine->hash, "gpus", c->n_devices, "from",
                  w->rank[0], "to", w->rank[1], "latency_s", w->latency_s, "links", links,
                  "provenance", s4d_provenance(argc, argv));
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static int read_ranks(const struct s4d_texts *given, int gpus, int rank[2], struct s4d_error *err)
{
    if (given->n != 2)
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected two ranks, found %d", given->n);
    for (int i = 0; i < 2; i++) {
        int64_t value;
        if (s4d_parse_int(given->v[i], 0, gpus - 1, &value, err)) {
            err->exit = S4D_EXIT_USAGE;
            snprintf(err->where, sizeof err->where, "%s rank", i ? "second" : "first");
            return -1;
        }
        rank[i] = (int)value;
    }
    if (rank[0] == rank[1])
        return s4d_fail(err, S4D_EXIT_USAGE, "", "expected two different ranks, found %d twice",
                        rank[0]);
    return 0;
}

static int route(const struct s4d_machine *m, const struct s4d_scenario *s, const struct options *o,
                 const struct s4d_texts *given, int argc, char **argv, struct s4d_error *err)
{
    int per = m->node.devices, gpus = o->gpus ? o->gpus : m->fabric.nodes * per;
    struct way w = {.path = {0}};
    struct s4d_cluster c;
    if (s4d_scenario_cluster(&c, m, gpus, s, err))
        return -1;
    int rc = read_ranks(given, gpus, w.rank, err);
    if (rc == 0) {
        s4d_cluster_route(&c, s4d_device_of_rank(&c, w.rank[0]), s4d_device_of_rank(&c, w.rank[1]),
                          &w.path, &w.latency_s);
        rc = s4d_cluster_check_ways(&c, err);
    }
    if (rc == 0) {
        if (o->json)
            rc = write_record(&c, &w, argc, argv, err);
        else
            print(&c, &w);
    }
    s4d_path_free(&w.path);
    s4d_cluster_destroy(&c);
    return rc;
}

static int run(int argc, char **argv)
{
    struct s4d_error err = {0};
    struct options o = {0};
    struct s4d_texts given = {.usage = "FROM TO"};
    struct s4d_machine m;
    struct s4d_scenario s;
    int rc = s4d_options_argv(groups,
                              "The links from rank FROM to rank TO, two numbers, with capacity and "
                              "weight, and the latency of the way.",
                              argc, argv, &o, &given, &err);
    if (rc == 0 && !o.machine)
        rc = s4d_fail(&err, S4D_EXIT_USAGE, "--machine", "expected a machine, not given");
    if (rc == 0)
        rc = s4d_scenario_load(&m, &s, o.machine, &o.set, &o.scenario, &err);
    if (rc == 0) {
        const char *rate = s4d_differences_rates(&s.differences);
        rc = rate ? s4d_fail(&err, S4D_EXIT_USAGE, rate,
                             "is of computing and collectives; a way has links")
                  : route(&m, &s, &o, &given, argc, argv, &err);
        s4d_machine_free(&m);
        s4d_scenario_free(&s);
    }
    s4d_texts_free(&given);
    s4d_options_free(groups, &o);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_route = {
    .name = "route",
    .summary = "the links between two ranks",
    .run = run,
    .options = groups,
};
