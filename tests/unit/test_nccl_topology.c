/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes from NCCL topology files: links and their bandwidths, ways, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/cluster.h"
#include "support/memory.h"
#include "support/nccl_topology.h"

static int parse(struct s4d_machine *m, const char *text, struct s4d_error *err)
{
    static const char line[] = "synthetic:topology=single-switch,nodes=2,nic=1GB/s,latency=1us,"
                               "peak=1TFLOP/s,library=nccl";
    assert_int_equal(s4d_machine_load(m, line, NULL, 0, err), 0);
    return s4d_nccl_topology_parse(m, "node.xml", text, strlen(text), err);
}

static void assert_way(const struct s4d_cluster *c, int a, int b, const char *expected)
{
    char text[512] = "";
    struct s4d_path path = {0};
    double latency_s;
    s4d_cluster_route(c, a, b, &path, &latency_s);
    for (int i = 0; i < path.n; i++) {
        char *name = s4d_link_name(c, path.link[i]), *longer;
        longer = s4d_asprintf("%s %.0f ", name, c->links[path.link[i]].capacity_Bps * 1e-9);
        strcat(text, longer);
        free(name);
        free(longer);
    }
    s4d_path_free(&path);
    assert_string_equal(text, expected);
}

#define GPU(busid, dev, rank, links)                                                               \
    "<pci busid='" busid "' class='0x030200' link_speed='16.0 GT/s PCIe' link_width='16'>"         \
    "<gpu dev='" dev "' sm='80' rank='" rank "'>" links "</gpu></pci>"
#define PORT(busid, speed)                                                                         \
    "<pci busid='" busid "' class='0x020700' link_speed='8 GT/s' link_width='16'><nic>"            \
    "<net name='p' dev='0' speed='" speed "'/></nic></pci>"
#define CPU(inside) "<cpu arch='x86_64' vendor='AuthenticAMD'>" inside "</cpu>"

/* Two GPUs with four NVLinks of 20 GB/s between them, one PCIe port each of 100 Gb/s. PCIe 4 x 16
 * is 16 x 120 / 80 = 24 GB/s, PCIe 3 12; between AMD processors 16. The file's second GPU is device
 * 0. */
