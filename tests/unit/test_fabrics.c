/* SPDX-License-Identifier: Apache-2.0 */
/* Fabrics by counting: how often each link is crossed when all NICs send to all others, what a
 * bisection carries, and which ways dead links leave. Against SimGrid's zones: test_zones.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/collective.h"
#include "sim/fabric.h"
#include "support/memory.h"

struct scene {
    struct s4d_machine m;
    struct s4d_cluster c;
    int *load; /* by link */
};

/* `nodes` nodes of `devices` devices, a NIC of 10 GB/s each. */
static void open_scene(struct scene *s, int nodes, int devices, const char *fabric)
{
    struct s4d_error err = {0};
    char *line = s4d_asprintf("synthetic:nodes=%d,devices_per_node=%d%s,nic=10GB/s,"
                              "latency=1us,peak=1TFLOP/s,topology=%s",
                              nodes, devices, devices > 1 ? ",link=100GB/s" : "", fabric);
    if (s4d_machine_load(&s->m, line, NULL, 0, &err) ||
        s4d_cluster_create(&s->c, &s->m, nodes, &err))
        fail_msg("%s: %s: %s", line, err.where, err.text);
    s->load = s4d_calloc((size_t)s->c.n_links, sizeof *s->load);
    free(line);
}

static void close_scene(struct scene *s)
{
    free(s->load);
    s4d_cluster_destroy(&s->c);
    s4d_machine_free(&s->m);
}

static void send(struct scene *s, int a, int b)
{
    struct s4d_path path = {0};
    double latency_s;
    s4d_cluster_route(&s->c, a, b, &path, &latency_s);
    for (int i = 0; i < path.n; i++)
        s->load[path.link[i]] += path.weight[i];
    s4d_path_free(&path);
}

static void all_to_all(struct scene *s)
{
    for (int a = 0; a < s->c.n_devices; a++)
        for (int b = 0; b < s->c.n_devices; b++)
            if (a != b)
                send(s, a, b);
}

/* Every link of the kind carries `expected`, and there are `count` of them. */
static void assert_loads(const struct scene *s, const char *kind, int count, int expected)
{
    int n = 0;
    for (int i = 0; i < s->c.n_links; i++) {
        if (strcmp(s->c.links[i].kind, kind) != 0)
            continue;
        n++;
        if (s->load[i] != expected) {
            char *name = s4d_link_name(&s->c, i);
            fail_msg("%s carries %d, expected %d", name, s->load[i], expected);
        }
    }
    assert_int_equal(n, count);
}

/* All of the first half send to their counterparts in the second: what all get together, GB/s. */
static double bisection(struct scene *s)
{
    int half = s->c.n_devices / 2;
    for (int a = 0; a < half; a++)
        send(s, a, a + half);
    double rate = 1e30;
    for (int i = 0; i < s->c.n_links; i++)
        if (s->load[i] && s->c.links[i].capacity_Bps / s->load[i] < rate)
            rate = s->c.links[i].capacity_Bps / s->load[i];
    return rate * half * 1e-9;
}

static int link_named(const struct scene *s, const char *name)
{
    for (int i = 0; i < s->c.n_links; i++) {
        char *found = s4d_link_name(&s->c, i);
        bool same = strcmp(found, name) == 0;
        free(found);
        if (same)
            return i;
    }
    fail_msg("no link %s", name);
    return -1;
}

/* The fabric's part of the way between two nodes of one device, names with spaces. */
static void assert_way(const struct scene *s, int a, int b, const char *expected)
{
    char text[512] = "";
    struct s4d_path path = {0};
    double latency_s;
    s4d_cluster_route(&s->c, a, b, &path, &latency_s);
    for (int i = 1; i < path.n - 1; i++) {
        char *name = s4d_link_name(&s->c, path.link[i]);
        strcat(strcat(text, i > 1 ? " " : ""), name);
        free(name);
    }
    s4d_path_free(&path);
    assert_string_equal(text, expected);
}

static void kill_link(struct scene *s, const char *name)
{
    s->c.links[link_named(s, name)].capacity_Bps = 0;
}

/* 4 leaves of 8: each of a leaf's 8 NICs sends to the 24 of others; 8 x 24 = 192. With 2:1 each
 * leaf has 40 GB/s up: half of the leaves send 80. */
