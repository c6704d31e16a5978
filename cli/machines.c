/* SPDX-License-Identifier: Apache-2.0 */
/* scale4d machines: what machines are known, and everything that one of them says. */
#include <math.h>
#include <stdbool.h>

#include "cli/command.h"
#include "cli/job_options.h"
#include "cli/scenario.h"
#include "cli/sensitivity.h"
#include "sim/fabric.h"
#include "support/file.h" /* for: s4d_names_free */
#include "support/machine.h"
#include "support/option.h"
#include "support/record.h"

struct options {
    struct s4d_texts set;
    bool json;
    struct s4d_sensitivity_options sensitivity;
    struct s4d_schedule_options schedule;
    struct s4d_scenario_options scenario;
};
static const struct s4d_option rows[] = {
    S4D_OPTION_SET(offsetof(struct options, set)),
    {.name = "json",
     .type = S4D_OPT_FLAG,
     .offset = offsetof(struct options, json),
     .help = "print one JSON line"},
    {0},
};
#define AT(field) offsetof(struct options, field)
static const struct s4d_option_group groups[] = {
    {.title = "Options", .options = rows},
    {.title = "Sensitivity of a job",
     .options = s4d_sensitivity_options,
     .offset = AT(sensitivity)},
    {.title = "Schedule of the job", .options = s4d_schedule_options, .offset = AT(schedule)},
    {.title = "Platform, placement and differences",
     .options = s4d_scenario_options,
     .offset = AT(scenario)},
    {.title = NULL},
};

static json_t *number(double value)
{
    return isinf(value) ? json_string("unlimited") : json_real(value);
}

static json_t *numbers(const double *v, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_real(v[i]));
    return list;
}

static void add_value(void *context, const char *key, enum s4d_tag tag, const char *source,
                      double value)
{
    json_t *entry = json_object();
    if (!isnan(value))
        json_object_set_new(entry, "value", number(value));
    json_object_set_new(entry, "tag", json_string(s4d_tag_names[tag]));
    json_object_set_new(entry, "source", json_string(source));
    json_object_set_new(context, key, entry);
}

/* The points of curves and tables, into their entries. */
static void add_points(json_t *values, const struct s4d_machine *m)
{
    const struct s4d_curve *c = &m->device.memory_efficiency;
    json_t *entry = json_object_get(values, "device.memory_efficiency");
    if (entry) {
        json_object_set_new(entry, "size_bytes", numbers(c->x, c->n));
        json_object_set_new(entry, "part", numbers(c->y, c->n));
    }
    for (int i = 0; i < m->fabric.n_parameters; i++) {
        char key[64];
        const struct s4d_parameter *p = &m->fabric.parameter[i];
        snprintf(key, sizeof key, "fabric.%s", p->key);
        if (p->word[0])
            json_object_set_new(json_object_get(values, key), "value", json_string(p->word));
    }
    json_t *attention = json_array();
    for (int i = 0; i < m->device.n_attention; i++) {
        const struct s4d_attention_row *a = &m->device.attention[i];
        json_array_append_new(
            attention, json_pack("{s:i, s:b, s:s, s:o, s:o}", "head_dim", a->head_dim, "causal",
                                 a->causal, "pass", a->backward ? "backward" : "forward",
                                 "seq_length", numbers(a->flops_per_s.x, a->flops_per_s.n),
                                 "flops_per_s", numbers(a->flops_per_s.y, a->flops_per_s.n)));
    }
    json_object_set_new(values, "device.attention", attention);
    for (int i = 0; i < m->library.n_tables; i++) {
        const struct s4d_efficiency_table *t = &m->library.table[i];
        json_t *list = json_array();
        for (int j = 0; j < t->n; j++)
            json_array_append_new(list, json_pack("{s:i, s:i, s:f, s:f}", "ranks", t->row[j].ranks,
                                                  "ranks_per_node", t->row[j].ranks_per_node,
                                                  "size_bytes", t->row[j].bytes, "efficiency",
                                                  t->row[j].efficiency));
        char key[64];
        snprintf(key, sizeof key, "library.efficiency.%s", t->op);
        json_object_set_new(json_object_get(values, key), "rows", list);
    }
}

static json_t *describe_node(const struct s4d_node *node)
{
    json_t *links = json_array(), *nics = json_array(), *map = json_array();
    for (int i = 0; i < node->n_links; i++)
        json_array_append_new(
            links, json_pack("[i, i, i]", node->link[i].a, node->link[i].b, node->link[i].bricks));
    for (int i = 0; i < node->n_nics; i++)
        json_array_append_new(nics, json_integer(node->nic[i].device));
    for (int i = 0; i < node->devices; i++)
        json_array_append_new(map, json_integer(node->rank_to_device[i]));
    return json_pack("{s:o, s:o, s:o}", "links_a_b_bricks", links, "nics", nics, "rank_to_device",
                     map);
}

