/* SPDX-License-Identifier: Apache-2.0 */
/* Machine files: what is read, what is refused and where, overrides, one-line machines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/file.h"
#include "support/machine.h"
#include "support/memory.h"

static char *small; /* tests/fuzz/corpus/machine/small.yaml */
static size_t small_n;

static int setup(void **state)
{
    (void)state;
    struct s4d_error err;
    return s4d_file_read(S4D_DATA_DIR "/tests/fuzz/corpus/machine/small.yaml", &small, &small_n,
                         &err);
}

static int teardown(void **state)
{
    (void)state;
    free(small);
    return 0;
}

static void load(struct s4d_machine *m, const char *name, const char *set)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, name, &set, set ? 1 : 0, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

static void test_small(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    if (s4d_machine_parse(&m, "small.yaml", small, small_n, NULL, 0, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_string_equal(m.name, "small");
    assert_string_equal(m.device.name, "toy");
    assert_string_equal(m.device.compute_types, "bf16 f32");
    assert_true(m.device.peak_flops_per_s.value == 100e12);
    assert_int_equal(m.device.peak_flops_per_s.tag, S4D_TAG_READ);
    assert_string_equal(m.device.launch_s.source, "d");
    assert_true(m.device.launch_s.value == 2e-6);
    assert_true(m.device.memory_bytes.value == 16.0 * 1024 * 1024 * 1024);
    assert_true(isinf(m.device.gemm_output_Bps.value));
    assert_int_equal(m.device.n_attention, 2); /* `both` is a row for each pass */
    assert_true(m.device.attention[1].backward && !m.device.attention[0].backward);
    assert_true(m.device.attention[1].flops_per_s.y[1] == 20e12);
    assert_int_equal(m.node.devices, 2);
    assert_int_equal(m.node.rank_to_device[0], 1);
    assert_int_equal(m.node.nic[0].device, 1);
    assert_true(m.node.nic_bandwidth_Bps.value == 25e9);
    assert_int_equal(m.node.link[0].bricks, 3);
    assert_int_equal(m.fabric.nodes, 8);
    assert_true(s4d_parameter_value(&m, "link_bandwidth_Bps", 0) == 25e9);
    assert_true(s4d_parameter_value(&m, "absent", -1) == -1);
    assert_true(m.library.ring.net_s[S4D_LL128].value == 2e-6);
    assert_true(m.library.table[0].row[1].efficiency == 0.7);
    assert_true(m.library.table[0].row[1].bytes == 1024.0 * 1024 * 1024);
    s4d_machine_free(&m);
}

/* The file with the first occurrence of `from` replaced by `to`. */
static char *edited(const char *from, const char *to)
{
    const char *at = strstr(small, from);
    if (!at)
        fail_msg("the test's file has no '%s'", from);
    return s4d_asprintf("%.*s%s%s", (int)(at - small), small, to, at + strlen(from));
}

/* Each edit of the good file is refused, with the line and a word of the reason. */
static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *where, *text;
    } cases[] = {
        {"launch_s: { value: 2 us", "launch_s: { value: 2", "small.yaml:12", "time"},
        {"value: 2 us, tag: secondary, ", "value: 2 us, ", "small.yaml:12", "tag"},
        {"tag: secondary, source: d", "tag: secondary", "small.yaml:12", "source"},
        {"tag: secondary, source: d", "tag: guessed, source: d", "small.yaml:12", "assumed"},
        {"tag: secondary, source: d", "tag: secondary, source: ''", "small.yaml:12", "empty"},
        {"launch_s: { value: 2 us, tag: secondary, source: d }", "launch_s: 2 us", "small.yaml:12",
         "mapping"},
        {"launch_s:", "launch:", "small.yaml:12", "unknown"},
        {"  launch_s: { value: 2 us, tag: secondary, source: d }\n", "", "small.yaml:4",
         "missing key 'launch_s'"},
        {"[bf16, f32]", "[bf16, fp32]", "small.yaml:5", "f32"},
        {"[bf16, f32]", "[]", "small.yaml:5", "at least one"},
        {"[bf16, f32]", "[bf16, bf16]", "small.yaml:5", "each once"},
        {"library:\n", "libary:\n", "small.yaml:38", "unknown"},
        {"library:\n",
         "library:\n  nvls: { efficiency: { value: 0.8, tag: read, source: a }, hop_s: { value: 1 "
         "us, "
         "tag: read, source: a }, net_s: { value: 1 us, tag: read, source: a }, channels: { value: "
         "1, tag: read, source: a }, least_members: { value: 2, tag: read, source: a } }\n",
         "small.yaml:38", "no switch"},
        {"1 TB/s", "0 TB/s", "small.yaml:10", "more than 0"},
        {"1 TB/s", "-1 TB/s", "small.yaml:10", "expected"},
        {"1 TB/s", "1e3 GB/s", "small.yaml:10", "expected"},
        {"16 GiB", "16", "small.yaml:8", "expected"},
        {"100 TFLOP/s", "unlimited", "small.yaml:6", "unlimited"},
        {"value: 0.8", "value: 1.8", "small.yaml:17", "at most 1"},
        {"[1 MB, 4 MB]", "[4 MB, 1 MB]", "small.yaml:11", "above"},
        {"[1 MB, 4 MB]", "[1 MB]", "small.yaml:11", "as many"},
        {"part: [0.5, 0.9]", "part: [0.5, 1.9]", "small.yaml:11", "at most 1"},
        {"pass: both", "pass: sideways", "small.yaml:16", "forward"},
        {"causal: true", "causal: maybe", "small.yaml:16", "true or false"},
        {"  rate_beside_in_node",
         "    - { head_dim: 64, causal: true, pass: backward, tag: read, source: e, "
         "seq_length: [512], flops_per_s: [9 TFLOP/s] }\n  rate_beside_in_node",
         "small.yaml:17", "head_dim 64, causal true, backward: given twice"},
        {"devices: 2", "devices: 0", "small.yaml:20", "[1, 1024]"},
        {"devices: 2", "devices: 2k", "small.yaml:20", "integer"},
        {"nics: [1]", "nics: [2]", "small.yaml:20", "[0, 1]"},
        {"nics: [1]", "nics: [1, 1]", "small.yaml:20", "twice"},
        {"rank_to_device: [1, 0]", "rank_to_device: [1, 1]", "small.yaml:20", "twice"},
        {"rank_to_device: [1, 0]", "rank_to_device: [1]", "small.yaml:20", "2 devices"},
        {"pairs: [[0, 1]]", "pairs: [[0, 0]]", "small.yaml:22", "different"},
        {"pairs: [[0, 1]]", "pairs: [[0, 1], [1, 0]]", "small.yaml:22", "given twice"},
        {"ranks_per_node: 2", "ranks_per_node: 5", "small.yaml:56", "at most 4"},
        {"bricks: 3", "bricks: 0", "small.yaml:22", "[1, 1024]"},
        {"value: 25 GB/s, tag: read, source: a } }", "value: 0 GB/s, tag: read, source: a } }",
         "small.yaml:22", "more than 0"},
        {"value: 200 Gb/s", "value: 0 Gb/s", "small.yaml:23", "more than 0"},
        {"value: 8, tag", "value: 8.5, tag", "small.yaml:28", "integer"},
        {"name: nccl", "name: gloo", "small.yaml:38", "nccl, rccl, mpi or ideal"},
        {"[1 us, 2 us, 3 us]", "[1 us, 2 us]", "small.yaml:40", "3 values"},
        {"op: all-gather", "op: gather", "small.yaml:56", "all-gather"},
        {"efficiency: [0.1, 0.7]", "efficiency: [0.1, 9]", "small.yaml:56", "at most 4"},
        {"[1 MiB, 1 GiB]", "[1 GiB, 1 GiB]", "small.yaml:56", "each above the last"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        char *text = edited(cases[i].from, cases[i].to), line[32];
        if (s4d_machine_parse(&m, "small.yaml", text, strlen(text), NULL, 0, &err) == 0)
            fail_msg("'%s' instead of '%s' was taken", cases[i].to, cases[i].from);
        snprintf(line, sizeof line, "%s:", cases[i].where);
        strcat(err.where, ":"); /* an element of a list has no key: the line ends it */
        if (err.exit != S4D_EXIT_DATA || strncmp(err.where, line, strlen(line)) != 0 ||
            !strstr(err.text, cases[i].text))
            fail_msg("'%s': %d %s: %s", cases[i].to, err.exit, err.where, err.text);
        free(text);
    }
}

/* Every cut of the file is refused or read, never more. */
static void test_truncated(void **state)
{
    (void)state;
    int taken = 0;
    for (size_t n = 0; n < small_n - 1; n += 7) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        if (s4d_machine_parse(&m, "small.yaml", small, n, NULL, 0, &err) == 0) {
            taken++;
            s4d_machine_free(&m);
        } else {
            assert_int_equal(err.exit, S4D_EXIT_DATA);
            assert_true(err.text[0] != '\0');
        }
    }
    assert_int_equal(taken, 0); /* its last line closes the last mapping */
}