static void fat_tree(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 32, 1, "fat-tree,nics_per_leaf=8");
    all_to_all(&s);
    assert_loads(&s, "leaf-out", 4, 192);
    assert_loads(&s, "leaf-in", 4, 192);
    assert_loads(&s, "nic-in", 32, 31);
    close_scene(&s);
    open_scene(&s, 32, 1, "fat-tree,nics_per_leaf=8");
    assert_true(bisection(&s) == 160);
    close_scene(&s);
    open_scene(&s, 32, 1, "fat-tree,nics_per_leaf=8,oversubscription=2");
    assert_true(bisection(&s) == 80);
    assert_way(&s, 0, 7, "");
    assert_way(&s, 0, 31, "leaf0.out leaf3.in");
    close_scene(&s);
}

/* 4 pods of 2 leaves of 4. Of a leaf's 4 NICs each sends to 28 outside it: 112; of a pod's 8 each
 * to 24: 192. A pod has 80 GB/s of NICs, 40 after the leaves' 2:1, 10 after the pods' 4:1: two pods
 * send 20. */
static void fat_tree_of_pods(void **state)
{
    (void)state;
    static const char line[] = "fat-tree,levels=3,nics_per_leaf=4,leaves_per_pod=2,"
                               "oversubscription=2,pod_oversubscription=4";
    struct scene s;
    open_scene(&s, 32, 1, line);
    all_to_all(&s);
    assert_loads(&s, "leaf-out", 8, 112);
    assert_loads(&s, "pod-out", 4, 192);
    assert_loads(&s, "pod-in", 4, 192);
    close_scene(&s);
    open_scene(&s, 32, 1, line);
    assert_true(bisection(&s) == 20);
    assert_way(&s, 0, 5, "leaf0.out leaf1.in");
    assert_way(&s, 0, 31, "leaf0.out pod0.out pod3.in leaf7.in");
    close_scene(&s);
}

/* What d-mod-k is for (Zahavi et al.): with full bandwidth, when every NIC sends to the one s
 * places on, no link is crossed twice, whatever s. And the all-to-all loads every link alike: of 4
 * leaves of 8 with 8 uplinks, 8 senders x 3 receivers an uplink = 24. */
static void d_mod_k(void **state)
{
    (void)state;
    struct scene s;
    static const char three[] = "fat-tree,levels=3,nics_per_leaf=4,leaves_per_pod=4,"
                                "routing=d-mod-k";
    open_scene(&s, 64, 1, three);
    for (int shift = 1; shift < 64; shift++) {
        memset(s.load, 0, (size_t)s.c.n_links * sizeof *s.load);
        for (int a = 0; a < 64; a++)
            send(&s, a, (a + shift) % 64);
        for (int i = 0; i < s.c.n_links; i++)
            assert_in_range(s.load[i], 0, 1);
    }
    close_scene(&s);
    open_scene(&s, 32, 1, "fat-tree,nics_per_leaf=8,routing=d-mod-k");
    all_to_all(&s);
    assert_loads(&s, "leaf-out", 32, 24);
    assert_loads(&s, "leaf-in", 32, 24);
    assert_way(&s, 1, 13, "leaf0.up5 leaf1.down5");
    kill_link(&s, "leaf1.down5");
    kill_link(&s, "leaf0.up6");
    assert_way(&s, 1, 13, "leaf0.up7 leaf1.down7");
    close_scene(&s);
    open_scene(&s, 64, 1, three);
    /* To 57: switch 57 mod 4 = 1 of the pod, its uplink 57 / 4 mod 4 = 2. */
    assert_way(&s, 0, 57, "leaf0.up1 pod0.switch1.up2 pod3.switch1.down2 leaf14.down1");
    kill_link(&s, "pod0.switch1.up2");
    assert_way(&s, 0, 57, "leaf0.up2 pod0.switch2.up2 pod3.switch2.down2 leaf14.down2");
    close_scene(&s);
}

/* 2 units of 4 nodes with 2 NICs: 4 leaves. A leaf's 4 NICs each send to the 14 NICs of the other
 * nodes, of which 3 hang on the same leaf: 4 x 11 = 44. Half to half stays on the rails, so 2:1
 * halves it: 4 x 20 GB/s go over the spine. */
