/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of our fabrics against those of SimGrid's own zones: the same links, one to one, between
 * all pairs of nodes. Where ours are pooled, each of SimGrid's belongs to one of ours, whose
 * capacity is theirs together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/fabric.h"
#include "sim/isolate.h"
#include "support/memory.h"
#include "tests/lib/zones.h"

/* Machines of one device and NIC a node, as many nodes as the zone has hosts, all links 1 GB/s. */
struct scene {
    const char *fabric;
    int nodes;
    void (*zone)(void);
    int skip; /* links at both ends of our ways (NICs) that the zone does not have */
    bool pooled;
};

struct matching {
    const struct s4d_cluster *c;
    int *theirs_of; /* by our link; -1: none yet */
    int ours_of[65536];
    int theirs; /* different links of theirs */
};

static int mismatch(struct s4d_error *err, const struct s4d_cluster *c, int a, int b, int our)
{
    char *name = s4d_link_name(c, our);
    s4d_fail(err, S4D_EXIT_BUG, "route", "%d to %d: %s does not match", a, b, name);
    free(name);
    return -1;
}

/* The ways from a to b have matching links in the same order. */
static int match(struct matching *m, const struct scene *s, int a, int b, struct s4d_error *err)
{
    struct s4d_path path = {0};
    double latency_s;
    int theirs[64], n = zone_route(a, b, theirs), rc = 0;
    s4d_cluster_route(m->c, a, b, &path, &latency_s);
    if (path.n - 2 * s->skip != n)
        rc =
            s4d_fail(err, S4D_EXIT_BUG, "route", "%d to %d: %d links, SimGrid %d", a, b, path.n, n);
    for (int i = 0; i < n && rc == 0; i++) {
        int our = path.link[i + s->skip], their = theirs[i];
        for (; m->theirs <= their; m->theirs++)
            m->ours_of[m->theirs] = -1;
        if (m->theirs_of[our] < 0 || s->pooled)
            m->theirs_of[our] = their;
        if (m->ours_of[their] < 0)
            m->ours_of[their] = our;
        if (m->theirs_of[our] != their || m->ours_of[their] != our)
            rc = mismatch(err, m->c, a, b, our);
    }
    s4d_path_free(&path);
    return rc;
}

/* Every link of ours that is used has the capacity of the zone's links that belong to it. */
static int capacities(const struct matching *m, struct s4d_error *err)
{
    int *count = s4d_calloc((size_t)m->c->n_links, sizeof *count), rc = 0;
    for (int i = 0; i < m->theirs; i++)
        count[m->ours_of[i]]++;
    for (int i = 0; i < m->c->n_links && rc == 0; i++)
        if (count[i] > 0 && m->c->links[i].capacity_Bps != count[i] * 1e9)
            rc = s4d_fail(err, S4D_EXIT_BUG, "capacity", "link %d: %g, SimGrid %d GB/s", i,
                          m->c->links[i].capacity_Bps, count[i]);
    free(count);
    return rc;
}

static int compare(void *context, int index, void *result, struct s4d_error *err)
{
    const struct scene *s = (const struct scene *)context + index;
    struct s4d_machine machine;
    struct s4d_cluster c;
    char *line = s4d_asprintf("synthetic:nodes=%d,nic=1GB/s,latency=1us,peak=1TFLOP/s,topology=%s",
                              s->nodes, s->fabric);
    if (s4d_machine_load(&machine, line, NULL, 0, err) ||
        s4d_cluster_create(&c, &machine, s->nodes, err))
        return -1;
    struct matching *m = s4d_calloc(1, sizeof *m);
    m->c = &c;
    m->theirs_of = s4d_malloc((size_t)c.n_links * sizeof(int));
    for (int i = 0; i < c.n_links; i++)
        m->theirs_of[i] = -1;
    s->zone();
    int rc = 0;
    for (int a = 0; a < s->nodes && rc == 0; a++)
        for (int b = 0; b < s->nodes && rc == 0; b++)
            if (a != b)
                rc = match(m, s, a, b, err);
    if (rc == 0)
        rc = capacities(m, err);
    *(int *)result = m->theirs;
    free(m->theirs_of);
    free(m);
    free(line);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&machine);
    return rc;
}

/* 12 leaves of 8, 8 spine switches; the same with 4, 2:1; 3 pods of 4 leaves of 4, 4 x 2 core
 * switches, 2:1 above the pods. */
static void two_levels(void)
{
    zone_fat_tree(2, (unsigned[]){8, 12}, (unsigned[]){1, 8}, (unsigned[]){1, 1});
}
static void tapered(void)
{
    zone_fat_tree(2, (unsigned[]){8, 12}, (unsigned[]){1, 4}, (unsigned[]){1, 1});
}
static void three_levels(void)
{
    zone_fat_tree(3, (unsigned[]){4, 4, 3}, (unsigned[]){1, 4, 2}, (unsigned[]){1, 1, 1});
}
/* Odd sizes: SimGrid and we choose different ways exactly half way round. */
static void torus_2d(void)
{
    zone_torus(2, (int[]){7, 5});
}
static void torus_3d(void)
{
    zone_torus(3, (int[]){5, 3, 7});
}
static void ring(void)
{
    zone_torus(1, (int[]){33});
}
/* SimGrid crashes with more groups than switches in one. */
static void dragonfly(void)
{
    zone_dragonfly(6, 8, 3);
}

#define D_MOD_K ",routing=d-mod-k"
#define DRAGONFLY_LINE                                                                             \
    "dragonfly,groups=6,nodes_per_group=24,switches_per_group=8,switches_per_node=1,"              \
    "local_links_per_switch=7,global_links_per_group=5,link_bandwidth_Bps=1GB/s,routing=minimal"
static struct scene scenes[] = {
    {"fat-tree,nics_per_leaf=8" D_MOD_K, 96, two_levels, 0, false},
    {"fat-tree,nics_per_leaf=8,oversubscription=2" D_MOD_K, 96, tapered, 0, false},
    {"fat-tree,levels=3,nics_per_leaf=4,leaves_per_pod=4,pod_oversubscription=2" D_MOD_K, 48,
     three_levels, 0, false},
    {"fat-tree,nics_per_leaf=8", 96, two_levels, 0, true},
    {"fat-tree,nics_per_leaf=8,oversubscription=2", 96, tapered, 0, true},
    {"fat-tree,levels=3,nics_per_leaf=4,leaves_per_pod=4,pod_oversubscription=2", 48, three_levels,
     0, true},
    {"torus,size_x=7,size_y=5,link_bandwidth_Bps=1GB/s", 35, torus_2d, 1, false},
    {"torus,size_x=5,size_y=3,size_z=7,link_bandwidth_Bps=1GB/s", 105, torus_3d, 1, false},
    {"ring,link_bandwidth_Bps=1GB/s", 33, ring, 1, false},
    {DRAGONFLY_LINE, 144, dragonfly, 0, false},
};
enum { SCENES = sizeof scenes / sizeof *scenes };

static void test_zones(void **state)
{
    (void)state;
    int theirs[SCENES];
    struct s4d_error errors[SCENES];
    int failed = s4d_isolated(compare, scenes, SCENES, 2, theirs, sizeof(int), errors, NULL);
    for (int i = 0; i < SCENES; i++) {
        if (errors[i].exit)
            print_message("%s: %s: %s\n", scenes[i].fabric, errors[i].where, errors[i].text);
        else
            assert_true(theirs[i] > scenes[i].nodes);
    }
    assert_int_equal(failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_zones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
