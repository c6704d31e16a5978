/* SPDX-License-Identifier: Apache-2.0 */
/* From measurements to a machine: its node and network here, its device in calibration_device.c.
 * Every number is measured, or says why it is assumed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/calibration_parts.h"
#include "support/memory.h"

struct s4d_quantity s4d_quantity_of(double value, enum s4d_tag tag, const char *source)
{
    return (struct s4d_quantity){value, tag, s4d_strdup(source)};
}

struct s4d_quantity s4d_quantity_measured(const struct s4d_calibration *c, double value,
                                          const char *what, bool noisy)
{
    return (struct s4d_quantity){
        value, S4D_TAG_MEASURED,
        s4d_asprintf("%s%s; %s", noisy ? "TOO NOISY TO RELY ON: " : "", what, c->source)};
}

char *s4d_calibration_source(const struct s4d_calibration *c, const char *what, int n, int noisy)
{
    char *mark = noisy ? s4d_asprintf(", %d of them TOO NOISY TO RELY ON", noisy) : s4d_strdup("");
    char *source = s4d_asprintf("%d %s%s; %s", n, what, mark, c->source);
    free(mark);
    return source;
}

int s4d_calibration_node_ranks(const struct s4d_calibration *c)
{
    return c->node_ranks > 0 ? c->node_ranks : c->ranks;
}

int s4d_calibration_nodes(const struct s4d_calibration *c)
{
    return c->ranks / s4d_calibration_node_ranks(c);
}

/* What collectives get out of links: the best bus bandwidth, and the time of a ring's step from the
 * smallest all-reduce; of groups in a node, and across nodes. 0: not measured. */
struct wires {
    double Bps, step_s, smallest;
};

static void look_at(struct wires *w, const struct s4d_calibrated_collective *p)
{
    w->Bps = fmax(w->Bps, s4d_calibrated_bus_Bps(p));
    if (p->kind == S4D_OP_ALL_REDUCE && (w->smallest == 0 || (double)p->bytes < w->smallest)) {
        w->smallest = (double)p->bytes;
        w->step_s = p->probed.t.median / (2 * (p->ranks - 1));
    }
}

static void find_wires(const struct s4d_calibration *c, struct wires *in, struct wires *across)
{
    *in = *across = (struct wires){0};
    for (int i = 0; i < c->n_collectives; i++)
        look_at(c->collective[i].ranks <= s4d_calibration_node_ranks(c) ? in : across,
                &c->collective[i]);
    if (in->Bps == 0) /* one rank a node, or one rank: no link of a node is used; assumed: 1 GB/s */
        in->Bps = across->Bps > 0 ? across->Bps : 1e9;
}

static void make_links(const struct s4d_calibration *c, struct s4d_node *node, double link_Bps)
{
    int n = s4d_calibration_node_ranks(c);
    char *source = s4d_asprintf("as many as ranks of a node; %s", c->source);
    node->devices = n;
    node->layout = (struct s4d_origin){S4D_TAG_MEASURED, source};
    node->rank_to_device = s4d_calloc((size_t)n, sizeof(int));
    node->nic = s4d_calloc(1, sizeof *node->nic);
    node->n_nics = 1;
    node->link = s4d_calloc((size_t)n * (size_t)n + 1, sizeof *node->link);
    for (int a = 0; a < n; a++) {
        node->rank_to_device[a] = a;
        for (int b = a + 1; b < n; b++)
            node->link[node->n_links++] =
                (struct s4d_node_link){.a = a,
                                       .b = b,
                                       .bricks = 1,
                                       .brick_bandwidth_Bps = s4d_quantity_measured(
                                           c, link_Bps, "the best bus bandwidth", false)};
    }
}

