/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h"
#include "sim/collective/efficiency.h"
#include "sim/collective/nccl.h"
#include "sim/collective/nvls.h"

const struct s4d_algorithm *const s4d_algorithms[] = {&s4d_ring,         &s4d_tree,      &s4d_nvls,
                                                      &s4d_hierarchical, &s4d_recursive, &s4d_chain,
                                                      &s4d_pairwise,     &s4d_shift,     NULL};
_Static_assert(sizeof s4d_algorithms / sizeof *s4d_algorithms == S4D_ALGORITHMS + 1,
               "S4D_ALGORITHMS");

const char *s4d_collective_name(enum s4d_op_kind op)
{
    static const char *const names[] = {"broadcast", "all-to-all", "send-recv"};
    return op < S4D_OP_KINDS ? s4d_op_kinds[op].name : names[op - S4D_OP_KINDS];
}

double s4d_collective_bus_factor(enum s4d_op_kind op, int members)
{
    return op == S4D_BROADCAST || op == S4D_SEND_RECV ? 1 : s4d_bus_factor(op, members);
}

static double best_time_s(const struct s4d_machine *m, const struct s4d_channels *ring,
                          enum s4d_op_kind op, enum s4d_nccl_pattern pattern, double bytes)
{
    double best = INFINITY;
    for (int p = 0; p < S4D_PROTOCOLS; p++)
        best = fmin(best, s4d_nccl_estimate(m, ring, op, pattern, p, bytes).time_s);
    return best;
}

static const struct s4d_algorithm *only(enum s4d_op_kind op)
{
    for (int i = 0; s4d_algorithms[i]; i++)
        if (s4d_algorithms[i]->supports(op))
            return s4d_algorithms[i];
    s4d_bug(__FILE__, __LINE__, s4d_collective_name(op), "no algorithm does it");
}

const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m,
                                                 const struct s4d_channels *ring,
                                                 enum s4d_op_kind op, double bytes)
{
    if (!s4d_tree.supports(op))
        return only(op);
    if (s4d_library_is_ideal(m) ||
        (s4d_efficiency_applies(m, ring, op) && !s4d_efficiency_beyond(m, ring, op)))
        return &s4d_ring;
    double ring_s = best_time_s(m, ring, op, S4D_NCCL_RING, bytes);
    double tree_s = best_time_s(m, ring, op, S4D_NCCL_TREE, bytes);
    double nvls_s = s4d_nvls_estimate_s(m, ring, bytes);
    if (nvls_s < fmin(ring_s, tree_s))
        return &s4d_nvls;
    return tree_s < ring_s ? &s4d_tree : &s4d_ring;
}

const struct s4d_algorithm *s4d_algorithm_find(const char *name)
{
    for (int i = 0; s4d_algorithms[i]; i++)
        if (strcmp(s4d_algorithms[i]->name, name) == 0)
            return s4d_algorithms[i];
    return NULL;
}

void s4d_channels_free(struct s4d_channels *ch)
{
    for (int i = 0; i < ch->n && ch->channel; i++) {
        s4d_path_free(&ch->channel[i].path);
        free(ch->channel[i].edge);
    }
    free(ch->channel);
    *ch = (struct s4d_channels){0};
}
