/* SPDX-License-Identifier: Apache-2.0 */
/* Folded and unfolded simulations end every op of every rank at the same time: whole GPT iterations
 * on every fabric, symmetric and with every kind of asymmetry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/memory.h"
#include "tests/lib/folding.h"
#include "tests/lib/sanitized.h"

static const char single_switch[] =
    "synthetic:topology=single-switch,nodes=512,nic=25GB/s,latency=2us,peak=100TFLOP/s,"
    "memory_bandwidth=1TB/s,library=nccl";
/* Four devices a node; a group's 8 nodes leave it over half of the bandwidth they put in. */
static const char dragonfly[] =
    "synthetic:topology=dragonfly,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"
    "latency=2us,peak=100TFLOP/s,memory_bandwidth=1TB/s,library=nccl,groups=16,nodes_per_group=8,"
    "switches_per_group=4,switches_per_node=2,local_links_per_switch=6,"
    "global_links_per_group=16,link_bandwidth_Bps=25GB/s";

/* Symmetric, with a slow link, with a slow device: a slow NIC or device takes longer, a slow device
 * makes more classes. device: the sixth. */
static void three_ways(const char *machine, const char *grid, const char *link, const char *device)
{
    struct folding symmetric = {.machine = machine, .grid = grid},
                   slow_link = {.machine = machine, .grid = grid, .set = {link}},
                   slow_device = {.machine = machine, .grid = grid, .set = {device}};
    folding_compare(&symmetric);
    folding_compare(&slow_link);
    folding_compare(&slow_device);
    print_message("%s: %d, %d, %d classes of ranks\n", grid, symmetric.classes, slow_link.classes,
                  slow_device.classes);
    if (strstr(link, "nic"))
        assert_true(slow_link.end_s > symmetric.end_s);
    assert_true(slow_device.end_s > symmetric.end_s);
    assert_true(slow_link.classes >= symmetric.classes && slow_device.classes > symmetric.classes);
}

static const char slow_nic[] = "links.n0.nic0.out=0.3", slow_pair[] = "links.n0.gpu0->gpu1=0.3",
                  sixth_node[] = "devices.n5.gpu0=0.7", sixth[] = "devices.n1.gpu1=0.7";

static void on_a_single_switch(void **state)
{
    (void)state;
    three_ways(single_switch, "2x2x2x2", slow_nic, sixth_node);
    three_ways(single_switch, "1x1x1x64", slow_nic, sixth_node);
    three_ways(single_switch, "4x1x16x1", slow_nic, sixth_node);
    three_ways(single_switch, "1x2x4x32", slow_nic, sixth_node);
    three_ways(single_switch, "2x2x4x32", slow_nic, sixth_node);
}

static void on_a_dragonfly(void **state)
{
    (void)state;
    three_ways(dragonfly, "2x2x2x2", slow_nic, sixth);
    three_ways(dragonfly, "4x2x2x2", slow_nic, sixth);
    three_ways(dragonfly, "2x2x4x8", slow_nic, sixth);
    three_ways(dragonfly, "4x2x8x8", slow_pair, sixth);
}

static void on_perlmutter(void **state)
{
    (void)state;
    three_ways("perlmutter", "4x1x8x2", slow_nic, sixth);
}

#define NODES                                                                                      \
    "synthetic:nodes=160,devices_per_node=4,link=100GB/s,nic=25GB/s,latency=2us,"                  \
    "peak=100TFLOP/s,memory_bandwidth=1TB/s,library=nccl,topology="
static const struct fabric {
    const char *line, *link; /* one that the job's ways cross and do without */
} fabrics[] = {
    {NODES "single-switch", "links.n1.gpu0->gpu1"},
    {NODES "fat-tree,nics_per_leaf=16,oversubscription=2", "links.n1.gpu0->gpu1"},
    {NODES "fat-tree,levels=3,nics_per_leaf=8,leaves_per_pod=4,routing=d-mod-k", "links.leaf0.up3"},
    {NODES "rail-optimised,nodes_per_unit=8,oversubscription=2", "links.n1.gpu0->gpu1"},
    {NODES "dragonfly,groups=20,nodes_per_group=8,switches_per_group=4,switches_per_node=2,"
           "local_links_per_switch=6,global_links_per_group=38,link_bandwidth_Bps=25GB/s",
     "links.n1.gpu0->gpu1"},
    {NODES "dragonfly,groups=20,nodes_per_group=8,switches_per_group=4,switches_per_node=2,"
           "local_links_per_switch=6,global_links_per_group=38,link_bandwidth_Bps=25GB/s,"
           "routing=minimal",
     "links.group0->group1.0"},
    {NODES "torus,size_x=4,size_y=4,size_z=10,link_bandwidth_Bps=50GB/s", "links.router1.x+"},
    {NODES "ring,link_bandwidth_Bps=50GB/s", "links.router2.x+"},
};
enum { FABRICS = sizeof fabrics / sizeof *fabrics };

static struct folding simulated(const struct fabric *f, const char *grid, const char *set,
                                const char *placement)
{
    struct folding run = {.machine = f->line, .grid = grid, .set = {set}, .placement = placement};
    folding_compare(&run);
    return run;
}

static struct folding with_link(const struct fabric *f, const char *grid, const char *value)
{
    char set[64];
    snprintf(set, sizeof set, "%s=%s", f->link, value);
    return simulated(f, grid, set, NULL);
}

