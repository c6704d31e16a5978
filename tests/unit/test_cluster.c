/* SPDX-License-Identifier: Apache-2.0 */
/* Clusters: links by name, ways inside nodes and over both fabrics, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fabric.h"

static void load(struct s4d_machine *m, const char *line)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, line, NULL, 0, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

static void create(struct s4d_cluster *c, const struct s4d_machine *m, int n_nodes)
{
    struct s4d_error err = {0};
    if (s4d_cluster_create(c, m, n_nodes, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

/* The names of a way's links, with spaces. */
static void names(const struct s4d_cluster *c, int a, int b, char *text, double *latency_s)
{
    struct s4d_path path = {0};
    s4d_cluster_route(c, a, b, &path, latency_s);
    text[0] = '\0';
    for (int i = 0; i < path.n; i++) {
        char *name = s4d_link_name(c, path.link[i]);
        assert_int_equal(path.weight[i], 1);
        strcat(strcat(text, i ? " " : ""), name);
        free(name);
    }
    s4d_path_free(&path);
}

static void assert_route(const struct s4d_cluster *c, int a, int b, const char *expected)
{
    char text[512];
    double latency_s;
    names(c, a, b, text, &latency_s);
    assert_string_equal(text, expected);
}

/* 3 nodes of 2 devices: a node has one link pair (links 0, 1) and two NICs (links 2 to 5), so node
 * n's begin at 6 n, and there are 18 in all. */