static void pairs(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    const char *text = "<system version='1'>" CPU(
        GPU("0:1", "1", "0", "<nvlink target='0:2' count='4' tclass='0x030200'/>")
            PORT("0:3", "100000"))
        CPU(GPU("0:2", "0", "1", "<nvlink target='0:1' count='4' tclass='0x030200'/>")
                PORT("0:4", "100000")) "</system>";
    if (parse(&m, text, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_int_equal(m.node.devices, 2);
    assert_int_equal(m.node.n_nics, 2);
    assert_true(m.node.nic_bandwidth_Bps.value == 12.5e9);
    assert_int_equal(m.node.rank_to_device[0], 1);
    assert_int_equal(m.node.rank_to_device[1], 0);
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), 0);
    assert_way(&c, 0, 1, "n0.gpu0->gpu1 80 ");
    /* Device 0 is the second processor's: its PCIe, the processor, the port's device. */
    assert_way(&c, 0, 2,
               "n0.gpu0->switch2 24 n0.switch2->switch3 12 n0.nic1.out 12 n1.nic1.in 12 "
               "n1.switch3->switch2 12 n1.switch2->gpu0 24 ");
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* Two GPUs and two ports below one PCIe switch, NVLinks to two NVSwitches: they meet in one switch
 * of 12 x 20 GB/s, and each GPU has a port of its own. */
static void switches(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    const char *text = "<system version='1'>" CPU(
        "<pci busid='0:0' class='0x060400' link_speed='16.0 GT/s PCIe' link_width='16'>" GPU(
            "0:1", "0", "0",
            "<nvlink target='0:a' count='6' tclass='0x068000'/>"
            "<nvlink target='0:b' count='6' tclass='0x068000'/>")
            GPU("0:2", "1", "1",
                "<nvlink target='0:a' count='12' tclass='0x068000'/>") PORT("0:3", "200000")
                PORT("0:4",
                     "200000") "</pci>"
                               "<nic><net name='eth0' dev='2' speed='10000'/></nic>") "</system>";
    if (parse(&m, text, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_int_equal(m.node.n_nics, 2);
    assert_int_equal(s4d_cluster_create(&c, &m, 2, &err), 0);
    assert_way(&c, 0, 1, "n0.gpu0->switch4 240 n0.switch4->gpu1 240 ");
    assert_way(&c, 1, 2,
               "n0.gpu1->switch1 24 n0.switch1->switch3 12 n0.nic1.out 25 n1.nic0.in 25 "
               "n1.switch2->switch1 12 n1.switch1->gpu0 24 ");
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* An NVLink's bandwidth by the GPU's sm, and between two Intel processors by their model: NCCL's
 * constants (src/graph/topo.h), GB/s. */
static void constants(void **state)
{
    (void)state;
    static const struct {
        int sm;
        double Bps;
    } links[] = {{37, 20e9}, {60, 18e9},   {70, 20e9},   {80, 20e9},
                 {86, 12e9}, {90, 20.6e9}, {100, 40.1e9}};
    static const struct {
        const char *cpu;
        double Bps;
    } cpus[] = {{"arch='ppc64'", 32e9},
                {"arch='arm64'", 6e9},
                {"arch='x86_64' vendor='AuthenticAMD' familyid='143' modelid='49'", 16e9},
                {"arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='79'", 6e9},
                {"arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='85'", 10e9},
                {"arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='143'", 22e9},
                {"arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='207'", 40e9},
                {"arch='x86_64' vendor='GenuineIntel' familyid='19' modelid='1'", 6e9},
                {"", 6e9}};
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        const int sm = links[i % (sizeof links / sizeof *links)].sm;
        const double link_Bps = links[i % (sizeof links / sizeof *links)].Bps;
        struct s4d_machine m;
        char *text = s4d_asprintf(
            "<system><cpu %s><pci busid='1'><gpu dev='0' sm='%d'><nvlink target='2' count='1' "
            "tclass='0x03'/></gpu></pci></cpu><cpu %s><pci busid='2'><gpu dev='1' sm='%d'>"
            "<nvlink target='1' count='1' tclass='0x03'/></gpu></pci></cpu></system>",
            cpus[i].cpu, sm, cpus[i].cpu, sm);
        struct s4d_error err = {0};
        if (parse(&m, text, &err))
            fail_msg("%s: %s", err.where, err.text);
        int found = 0;
        for (int k = 0; k < m.node.n_links; k++) {
            const struct s4d_node_link *l = &m.node.link[k];
            bool of_gpus = l->a < 2 && l->b < 2, of_cpus = l->a >= 2 && l->b >= 2;
            if (of_gpus || of_cpus)
                assert_true(l->brick_bandwidth_Bps.value == (of_gpus ? link_Bps : cpus[i].Bps));
            found += of_gpus || of_cpus;
        }
        assert_int_equal(found, 2);
        free(text);
        s4d_machine_free(&m);
    }
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *what;
    } cases[] = {
        {"", "no element found"},
        {"<system>", "no element found"},
        {"<system></cpu>", "mismatched"},
        {"<graphs/>", "unexpected element 'graphs'"},
        {"<system><gpu dev='0' sm='80'/></system>", "unexpected element 'gpu'"},
        {"<system><cpu/></system>", "no GPU"},
        {"<system><cpu familyid='six'/></system>", "familyid: expected"},
        {"<system><cpu familyid='6' modelid='99999999999999999999'/></system>",
         "modelid: expected"},
        {"<system>" CPU(GPU("1", "0", "0", "<c2c bw='25000' count='10'/>")) "</system>",
         "a link of kind 'c2c'"},
        {"<system>" CPU(GPU("1", "0", "0", "<xgmi target='2' count='1'/>")) "</system>",
         "a link of kind 'xgmi'"},
        {"<system>" CPU("<pci busid='1'><pcilink target='2'/></pci>") "</system>",
         "a link of kind 'pcilink'"},
        {"<system>" CPU("<pci/>") "</system>", "busid: expected"},
        {"<system>" CPU("<pci busid='1'/><pci busid='1'/>") "</system>", "there twice"},
        {"<system>" CPU("<pci busid='1' link_width='-4'/>") "</system>", "link_width: expected"},
        {"<system>" CPU("<pci busid='1'><gpu sm='80'/></pci>") "</system>", "dev: missing"},
        {"<system>" CPU("<pci busid='1'><gpu dev='0' sm='x'/></pci>") "</system>", "sm: expected"},
        {"<system>" CPU(
             GPU("1", "0", "0", "<nvlink target='2' count='0' tclass='0x03'/>")) "</system>",
         "count: expected"},
        {"<system>" CPU(
             GPU("1", "0", "0", "<nvlink target='2' count='2' tclass='0x03'/>")) "</system>",
         "no other GPU"},
        {"<system>" CPU(GPU("1", "0", "0", "<nvlink target='2' count='2' tclass='0x03'/>") GPU(
             "2", "1", "1", "<nvlink target='1' count='1' tclass='0x03'/>")) "</system>",
         "another number"},
        {"<system>" CPU(GPU("1", "0", "0", "<nvlink target='2' count='1' tclass='0x03'/>") GPU(
             "2", "1", "1", "<nvlink target='1' count='2' tclass='0x03'/>")) "</system>",
         "another number"},
        {"<system>" CPU("<pci busid='1'><nic><net name='p' speed='-1'/></nic></pci>") "</system>",
         "speed: expected"},
        {"<system>" CPU(
             "<pci busid='1'><gpu dev='0' sm='80'/><gpu dev='1' sm='80'/></pci>") "</system>",
         "second GPU"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        if (parse(&m, cases[i].text, &err) == 0)
            fail_msg("%s was taken", cases[i].text);
        if (err.exit != S4D_EXIT_DATA || !strstr(err.where, "node.xml") ||
            !strstr(err.text, cases[i].what))
            fail_msg("%s: %d %s: %s", cases[i].text, err.exit, err.where, err.text);
        s4d_machine_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs),
        cmocka_unit_test(switches),
        cmocka_unit_test(constants),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