static void test_names(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    char **names;
    int n = s4d_machine_names(&names), found = 0;
    for (int i = 0; i < n; i++)
        found += strcmp(names[i], "perlmutter") == 0;
    assert_int_equal(found, 1);
    s4d_names_free(names, n);
    assert_int_equal(s4d_machine_load(&m, "perlmuter", NULL, 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.hint, "perlmutter"));
    assert_int_equal(s4d_machine_load(&m, "/nowhere/x.yaml", NULL, 0, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
}

/* What the file says of Perlmutter, as published (its sources are in the file). */
static void test_perlmutter(void **state)
{
    (void)state;
    struct s4d_machine m;
    load(&m, "perlmutter", NULL);
    assert_true(m.device.peak_flops_per_s.value == 312e12);
    assert_int_equal(m.node.devices, 4);
    assert_int_equal(m.node.n_links, 6);
    assert_int_equal(m.node.n_nics, 4);
    assert_true(m.node.nic_bandwidth_Bps.value == 25e9);
    assert_true(m.fabric.nodes == s4d_parameter_value(&m, "groups", 0) *
                                      s4d_parameter_value(&m, "nodes_per_group", 0));
    assert_int_equal(m.library.n_tables, 3);
    /* nccl/reduce-scatter/benchmarks/16_gpu.txt: 2 GiB in 26.539 ms is 15/16 of 2147483648 B over
     * that, 75.9 GB/s, of 100. */
    const struct s4d_efficiency_table *t = &m.library.table[1];
    assert_string_equal(t->op, "reduce-scatter");
    bool seen = false;
    for (int i = 0; i < t->n; i++) {
        const struct s4d_efficiency_row *r = &t->row[i];
        if (r->ranks == 16 && r->bytes == 2147483648.0) {
            assert_true(fabs(r->efficiency - 15.0 / 16 * 2147483648.0 / 0.026539 / 100e9) < 1e-4);
            seen = true;
        }
    }
    assert_true(seen);
    s4d_machine_free(&m);
}

static void test_set(void **state)
{
    (void)state;
    struct s4d_machine m, plain;
    load(&plain, "perlmutter", NULL);
    load(&m, "perlmutter", "device.launch_s=3us");
    assert_true(m.device.launch_s.value == 3e-6);
    assert_int_equal(m.device.launch_s.tag, S4D_TAG_ASSUMED);
    assert_string_equal(m.device.launch_s.source, "--set");
    assert_string_not_equal(m.hash, plain.hash);
    s4d_machine_free(&m);
    s4d_machine_free(&plain);
    load(&m, "perlmutter", "library.tree.net_s.simple=28us");
    assert_true(m.library.tree.net_s[S4D_SIMPLE].value == 28e-6);
    assert_true(m.library.tree.net_s[S4D_LL].value == 5e-6);
    s4d_machine_free(&m);
    load(&m, "perlmutter", "node.links.0.brick_bandwidth_Bps=25GB/s");
    for (int i = 0; i < 6; i++)
        assert_true(m.node.link[i].brick_bandwidth_Bps.value == 25e9);
    s4d_machine_free(&m);
    load(&m, "perlmutter", "fabric.global_links_per_group=100");
    assert_true(s4d_parameter_value(&m, "global_links_per_group", 0) == 100);
    s4d_machine_free(&m);
    load(&m, "perlmutter", "fabric.nodes=64");
    assert_int_equal(m.fabric.nodes, 64);
    s4d_machine_free(&m);
}

static void test_set_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *text, *hint;
    } cases[] = {
        {"device.launch=3us", "unknown key", "device.launch_s"},
        {"device.launch_s", "key=value", ""},
        {"=3us", "key=value", ""},
        {"device.launch_s=3", "time", ""},
        {"node.nic_bandwidth_Bps=0GB/s", "more than 0", ""},
        {"node.nic_bandwidth_Bps=unlimited", "unlimited", ""},
        {"node.links.0.brick_bandwidth_Bps=0GB/s", "more than 0", ""},
        {"fabric.nodes=0", "integer", ""},
        {"fabric.link_bandwidth_Bps=25", "expected", ""},
        {"device.memory_efficiency=1", "unknown key", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        assert_int_equal(s4d_machine_load(&m, "perlmutter", &cases[i].set, 1, &err), -1);
        if (err.exit != S4D_EXIT_USAGE || !strstr(err.text, cases[i].text) ||
            !strstr(err.hint, cases[i].hint) || !strstr(err.where, "--set"))
            fail_msg("%s: %d %s: %s (%s)", cases[i].set, err.exit, err.where, err.text, err.hint);
    }
}

static void test_synthetic(void **state)
{
    (void)state;
    struct s4d_machine m;
    load(&m,
         "synthetic:topology=single-switch,nodes=4096,devices_per_node=1,nic=50GB/s,"
         "latency=500ns,peak=312TFLOP/s",
         NULL);
    assert_int_equal(m.fabric.nodes, 4096);
    assert_true(m.fabric.latency_s.value == 500e-9 && m.node.latency_s.value == 500e-9);
    assert_true(m.device.gemm_flops_per_s.value == 312e12);
    assert_true(isinf(m.device.memory_bytes.value) && isinf(m.device.memory_bandwidth_Bps.value));
    assert_string_equal(m.library.name, "ideal");
    s4d_machine_free(&m);
    load(&m,
         "synthetic:topology=single-switch,nodes=2,devices_per_node=4,nic=50GB/s,latency=1us,"
         "peak=1TFLOP/s,link=300GB/s,memory=40GB,memory_bandwidth=2TB/s,library=nccl",
         NULL);
    assert_int_equal(m.node.n_links, 6);
    assert_int_equal(m.node.n_nics, 4);
    assert_true(m.node.link[5].brick_bandwidth_Bps.value == 300e9);
    assert_true(m.device.memory_bytes.value == 40e9);
    assert_true(m.library.ring.net_s[S4D_SIMPLE].value == 14e-6);
    s4d_machine_free(&m);
}

static void test_synthetic_refused(void **state)
{
    (void)state;
#define GOOD "topology=single-switch,nodes=4,nic=50GB/s,latency=500ns,peak=1TFLOP/s"
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"synthetic:", "missing"},
        {"synthetic:nodes=4", "missing"},
        {"synthetic:topology=single-switch,nodes=4,nic=50,latency=500ns,peak=1TFLOP/s", "expected"},
        {"synthetic:topology=single-switch,nodes=4,nic=0GB/s,latency=500ns,peak=1TFLOP/s",
         "more than 0"},
        {"synthetic:topology=single-switch,nodes=0,nic=50GB/s,latency=500ns,peak=1TFLOP/s",
         "integer"},
        {"synthetic:" GOOD ",nodes=5", "twice"},
        {"synthetic:" GOOD ",devices_per_node=2", "missing"}, /* link */
        {"synthetic:" GOOD ",devices_per_node=2,link=0GB/s", "more than 0"},
        {"synthetic:" GOOD ",link=100GB/s", "no pair to link, found 100GB/s"},
        {"synthetic:" GOOD ",devices_per_node=1,link=100GB/s", "no pair to link"},
        {"synthetic:" GOOD ",,memory=1GB", "nothing before a comma"},
        {"synthetic:," GOOD, "nothing before a comma"},
        {"synthetic:" GOOD ",", "nothing after the last comma"},
        {"synthetic:,", "nothing before a comma"},
        {"synthetic:" GOOD ",library=mpi", "nccl or ideal"},
        {"synthetic:" GOOD ",memory", "key=value"},
        {"synthetic:" GOOD ",memory=0GB", "more than 0"},
        {"synthetic:" GOOD ",groups=4four", "expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        if (s4d_machine_load(&m, cases[i].line, NULL, 0, &err) == 0)
            fail_msg("%s was taken", cases[i].line);
        if (err.exit != S4D_EXIT_DATA || !strstr(err.text, cases[i].text))
            fail_msg("%s: %d %s", cases[i].line, err.exit, err.text);
    }
}

