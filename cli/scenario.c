/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/scenario.h"

#include <stddef.h>
#include <string.h>

#include "sim/fabric.h"
#include "sim/platform_machine.h"
#include "support/nccl_topology.h"

#define AT(field) offsetof(struct s4d_scenario_options, field)
const struct s4d_option s4d_scenario_options[] = {
    {.name = "device",
     .argument = "M",
     .type = S4D_OPT_TEXT,
     .offset = AT(device),
     .help = "where --machine is a SimGrid platform (.xml): the machine whose nodes its hosts are"},
    {.name = "platform-hosts",
     .argument = "PATTERN",
     .type = S4D_OPT_TEXT,
     .offset = AT(platform_hosts),
     .help = "of a SimGrid platform: the hosts to use, by name (node-*) or property (gpu=h100); "
             "default: all"},
    {.name = "node",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(node),
     .help =
         "an NCCL topology file (.xml): GPUs, NVLinks, PCIe and ports of a node in place of the "
         "machine's"},
    {.name = "placement",
     .argument = "P",
     .type = S4D_OPT_TEXT,
     .offset = AT(placement),
     .help = "which nodes the job gets: node-major (default), random[:SEED], fragmented[:SEED]"},
    {.name = "hosts",
     .argument = "FILE",
     .type = S4D_OPT_TEXT,
     .offset = AT(hosts),
     .help = "a file of nodes, one a line (n12), which the job fills in that order"},
    {.name = "diff",
     .argument = "FILE",
     .type = S4D_OPT_LIST,
     .offset = AT(diff),
     .help =
         "a .yaml file of dead and slow links, NICs and devices, of rates, and settings; may be "
         "repeated. As --set: links.leaf0.out=0.5, nics.n3.nic1=dead, devices.n7.gpu2=0.9, "
         "rates.gemm=0.97, rates.z=0.88"},
    {.name = NULL},
};

static int read_placement(struct s4d_placement *p, const struct s4d_scenario_options *o,
                          struct s4d_error *err)
{
    if (o->placement && o->hosts)
        return s4d_fail(err, S4D_EXIT_USAGE, "--hosts", "cannot go with --placement");
    if (o->hosts)
        return s4d_placement_read(p, o->hosts, err);
    return s4d_placement_parse(p, o->placement ? o->placement : "node-major", err);
}

/* Files first, so that the command line goes over them. */
static int read_differences(struct s4d_differences *d, const struct s4d_texts *set,
                            const struct s4d_scenario_options *o, struct s4d_texts *of_machine,
                            struct s4d_error *err)
{
    for (int i = 0; i < o->diff.n; i++)
        if (s4d_differences_read(d, o->diff.v[i], of_machine, err))
            return -1;
    for (int i = 0; i < set->n; i++) {
        if (!s4d_is_difference(set->v[i]))
            s4d_texts_add(of_machine, set->v[i]);
        else if (s4d_differences_add(d, set->v[i], err))
            return -1;
    }
    return 0;
}

/* The node from a file, then the settings of nodes; before, the machine was loaded with `others`.
 */
static int take_node(struct s4d_machine *m, const char *file, const struct s4d_texts *set,
                     struct s4d_error *err)
{
    int rc = s4d_nccl_topology_read(m, file, err);
    for (int i = 0; i < set->n && rc == 0; i++)
        if (strncmp(set->v[i], "node.", 5) == 0)
            rc = s4d_machine_override(m, set->v[i], err);
    if (rc)
        s4d_machine_free(m);
    return rc;
}

static int load_machine(struct s4d_machine *m, const char *machine, const struct s4d_texts *set,
                        const struct s4d_scenario_options *o, struct s4d_error *err)
{
    const char *const *v = (const char *const *)set->v;
    if (s4d_is_platform(machine) && !o->device) {
        s4d_fail(err, S4D_EXIT_USAGE, "--device",
                 "missing: a platform file says nothing of the devices");
        return s4d_hint(err, "--device perlmutter takes that machine's nodes");
    }
    if (s4d_is_platform(machine))
        return s4d_platform_machine(m, machine, o->platform_hosts, o->device, v, set->n, err);
    if (o->device || o->platform_hosts)
        return s4d_fail(err, S4D_EXIT_USAGE, o->device ? "--device" : "--platform-hosts",
                        "goes with a SimGrid platform (.xml) as --machine");
    return s4d_machine_load(m, machine, v, set->n, err);
}

static int load_with_node(struct s4d_machine *m, const char *machine, const struct s4d_texts *set,
                          const struct s4d_scenario_options *o, struct s4d_error *err)
{
    struct s4d_texts others = {0};
    if (!o->node)
        return load_machine(m, machine, set, o, err);
    for (int i = 0; i < set->n; i++)
        if (strncmp(set->v[i], "node.", 5) != 0)
            s4d_texts_add(&others, set->v[i]);
    int rc = load_machine(m, machine, &others, o, err);
    s4d_texts_free(&others);
    return rc ? -1 : take_node(m, o->node, set, err);
}

int s4d_scenario_load(struct s4d_machine *m, struct s4d_scenario *s, const char *machine,
                      const struct s4d_texts *set, const struct s4d_scenario_options *o,
                      struct s4d_error *err)
{
    struct s4d_texts of_machine = {0};
    *s = (struct s4d_scenario){.placement = {.seed = 1}};
    int rc = read_placement(&s->placement, o, err);
    if (rc == 0)
        rc = read_differences(&s->differences, set, o, &of_machine, err);
    bool read = rc == 0;
    if (rc == 0)
        rc = load_with_node(m, machine, &of_machine, o, err);
    if (rc == 0 && (rc = s4d_fabric_check(m, err)) != 0)
        s4d_machine_free(m);
    if (rc && read)
        s4d_differences_locate(&s->differences, &of_machine, err);
    s4d_texts_free(&of_machine);
    if (rc)
        s4d_scenario_free(s);
    return rc ? -1 : 0;
}
