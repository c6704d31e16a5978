/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/system.h"

const struct s4d_group_flows *s4d_group_choice(const struct s4d_machine *m,
                                               const struct s4d_group_class *g, enum s4d_op_kind op,
                                               double bytes)
{
    const struct s4d_algorithm *chosen =
        s4d_choose_algorithm(m, &g->by_algorithm[0].shape, op, bytes);
    const struct s4d_group_flows *first = NULL;
    for (int a = S4D_ALGORITHMS - 1; a >= 0; a--) {
        if (!g->by_algorithm[a].algorithm)
            continue;
        first = &g->by_algorithm[a];
        if (first->algorithm == chosen)
            return first;
    }
    S4D_ASSERT(first, "a group of %d without flows", g->by_algorithm[0].shape.members);
    return first;
}

struct s4d_cost s4d_group_cost(const struct s4d_machine *m, const struct s4d_group_class *g,
                               const struct s4d_group_flows *flows, enum s4d_op_kind op,
                               double bytes)
{
    struct s4d_cost cost = flows->algorithm->cost(m, &flows->shape, op, bytes);
    cost.latency_s /= g->rate;
    cost.fill_s /= g->rate;
    cost.volume_B /= g->rate;
    cost.efficiency *= g->rate;
    return cost;
}
