/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a machine file, as a one-line machine and as an override: no crash; what is taken is
 * either refused as a cluster, with a reason, or has a way between any two of its devices. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"
#include "support/memory.h"

static void visit(void *context, const char *key, enum s4d_tag tag, const char *source,
                  double value)
{
    (void)context;
    (void)value;
    S4D_ASSERT(key[0] && source && source[0] && tag < S4D_TAGS, "%s", key);
}

static void use(const struct s4d_machine *m)
{
    struct s4d_cluster c;
    struct s4d_error err = {0};
    s4d_machine_visit(m, visit, NULL);
    if (s4d_cluster_create(&c, m, m->fabric.nodes < 4 ? m->fabric.nodes : 4, &err)) {
        S4D_ASSERT(err.text[0] && (err.exit == S4D_EXIT_DATA || err.exit == S4D_EXIT_USAGE), "'%s'",
                   err.text);
        return;
    }
    for (int b = 1; b < c.n_devices && b < 64; b++) {
        struct s4d_path path = {0};
        double latency_s;
        s4d_cluster_route(&c, 0, b, &path, &latency_s);
        S4D_ASSERT(path.n > 0 && latency_s >= 0, "%d links", path.n);
        for (int i = 0; i < path.n; i++)
            S4D_ASSERT(c.links[path.link[i]].capacity_Bps > 0, "link %d", path.link[i]);
        s4d_path_free(&path);
    }
    s4d_cluster_destroy(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct s4d_machine m;
    struct s4d_error err = {0};
    if (s4d_machine_parse(&m, "fuzz.yaml", (const char *)data, n, NULL, 0, &err) == 0) {
        use(&m);
        s4d_machine_free(&m);
    }
    char *line = s4d_malloc(n + 16);
    size_t head = (size_t)sprintf(line, "synthetic:");
    memcpy(line + head, data, n);
    line[head + n] = '\0';
    if (s4d_machine_load(&m, line, NULL, 0, &err) == 0) {
        use(&m);
        s4d_machine_free(&m);
    }
    const char *setting = line + head;
    static const char good[] = "synthetic:topology=single-switch,nodes=2,devices_per_node=2,"
                               "link=1GB/s,nic=1GB/s,latency=1us,peak=1TFLOP/s,library=nccl";
    if (s4d_machine_load(&m, good, &setting, 1, &err) == 0) {
        use(&m);
        s4d_machine_free(&m);
    }
    free(line);
    return 0;
}