static void rail_optimised(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 8, 2, "rail-optimised,nodes_per_unit=4,oversubscription=2");
    all_to_all(&s);
    assert_loads(&s, "leaf-out", 4, 44);
    assert_loads(&s, "leaf-in", 4, 44);
    close_scene(&s);
    open_scene(&s, 8, 2, "rail-optimised,nodes_per_unit=4,oversubscription=2");
    assert_true(bisection(&s) == 40);
    assert_way(&s, 0, 6, "");                                /* NIC 0 of nodes 0 and 3 */
    assert_way(&s, 0, 7, "unit0.rail0.out unit0.rail1.in");  /* NIC 1 of node 3 */
    assert_way(&s, 1, 15, "unit0.rail1.out unit1.rail1.in"); /* another unit */
    close_scene(&s);
}

/* Rings of collectives keep to their rail: with NCCL's two channels over two units of 2 nodes with
 * 2 NICs, channel 0 leaves every node through NIC 0 and enters the next through its NIC 0, channel
 * 1 NIC 1. Leaves are left only from unit to unit, once by each channel. */
static void rings_keep_to_rails(void **state)
{
    (void)state;
    struct scene s;
    struct s4d_channels ch;
    int devices[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    open_scene(&s, 4, 2, "rail-optimised,nodes_per_unit=2,library=nccl");
    assert_int_equal(s4d_ring.channels(&s.c, devices, 8, &ch), 0);
    assert_int_equal(ch.n, 2);
    for (int i = 0; i < ch.n; i++) {
        const struct s4d_path *path = &ch.channel[i].path;
        int nics = 0, leaves = 0;
        for (int j = 0; j < path->n; j++) {
            char *name = s4d_link_name(&s.c, path->link[j]), *nic = strstr(name, "nic");
            char *rail = strstr(name, "rail");
            assert_true(!nic || nic[3] == '0' + i);
            assert_true(!rail || rail[4] == '0' + i);
            nics += nic != NULL;
            leaves += rail != NULL;
            free(name);
        }
        assert_int_equal(nics, 8);
        assert_int_equal(leaves, 4);
    }
    s4d_channels_free(&ch);
    close_scene(&s);
}

/* X = Y = Z = 4, wrapped: the 64 routers' 2 x-links carry 64 x 64 pairs x 1 step on average, 4096 /
 * 128 = 32 each, and so do y and z. In two dimensions of 8: 64 x 64 x 2 / 128 = 64. */
static void torus(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 64, 1, "torus,size_x=4,size_y=4,size_z=4,link_bandwidth_Bps=10GB/s");
    all_to_all(&s);
    assert_loads(&s, "torus-up", 192, 32);
    assert_loads(&s, "torus-down", 192, 32);
    close_scene(&s);
    open_scene(&s, 64, 1, "torus,size_x=8,size_y=8,link_bandwidth_Bps=10GB/s");
    all_to_all(&s);
    int used = 0;
    for (int i = 0; i < s.c.n_links; i++)
        if (strncmp(s.c.links[i].kind, "torus", 5) == 0 && s.load[i] > 0) {
            assert_int_equal(s.load[i], 64);
            used++;
        }
    assert_int_equal(used, 4 * 64);
    close_scene(&s);
    /* z = 0 to 2 of 4: half way round, from an even one up: 2 steps for each of the 32 senders over
     * 2 links a column. */
    open_scene(&s, 64, 1, "torus,size_x=4,size_y=4,size_z=4,link_bandwidth_Bps=10GB/s");
    assert_true(bisection(&s) == 32 * 10);
    assert_way(&s, 1, 62, "router1.x+ router2.y- router14.z-");
    kill_link(&s, "router2.y-");
    assert_way(&s, 1, 62, "router1.x+ router2.y+ router6.y+ router10.y+ router14.z-");
    close_scene(&s);
}

/* A mesh of 4 x 4: the x-link in the middle of a row carries what the row's left half (2) sends to
 * all routers of the right half (8): 16; a column's what 8 in the upper half send to its 2 below.
 */
