/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL topology files: any bytes are refused with a message, or make a node whose ways are found.
 */
#include <stddef.h>
#include <stdint.h>

#include "sim/cluster.h"
#include "support/nccl_topology.h"

static void use(const struct s4d_machine *m)
{
    struct s4d_cluster c;
    struct s4d_error err = {0};
    if (s4d_cluster_create(&c, m, 2, &err)) {
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA, "'%s'", err.text);
        return;
    }
    for (int b = 1; b < c.n_devices; b++) {
        struct s4d_path path = {0};
        double latency_s;
        s4d_cluster_route(&c, 0, b, &path, &latency_s);
        S4D_ASSERT(path.n > 0, "no links to %d", b);
        for (int i = 0; i < path.n; i++)
            S4D_ASSERT(c.links[path.link[i]].capacity_Bps > 0, "link %d", path.link[i]);
        s4d_path_free(&path);
    }
    s4d_cluster_destroy(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char line[] = "synthetic:topology=single-switch,nodes=2,nic=1GB/s,latency=1us,"
                               "peak=1TFLOP/s,library=nccl";
    struct s4d_machine m;
    struct s4d_error err = {0};
    if (s4d_machine_load(&m, line, NULL, 0, &err))
        return 0;
    if (s4d_nccl_topology_parse(&m, "fuzz.xml", (const char *)data, n, &err) == 0)
        use(&m);
    else
        S4D_ASSERT(err.text[0] && err.exit == S4D_EXIT_DATA, "'%s'", err.text);
    s4d_machine_free(&m);
    return 0;
}
