/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from sim/system.c, so that a system made by hand can be run without fabrics and algorithms.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/engine.h"
#include "sim/system.h"
#include "support/memory.h"

/* Each flow crosses a link of its own that tells its rate: with twice the capacity of one that
 * limits it, it changes nothing. */
static double plenty_Bps(const struct s4d_system *s, const struct s4d_flow_class *flow)
{
    return 2 * s->links[flow->link[0]].capacity_Bps;
}

static bool has_meters(const struct s4d_system *s)
{
    return s->n_limiting < s->n_links;
}

struct s4d_engine *s4d_system_engine(const struct s4d_system *s, bool rates)
{
    struct s4d_engine *e = s4d_engine_create();
    int most = 0;
    for (int i = 0; i < s->n_limiting; i++)
        s4d_engine_link(e, s->links[i].capacity_Bps);
    rates = rates && has_meters(s);
    for (int i = 0; i < s->n_flows; i++) {
        if (rates)
            s4d_engine_link(e, plenty_Bps(s, &s->flows[i]));
        most = s->flows[i].n_limiting > most ? s->flows[i].n_limiting : most;
    }
    int *link = s4d_malloc(((size_t)most + 1) * sizeof *link),
        *weight = s4d_malloc(((size_t)most + 1) * sizeof *weight);
    for (int i = 0; i < s->n_flows; i++) {
        const struct s4d_flow_class *flow = &s->flows[i];
        int n = flow->n_limiting;
        memcpy(link, flow->link, (size_t)n * sizeof *link);
        memcpy(weight, flow->weight, (size_t)n * sizeof *weight);
        link[n] = s->n_limiting + i;
        weight[n] = 1;
        s4d_engine_flow(e, link, weight, rates ? n + 1 : n);
    }
    free(link);
    free(weight);
    s4d_engine_seal(e);
    return e;
}

void s4d_system_use(const struct s4d_system *s, const struct s4d_engine *e, double *use)
{
    for (int i = 0; i < s->n_limiting; i++)
        use[i] = s4d_engine_usage_Bps(e, i) / s->links[i].capacity_Bps;
    for (int i = s->n_limiting; i < s->n_links; i++)
        use[i] = 0;
    for (int i = 0; i < s->n_flows && has_meters(s); i++) {
        const struct s4d_flow_class *flow = &s->flows[i];
        double rate_Bps = s4d_engine_usage_Bps(e, s->n_limiting + i);
        for (int k = flow->n_limiting; k < flow->n && rate_Bps > 0; k++)
            use[flow->link[k]] += flow->weight[k] * rate_Bps / s->links[flow->link[k]].capacity_Bps;
    }
}