static void mesh(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 16, 1, "torus,size_x=4,size_y=4,ends=open,link_bandwidth_Bps=10GB/s");
    all_to_all(&s);
    assert_int_equal(s.load[link_named(&s, "router5.x+")], 16);
    assert_int_equal(s.load[link_named(&s, "router5.y+")], 16);
    assert_int_equal(s.load[link_named(&s, "router3.x+")], 0);
    assert_int_equal(s.load[link_named(&s, "router0.x-")], 0);
    assert_way(&s, 0, 6, "router0.x+ router1.x+ router2.y+");
    kill_link(&s, "router1.x+");
    assert_way(&s, 0, 6, "router0.y+ router4.x+ router5.x+");
    close_scene(&s);
}

/* A ring of 8: 64 pairs x 2 steps on average over 16 links: 8 each. */
static void ring(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 8, 1, "ring,link_bandwidth_Bps=10GB/s");
    all_to_all(&s);
    int used = 0;
    for (int i = 0; i < s.c.n_links; i++)
        if (s.c.links[i].kind[0] == 't' && s.load[i] > 0) {
            assert_int_equal(s.load[i], 8);
            used++;
        }
    assert_int_equal(used, 16);
    assert_way(&s, 1, 7, "router1.x- router0.x-");
    kill_link(&s, "router0.x-");
    assert_way(&s, 1, 7, "router1.x+ router2.x+ router3.x+ router4.x+ router5.x+ router6.x+");
    close_scene(&s);
}

/* 4 groups of 2 switches of 2 nodes each; a switch's 3 links to its group are one of 30 GB/s each
 * way, a group's 6 global links one of 60. All to all: a switch sends from 2 nodes to the 14 that
 * are not its own, a group from 4 to 12. */
static void dragonfly_adaptive(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 16, 1,
               "dragonfly,groups=4,nodes_per_group=4,switches_per_group=2,switches_per_node=1,"
               "local_links_per_switch=3,global_links_per_group=6,link_bandwidth_Bps=10GB/s");
    assert_way(&s, 0, 1, "");
    assert_way(&s, 0, 2, "group0.switch0.out group0.switch1.in");
    assert_way(&s, 1, 11, "group0.switch0.out group0.out group2.in group2.switch1.in");
    assert_true(s.c.links[link_named(&s, "group1.switch1.out")].capacity_Bps == 30e9);
    assert_true(s.c.links[link_named(&s, "group3.in")].capacity_Bps == 60e9);
    all_to_all(&s);
    assert_loads(&s, "switch-out", 8, 2 * 14);
    assert_loads(&s, "switch-in", 8, 2 * 14);
    assert_loads(&s, "group-out", 4, 4 * 12);
    assert_loads(&s, "group-in", 4, 4 * 12);
    close_scene(&s);
}

#define MINIMAL                                                                                    \
    "dragonfly,groups=4,nodes_per_group=4,switches_per_group=4,switches_per_node=1,"               \
    "local_links_per_switch=3,global_links_per_group=6,link_bandwidth_Bps=10GB/s,routing=minimal"

/* 4 groups of 4 switches of a node each; 6 global links a group, 2 to each other group, each on its
 * own: 4 x 4 pairs of nodes over 2 bundles = 8. A pair of groups alone has 20 GB/s, of the 60 that
 * adaptive routing may spread it over. */
static void dragonfly_minimal(void **state)
{
    (void)state;
    struct scene s;
    open_scene(&s, 16, 1, MINIMAL);
    all_to_all(&s);
    int used = 0, local = 0;
    for (int i = 0; i < s.c.n_links; i++) {
        if (strcmp(s.c.links[i].kind, "global") == 0 && s.load[i] > 0) {
            assert_int_equal(s.load[i], 8);
            assert_true(s.c.links[i].capacity_Bps == 10e9);
            used++;
        }
        local += strcmp(s.c.links[i].kind, "local") == 0 && s.load[i] > 0;
    }
    assert_int_equal(used, 4 * 3 * 2);
    assert_int_equal(local, 4 * 4 * 3);
    /* Group 0 to group 2: bundle 1 (14 is odd), from switch (2 x 2 + 1) mod 4 = 1 to (0 + 1) = 1.
     */
    assert_way(&s, 0, 9, "group0.switch0->switch1 group0->group2.1");
    assert_way(&s, 1, 8, "group0.switch1->switch0 group0->group2.0");
    assert_way(&s, 2, 3, "group0.switch2->switch3");
    kill_link(&s, "group0->group2.0");
    assert_way(&s, 1, 8, "group0->group2.1 group2.switch1->switch0");
    kill_link(&s, "group0.switch2->switch3");
    assert_way(&s, 2, 3, "group0.switch2->switch0 group0.switch0->switch3");
    close_scene(&s);
}

