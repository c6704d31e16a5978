/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/collective/steps.h"

#include <math.h>

#include "sim/collective/channels.h"

double s4d_steps_s(const struct s4d_machine *m, double in_node, double across)
{
    if (s4d_library_is_ideal(m))
        return in_node * m->node.latency_s.value + across * m->fabric.latency_s.value;
    const struct s4d_nccl_latency *ring = &m->library.ring;
    double net_s = ring->net_s[S4D_SIMPLE].value;
    if (isfinite(m->library.net_simple_s.value))
        net_s = m->library.net_simple_s.value;
    return ring->base_s[S4D_SIMPLE].value + in_node * ring->nvlink_s[S4D_SIMPLE].value +
           across * net_s;
}

struct s4d_cost s4d_steps_cost(const struct s4d_machine *m, double in_node, double across,
                               double volume_B)
{
    return (struct s4d_cost){.latency_s = s4d_steps_s(m, in_node, across),
                             .volume_B = volume_B,
                             .efficiency = 1,
                             .protocol = s4d_library_is_ideal(m) ? S4D_PROTOCOLS : S4D_SIMPLE};
}