static void make_node(const struct s4d_calibration *c, struct s4d_machine *m,
                      const struct wires *in, const struct wires *across)
{
    struct s4d_node *node = &m->node;
    bool one = s4d_calibration_nodes(c) == 1;
    make_links(c, node, in->Bps);
    node->nic_bandwidth_Bps =
        one ? s4d_quantity_of(in->Bps, S4D_TAG_ASSUMED, "there is one node: unused")
            : s4d_quantity_of(
                  across->Bps, S4D_TAG_ASSUMED,
                  "the best bus bandwidth across nodes, as of one port that all devices "
                  "share: how many ports a node has is not known");
    node->latency_s = s4d_quantity_measured(
        c, in->step_s, "the smallest all-reduce, by the steps of a ring", false);
    node->compute_units =
        c->device_bytes > 0
            ? s4d_quantity_of(INFINITY, S4D_TAG_READ, "a device for every rank")
            : s4d_quantity_measured(c, c->active,
                                    "processors that the ranks may use, by threads a rank", false);
    snprintf(m->fabric.topology, sizeof m->fabric.topology, "single-switch");
    m->fabric.nodes = s4d_calibration_nodes(c);
    m->fabric.nodes_origin = (struct s4d_origin){S4D_TAG_MEASURED, s4d_strdup("this machine")};
    m->fabric.latency_s =
        one ? s4d_quantity_of(in->step_s, S4D_TAG_ASSUMED, "there is one node: unused")
            : s4d_quantity_measured(c, across->step_s,
                                    "the smallest all-reduce across nodes, by steps", false);
}

static int by_ranks_and_bytes(const void *a, const void *b)
{
    const struct s4d_efficiency_row *x = a, *y = b;
    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int make_table(const struct s4d_calibration *c, enum s4d_op_kind kind, double in_Bps,
                      double across_Bps, struct s4d_efficiency_table *t, struct s4d_error *err)
{
    int noisy = 0;
    t->row = s4d_calloc((size_t)c->n_collectives + 1, sizeof *t->row);
    snprintf(t->op, sizeof t->op, "%s", s4d_op_kinds[kind].name);
    for (int i = 0; i < c->n_collectives; i++) {
        const struct s4d_calibrated_collective *p = &c->collective[i];
        if (p->kind != kind)
            continue;
        bool in = p->ranks <= s4d_calibration_node_ranks(c);
        t->row[t->n++] = (struct s4d_efficiency_row){
            p->ranks, in ? p->ranks : s4d_calibration_node_ranks(c), (double)p->bytes,
            s4d_calibrated_bus_Bps(p) / (in ? in_Bps : across_Bps)};
        noisy += p->probed.noisy;
    }
    if (t->n == 0)
        return s4d_fail(err, S4D_EXIT_DATA, "", "no %s was measured", t->op);
    qsort(t->row, (size_t)t->n, sizeof *t->row, by_ranks_and_bytes);
    t->tag = S4D_TAG_MEASURED;
    t->source = s4d_calibration_source(c, "sizes and groups", t->n, noisy);
    return 0;
}

static int make_library(const struct s4d_calibration *c, struct s4d_library *l, double in_Bps,
                        double across_Bps, struct s4d_error *err)
{
    static const enum s4d_op_kind kinds[] = {S4D_OP_ALL_REDUCE, S4D_OP_ALL_GATHER,
                                             S4D_OP_REDUCE_SCATTER};
    snprintf(l->name, sizeof l->name, "mpi");
    l->table = s4d_calloc(3, sizeof *l->table);
    for (int i = 0; i < 3 && c->ranks > 1; i++)
        if (make_table(c, kinds[i], in_Bps, across_Bps, &l->table[l->n_tables++], err))
            return -1;
    return 0;
}

int s4d_calibration_machine(const struct s4d_calibration *c, struct s4d_machine *m,
                            struct s4d_error *err)
{
    struct wires in, across;
    *m = (struct s4d_machine){0};
    m->description = s4d_asprintf("%s, %d rank%s, measured by scale4d-run calibrate", c->device,
                                  c->ranks, c->ranks == 1 ? "" : "s");
    find_wires(c, &in, &across);
    if (s4d_calibration_device(c, m, err) ||
        make_library(c, &m->library, in.Bps, across.Bps, err)) {
        s4d_machine_free(m);
        return -1;
    }
    make_node(c, m, &in, &across);
    return 0;
}

int s4d_calibration_write(const struct s4d_calibration *c, FILE *out, struct s4d_error *err)
{
    struct s4d_machine m;
    if (s4d_calibration_machine(c, &m, err))
        return -1;
    s4d_machine_write(&m, out);
    s4d_machine_free(&m);
    return 0;
}