/* Nodes `step` apart, as a file of hosts lists them. */
static struct folding on_hosts(const struct fabric *f, const char *grid, int n, int step,
                               const char *set)
{
    char *hosts = s4d_malloc((size_t)n * 8 + 1), *at = hosts;
    for (int i = 0; i < n; i++)
        at += snprintf(at, 8, "n%d\n", i * step % 160);
    struct folding run = {.machine = f->line, .grid = grid, .set = {set}, .hosts = hosts};
    folding_compare(&run);
    run.hosts = NULL;
    free(hosts);
    return run;
}

/* 16 nodes of a larger machine. */
static void with_every_asymmetry(void **state)
{
    (void)state;
    static const char grid[] = "2x2x4x4";
    for (int i = 0; i < FABRICS; i += S4D_SANITIZED ? 3 : 1) {
        const struct fabric *f = &fabrics[i];
        struct folding plain = simulated(f, grid, NULL, NULL);
        struct folding runs[] = {
            with_link(f, grid, "dead"),
            with_link(f, grid, "0.2"),
            simulated(f, grid, "nics.n3.nic1=dead", NULL),
            simulated(f, grid, "nics.n3.nic1=5 GB/s", NULL),
            simulated(f, grid, "devices.n7.gpu2=0.5", NULL),
            simulated(f, grid, NULL, "random:3"),
            simulated(f, grid, NULL, "fragmented:3"),
            simulated(f, grid, "nics.n*.nic0=0.5", "random:3"),
            on_hosts(f, grid, 16, 7, NULL),
            on_hosts(f, grid, 16, 10, "links.n10.gpu0->gpu1=0.3"),
        };
        print_message("%s: %d", strstr(f->line, "topology="), plain.classes);
        for (size_t j = 0; j < sizeof runs / sizeof *runs; j++)
            print_message(", %d", runs[j].classes);
        print_message(" classes of ranks\n");
        for (int j = 0; j < 5; j++)
            assert_true(runs[j].classes >= plain.classes);
        /* Where every NIC is a bottleneck; elsewhere the fabric may be. */
        if (i == 0)
            assert_true(runs[2].end_s > plain.end_s && runs[3].end_s > plain.end_s);
        assert_true(runs[4].end_s > plain.end_s && runs[4].classes > plain.classes);
    }
}

/* A link that groups share and none fills alone, not the first of its kind: its capacity is all
 * that tells it apart. */
static void with_a_slower_shared_link(void **state)
{
    (void)state;
    static const char grid[] = "2x2x4x4";
    struct folding plain = simulated(&fabrics[1], grid, NULL, NULL),
                   slower = simulated(&fabrics[1], grid, "links.leaf2.out=0.6", NULL);
    assert_true(slower.end_s > plain.end_s);
}

/* Rates hold for all ranks and groups alike: no more classes than without. */
static void with_rates(void **state)
{
    (void)state;
    static const char grid[] = "2x2x4x4";
    for (int i = 0; i < FABRICS; i += S4D_SANITIZED ? 4 : 2) {
        struct folding plain = simulated(&fabrics[i], grid, NULL, NULL);
        struct folding run = {.machine = fabrics[i].line,
                              .grid = grid,
                              .set = {"rates.gemm=0.7", "rates.z=0.6", "rates.data=0.5"}};
        folding_compare(&run);
        assert_true(run.classes == plain.classes && run.end_s > plain.end_s);
        run.set[3] = "devices.n7.gpu2=0.5";
        folding_compare(&run);
        assert_true(run.classes > plain.classes);
    }
}

/* 48 nodes, and groups of 3: neither fills the fabrics' switches, groups or rings evenly. */
static void on_uneven_sizes(void **state)
{
    (void)state;
    static const char grid[] = "2x2x3x16";
    for (int i = 1; i < FABRICS; i += S4D_SANITIZED ? 3 : 1) {
        const struct fabric *f = &fabrics[i];
        struct folding plain = simulated(f, grid, NULL, NULL),
                       hosts = on_hosts(f, grid, 48, 3, "nics.n3.nic1=0.5"),
                       fragmented = simulated(f, grid, "devices.n7.gpu2=0.5", "fragmented:5");
        print_message("%s: %d, %d, %d classes of ranks\n", strstr(f->line, "topology="),
                      plain.classes, hosts.classes, fragmented.classes);
    }
}

static void on_512_devices(void **state)
{
    (void)state;
    static const char grid[] = "4x2x8x8";
    for (int i = 1; i < (S4D_SANITIZED ? 2 : FABRICS); i++) {
        const struct fabric *f = &fabrics[i];
        struct folding plain = simulated(f, grid, NULL, NULL);
        struct folding run = i % 4 == 0   ? with_link(f, grid, "dead")
                             : i % 4 == 1 ? simulated(f, grid, NULL, "fragmented:7")
                             : i % 4 == 2 ? on_hosts(f, grid, 128, 3, NULL)
                                          : simulated(f, grid, "nics.n3.nic1=dead", NULL);
        print_message("%s: %d, %d classes of ranks\n", strstr(f->line, "topology="), plain.classes,
                      run.classes);
        assert_true(plain.classes < 512);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_a_single_switch),
        cmocka_unit_test(on_a_dragonfly),
        cmocka_unit_test(on_perlmutter),
        cmocka_unit_test(with_every_asymmetry),
        cmocka_unit_test(with_a_slower_shared_link),
        cmocka_unit_test(with_rates),
        cmocka_unit_test(on_uneven_sizes),
        cmocka_unit_test(on_512_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