static json_t *summary(const struct s4d_machine *m)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:o}", "name", m->name, "description",
                     m->description, "device", m->device.name, "topology", m->fabric.topology,
                     "hash", m->hash, "nodes", m->fabric.nodes, "devices_per_node", m->node.devices,
                     "node", describe_node(&m->node));
}

static int print_record(const struct s4d_machine *m, int argc, char **argv, struct s4d_error *err)
{
    json_t *record = json_pack("{s:s}", "kind", "machine"), *values = json_object();
    json_t *about = summary(m);
    json_object_update(record, about);
    json_decref(about);
    s4d_machine_visit(m, add_value, values);
    add_points(values, m);
    json_object_set_new(record, "values", values);
    json_object_set_new(record, "provenance", s4d_provenance(argc, argv));
    int rc = s4d_record_write(record, stdout, err);
    json_decref(record);
    return rc;
}

static void print_line(const struct s4d_machine *m)
{
    printf("%-16s %7d %8d  %-16s %-14s %s\n", m->name, m->fabric.nodes, m->node.devices,
           m->device.name, m->fabric.topology, m->description);
}

static int list(bool json, int argc, char **argv, struct s4d_error *err)
{
    char **names;
    int n = s4d_machine_names(&names), rc = 0;
    if (!json)
        printf("%-16s %7s %8s  %-16s %-14s %s\n", "# name", "nodes", "devices", "device", "fabric",
               "description");
    for (int i = 0; i < n && !rc; i++) {
        struct s4d_machine m;
        rc = s4d_machine_load(&m, names[i], NULL, 0, err);
        if (!rc && json)
            rc = print_record(&m, argc, argv, err);
        else if (!rc)
            print_line(&m);
        s4d_machine_free(&m);
    }
    s4d_names_free(names, n);
    if (!rc && !json)
        printf("# or one line: synthetic:topology=single-switch,nodes=4,nic=50GB/s,latency=500ns,"
               "peak=312TFLOP/s\n");
    return rc;
}

static int print(const struct s4d_machine *m, bool json, int argc, char **argv,
                 struct s4d_error *err)
{
    if (s4d_fabric_check(m, err))
        return -1;
    if (json)
        return print_record(m, argc, argv, err);
    s4d_machine_print(m, stdout);
    return 0;
}

static int show(const char *name, struct options *o, int argc, char **argv, struct s4d_error *err)
{
    struct s4d_machine m;
    struct s4d_scenario scenario;
    if (s4d_scenario_load(&m, &scenario, name, &o->set, &o->scenario, err))
        return -1;
    int rc = 0;
    if (o->sensitivity.wanted)
        rc = s4d_sensitivity_command(&m, &scenario, &o->sensitivity, &o->schedule, o->json, argc,
                                     argv, err);
    else if (!s4d_scenario_is_plain(&scenario))
        rc = s4d_fail(
            err, S4D_EXIT_USAGE, "--set, --diff, --placement, --hosts",
            "links, NICs, devices, rates and placement are of a job: they need --sensitivity");
    else
        rc = print(&m, o->json, argc, argv, err);
    s4d_machine_free(&m);
    s4d_scenario_free(&scenario);
    return rc;
}

static int run(int argc, char **argv)
{
    struct s4d_error err = {0};
    struct options o = {.schedule = s4d_schedule_options_default()};
    struct s4d_texts names = {0};
    int rc =
        s4d_options_argv(groups,
                         "Lists the machines known. With a NAME, a file (.yaml; .xml of a SimGrid "
                         "platform, with --device) or a synthetic: line: every value with "
                         "its tag and source; with --sensitivity which of them a job's "
                         "iteration time hangs on.",
                         argc, argv, &o, &names, &err);
    if (!rc && names.n == 0 && (o.set.n > 0 || o.sensitivity.wanted))
        rc = s4d_fail(&err, S4D_EXIT_USAGE, o.set.n > 0 ? "--set" : "--sensitivity",
                      "needs the name of a machine");
    else if (!rc && names.n == 0)
        rc = list(o.json, argc, argv, &err);
    for (int i = 0; !rc && i < names.n; i++)
        rc = show(names.v[i], &o, argc, argv, &err);
    s4d_texts_free(&names);
    s4d_options_free(groups, &o);
    return rc < 0 ? s4d_error_print(&err) : S4D_EXIT_OK;
}

const struct s4d_command s4d_command_machines = {
    .name = "machines",
    .summary = "the machines known; with a name, every value and where it comes from",
    .run = run,
    .options = groups,
    .names = "machines",
};
