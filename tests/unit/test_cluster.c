/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_switch),
        cmocka_unit_test(test_via),
        cmocka_unit_test(test_too_many_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
