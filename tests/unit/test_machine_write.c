/* SPDX-License-Identifier: Apache-2.0 */
/* Measured machines: tables of shapes and kinds, shared units; and machines written and read again.
 */
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
#include "support/machine_fields.h"
#include "support/memory.h"

#define MEASURED S4D_DATA_DIR "/tests/fuzz/corpus/machine/measured.yaml"

static char *text_of(const struct s4d_machine *m, void (*put)(const struct s4d_machine *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    put(m, out);
    fclose(out);
    return text;
}

static void load(struct s4d_machine *m, const char *name)
{
    struct s4d_error err = {0};
    if (s4d_machine_load(m, name, NULL, 0, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
}

/* From the first line that does not name the file and its hash on. */
static const char *values(const char *printed)
{
    return strstr(printed, "# key");
}

static void assert_round_trip(const char *name)
{
    struct s4d_machine m, again;
    struct s4d_error err = {0};
    load(&m, name);
    char *file = text_of(&m, s4d_machine_write), *printed = text_of(&m, s4d_machine_print);
    if (s4d_machine_parse(&again, "again.yaml", file, strlen(file), NULL, 0, &err))
        fail_msg("%s: %s: %s (%s)\n%s", name, err.where, err.text, err.hint, file);
    char *second = text_of(&again, s4d_machine_write),
         *reprinted = text_of(&again, s4d_machine_print);
    assert_string_equal(values(printed), values(reprinted));
    assert_string_equal(file, second);
    assert_string_equal(m.description, again.description);
    assert_int_equal(m.node.n_links, again.node.n_links);
    assert_int_equal(m.node.n_nics, again.node.n_nics);
    for (int i = 0; i < m.node.n_links; i++)
        assert_int_equal(m.node.link[i].bricks, again.node.link[i].bricks);
    for (int i = 0; i < m.node.devices; i++)
        assert_int_equal(m.node.rank_to_device[i], again.node.rank_to_device[i]);
    free(file);
    free(printed);
    free(second);
    free(reprinted);
    s4d_machine_free(&m);
    s4d_machine_free(&again);
}

static void written_and_read_again(void **state)
{
    (void)state;
    char **names;
    int n = s4d_machine_names(&names);
    assert_true(n > 0);
    for (int i = 0; i < n; i++)
        assert_round_trip(names[i]);
    s4d_names_free(names, n);
    assert_round_trip(MEASURED);
    assert_round_trip(S4D_DATA_DIR "/tests/fuzz/corpus/machine/small.yaml");
    assert_round_trip("synthetic:topology=single-switch,nodes=2,devices_per_node=4,nic=50GB/s,"
                      "latency=1us,peak=1TFLOP/s,link=300GB/s,library=nccl");
    assert_round_trip("synthetic:topology=dragonfly,nodes=2,nic=50GB/s,latency=1us,peak=1TFLOP/s,"
                      "groups=2,nodes_per_group=1,switches_per_group=1,switches_per_node=1,"
                      "local_links_per_switch=1,global_links_per_group=1,link_bandwidth_Bps=25GB/s,"
                      "routing=minimal");
}

/* What YAML takes only by its number comes back too. */
static void texts_of_any_bytes(void **state)
{
    (void)state;
    struct s4d_machine m, again;
    static const char text[] = "a \t tab, \a bell,\r\n lines, \x7f, \"quotes\", \\ and \xc3\xa9";
    load(&m, MEASURED);
    free(m.description);
    m.description = s4d_strdup(text);
    char *file = text_of(&m, s4d_machine_write);
    assert_int_equal(s4d_machine_parse(&again, "again.yaml", file, strlen(file), NULL, 0, NULL), 0);
    assert_string_equal(again.description, text);
    free(file);
    s4d_machine_free(&m);
    s4d_machine_free(&again);
}

static void measured_tables(void **state)
{
    (void)state;
    struct s4d_machine m;
    load(&m, MEASURED);
    assert_int_equal(m.device.gemm.n, 2);
    assert_int_equal(m.device.gemm.row[1].k, 32);
    assert_true(m.device.gemm.row[1].transpose_a && !m.device.gemm.row[1].transpose_b);
    assert_true(m.device.gemm.row[1].flops_per_s == 70e9);
    assert_string_equal(m.device.gemm.source, "the \"sizes\" of a \\ workload");
    assert_int_equal(m.device.n_kernels, 2);
    assert_string_equal(m.device.kernel[0].kind, "adamw");
    assert_true(m.device.kernel[0].bandwidth_Bps.y[1] == 3e9);
    assert_true(m.node.compute_units.value == 1);
    s4d_machine_free(&m);
    load(&m, "perlmutter"); /* none of them */
    assert_int_equal(m.device.gemm.n + m.device.n_kernels, 0);
    assert_true(isinf(m.node.compute_units.value));
    s4d_machine_free(&m);
}

static void refused(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *text;
    } cases[] = {
        {"transpose: tn", "transpose: nt", "same shape as row 1"},
        {"transpose: tn", "transpose: no", "nn, nt, tn or tt"},
        {"transpose: tn", "transpose: t", "nn, nt, tn or tt"},
        {"[128, 64, 32]", "[128, 64]", "[m, n, k]"},
        {"[128, 64, 32]", "[128, 0, 32]", "integer"},
        {"80 GFLOP/s", "80", "expected"},
        {"80 GFLOP/s", "unlimited", "not unlimited"},
        {"kind: residual", "kind: adamw", "given twice"},
        {"[1 kB, 1 MB]", "[1 MB, 1 kB]", "above the last"},
        {"[1 GB/s, 3 GB/s]", "[1 GB/s]", "as many"},
        {"kind: residual", "kid: residual", "unknown key"},
        {"compute_units: { value: 1", "compute_units: { value: 0", "more than 0"},
        {"op: reduce-scatter", "op: all-gather", "each once"},
        {"    - { op: reduce-scatter", "#", "mpi has no constants"},
    };
    char *good;
    size_t n;
    assert_int_equal(s4d_file_read(MEASURED, &good, &n, NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_machine m;
        struct s4d_error err = {0};
        const char *at = strstr(good, cases[i].from);
        assert_non_null(at);
        char *text = s4d_asprintf("%.*s%s%s", (int)(at - good), good, cases[i].to,
                                  at + strlen(cases[i].from));
        if (s4d_machine_parse(&m, "m.yaml", text, strlen(text), NULL, 0, &err) == 0)
            fail_msg("'%s' was taken", cases[i].to);
        if (err.exit != S4D_EXIT_DATA || !strstr(err.text, cases[i].text) ||
            strncmp(err.where, "m.yaml:", 7) != 0)
            fail_msg("'%s': %d %s: %s", cases[i].to, err.exit, err.where, err.text);
        free(text);
    }
    free(good);
}

/* Every value comes back to 9 digits, also where no unit makes it a handy number. */
static void quantities_as_text(void **state)
{
    (void)state;
    static const double values[] = {1,      0.5, 1e-12,  3.25e-7, 123456789, 1e12,    9.9e17,
                                    1.5e-5, 0,   1555e9, 2.0 / 3, 8.5899e9,  4.56e-9, INFINITY};
    static const char *const keys[] = {"launch_s", "link_Bps", "size_bytes", "x_flops_per_s",
                                       "part"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            char text[96];
            double value;
            struct s4d_error err = {0};
            s4d_format_quantity(keys[k], values[i], text, sizeof text);
            if (s4d_parse_quantity(keys[k], text, &value, &err))
                fail_msg("%s %g: '%s': %s", keys[k], values[i], text, err.text);
            if (value != values[i] && !(fabs(value / values[i] - 1) < 1e-8))
                fail_msg("%s %.17g: '%s' is %.17g", keys[k], values[i], text, value);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_and_read_again), cmocka_unit_test(texts_of_any_bytes),
        cmocka_unit_test(measured_tables),        cmocka_unit_test(refused),
        cmocka_unit_test(quantities_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