/* Every kind has a row that its example fills, and its documentation. */
static void examples(void **state)
{
    (void)state;
    for (int i = 0; s4d_fabrics[i]; i++) {
        struct scene s;
        const struct s4d_fabric_kind *kind = s4d_fabrics[i];
        const char *equal = kind->example ? strchr(kind->example, '=') : NULL;
        if (!kind->example && strcmp(kind->name, "simgrid") == 0)
            continue; /* a file: test_platform.c */
        assert_non_null(equal);
        open_scene(&s, 64, 1, equal + 1);
        assert_ptr_equal(s.c.fabric, kind);
        send(&s, 0, 63);
        for (int j = 0; kind->parameter[j].key; j++)
            assert_true(kind->parameter[j].summary[0] != '\0');
        close_scene(&s);
    }
}

struct refusal {
    const char *fabric, *where, *text;
};

static void refused(void **state)
{
    (void)state;
    static const struct refusal cases[] = {
        {"fat-tree", "fabric.nics_per_leaf", "missing"},
        {"fat-tree,nics_per_leaf=0", "fabric.nics_per_leaf", "from 1"},
        {"fat-tree,nics_per_leaf=2.5", "fabric.nics_per_leaf", "whole number"},
        {"fat-tree,nics_per_leaf=8,oversubscription=0", "fabric.oversubscription", "found 0"},
        {"fat-tree,nics_per_leaf=8,oversubscription=much", "fabric.oversubscription", "found much"},
        {"fat-tree,nics_per_leaf=8,leaves=1", "fabric.nodes", "make room for 8"},
        {"fat-tree,nics_per_leaf=8,routing=random", "fabric.routing", "d-mod-k; found 'random'"},
        {"fat-tree,nics_per_leaf=8,routing=3", "fabric.routing", "d-mod-k; found 3"},
        {"fat-tree,nics_per_leaf=8,levels=4", "fabric.levels", "from 2 to 3"},
        {"fat-tree,nics_per_leaf=8,levels=3", "synthetic", "leaves_per_pod: missing"},
        {"fat-tree,nics_per_leaf=8,leaves_per_pod=2", "fabric.leaves_per_pod",
         "only with levels: 3"},
        {"fat-tree,nics_per_leaf=8,levels=2,pod_oversubscription=2", "fabric.pod_oversubscription",
         "only with levels: 3"},
        {"fat-tree,nics_per_leaf=8,link_bandwidth_Bps=1GB/s", "fabric.link_bandwidth_Bps",
         "only with routing: d-mod-k"},
        {"fat-tree,nics_per_leaf=8,oversubscription=3,routing=d-mod-k", "synthetic", "2.66667"},
        /* 655 uplinks of a leaf to as many switches, each with 65500 to the core: 2^32 and more. */
        {"fat-tree,levels=3,nics_per_leaf=65500,leaves_per_pod=655,pod_oversubscription=0.01,"
         "routing=d-mod-k",
         "synthetic", "the most that can be simulated"},
        {"fat-tree,nics_per_leaf=65536,routing=d-mod-k,link_bandwidth_Bps=1B/s", "synthetic",
         "6.5536e+13 uplinks"},
        {"rail-optimised,nodes_per_unit=4,units=3", "fabric.nodes", "make room for 12"},
        {"rail-optimised,nodes_per_unit=4,rails=3", "fabric.rails", "unknown key"},
        {"torus,size_x=4,size_y=3,link_bandwidth_Bps=1GB/s", "fabric.nodes", "make room for 12"},
        {"torus,size_x=4,size_y=4,link_bandwidth_Bps=0GB/s", "fabric.link_bandwidth_Bps",
         "found 0"},
        {"torus,size_x=4,size_y=4", "fabric.link_bandwidth_Bps", "missing"},
        {"torus,size_x=9999,size_y=9999,link_bandwidth_Bps=1GB/s", "synthetic", "more than"},
        {"ring", "fabric.link_bandwidth_Bps", "missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_cluster c;
        struct s4d_error err = {0};
        char *line = s4d_asprintf("synthetic:nodes=16,nic=1GB/s,latency=1us,peak=1TFLOP/s,"
                                  "topology=%s",
                                  cases[i].fabric);
        assert_int_equal(s4d_machine_load(&m, line, NULL, 0, &err), 0);
        if (s4d_cluster_create(&c, &m, 1, &err) == 0)
            fail_msg("%s was taken", cases[i].fabric);
        if (err.exit != S4D_EXIT_DATA || !strstr(err.where, cases[i].where) ||
            !strstr(err.text, cases[i].text))
            fail_msg("%s: %d %s: %s", cases[i].fabric, err.exit, err.where, err.text);
        s4d_machine_free(&m);
        free(line);
    }
}

/* Summit's pods, in its file, are of no use where --set takes their level away; to set both is a
 * mistake, and so is to set what the file's own routing does not use. */
static void set_without_effect(void **state)
{
    (void)state;
    static const struct {
        const char *set[2], *where;
    } cases[] = {
        {{"fabric.levels=2", "fabric.oversubscription=2"}, NULL},
        {{"fabric.levels=2", "fabric.pod_oversubscription=2"}, "--set fabric.pod_oversubscription"},
        {{"fabric.levels=3", "fabric.pod_oversubscription=2"}, NULL},
        {{"fabric.levels=3", "fabric.link_bandwidth_Bps=1GB/s"}, "--set fabric.link_bandwidth_Bps"},
        {{"fabric.routing=d-mod-k", "fabric.link_bandwidth_Bps=1GB/s"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        assert_int_equal(s4d_machine_load(&m, "summit", cases[i].set, 2, &err), 0);
        assert_int_equal(s4d_fabric_check(&m, &err), cases[i].where ? -1 : 0);
        if (cases[i].where) {
            assert_int_equal(err.exit, S4D_EXIT_USAGE);
            assert_string_equal(err.where, cases[i].where);
        }
        s4d_machine_free(&m);
    }
}

/* --set takes another topology and keys that the machine's file does not have. */
static void set(void **state)
{
    (void)state;
    static const char *const good[] = {"fabric.oversubscription=4", "fabric.topology=fat-tree",
                                       "fabric.nics_per_leaf=32"};
    static const char *const bad[] = {"fabric.oversubscriptoin=4", "fabric.topology=fat-tree",
                                      "fabric.nics_per_leaf=32"};
    struct s4d_machine m;
    struct s4d_error err = {0};
    assert_int_equal(s4d_machine_load(&m, "perlmutter", good, 3, &err), 0);
    assert_int_equal(s4d_fabric_check(&m, &err), 0);
    assert_true(s4d_fabric_value(&m, "oversubscription") == 4);
    assert_int_equal(m.fabric.n_parameters, 2);
    s4d_machine_free(&m);
    assert_int_equal(s4d_machine_load(&m, "perlmutter", bad, 3, &err), 0);
    assert_int_equal(s4d_fabric_check(&m, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_non_null(strstr(err.where, "--set fabric.oversubscriptoin"));
    assert_non_null(strstr(err.hint, "oversubscription"));
    s4d_machine_free(&m);
    static const char *const minimal[] = {"fabric.routing=minimal"};
    assert_int_equal(s4d_machine_load(&m, "perlmutter", minimal, 1, &err), 0);
    assert_int_equal(s4d_fabric_check(&m, &err), 0);
    assert_true(s4d_fabric_value(&m, "routing") == 1);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fat_tree),
        cmocka_unit_test(fat_tree_of_pods),
        cmocka_unit_test(d_mod_k),
        cmocka_unit_test(rail_optimised),
        cmocka_unit_test(rings_keep_to_rails),
        cmocka_unit_test(torus),
        cmocka_unit_test(mesh),
        cmocka_unit_test(ring),
        cmocka_unit_test(dragonfly_adaptive),
        cmocka_unit_test(dragonfly_minimal),
        cmocka_unit_test(examples),
        cmocka_unit_test(refused),
        cmocka_unit_test(set),
        cmocka_unit_test(set_without_effect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