/* Linear in log2: halfway between 1 and 4 is 2; clamped at both ends; an empty curve is 1. */
static void test_curve(void **state)
{
    (void)state;
    double x[] = {1, 4, 16}, y[] = {10, 20, 0};
    struct s4d_curve c = {.x = x, .y = y, .n = 3};
    assert_true(s4d_curve_value(&c, 2) == 15);
    assert_true(s4d_curve_value(&c, 4) == 20);
    assert_true(s4d_curve_value(&c, 8) == 10);
    assert_true(s4d_curve_value(&c, 0) == 10 && s4d_curve_value(&c, 1e9) == 0);
    c.n = 0;
    assert_true(s4d_curve_value(&c, 3) == 1);
}

/* Entries scaled: a quantity; a part, at most 1; a curve as a whole; a table; a count of the
 * fabric, whole and at least 1; all links of a kind; and what cannot be. */
static void test_scale(void **state)
{
    (void)state;
    struct s4d_machine m;
    load(&m, "perlmutter", NULL);
    double rate = m.device.attention[0].flops_per_s.y[1],
           row = m.library.table[0].row[1].efficiency;
    assert_true(s4d_machine_scale(&m, "device.launch_s", 2) && m.device.launch_s.value == 5.4e-6);
    assert_true(s4d_machine_scale(&m, "device.rate_beside_in_node", 2));
    assert_true(m.device.rate_beside_in_node.value == 1);
    assert_false(s4d_machine_scale(&m, "device.rate_beside_in_node", 2)); /* at its limit */
    assert_true(s4d_machine_scale(&m, "device.attention.head_dim_64.causal.forward", 0.5));
    assert_true(m.device.attention[0].flops_per_s.y[1] == 0.5 * rate);
    assert_true(s4d_machine_scale(&m, "library.efficiency.all-gather", 0.5));
    assert_true(m.library.table[0].row[1].efficiency == 0.5 * row);
    assert_true(s4d_machine_scale(&m, "device.memory_efficiency", 4));
    assert_true(m.device.memory_efficiency.y[3] == 1);
    assert_true(s4d_machine_scale(&m, "fabric.local_links_per_switch", 0.5));
    assert_true(s4d_parameter_value(&m, "local_links_per_switch", 0) == 15); /* of 31 */
    assert_true(s4d_machine_scale(&m, "fabric.local_links_per_switch", 0.01));
    assert_true(s4d_parameter_value(&m, "local_links_per_switch", 0) == 1);
    assert_true(s4d_machine_scale(&m, "node.links.0.brick_bandwidth_Bps", 2));
    for (int i = 0; i < m.node.n_links; i++)
        assert_true(m.node.link[i].brick_bandwidth_Bps.value == 40e9);
    assert_true(s4d_machine_scale(&m, "library.ring.net_s.ll128", 2));
    assert_true(m.library.ring.net_s[S4D_LL128].value == 8e-6);
    assert_true(m.library.ring.net_s[S4D_LL].value == 2.7e-6);
    assert_false(s4d_machine_scale(&m, "node.compute_units", 2));         /* unlimited */
    assert_false(s4d_machine_scale(&m, "library.tree.base_s.simple", 2)); /* 0 */
    assert_false(s4d_machine_scale(&m, "node.layout", 2));
    assert_false(s4d_machine_scale(&m, "fabric.nodes", 2));
    assert_false(s4d_machine_scale(&m, "device.colour", 2));
    s4d_machine_free(&m);
}

