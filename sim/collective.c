/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective/channels.h"
#include "sim/collective/efficiency.h"
#include "sim/collective/nccl.h"

const struct s4d_algorithm *const s4d_algorithms[] = {&s4d_ring, &s4d_tree, NULL};

static double best_time_s(const struct s4d_machine *m, const struct s4d_channels *ring,
                          enum s4d_op_kind op, enum s4d_nccl_pattern pattern, double bytes)
{
    double best = INFINITY;
    for (int p = 0; p < S4D_PROTOCOLS; p++)
        best = fmin(best, s4d_nccl_estimate(m, ring, op, pattern, p, bytes).time_s);
    return best;
}

const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m,
                                                 const struct s4d_channels *ring,
                                                 enum s4d_op_kind op, double bytes)
{
    if (!s4d_tree.supports(op) || s4d_library_is_ideal(m) || s4d_efficiency_find(m, ring, op))
        return &s4d_ring;
    double ring_s = best_time_s(m, ring, op, S4D_NCCL_RING, bytes);
    double tree_s = best_time_s(m, ring, op, S4D_NCCL_TREE, bytes);
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
    for (int i = 0; i < ch->n && ch->channel; i++)
        s4d_path_free(&ch->channel[i].path);
    free(ch->channel);
    *ch = (struct s4d_channels){0};
}
