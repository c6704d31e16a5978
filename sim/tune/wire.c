/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/tune/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"

/* Times that were asked for before: an open table, thrown away when half full. */
struct memo {
    const struct s4d_wire *wire;
    enum s4d_op_kind kind;
    double bytes, time_s;
};
enum { SLOTS = 1 << 14, SAMPLE_NODES = 4 };

struct s4d_wires {
    const struct s4d_machine *machine;
    struct s4d_cluster cluster;
    int gpus;
    struct s4d_wire **wire;
    int n, cap;
    struct memo *memo;
    int n_memo;
};

struct s4d_wires *s4d_wires_create(const struct s4d_machine *m, int gpus, struct s4d_error *err)
{
    struct s4d_wires *w = s4d_calloc(1, sizeof *w);
    int devices = m->node.devices, nodes = (gpus + devices - 1) / devices;
    w->machine = m;
    w->gpus = gpus;
    if (s4d_cluster_create(&w->cluster, m, nodes < SAMPLE_NODES ? nodes : SAMPLE_NODES, err)) {
        free(w);
        return NULL;
    }
    w->memo = s4d_calloc(SLOTS, sizeof *w->memo);
    return w;
}

void s4d_wires_free(struct s4d_wires *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->n; i++)
        free(w->wire[i]);
    free(w->wire);
    free(w->memo);
    s4d_cluster_destroy(&w->cluster);
    free(w);
}

/* Where the groups are looked at: `span` consecutive ranks, of which those that are `inner` apart
 * in a run of inner * members make a group. */
struct sample {
    int inner, members, span;
};

/* Groups that are whole nodes apart look alike from node to node: two nodes show them. Others are
 * laid out as they are, up to the sample's nodes. */
static struct sample sample_of(const struct s4d_wires *w, int inner, int members)
{
    int devices = w->machine->node.devices,
        room = w->gpus < w->cluster.n_devices ? w->gpus : w->cluster.n_devices;
    struct sample s = {.inner = inner, .members = members, .span = room};
    if (inner >= devices) {
        s.inner = devices;
        s.members = 2;
        s.span = 2 * devices;
    } else if ((int64_t)inner * members > room) {
        s.members = room / inner;
    }
    if (devices % inner == 0 && s.inner * s.members > 2 * devices) {
        s.members = 2 * devices / inner;
        s.span = 2 * devices;
    }
    if (s.span > room)
        s.span = room;
    return s;
}

/* The members of group g within the span; returns how many. */
static int sample_group(const struct s4d_wires *w, const struct sample *s, int g, int *device)
{
    int first = g / s->inner * s->inner * s->members + g % s->inner, n = 0;
    for (int i = 0; i < s->members; i++)
        if (first + i * s->inner < s->span)
            device[n++] = s4d_device_of_rank(&w->cluster, first + i * s->inner);
    return n;
}

/* Adds each channel's use of links, of one byte of the collective's volume. */
static void add_load(const struct s4d_channels *ch, double *load)
{
    for (int i = 0; i < ch->n; i++)
        for (int k = 0; k < ch->channel[i].path.n; k++)
            load[ch->channel[i].path.link[k]] +=
                ch->channel[i].share * ch->channel[i].path.weight[k];
}

static void measure(struct s4d_wires *w, struct s4d_wire *wire)
{
    struct sample s = sample_of(w, wire->inner, wire->members);
    int groups = (s.span + s.inner * s.members - 1) / (s.inner * s.members) * s.inner;
    int *device = s4d_malloc((size_t)s.members * sizeof *device);
    double *load = s4d_calloc((size_t)w->cluster.n_links, sizeof *load), s_per_B = 0;
    bool shaped = false;
    for (int g = 0; g < groups; g++) {
        struct s4d_channels ch;
        int n = sample_group(w, &s, g, device);
        if (n < 2 || s4d_ring.channels(&w->cluster, device, n, &ch))
            continue;
        add_load(&ch, load);
        if (!shaped || ch.nodes > wire->shape.nodes) {
            wire->shape = ch;
            wire->shape.channel = NULL;
            shaped = true;
        }
        s4d_channels_free(&ch);
    }
    S4D_ASSERT(shaped, "no group of %d, %d apart", wire->members, wire->inner);
    for (int l = 0; l < w->cluster.n_links; l++)
        if (load[l] > 0 && load[l] / w->cluster.links[l].capacity_Bps > s_per_B)
            s_per_B = load[l] / w->cluster.links[l].capacity_Bps;
    wire->bus_Bps = 1 / s_per_B;
    free(load);
    free(device);
}

const struct s4d_wire *s4d_wires_find(struct s4d_wires *w, int inner, int members)
{
    if (members < 2)
        return NULL;
    for (int i = 0; i < w->n; i++)
        if (w->wire[i]->inner == inner && w->wire[i]->members == members)
            return w->wire[i];
    struct s4d_wire *wire = s4d_calloc(1, sizeof *wire);
    wire->inner = inner;
    wire->members = members;
    measure(w, wire);
    struct s4d_channels *shape = &wire->shape;
    if (members > shape->members) { /* the sample's nodes hold a part of it */
        int per_node = shape->members_per_node > 0 ? shape->members_per_node : 1;
        shape->members = members;
        shape->nodes = (members + per_node - 1) / per_node;
        shape->node_bus_Bps = shape->bus_Bps;
    }
    wire->across_nodes = shape->nodes > 1;
    s4d_push(w->wire, w->n, w->cap, wire);
    return wire;
}

const struct s4d_wire *s4d_wires_axis(struct s4d_wires *w, const struct s4d_grid *grid,
                                      enum s4d_axis axis)
{
    int inner = 1;
    for (int i = 0; grid->order[i] != axis; i++)
        inner *= grid->size[grid->order[i]];
    return s4d_wires_find(w, inner, grid->size[axis]);
}

static size_t slot_of(const struct s4d_wire *wire, enum s4d_op_kind kind, double bytes)
{
    uint64_t h = (uint64_t)bytes * 0x9e3779b97f4a7c15u + (uint64_t)wire->members * 31 +
                 (uint64_t)wire->inner * 1009 + (uint64_t)kind;
    return (size_t)((h ^ h >> 29) * 0xbf58476d1ce4e5b9u >> 50);
}

static double cost_s(const struct s4d_machine *m, const struct s4d_wire *wire,
                     enum s4d_op_kind kind, double bytes)
{
    const struct s4d_algorithm *a = s4d_choose_algorithm(m, &wire->shape, kind, bytes);
    struct s4d_cost cost = a->cost(m, &wire->shape, kind, bytes);
    return cost.latency_s + cost.volume_B / wire->bus_Bps;
}

double s4d_wire_time_s(struct s4d_wires *w, const struct s4d_wire *wire, enum s4d_op_kind kind,
                       double bytes)
{
    if (!wire || bytes <= 0)
        return 0;
    size_t slot = slot_of(wire, kind, bytes) % SLOTS;
    while (w->memo[slot].wire && (w->memo[slot].wire != wire || w->memo[slot].kind != kind ||
                                  w->memo[slot].bytes != bytes))
        slot = (slot + 1) % SLOTS;
    struct memo *memo = &w->memo[slot];
    if (memo->wire)
        return memo->time_s;
    double time_s = cost_s(w->machine, wire, kind, bytes);
    if (++w->n_memo > SLOTS / 2) {
        memset(w->memo, 0, SLOTS * sizeof *w->memo);
        w->n_memo = 0;
        return time_s;
    }
    *memo = (struct memo){wire, kind, bytes, time_s};
    return time_s;
}
