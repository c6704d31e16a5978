/* SPDX-License-Identifier: Apache-2.0 */
/* Rings inside a node, members by node, paths of channels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/collective/channels.h"
#include "support/memory.h"

enum { MOST = 9 };

/* A node of n devices whose pairs have these numbers of bricks. */
struct graph {
    int n, bricks[MOST][MOST];
    struct s4d_node node;
};

static void make_node(struct graph *g)
{
    g->node = (struct s4d_node){.devices = g->n};
    g->node.link = s4d_calloc(MOST * MOST, sizeof *g->node.link);
    for (int a = 0; a < g->n; a++)
        for (int b = a + 1; b < g->n; b++)
            if (g->bricks[a][b])
                g->node.link[g->node.n_links++] =
                    (struct s4d_node_link){.a = a, .b = b, .bricks = g->bricks[a][b]};
}

static struct graph complete(int n, int bricks)
{
    struct graph g = {.n = n};
    for (int a = 0; a < n; a++)
        for (int b = a + 1; b < n; b++)
            g.bricks[a][b] = bricks;
    make_node(&g);
    return g;
}

/* Searches, and checks by counting that every edge of the rings has bricks of its own. */
static struct s4d_rings search(const struct graph *g, const int *local, int n)
{
    struct s4d_rings r;
    int used[MOST][MOST] = {{0}};
    s4d_rings_search(&r, &g->node, local, n);
    for (int ring = 0; ring < r.n_rings; ring++) {
        int visits[MOST] = {0};
        for (int i = 0; i < n; i++) {
            int a = r.order[ring * n + i], b = r.order[ring * n + (i + 1) % n];
            visits[a]++;
            used[local[a]][local[b]] += r.width;
        }
        for (int i = 0; i < n; i++)
            assert_int_equal(visits[i], 1);
    }
    for (int a = 0; a < g->n; a++)
        for (int b = 0; b < g->n; b++)
            assert_true(used[a][b] <= (a < b ? g->bricks[a][b] : g->bricks[b][a]));
    return r;
}

static void check(const struct graph *g, const int *local, int n, int n_rings, int width)
{
    struct s4d_rings r = search(g, local, n);
    assert_int_equal(r.n_rings, n_rings);
    assert_int_equal(r.width, width);
    s4d_rings_free(&r);
}

/* Four A100 with four bricks a pair: 12 directed pairs x 4 bricks = 48; six rings of 2 bricks an
 * edge use 6 x 4 x 2 = 48, all of them. Rings of 4 bricks: K4 has only two edge-disjoint directed
 * Hamiltonian cycles (Tillson 1980: K4 and K6 cannot be decomposed), 2 x 4 < 6 x 2. */
static void test_four(void **state)
{
    (void)state;
    struct graph g = complete(4, 4);
    check(&g, (int[]){0, 1, 2, 3}, 4, 6, 2);
    check(&g, (int[]){2, 0, 3, 1}, 4, 6, 2);
    /* Three members: two directed triangles, each with all four bricks; two: there and back. */
    check(&g, (int[]){0, 1, 2}, 3, 2, 4);
    check(&g, (int[]){3, 0, 1}, 3, 2, 4);
    check(&g, (int[]){1, 3}, 2, 1, 4);
    free(g.node.link);
}

/* Five complete: Tillson's decomposition exists, four cycles use all 20 directed edges. */
static void test_five(void **state)
{
    (void)state;
    struct graph g = complete(5, 1);
    check(&g, (int[]){0, 1, 2, 3, 4}, 5, 4, 1);
    free(g.node.link);
}

/* Nine complete: too many cycles to try them all; steps of 1, 2, 4, 5, 7 and 8 make six
 * edge-disjoint ones. */
