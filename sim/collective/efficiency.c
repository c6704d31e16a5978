/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up efficiency(bytes, ranks).
 *
 * The rows were measured with some number of members a node, which is the number of channels. A
 * ring's loss at small sizes is the latency of its steps against the block that one channel moves
 * in a step, bytes / (ranks * channels); a group with fewer members a node has fewer channels and
 * puts the same block in a step at proportionally fewer bytes. So rows and calls are compared by
 * bytes per channel. Inside a node the links decide how many channels there are, whatever the
 * members: there bytes are compared as they are.
 *
 * Between measured rank counts the efficiency is interpolated in log2 ranks; outside them the
 * nearest count stands in at the same block a step, bytes / ranks: a step then costs the same, and
 * so does a byte of bus bandwidth. (At the same bytes a ring of four times the ranks would be given
 * steps of a quarter of the block for the price of whole ones.)
 *
 * Below the smallest row the time falls in a straight line to the library's latency at 0 bytes:
 * T(b) = a (1 - b/b0) + (b/b0) T(b0). With clamped efficiency the second term is the volume's time;
 * the first is `latency_part` times a. Clamping alone would let small messages cost nothing. */
#include "sim/collective/efficiency.h"

#include <math.h>
#include <string.h>

#include "sim/collective/nccl.h"
#include "support/error.h"

static double per_channel(double bytes, int members_per_node, bool in_node)
{
    return in_node ? bytes : bytes / members_per_node;
}

/* Rows of groups inside one node serve those, the others groups that span nodes. */
static bool serves(const struct s4d_efficiency_row *row, bool in_node)
{
    return (row->ranks == row->ranks_per_node) == in_node;
}

/* Along the rows of one rank count, which has at least one. */
static struct s4d_efficiency along_bytes(const struct s4d_efficiency_table *t, int ranks,
                                         bool in_node, double x)
{
    const struct s4d_efficiency_row *below = NULL, *above = NULL;
    double x_below = 0, x_above = 0;
    for (int i = 0; i < t->n; i++) {
        const struct s4d_efficiency_row *row = &t->row[i];
        double at = per_channel(row->bytes, row->ranks_per_node, in_node);
        if (row->ranks != ranks || !serves(row, in_node))
            continue;
        if (at <= x && (!below || at > x_below)) {
            below = row;
            x_below = at;
        }
        if (at >= x && (!above || at < x_above)) {
            above = row;
            x_above = at;
        }
    }
    S4D_ASSERT(below || above, "no row of %d ranks", ranks);
    if (!above)
        return (struct s4d_efficiency){below->efficiency, true, 0};
    if (!below)
        return (struct s4d_efficiency){above->efficiency, true, 1 - x / x_above};
    if (x_above == x_below)
        return (struct s4d_efficiency){below->efficiency, false, 0};
    double part = log2(x / x_below) / log2(x_above / x_below);
    return (struct s4d_efficiency){
        below->efficiency + part * (above->efficiency - below->efficiency), false, 0};
}

struct s4d_efficiency s4d_efficiency_lookup(const struct s4d_efficiency_table *t, int ranks,
                                            int members_per_node, double bytes)
{
    int below = 0, above = 0; /* the nearest measured rank counts; 0: none */
    bool in_node = ranks == members_per_node;
    for (int i = 0; i < t->n; i++) {
        int r = t->row[i].ranks;
        if (!serves(&t->row[i], in_node))
            continue;
        if (r <= ranks && r > below)
            below = r;
        if (r >= ranks && (above == 0 || r < above))
            above = r;
    }
    double x = per_channel(bytes, members_per_node, in_node);
    if (below == 0 || above == 0) {
        int nearest = below ? below : above;
        struct s4d_efficiency e = along_bytes(t, nearest, in_node, x * nearest / ranks);
        e.extrapolated = true;
        return e;
    }
    struct s4d_efficiency a = along_bytes(t, below, in_node, x);
    if (below == above)
        return a;
    struct s4d_efficiency b = along_bytes(t, above, in_node, x);
    double part = log2((double)ranks / below) / log2((double)above / below);
    return (struct s4d_efficiency){a.efficiency + part * (b.efficiency - a.efficiency),
                                   a.extrapolated || b.extrapolated,
                                   a.latency_part + part * (b.latency_part - a.latency_part)};
}

const struct s4d_efficiency_table *
s4d_efficiency_find(const struct s4d_machine *m, const struct s4d_channels *ch, enum s4d_op_kind op)
{
    for (int i = 0; i < m->library.n_tables; i++) {
        const struct s4d_efficiency_table *t = &m->library.table[i];
        for (int j = 0; j < t->n && strcmp(t->op, s4d_op_kinds[op].name) == 0; j++)
            if (serves(&t->row[j], ch->nodes == 1))
                return t;
    }
    return NULL;
}

static const enum s4d_op_kind halves[2] = {S4D_OP_REDUCE_SCATTER, S4D_OP_ALL_GATHER};

static bool by_halves(const struct s4d_machine *m, const struct s4d_channels *ch,
                      enum s4d_op_kind op)
{
    return op == S4D_OP_ALL_REDUCE && !s4d_efficiency_find(m, ch, op) &&
           s4d_efficiency_find(m, ch, halves[0]) && s4d_efficiency_find(m, ch, halves[1]);
}

bool s4d_efficiency_applies(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op)
{
    return s4d_efficiency_find(m, ch, op) || by_halves(m, ch, op);
}

bool s4d_efficiency_beyond(const struct s4d_machine *m, const struct s4d_channels *ch,
                           enum s4d_op_kind op)
{
    const struct s4d_efficiency_table *t = s4d_efficiency_find(m, ch, op);
    for (int i = 0; t && i < t->n; i++)
        if (serves(&t->row[i], ch->nodes == 1) && t->row[i].ranks >= ch->members)
            return false;
    return t != NULL;
}

bool s4d_efficiency_cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                         enum s4d_op_kind op, double bytes, double volume_B, struct s4d_cost *cost)
{
    if (by_halves(m, ch, op)) {
        struct s4d_cost a, b;
        s4d_efficiency_cost(m, ch, halves[0], bytes, volume_B / 2, &a);
        s4d_efficiency_cost(m, ch, halves[1], bytes, volume_B / 2, &b);
        *cost = (struct s4d_cost){.latency_s = a.latency_s + b.latency_s,
                                  .volume_B = a.volume_B + b.volume_B,
                                  .efficiency = volume_B / (a.volume_B + b.volume_B),
                                  .protocol = S4D_PROTOCOLS,
                                  .measured = true,
                                  .extrapolated = a.extrapolated || b.extrapolated};
        return true;
    }
    const struct s4d_efficiency_table *t = s4d_efficiency_find(m, ch, op);
    if (!t)
        return false;
    struct s4d_efficiency e = s4d_efficiency_lookup(t, ch->members, ch->members_per_node, bytes);
    double latency_s = 0;
    if (e.latency_part > 0)
        latency_s = e.latency_part * s4d_nccl_least_latency_s(m, ch, op);
    *cost = (struct s4d_cost){.latency_s = latency_s,
                              .volume_B = volume_B / e.efficiency,
                              .efficiency = e.efficiency,
                              .protocol = S4D_PROTOCOLS,
                              .measured = true,
                              .extrapolated = e.extrapolated};
    return true;
}