static void test_single_switch(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    load(&m, "synthetic:topology=single-switch,nodes=4,devices_per_node=2,nic=50GB/s,latency=500ns,"
             "peak=1TFLOP/s,link=200GB/s");
    create(&c, &m, 3);
    assert_int_equal(c.n_devices, 6);
    assert_int_equal(c.n_links, 18);
    assert_true(c.links[0].capacity_Bps == 200e9 && c.links[2].capacity_Bps == 50e9);
    assert_route(&c, 2, 3, "n1.gpu0->gpu1");
    assert_route(&c, 3, 2, "n1.gpu1->gpu0");
    assert_route(&c, 1, 4, "n0.nic1.out n2.nic0.in");
    char text[512];
    double latency_s;
    names(&c, 0, 5, text, &latency_s);
    assert_true(latency_s == 500e-9);
    m.node.latency_s.value = 100e-9; /* the node's own */
    names(&c, 2, 3, text, &latency_s);
    assert_true(latency_s == 100e-9);
    names(&c, 1, 2, text, &latency_s);
    assert_true(latency_s == 500e-9);
    assert_int_equal(s4d_device_of_rank(&c, 5), 5);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* From device 0 out through device 1's NIC, in through device 0's, to device 1 (node 1's gpu1). */
static void test_via(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_path path = {0};
    double latency_s;
    load(&m, "synthetic:topology=single-switch,nodes=2,devices_per_node=2,nic=50GB/s,latency=500ns,"
             "peak=1TFLOP/s,link=200GB/s");
    create(&c, &m, 2);
    s4d_cluster_route_via(&c, 0, 1, 3, 2, &path, &latency_s);
    const char *expected[] = {"n0.gpu0->gpu1", "n0.nic1.out", "n1.nic0.in", "n1.gpu0->gpu1"};
    assert_int_equal(path.n, 4);
    for (int i = 0; i < 4; i++) {
        char *name = s4d_link_name(&c, path.link[i]);
        assert_string_equal(name, expected[i]);
        free(name);
    }
    s4d_path_free(&path);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

static void test_too_many_nodes(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    load(&m, "synthetic:topology=single-switch,nodes=2,nic=50GB/s,latency=500ns,peak=1TFLOP/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 3, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "has 2 nodes"));
    s4d_machine_free(&m);
}

#define DRAGONFLY                                                                                  \
    "synthetic:topology=dragonfly,nodes=16,devices_per_node=2,nic=25GB/s,latency=1us,"             \
    "peak=1TFLOP/s,link=100GB/s,groups=4,nodes_per_group=4,switches_per_group=4,"                  \
    "switches_per_node=2,local_links_per_switch=3,global_links_per_group=6,"                       \
    "link_bandwidth_Bps=25GB/s"

/* 4 groups of 4 nodes of 2 NICs; 4 switches a group in sets of 2: nodes 0 and 1 of a group on
 * switches 0 and 1, nodes 2 and 3 on 2 and 3; NIC 0 on the even one. 8 nodes: 8 * 6 links of nodes,
 * 2 * 2 of groups, 8 * 2 of switches. */
static void test_dragonfly(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    load(&m, DRAGONFLY);
    create(&c, &m, 8);
    assert_int_equal(c.n_links, 48 + 4 + 16);
    assert_route(&c, 0, 2, "n0.nic0.out n1.nic0.in");
    assert_route(&c, 0, 3, "n0.nic0.out group0.switch0.out group0.switch1.in n1.nic1.in");
    assert_route(&c, 7, 0, "n3.nic1.out group0.switch3.out group0.switch0.in n0.nic0.in");
    assert_route(&c, 1, 12,
                 "n0.nic1.out group0.switch1.out group0.out group1.in group1.switch2.in "
                 "n6.nic0.in");
    assert_true(c.links[48].capacity_Bps == 6 * 25e9); /* group 0, out */
    assert_true(c.links[52].capacity_Bps == 3 * 25e9); /* its switch 0, out */
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Every device of the first half sends to its counterpart in the second: 8 flows leave each of two
 * groups over 150 GB/s, 18.75 GB/s each, less than a NIC's 25 and a switch's 75 / 2: 16 * 18.75 =
 * 300 GB/s in all, the global links of two groups. */
static void test_bisection(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    load(&m, DRAGONFLY);
    create(&c, &m, 16);
    int *load_of = calloc((size_t)c.n_links, sizeof *load_of), half = c.n_devices / 2;
    for (int i = 0; i < half; i++) {
        struct s4d_path path = {0};
        double latency_s;
        s4d_cluster_route(&c, i, i + half, &path, &latency_s);
        for (int j = 0; j < path.n; j++)
            load_of[path.link[j]] += path.weight[j];
        s4d_path_free(&path);
    }
    double rate = 1e30;
    for (int i = 0; i < c.n_links; i++) {
        if (load_of[i] && c.links[i].capacity_Bps / load_of[i] < rate)
            rate = c.links[i].capacity_Bps / load_of[i];
    }
    assert_true(rate * half == 300e9);
    free(load_of);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* On 16 nodes of Perlmutter: there and back have as many links, of mirrored kinds; over all pairs
 * each NIC sends and receives as often, 60 times (64 devices less the 4 of the node). */
static void test_symmetric(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    load(&m, "perlmutter");
    create(&c, &m, 16);
    int *uses = calloc((size_t)c.n_links, sizeof *uses);
    for (int a = 0; a < c.n_devices; a++) {
        for (int b = 0; b < c.n_devices; b++) {
            struct s4d_path there = {0}, back = {0};
            double t1, t2;
            if (a == b)
                continue;
            s4d_cluster_route(&c, a, b, &there, &t1);
            s4d_cluster_route(&c, b, a, &back, &t2);
            assert_int_equal(there.n, back.n);
            assert_true(t1 == t2);
            for (int i = 0; i < there.n; i++) {
                uses[there.link[i]]++;
                assert_int_equal(there.link[i] ^ 1, back.link[there.n - 1 - i]);
            }
            s4d_path_free(&there);
            s4d_path_free(&back);
        }
    }
    for (int i = 0; i < c.n_links; i++) {
        if (strncmp(c.links[i].kind, "nic", 3) == 0)
            assert_int_equal(uses[i], 60);
        if (strcmp(c.links[i].kind, "node") == 0)
            assert_int_equal(uses[i], 1);
    }
    free(uses);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Three devices in a row 0 - 1 - 2, the NIC on 1: 0 reaches 2 over 1, and other nodes over 1. */
static void test_several_hops(void **state)
{
    (void)state;
    int map[] = {2, 0, 1};
    struct s4d_nic nic = {1};
    struct s4d_node_link links[] = {
        {.a = 0, .b = 1, .bricks = 2, .brick_bandwidth_Bps = {.value = 10e9}},
        {.a = 2, .b = 1, .bricks = 1, .brick_bandwidth_Bps = {.value = 10e9}},
    };
    struct s4d_machine m = {
        .name = "row",
        .node = {.devices = 3,
                 .link = links,
                 .n_links = 2,
                 .nic = &nic,
                 .n_nics = 1,
                 .nic_bandwidth_Bps = {.value = 5e9},
                 .latency_s = {.value = 1e-6},
                 .rank_to_device = map},
        .fabric = {.topology = "single-switch", .nodes = 2, .latency_s = {.value = 2e-6}},
    };
    struct s4d_cluster c;
    create(&c, &m, 2);
    assert_route(&c, 0, 2, "n0.gpu0->gpu1 n0.gpu1->gpu2");
    assert_route(&c, 0, 5, "n0.gpu0->gpu1 n0.nic0.out n1.nic0.in n1.gpu1->gpu2");
    assert_route(&c, 1, 4, "n0.nic0.out n1.nic0.in");
    assert_true(c.links[0].capacity_Bps == 20e9 && c.links[2].capacity_Bps == 10e9);
    assert_int_equal(s4d_device_of_rank(&c, 0), 2);
    assert_int_equal(s4d_device_of_rank(&c, 4), 3);
    s4d_cluster_destroy(&c);
    struct s4d_error err = {0};
    m.node.n_links = 1; /* nothing leads to device 2 */
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), -1);
    assert_non_null(strstr(err.text, "no link"));
    m.node.n_links = 2;
    m.node.n_nics = 0;
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), -1);
    assert_non_null(strstr(err.text, "no NIC"));
}

/* Of two ways of two links the wider one: 0 - 1 - 3 has 10, 0 - 2 - 3 has 20. */
static void test_widest(void **state)
{
    (void)state;
    int map[] = {0, 1, 2, 3};
    struct s4d_node_link links[] = {
        {.a = 0, .b = 1, .bricks = 1, .brick_bandwidth_Bps = {.value = 30e9}},
        {.a = 1, .b = 3, .bricks = 1, .brick_bandwidth_Bps = {.value = 10e9}},
        {.a = 0, .b = 2, .bricks = 1, .brick_bandwidth_Bps = {.value = 20e9}},
        {.a = 2, .b = 3, .bricks = 2, .brick_bandwidth_Bps = {.value = 20e9}},
    };
    struct s4d_machine m = {
        .name = "square",
        .node = {.devices = 4, .link = links, .n_links = 4, .rank_to_device = map},
        .fabric = {.topology = "single-switch", .nodes = 1},
    };
    struct s4d_cluster c;
    create(&c, &m, 1);
    assert_route(&c, 0, 3, "n0.gpu0->gpu2 n0.gpu2->gpu3");
    assert_route(&c, 3, 0, "n0.gpu3->gpu2 n0.gpu2->gpu0");
    s4d_cluster_destroy(&c);
}

static void test_merge(void **state)
{
    (void)state;
    struct s4d_path path = {0};
    s4d_path_add(&path, 7, 1);
    s4d_path_add(&path, 3, 2);
    s4d_path_add(&path, 7, 4);
    s4d_path_merge(&path);
    assert_int_equal(path.n, 2);
    assert_true(path.link[0] == 3 && path.weight[0] == 2);
    assert_true(path.link[1] == 7 && path.weight[1] == 5);
    s4d_path_free(&path);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *where, *text;
    } cases[] = {
        {"topology=hypercube", "fabric.topology", "unknown topology"},
        {"topology=single-switch,groups=4", "fabric.groups", "unknown key"},
        {"topology=dragonfly,groups=4", "fabric.nodes_per_group", "missing"},
        {"topology=dragonfly,groups=1,nodes_per_group=1,switches_per_group=2,switches_per_node=1,"
         "local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=1GB/s",
         "fabric.nodes", "make room for 1"},
        {"topology=dragonfly,groups=2,nodes_per_group=1,switches_per_group=3,switches_per_node=2,"
         "local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=1GB/s",
         "synthetic", "no multiple"},
        {"topology=dragonfly,groups=2.5,nodes_per_group=1,switches_per_group=2,"
         "switches_per_node=1,local_links_per_switch=1,global_links_per_group=1,"
         "link_bandwidth_Bps=1GB/s",
         "fabric.groups", "whole number"},
        {"topology=dragonfly,groups=2,nodes_per_group=1,switches_per_group=2,switches_per_node=1,"
         "local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=0GB/s",
         "fabric.link_bandwidth_Bps", "expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        struct s4d_machine m;
        struct s4d_cluster c;
        struct s4d_error err = {0};
        snprintf(line, sizeof line, "synthetic:nodes=2,nic=1GB/s,latency=1us,peak=1TFLOP/s,%s",
                 cases[i].line);
        load(&m, line);
        if (s4d_cluster_create(&c, &m, 1, &err) == 0)
            fail_msg("%s was taken", cases[i].line);
        if (err.exit != S4D_EXIT_DATA || !strstr(err.where, cases[i].where) ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %d %s: %s", cases[i].line, err.exit, err.where, err.text);
        s4d_machine_free(&m);
    }
}

/* 65,536 groups of 65,536 switches: 2^32 switches, more than an int counts. */
static void test_too_many_links(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    load(&m, "synthetic:nodes=65536,nic=1GB/s,latency=1us,peak=1TFLOP/s,topology=dragonfly,"
             "groups=65536,nodes_per_group=1,switches_per_group=65536,switches_per_node=1,"
             "local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=1GB/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 65536, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "65536 nodes of it have 8590196736 links"));
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_switch),  cmocka_unit_test(test_via),
        cmocka_unit_test(test_too_many_nodes), cmocka_unit_test(test_dragonfly),
        cmocka_unit_test(test_bisection),      cmocka_unit_test(test_symmetric),
        cmocka_unit_test(test_several_hops),   cmocka_unit_test(test_widest),
        cmocka_unit_test(test_merge),          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_too_many_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
