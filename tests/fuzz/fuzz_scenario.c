/* SPDX-License-Identifier: Apache-2.0 */
/* Differences and lists of hosts: any bytes are refused with a message, or make a cluster. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sim/scenario.h"

static const char line[] = "synthetic:topology=fat-tree,nics_per_leaf=4,nodes=8,devices_per_node=2,"
                           "link=100GB/s,nic=10GB/s,latency=1us,peak=1TFLOP/s";

static void use(const struct s4d_machine *m, const struct s4d_scenario *s)
{
    struct s4d_cluster c;
    struct s4d_error err = {0};
    if (s4d_scenario_cluster(&c, m, 8, s, &err)) {
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA, "'%s'", err.text);
        return;
    }
    for (int b = 1; b < 8; b++) {
        struct s4d_path path = {0};
        double latency_s;
        s4d_cluster_route(&c, s4d_device_of_rank(&c, 0), s4d_device_of_rank(&c, b), &path,
                          &latency_s);
        S4D_ASSERT(path.n > 0, "no links to %d", b);
        s4d_path_free(&path);
    }
    s4d_cluster_destroy(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_machine m;
    struct s4d_error err = {0};
    struct s4d_scenario s = {.placement = {.seed = 1}};
    struct s4d_texts set = {0};
    if (s4d_machine_load(&m, line, NULL, 0, &err))
        return 0;
    if (s4d_differences_parse(&s.differences, "fuzz.yaml", (const char *)data, n, &set, &err) == 0)
        use(&m, &s);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA, "'%s'", err.text);
    s4d_scenario_free(&s);
    if (s4d_placement_parse_hosts(&s.placement, "fuzz", (const char *)data, n, &err) == 0)
        use(&m, &s);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA, "'%s'", err.text);
    s4d_scenario_free(&s);
    s4d_texts_free(&set);
    s4d_machine_free(&m);
    return 0;
}
