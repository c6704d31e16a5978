/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

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
