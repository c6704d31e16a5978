/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/record.h"

void s4d_scenario_free(struct s4d_scenario *s)
{
    s4d_placement_free(&s->placement);
    s4d_differences_free(&s->differences);
}

bool s4d_scenario_is_plain(const struct s4d_scenario *s)
{
    return !s || (s->placement.kind == S4D_NODE_MAJOR && s->differences.n == 0);
}

/* Whether the job may lie anywhere, or parts of the machine outside of its first nodes be named. */
static bool needs_all(const struct s4d_scenario *s)
{
    return s->placement.kind != S4D_NODE_MAJOR || s4d_differences_of_parts(&s->differences);
}

int s4d_scenario_cluster(struct s4d_cluster *c, const struct s4d_machine *m, int gpus,
                         const struct s4d_scenario *s, struct s4d_error *err)
{
    int nodes = (gpus - 1) / m->node.devices + 1;
    bool whole = s && needs_all(s) && nodes <= m->fabric.nodes;
    if (s4d_cluster_create(c, m, whole ? m->fabric.nodes : nodes, err))
        return -1;
    if ((!whole || s4d_placement_apply(&s->placement, c, nodes, err) == 0) &&
        (!s || s4d_differences_apply(&s->differences, c, err) == 0) &&
        (!whole || s4d_cluster_settle(c, err) == 0))
        return 0;
    s4d_cluster_destroy(c);
    return -1;
}

static int refuse_parts(const struct s4d_scenario *s, struct s4d_error *err)
{
    const char *what = s->placement.kind != S4D_NODE_MAJOR ? "a placement" : NULL;
    for (int i = 0; i < s->differences.n && !what; i++) {
        enum s4d_difference_part part = s->differences.v[i].part;
        if (part == S4D_LINKS || part == S4D_NICS)
            what = s->differences.v[i].text;
    }
    if (!what)
        return 0;
    s4d_fail(err, S4D_EXIT_USAGE, what,
             "a ranking by closed forms knows rates and devices, but no single link, NIC or node");
    return s4d_hint(err, "rank without it, then scale4d simulate the best grids with it");
}

int s4d_scenario_rates(struct s4d_rates *r, const struct s4d_machine *m, int gpus,
                       const struct s4d_scenario *s, struct s4d_error *err)
{
    struct s4d_cluster c;
    s4d_rates_plain(r);
    if (s4d_scenario_is_plain(s))
        return 0;
    if (refuse_parts(s, err) || s4d_scenario_cluster(&c, m, gpus, s, err))
        return -1;
    double slowest = 1;
    for (int i = 0; i < gpus; i++)
        slowest = fmin(slowest, c.device_speed[s4d_device_of_rank(&c, i)]);
    *r = c.rates;
    s4d_rates_apply(r, "compute", slowest);
    s4d_cluster_destroy(&c);
    return 0;
}

json_t *s4d_scenario_record(const struct s4d_scenario *s)
{
    char text[64], hash[17];
    if (s4d_scenario_is_plain(s))
        return NULL;
    json_t *hosts = json_array(), *differences = json_array();
    for (int i = 0; i < s->placement.n_hosts; i++)
        json_array_append_new(hosts, json_string(s->placement.host[i]));
    for (int i = 0; i < s->differences.n; i++)
        json_array_append_new(differences, json_string(s->differences.v[i].text));
    json_t *record =
        json_pack("{s:s}", "placement", s4d_placement_text(&s->placement, text, sizeof text));
    if (json_array_size(hosts) > 0)
        json_object_set(record, "hosts", hosts);
    json_object_set(record, "differences", differences);
    json_decref(hosts);
    json_decref(differences);
    char *all = json_dumps(record, JSON_COMPACT);
    s4d_hash(all, strlen(all), hash);
    free(all);
    json_object_set_new(record, "hash", json_string(hash));
    return record;
}
