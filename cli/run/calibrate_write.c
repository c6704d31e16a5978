/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/calibrate_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/tune/wire.h"
#include "support/machine.h"
#include "support/memory.h"
#include "support/nccl_topology.h"
#include "support/replace.h"

/* A machine with NCCL's constants and the file's node. */
static int load_topology(struct s4d_machine *m, const char *topology, int devices, int nodes,
                         struct s4d_error *err)
{
    char line[160];
    snprintf(line, sizeof line,
             "synthetic:topology=single-switch,nodes=%d,nic=1GB/s,latency=1us,peak=1TFLOP/s,"
             "library=nccl",
             nodes);
    if (s4d_machine_load(m, line, NULL, 0, err))
        return -1;
    if (s4d_nccl_topology_read(m, topology, err) == 0 && m->node.devices == devices)
        return 0;
    if (m->node.devices != devices)
        s4d_fail(err, S4D_EXIT_DATA, topology, "describes %d GPUs; %d ranks run on a node",
                 m->node.devices, devices);
    s4d_machine_free(m);
    return -1;
}

int s4d_calibrate_check_topology(const char *topology, int devices, struct s4d_error *err)
{
    struct s4d_machine m;
    if (!topology)
        return 0;
    if (load_topology(&m, topology, devices, 1, err))
        return -1;
    s4d_machine_free(&m);
    return 0;
}

static void swap(struct s4d_quantity *a, struct s4d_quantity *b)
{
    struct s4d_quantity c = *a;
    *a = *b;
    *b = c;
}

/* Node and constants of the other; what was measured of the node, and the tables, stay. */
static void take_node(struct s4d_machine *m, struct s4d_machine *other)
{
    struct s4d_node node = m->node;
    struct s4d_library library = m->library;
    m->node = other->node;
    m->library = other->library;
    other->node = node;
    other->library = library;
    swap(&m->node.latency_s, &other->node.latency_s);
    swap(&m->node.host_bandwidth_Bps, &other->node.host_bandwidth_Bps);
    swap(&m->node.compute_units, &other->node.compute_units);
    struct s4d_efficiency_table *none = m->library.table;
    int n = m->library.n_tables;
    m->library.table = other->library.table;
    m->library.n_tables = other->library.n_tables;
    other->library.table = none;
    other->library.n_tables = n;
}

/* A row's efficiency is the measured bus bandwidth over that of the links: now of these links. */
static void refer_to_links(struct s4d_machine *m, struct s4d_wires *w, double in_Bps,
                           double across_Bps)
{
    for (int t = 0; t < m->library.n_tables; t++)
        for (int i = 0; i < m->library.table[t].n; i++) {
            struct s4d_efficiency_row *row = &m->library.table[t].row[i];
            double was_Bps = row->ranks == row->ranks_per_node ? in_Bps : across_Bps;
            row->efficiency *= was_Bps / s4d_wires_find(w, 1, row->ranks)->bus_Bps;
        }
}

static int use_topology(struct s4d_machine *m, const char *topology, struct s4d_error *err)
{
    struct s4d_machine other;
    int devices = m->node.devices;
    double in_Bps = m->node.n_links > 0 ? m->node.link[0].brick_bandwidth_Bps.value
                                        : m->node.nic_bandwidth_Bps.value,
           across_Bps = m->node.nic_bandwidth_Bps.value;
    if (load_topology(&other, topology, devices, m->fabric.nodes, err))
        return -1;
    take_node(m, &other);
    s4d_machine_free(&other);
    struct s4d_wires *w = s4d_wires_create(m, devices * m->fabric.nodes, err);
    if (!w)
        return -1;
    refer_to_links(m, w, in_Bps, across_Bps);
    s4d_wires_free(w);
    return 0;
}

static int make(const struct s4d_calibration *c, const char *topology, struct s4d_machine *m,
                struct s4d_error *err)
{
    if (s4d_calibration_machine(c, m, err))
        return -1;
    if (!topology || use_topology(m, topology, err) == 0)
        return 0;
    s4d_machine_free(m);
    return -1;
}

int s4d_calibrate_write(const struct s4d_calibration *c, const char *topology, const char *file,
                        struct s4d_error *err)
{
    struct s4d_machine m;
    if (make(c, topology, &m, err))
        return -1;
    struct s4d_replacement to;
    int rc = s4d_replace_open(&to, file, err);
    if (!rc) {
        s4d_machine_write(&m, to.out);
        rc = s4d_replace_close(&to, 0, err);
    }
    s4d_machine_free(&m);
    return rc;
}
