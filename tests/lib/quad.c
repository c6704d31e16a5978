/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/quad.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void load_machine(struct s4d_machine *m, const char *line)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, line, NULL, 0, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

static void set_latencies(struct s4d_nccl_latency *l, const double us[3][S4D_PROTOCOLS])
{
    for (int p = 0; p < S4D_PROTOCOLS; p++) {
        l->base_s[p].value = us[0][p] * 1e-6;
        l->nvlink_s[p].value = us[1][p] * 1e-6;
        l->net_s[p].value = us[2][p] * 1e-6;
    }
}

void load_quad(struct s4d_machine *m, int nodes)
{
    static const double ring_us[3][S4D_PROTOCOLS] = {{6.6, 14, 8.4}, {.6, 1.9, 3.4}, {2.7, 4, 14}};
    static const double tree_us[3][S4D_PROTOCOLS] = {{6.8, 14, 8.4}, {.6, 1.25, 4}, {5, 8.5, 14}};
    load_machine(m, "synthetic:topology=single-switch,nodes=4096,devices_per_node=4,nic=25GB/s,"
                    "latency=1us,peak=1TFLOP/s,link=80GB/s");
    m->fabric.nodes = nodes;
    for (int i = 0; i < m->node.n_links; i++) {
        m->node.link[i].bricks = 4;
        m->node.link[i].brick_bandwidth_Bps.value = 20e9;
    }
    struct s4d_library *l = &m->library;
    strcpy(l->name, "nccl");
    set_latencies(&l->ring, ring_us);
    set_latencies(&l->tree, tree_us);
    l->net_post_s.value = 2e-6;
    l->net_simple_s.value = l->ll128_nodes.value = INFINITY;
    l->ll_max_in_node_Bps.value = 87.7e9;
    l->ll_max_two_nodes_Bps.value = 22.5e9;
    l->ll_max_Bps.value = 19e9;
    l->ll128_channel_Bps.value = 20e9;
    l->tree_channel_in_node_Bps.value = 24e9;
    l->tree_channel_two_nodes_Bps.value = 23.6e9;
    l->tree_channel_Bps.value = 17.8e9;
}

struct s4d_channels quad_shape(const struct s4d_machine *m, const struct s4d_algorithm *a, int n,
                               int stride)
{
    struct s4d_cluster c;
    struct s4d_error err;
    struct s4d_channels ch;
    int devices[64];
    assert_true(n <= 64);
    for (int i = 0; i < n; i++)
        devices[i] = i * stride;
    assert_int_equal(s4d_cluster_create(&c, m, (n * stride + 3) / 4, &err), 0);
    assert_int_equal(a->channels(&c, devices, n, &ch), 0);
    s4d_cluster_destroy(&c);
    struct s4d_channels copy = ch;
    copy.channel = NULL;
    s4d_channels_free(&ch);
    return copy;
}