struct constants {
    const struct s4d_machine *other;
    const char *key;
    double value;
};

static void find_constant(void *context, const char *key, enum s4d_tag tag, const char *source,
                          double value)
{
    struct constants *c = context;
    (void)tag, (void)source;
    if (strcmp(key, c->key) == 0)
        c->value = value;
}

static void same_constant(void *context, const char *key, enum s4d_tag tag, const char *source,
                          double value)
{
    struct constants c = {.other = context, .key = key, .value = -1};
    (void)tag, (void)source;
    if (strncmp(key, "library.", 8) != 0 || isnan(value))
        return;
    s4d_machine_visit(c.other, find_constant, &c);
    if (!(fabs(c.value - value) <= 1e-12 * value))
        fail_msg("%s: %g in one line, %g in the file", key, value, c.value);
}

/* NCCL's constants stand in perlmutter.yaml and, for machines of one line, which need no file, in
 * the program: they are the same. */
static void test_nccl_constants(void **state)
{
    (void)state;
    struct s4d_machine line, file;
    load(&line,
         "synthetic:topology=single-switch,nodes=4,nic=50GB/s,latency=1us,peak=1TFLOP/"
         "s,library=nccl",
         NULL);
    load(&file, "perlmutter", NULL);
    s4d_machine_visit(&line, same_constant, &file);
    s4d_machine_free(&line);
    s4d_machine_free(&file);
}

