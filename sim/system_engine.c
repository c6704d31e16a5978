/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from sim/system.c, so that a system made by hand can be run without fabrics and algorithms.
 */
#include "sim/engine.h"
#include "sim/system.h"

struct s4d_engine *s4d_system_engine(const struct s4d_system *s)
{
    struct s4d_engine *e = s4d_engine_create();
    for (int i = 0; i < s->n_links; i++)
        s4d_engine_link(e, s->links[i].capacity_Bps);
    for (int i = 0; i < s->n_flows; i++)
        s4d_engine_flow(e, s->flows[i].link, s->flows[i].weight, s->flows[i].n);
    s4d_engine_seal(e);
    return e;
}