static void test_nine(void **state)
{
    (void)state;
    struct graph g = complete(9, 2);
    struct s4d_rings r = search(&g, (int[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9);
    assert_true(r.n_rings * r.width >= 12);
    s4d_rings_free(&r);
    free(g.node.link);
}

/* A line has no ring through all three, but one through two neighbours. */
static void test_no_ring(void **state)
{
    (void)state;
    struct graph g = {.n = 3};
    g.bricks[0][1] = g.bricks[1][2] = 2;
    make_node(&g);
    check(&g, (int[]){0, 1, 2}, 3, 0, 0);
    check(&g, (int[]){0, 1}, 2, 1, 2);
    check(&g, (int[]){0, 2}, 2, 0, 0);
    free(g.node.link);
}

/* Two complete halves of 20 devices joined by one bridge have no ring, and 19! walks to find that
 * out: the search gives up, at once (`make test` would hang here). */
static void test_bridge(void **state)
{
    (void)state;
    enum { HALF = 20, N = 2 * HALF };
    struct s4d_node node = {.devices = N, .link = s4d_calloc(N * N, sizeof *node.link)};
    int local[N];
    for (int a = 0; a < N; a++) {
        local[a] = a;
        for (int b = a + 1; b < N; b++)
            if (a / HALF == b / HALF || (a == HALF - 1 && b == HALF))
                node.link[node.n_links++] = (struct s4d_node_link){.a = a, .b = b, .bricks = 1024};
    }
    struct s4d_rings r;
    s4d_rings_search(&r, &node, local, N);
    assert_int_equal(r.n_rings, 0);
    s4d_rings_free(&r);
    free(node.link);
}

/* DGX-1 with V100: six bricks leave each device; six rings of one brick use them all, which is what
 * NCCL finds there. */
static void test_dgx1(void **state)
{
    (void)state;
    struct graph g = {.n = 8,
                      .bricks = {{0, 1, 1, 2, 2},
                                 {0, 0, 2, 1, 0, 2},
                                 {0, 0, 0, 2, 0, 0, 1},
                                 {0, 0, 0, 0, 0, 0, 0, 1},
                                 {0, 0, 0, 0, 0, 1, 1, 2},
                                 {0, 0, 0, 0, 0, 0, 2, 1},
                                 {0, 0, 0, 0, 0, 0, 0, 2}}};
    make_node(&g);
    struct s4d_rings r = search(&g, (int[]){0, 1, 2, 3, 4, 5, 6, 7}, 8);
    assert_int_equal(r.n_rings * r.width, 6);
    s4d_rings_free(&r);
    free(g.node.link);
}

static void load(struct s4d_machine *m, const char *line)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, line, NULL, 0, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

static void test_layout(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err;
    load(&m, "synthetic:topology=single-switch,nodes=3,devices_per_node=4,nic=25GB/s,latency=1us,"
             "peak=1TFLOP/s,link=80GB/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 3, &err), 0);
    struct s4d_layout l;
    s4d_layout_create(&l, &c, (int[]){5, 9, 4, 6, 10}, 5);
    assert_int_equal(l.nodes, 2);
    assert_int_equal(l.fewest, 2);
    assert_int_equal(s4d_layout_count(&l, 0), 3);
    assert_int_equal(s4d_layout_member(&l, 0, 1), 4);
    assert_int_equal(s4d_layout_member(&l, 0, 3), 5);
    assert_int_equal(s4d_layout_member(&l, 1, 3), 10);
    s4d_layout_free(&l);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* The names of a channel's links, each with its weight. */
static void assert_path(const struct s4d_cluster *c, const struct s4d_path *path,
                        const char *expected)
{
    char text[2048] = "";
    for (int i = 0; i < path->n; i++) {
        char *name = s4d_link_name(c, path->link[i]);
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s*%d", i ? " " : "", name, path->weight[i]);
        free(name);
    }
    assert_string_equal(text, expected);
}

/* Two nodes of three members on two nodes: three channels. Channel 1 enters at member 2, visits 0,
 * then 1, and leaves through NIC 1. */
static void test_ring_paths(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err;
    struct s4d_channels ch;
    load(&m, "synthetic:topology=single-switch,nodes=2,devices_per_node=3,nic=25GB/s,latency=1us,"
             "peak=1TFLOP/s,link=80GB/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), 0);
    strcpy(m.library.name, "nccl");
    assert_int_equal(s4d_ring.channels(&c, (int[]){0, 1, 2, 3, 4, 5}, 6, &ch), 0);
    assert_int_equal(ch.n, 3);
    assert_int_equal(ch.members_per_node, 3);
    assert_path(&c, &ch.channel[1].path,
                "n0.gpu0->gpu1*1 n0.gpu2->gpu0*1 n0.nic1.out*1 n0.nic2.in*1 "
                "n1.gpu0->gpu1*1 n1.gpu2->gpu0*1 n1.nic1.out*1 n1.nic2.in*1");
    /* NICs are the tightest: each carries one third of the volume. */
    assert_float_equal(ch.bus_Bps, 75e9, 1);
    s4d_channels_free(&ch);
    /* A node of one: one channel, which passes the lone member. */
    assert_int_equal(s4d_ring.channels(&c, (int[]){0, 1, 2, 4}, 4, &ch), 0);
    assert_int_equal(ch.n, 1);
    assert_path(&c, &ch.channel[0].path,
                "n0.gpu2->gpu0*1 n0.gpu1->gpu2*1 n0.nic0.out*1 n0.nic1.in*1 "
                "n1.nic1.out*1 n1.nic1.in*1");
    s4d_channels_free(&ch);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Four nodes of one. First tree: 0 over 2, 2 over 1 and 3. Second, mirrored: 3 over 1, 1 over 2 and
 * 0. Every edge both ways, so NIC 2 is crossed three times by the first tree, once by the second.
 */
static void test_tree_paths(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err;
    struct s4d_channels ch;
    load(&m, "synthetic:topology=single-switch,nodes=4,devices_per_node=1,nic=25GB/s,latency=1us,"
             "peak=1TFLOP/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 4, &err), 0);
    assert_int_equal(s4d_tree.channels(&c, (int[]){0, 1, 2, 3}, 4, &ch), 0);
    assert_int_equal(ch.n, 2);
    assert_path(&c, &ch.channel[0].path,
                "n0.nic0.out*1 n0.nic0.in*1 n1.nic0.out*1 n1.nic0.in*1 "
                "n2.nic0.out*3 n2.nic0.in*3 n3.nic0.out*1 n3.nic0.in*1");
    assert_path(&c, &ch.channel[1].path,
                "n0.nic0.out*1 n0.nic0.in*1 n1.nic0.out*3 n1.nic0.in*3 "
                "n2.nic0.out*1 n2.nic0.in*1 n3.nic0.out*1 n3.nic0.in*1");
    s4d_channels_free(&ch);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Both trees reach every node and no node has children in both, for 2 to 70 nodes. */
static void test_trees(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err;
    load(&m, "synthetic:topology=single-switch,nodes=70,devices_per_node=1,nic=25GB/s,latency=1us,"
             "peak=1TFLOP/s");
    assert_int_equal(s4d_cluster_create(&c, &m, 70, &err), 0);
    int devices[70];
    for (int n = 2; n <= 70; n++) {
        devices[n - 2] = n - 2;
        devices[n - 1] = n - 1;
        struct s4d_channels ch;
        assert_int_equal(s4d_tree.channels(&c, devices, n, &ch), 0);
        int out[2][70] = {{0}}, edges[2] = {0};
        for (int t = 0; t < 2; t++) {
            const struct s4d_path *path = &ch.channel[t].path;
            for (int i = 0; i < path->n; i++) {
                char *name = s4d_link_name(&c, path->link[i]);
                if (strstr(name, ".out")) {
                    out[t][atoi(name + 1)] = path->weight[i];
                    edges[t] += path->weight[i];
                }
                free(name);
            }
        }
        /* n - 1 edges, each both ways; a neighbour or two is a leaf or the root, three is neither.
         */
        for (int t = 0; t < 2; t++)
            assert_int_equal(edges[t], 2 * (n - 1));
        for (int i = 0; i < n; i++) {
            assert_in_range(out[0][i], 1, 3);
            assert_in_range(out[1][i], 1, 3);
            assert_true(out[0][i] + out[1][i] <= 4);
        }
        s4d_channels_free(&ch);
    }
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_four),       cmocka_unit_test(test_five),
        cmocka_unit_test(test_nine),       cmocka_unit_test(test_no_ring),
        cmocka_unit_test(test_dgx1),       cmocka_unit_test(test_layout),
        cmocka_unit_test(test_ring_paths), cmocka_unit_test(test_tree_paths),
        cmocka_unit_test(test_trees),      cmocka_unit_test(test_bridge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
