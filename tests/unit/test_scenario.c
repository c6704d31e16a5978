/* SPDX-License-Identifier: Apache-2.0 */
/* Placements and differences: what they do to a cluster, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/scenario.h"
#include "support/memory.h"

static const char line[] = "synthetic:topology=fat-tree,nics_per_leaf=8,nodes=32,"
                           "devices_per_node=2,link=100GB/s,nic=10GB/s,latency=1us,peak=1TFLOP/s";
static char folder[] = "/tmp/s4d-scenario-XXXXXX";

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char *command = s4d_asprintf("rm -rf %s", folder);
    int rc = system(command);
    free(command);
    return rc;
}

/* The path of a new file in the folder; caller frees. */
static char *file(const char *name, const char *text)
{
    char *path = s4d_asprintf("%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return path;
}

static void load(struct s4d_machine *m)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, line, NULL, 0, &err))
        fail_msg("%s: %s", err.where, err.text);
}

static void open_cluster(struct s4d_cluster *c, const struct s4d_machine *m, int gpus,
                         struct s4d_scenario *s)
{
    struct s4d_error err = {0};
    if (s4d_scenario_cluster(c, m, gpus, s, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

/* The nodes of a job of n nodes. */
static void nodes_of(const char *placement, int n, int *nodes)
{
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    struct s4d_scenario s = {.differences = {0}};
    load(&m);
    assert_int_equal(s4d_placement_parse(&s.placement, placement, &err), 0);
    open_cluster(&c, &m, 2 * n, &s);
    for (int i = 0; i < n; i++) {
        nodes[i] = s4d_device_of_rank(&c, 2 * i) / 2;
        assert_int_equal(s4d_device_of_rank(&c, 2 * i + 1), 2 * nodes[i] + 1);
    }
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
    s4d_scenario_free(&s);
}

static void placements(void **state)
{
    (void)state;
    int a[32], b[32];
    bool seen[32] = {false};
    nodes_of("node-major", 8, a);
    for (int i = 0; i < 8; i++)
        assert_int_equal(a[i], i);
    nodes_of("random:5", 32, a); /* all nodes, each once */
    for (int i = 0; i < 32; i++) {
        assert_in_range(a[i], 0, 31);
        assert_false(seen[a[i]]);
        seen[a[i]] = true;
    }
    nodes_of("random:5", 8, b); /* the same seed, the same nodes */
    assert_memory_equal(a, b, 8 * sizeof *a);
    nodes_of("random:6", 8, b);
    assert_memory_not_equal(a, b, 8 * sizeof *a);
    nodes_of("fragmented:2", 12, a); /* ascending, with holes */
    int holes = 0;
    for (int i = 1; i < 12; i++) {
        assert_true(a[i] > a[i - 1]);
        holes += a[i] > a[i - 1] + 1;
    }
    assert_true(holes > 0 || a[0] > 0);
    nodes_of("fragmented:2", 32, a);
    for (int i = 0; i < 32; i++)
        assert_int_equal(a[i], i);
}

static void expect_nodes(const char *placement, int n, const int *expected)
{
    int nodes[32];
    nodes_of(placement, n, nodes);
    assert_memory_equal(nodes, expected, (size_t)n * sizeof *expected);
}

/* Runs of 1 to 16 nodes, 1 + the top four bits of splitmix64's draws, then shuffled (Fisher-Yates,
 * from the last down).
 *
 * Seed 122 draws 1 6 15 4 0 4: runs of 2 7 16 5 1 and, where the 32 nodes end, 1, from nodes 0 2 9
 * 25 30 31. Its exchanges of runs (5 3) (4 0) (3 1) (2 1) (1 0) make 2 4 5 1 0 3 of them: 16, 1 and
 * 1 nodes are the 18.
 * Seed 132 draws 11 15 0 12: runs of 12 16 1 and 3, from 0 12 28 29; (3 3) (2 0) (1 1) make 2 1 0
 * 3: 1, 16 and the first of 12. */
static void fragments(void **state)
{
    (void)state;
    expect_nodes(
        "fragmented:122", 18,
        (const int[]){9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31});
    expect_nodes(
        "fragmented:132", 18,
        (const int[]){0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28});
}

static void placements_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",           "nodes",          "random:",  "random:-1",
                                      "random:x",   "node-major:3",   "randomly", "hosts",
                                      "random:1:2", "fragmented:1e3", NULL};
    for (int i = 0; bad[i]; i++) {
        struct s4d_placement p;
        struct s4d_error err = {0};
        if (s4d_placement_parse(&p, bad[i], &err) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
        assert_non_null(strstr(err.where, "--placement"));
    }
}

static int place_by_file(const char *text, int nodes, int *first, struct s4d_error *err)
{
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_scenario s = {.differences = {0}};
    char *path = file("hosts", text);
    load(&m);
    int rc = s4d_placement_read(&s.placement, path, err);
    if (rc == 0)
        rc = s4d_scenario_cluster(&c, &m, 2 * nodes, &s, err);
    for (int i = 0; i < nodes && rc == 0; i++)
        first[i] = s4d_device_of_rank(&c, 2 * i);
    if (rc == 0)
        s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
    s4d_scenario_free(&s);
    free(path);
    return rc;
}

static void hosts(void **state)
{
    (void)state;
    int first[3];
    struct s4d_error err = {0};
    assert_int_equal(place_by_file("# the job\nn9\n\n  n3 # slow?\r\nn30", 3, first, &err), 0);
    assert_true(first[0] == 18 && first[1] == 6 && first[2] == 60);
    static const struct {
        const char *text, *where, *what;
    } bad[] = {
        {"n1\nn2\nn1\nn3\n", "hosts:3", "n1' is there twice"},
        {"n1\nn2\n", "hosts", "2 hosts, but the job needs 3 nodes"},
        {"n1\nn2\nn32\n", "hosts:3", "no node 'n32'"},
        {"n1\nn2\nnid03\n", "hosts:3", "no node 'nid03'"},
        {"n1 n2\nn3\n", "hosts:1", "one host a line"},
        {"# nothing\n", "hosts", "no host in it"},
        {"", "hosts", "no host in it"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct s4d_error why = {0};
        if (place_by_file(bad[i].text, 3, first, &why) == 0)
            fail_msg("'%s' was taken", bad[i].text);
        if (why.exit != S4D_EXIT_DATA || !strstr(why.where, bad[i].where) ||
            !strstr(why.text, bad[i].what))
            fail_msg("'%s': %d %s: %s", bad[i].text, why.exit, why.where, why.text);
    }
}

/* A cluster of 4 nodes with settings; NULL ends them. */
static int differ(struct s4d_cluster *c, const struct s4d_machine *m, const char *const *set,
                  struct s4d_error *err)
{
    struct s4d_scenario s = {.placement = {.seed = 1}};
    int rc = 0;
    for (int i = 0; set[i] && rc == 0; i++) {
        assert_true(s4d_is_difference(set[i]));
        rc = s4d_differences_add(&s.differences, set[i], err);
    }
    if (rc == 0)
        rc = s4d_scenario_cluster(c, m, 8, &s, err);
    s4d_scenario_free(&s);
    return rc;
}

static void assert_way(const struct s4d_cluster *c, int a, int b, const char *expected)
{
    char text[512] = "";
    struct s4d_path path = {0};
    double latency_s;
    s4d_cluster_route(c, a, b, &path, &latency_s);
    for (int i = 0; i < path.n; i++) {
        char *name = s4d_link_name(c, path.link[i]);
        strcat(strcat(text, i ? " " : ""), name);
        free(name);
    }
    s4d_path_free(&path);
    assert_string_equal(text, expected);
}

static double capacity(const struct s4d_cluster *c, const char *name)
{
    for (int i = 0; i < c->n_links; i++) {
        char *found = s4d_link_name(c, i);
        bool same = strcmp(found, name) == 0;
        free(found);
        if (same)
            return c->links[i].capacity_Bps;
    }
    fail_msg("no link %s", name);
    return 0;
}

static void differences(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    load(&m);
    const char *slow[] = {"links.leaf0.out=0.25", "nics.n1.nic?=2GB/s",   "links.n*.gpu0->gpu1=0.5",
                          "devices.n3.gpu*=0.9",  "links.n1.nic0.in=0.5", NULL};
    assert_int_equal(differ(&c, &m, slow, &err), 0);
    assert_true(capacity(&c, "leaf0.out") == 20e9 && capacity(&c, "leaf0.in") == 80e9);
    assert_true(capacity(&c, "n1.nic1.out") == 2e9 && capacity(&c, "n1.nic0.in") == 1e9);
    assert_true(capacity(&c, "n2.nic0.out") == 10e9);
    assert_true(capacity(&c, "n31.gpu0->gpu1") == 50e9 && capacity(&c, "n0.gpu1->gpu0") == 100e9);
    assert_true(c.device_speed[6] == 0.9 && c.device_speed[7] == 0.9 && c.device_speed[5] == 1);
    s4d_cluster_destroy(&c);
    /* Without its own NIC a device uses the other's; only on the node that lost it. */
    const char *dead[] = {"nics.n0.nic1=dead", NULL};
    assert_int_equal(differ(&c, &m, dead, &err), 0);
    assert_way(&c, 1, 3, "n0.gpu1->gpu0 n0.nic0.out n1.nic1.in");
    assert_way(&c, 3, 1, "n1.nic1.out n0.nic0.in n0.gpu0->gpu1");
    assert_way(&c, 3, 5, "n1.nic1.out n2.nic1.in");
    assert_int_equal(s4d_cluster_check_ways(&c, &err), 0);
    s4d_cluster_destroy(&c);
    /* A way that nothing replaces. */
    const char *leaf[] = {"links.leaf0.out=dead", NULL};
    assert_int_equal(differ(&c, &m, leaf, &err), 0);
    assert_way(&c, 0, 2, "n0.nic0.out n1.nic0.in");
    assert_int_equal(s4d_cluster_check_ways(&c, &err), 0);
    assert_way(&c, 0, 8, "n0.nic0.out leaf0.out leaf1.in n4.nic0.in");
    assert_int_equal(s4d_cluster_check_ways(&c, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "no way from n0.gpu0 to n4.gpu0: leaf0.out is dead"));
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

/* What each name multiplies; later ones go over earlier ones. Rates alone need the job's nodes
 * only.
 */
static void rates(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_cluster c;
    struct s4d_error err = {0};
    load(&m);
    const char *set[] = {"rates.gemm=0.5",      "rates.compute=0.5", "rates.z=0.25",
                         "rates.z-scatter=0.5", "rates.data=2",      NULL};
    assert_int_equal(differ(&c, &m, set, &err), 0);
    assert_int_equal(c.n_nodes, 4);
    assert_true(c.rates.op_class[S4D_CLASS_GEMM] == 0.25);
    assert_true(c.rates.op_class[S4D_CLASS_ATTENTION] == 0.5);
    assert_true(c.rates.op_class[S4D_CLASS_KERNEL] == 0.5);
    assert_true(c.rates.op_class[S4D_CLASS_COPY] == 1 && c.rates.op_class[S4D_CLASS_HOST] == 1);
    assert_true(c.rates.stream[S4D_STREAM_Z_GATHER] == 0.25);
    assert_true(c.rates.stream[S4D_STREAM_Z_SCATTER] == 0.125);
    assert_true(c.rates.stream[S4D_STREAM_DATA] == 2 && c.rates.stream[S4D_STREAM_X] == 1);
    s4d_cluster_destroy(&c);
    const char *with_device[] = {"rates.x=0.5", "devices.n31.gpu0=0.5", NULL};
    assert_int_equal(differ(&c, &m, with_device, &err), 0);
    assert_true(c.n_nodes == 32 && c.rates.stream[S4D_STREAM_X] == 0.5);
    s4d_cluster_destroy(&c);
    const char *none[] = {NULL};
    assert_int_equal(differ(&c, &m, none, &err), 0);
    for (int i = 0; i < S4D_STREAMS; i++)
        assert_true(c.rates.stream[i] == 1);
    s4d_cluster_destroy(&c);
    s4d_machine_free(&m);
}

static void differences_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *text, *hint;
        enum s4d_exit exit;
    } cases[] = {
        {"links.leaf99.out=dead", "names no link", "leaf7.in", S4D_EXIT_USAGE},
        {"links.n32.nic0.out=dead", "names no link", "", S4D_EXIT_USAGE},
        {"links.n0.gpu0->gpu2=0.5", "names no link", "", S4D_EXIT_USAGE},
        {"nics.leaf0=0.5", "names no nic", "n31.nic1", S4D_EXIT_USAGE},
        {"devices.n0=0.5", "names no device", "n31.gpu1", S4D_EXIT_USAGE},
        {"devices.n0.gpu0=dead", "part of its speed", "--hosts", S4D_EXIT_USAGE},
        {"devices.n0.gpu0=5GB/s", "part of its speed", "", S4D_EXIT_USAGE},
        {"devices.n0.gpu0=0", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=0", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=0GB/s", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=-5GB/s", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=-1", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=1e3", "above 0", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=1001", "at most 1000", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=slow", "dead", "", S4D_EXIT_USAGE},
        {"links.leaf0.out=", "dead", "", S4D_EXIT_USAGE},
        {"links.leaf0.out", "NAME=VALUE", "", S4D_EXIT_USAGE},
        {"links.=dead", "NAME=VALUE", "", S4D_EXIT_USAGE},
        {"rates.network=0.9", "unknown rate", "gemm, attention, kernel, compute, x, y",
         S4D_EXIT_USAGE},
        {"rates.z-gathr=0.9", "unknown rate", "did you mean z-gather?", S4D_EXIT_USAGE},
        {"rates.z=0", "above 0", "", S4D_EXIT_USAGE},
        {"rates.z=dead", "part of what it was", "", S4D_EXIT_USAGE},
        {"rates.z=5GB/s", "part of what it was", "", S4D_EXIT_USAGE},
        {"rates.z", "NAME=VALUE", "", S4D_EXIT_USAGE},
        {"nics.n0.*=dead", "reaches no NIC", "", S4D_EXIT_DATA},
        {"links.n0.gpu*=dead", "no link of the node", "", S4D_EXIT_DATA},
    };
    struct s4d_machine m;
    load(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_cluster c;
        struct s4d_error err = {0};
        const char *set[] = {cases[i].set, NULL};
        if (differ(&c, &m, set, &err) == 0)
            fail_msg("%s was taken", cases[i].set);
        if (err.exit != cases[i].exit || !strstr(err.text, cases[i].text) ||
            !strstr(err.hint, cases[i].hint))
            fail_msg("%s: %d %s: %s (%s)", cases[i].set, err.exit, err.where, err.text, err.hint);
    }
    s4d_machine_free(&m);
}

static void diff_files(void **state)
{
    (void)state;
    struct s4d_differences d = {0};
    struct s4d_texts set = {0};
    struct s4d_error err = {0};
    char *path = file("diff.yaml", "set:\n  fabric.oversubscription: 4\nlinks:\n"
                                   "  leaf0.out: dead\n  n0.gpu0->gpu1: 0.5\nnics:\n"
                                   "  n5.nic1: 5 GB/s\ndevices:\n  n0.gpu1: 0.9\n");
    assert_int_equal(s4d_differences_read(&d, path, &set, &err), 0);
    assert_int_equal(d.n, 4);
    assert_string_equal(d.v[1].text, "links.n0.gpu0->gpu1=0.5");
    assert_true(d.v[0].part_of == 0 && d.v[2].Bps == 5e9 && d.v[3].part_of == 0.9);
    assert_int_equal(set.n, 1);
    assert_string_equal(set.v[0], "fabric.oversubscription=4");
    struct s4d_scenario s = {.differences = d};
    json_t *record = s4d_scenario_record(&s);
    assert_int_equal(json_array_size(json_object_get(record, "differences")), 4);
    json_decref(record);
    s4d_differences_free(&d);
    s4d_texts_free(&set);
    free(path);
    static const struct {
        const char *text, *where, *what;
    } bad[] = {
        {"- links\n", "bad.yaml:1", "expected links"},
        {"link:\n  leaf0.out: dead\n", "bad.yaml:", "unknown key"},
        {"links: dead\n", "bad.yaml:", "NAME: VALUE"},
        {"links:\n  leaf0.out: [1]\n", "bad.yaml:2", "expected a value"},
        {"links:\n  leaf0.out: dead\n  leaf1.out: -2 GB/s\n", "bad.yaml:3", "above 0"},
        {"rates:\n  z: 0.9\n  yy: 1\n", "bad.yaml:3", "unknown rate"},
        {"devices:\n  n0.gpu0: dead\n", "bad.yaml:2", "part of its speed"},
        {"links:\n  leaf0.out: 1\n  leaf0.out: 2\n", "bad.yaml:3", ""},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct s4d_error why = {0};
        path = file("bad.yaml", bad[i].text);
        if (s4d_differences_read(&d, path, &set, &why) == 0)
            fail_msg("'%s' was taken", bad[i].text);
        if (why.exit != S4D_EXIT_DATA || !strstr(why.where, bad[i].where) ||
            !strstr(why.text, bad[i].what))
            fail_msg("'%s': %d %s: %s", bad[i].text, why.exit, why.where, why.text);
        s4d_differences_free(&d);
        s4d_texts_free(&set);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(placements),         cmocka_unit_test(fragments),
        cmocka_unit_test(placements_refused), cmocka_unit_test(hosts),
        cmocka_unit_test(differences),        cmocka_unit_test(rates),
        cmocka_unit_test(diff_files),         cmocka_unit_test(differences_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