static void count(void *context, const char *key, enum s4d_tag tag, const char *source,
                  double value)
{
    int *n = context;
    assert_true(key[0] && source[0] && (int)tag >= 0 && tag < S4D_TAGS);
    n[0]++;
    n[1] += isnan(value);
}

/* small.yaml: 10 device quantities, a curve and two passes of attention; layout, 4 node quantities,
 * 1 kind of links; nodes, latency and 7 parameters; 18 latencies of the library and 8 more of its
 * constants, a table. */
static void test_visit_and_print(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    int n[2] = {0, 0};
    assert_int_equal(s4d_machine_parse(&m, "small.yaml", small, small_n, NULL, 0, &err), 0);
    s4d_machine_visit(&m, count, n);
    assert_int_equal(n[0], 10 + 1 + 2 + 1 + 4 + 1 + 2 + 7 + 18 + 10 + 1);
    assert_int_equal(n[1], 1 + 2 + 1 + 1);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    s4d_machine_print(&m, out);
    fclose(out);
    assert_non_null(strstr(text, "\ndevice.launch_s "));
    assert_non_null(strstr(text, " 2 us "));
    assert_non_null(strstr(text, " 25 GB/s "));
    assert_non_null(strstr(text, "library.efficiency.all-gather[4,2,1 GiB]"));
    free(text);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_perlmutter),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_set_refused),
        cmocka_unit_test(test_synthetic),
        cmocka_unit_test(test_synthetic_refused),
        cmocka_unit_test(test_curve),
        cmocka_unit_test(test_visit_and_print),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_nccl_constants),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
