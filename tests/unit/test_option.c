/* SPDX-License-Identifier: Apache-2.0 */
/* One table, two readers: the command line and YAML set the same fields, and every error names its
 * place. Also the nearest name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/nearest.h"
#include "support/option.h"

struct inner {
    double bandwidth_Bps, latency_s, rate;
    struct s4d_texts set;
    int64_t first;
};
struct config {
    int hidden_size, recompute, reduce, pair[2];
    bool json;
    double fraction;
    char *machine;
    struct inner inner;
};

static int parse_pair(const char *text, void *field, struct s4d_error *err)
{
    int *pair = field;
    if (sscanf(text, "%dx%d", &pair[0], &pair[1]) == 2)
        return 0;
    return s4d_fail(err, S4D_EXIT_USAGE, "--pair", "expected AxB");
}

static const char *const reductions[] = {"sum", "max", NULL};
static const char *const recompute[] = {"none", "selective", "full", NULL};
#define C(field) offsetof(struct config, field)
#define I(field) offsetof(struct inner, field)
static void format_pair(const void *field, char *text, int size)
{
    const int *pair = field;
    snprintf(text, (size_t)size, "%dx%d", pair[0], pair[1]);
}

static const struct s4d_option model_options[] = {
    {.name = "hidden-size",
     .argument = "N",
     .type = S4D_OPT_INT,
     .offset = C(hidden_size),
     .min = 1,
     .max = 1048576,
     .help = "model width"},
    {.name = "recompute",
     .key = 'r',
     .argument = "MODE",
     .type = S4D_OPT_CHOICE,
     .offset = C(recompute),
     .choices = recompute,
     .help = "what"},
    {.name = "json", .type = S4D_OPT_FLAG, .offset = C(json), .help = "the record alone"},
    {.name = "fraction", .type = S4D_OPT_NUMBER, .offset = C(fraction), .max = 1, .help = "part"},
    {.name = "machine", .key = 'm', .type = S4D_OPT_TEXT, .offset = C(machine), .help = "machine"},
    {.name = "pair",
     .argument = "AxB",
     .type = S4D_OPT_PARSE,
     .offset = C(pair),
     .parse = parse_pair,
     .format = format_pair,
     .help = "two"},
    {.name = "reduce",
     .argument = "sum|max",
     .type = S4D_OPT_CHOICE,
     .offset = C(reduce),
     .choices = reductions,
     .help = "how"},
    {.name = NULL}};
static const struct s4d_option link_options[] = {
    {.name = "bandwidth",
     .argument = "RATE",
     .type = S4D_OPT_BANDWIDTH,
     .offset = I(bandwidth_Bps),
     .help = "of a link"},
    {.name = "latency", .type = S4D_OPT_TIME, .offset = I(latency_s), .max = 1, .help = "in all"},
    {.name = "rate", .type = S4D_OPT_RATE, .offset = I(rate), .help = "of computing"},
    {.name = "set", .type = S4D_OPT_LIST, .offset = I(set), .help = "override"},
    {.name = "first",
     .key = 'b',
     .argument = "SIZE",
     .type = S4D_OPT_SIZE,
     .offset = I(first),
     .min = 4,
     .max = 1 << 30,
     .help = "first size"},
    {.name = NULL}};
static const struct s4d_option_group groups[] = {
    {"Model options", model_options, 0}, {"Link options", link_options, C(inner)}, {NULL, NULL, 0}};

/* Splits at spaces and reads the options; arguments beyond 23 are not needed here. */
static int read_line(const char *line, struct config *c, struct s4d_texts *positional,
                     struct s4d_error *err)
{
    char copy[256], *argv[25] = {"scale4d test"}, *save = NULL;
    int argc = 1;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *p = strtok_r(copy, " ", &save); p && argc < 24; p = strtok_r(NULL, " ", &save))
        argv[argc++] = p;
    char *before[25];
    memcpy(before, argv, sizeof before);
    int rc = s4d_options_argv(groups, "Tests.", argc, argv, c, positional, err);
    assert_memory_equal(argv, before, sizeof before); /* not permuted */
    return rc;
}

/* The ends of a size's range are in it. */
static void ends_of_a_range(void **state)
{
    (void)state;
    struct config c = {.recompute = 2};
    struct s4d_error err;
    assert_int_equal(read_line("-b 4", &c, NULL, &err), 0);
    assert_int_equal(c.inner.first, 4);
    assert_int_equal(read_line("-b 1G", &c, NULL, &err), 0);
    assert_int_equal(c.inner.first, 1 << 30);
    s4d_options_free(groups, &c);
}

static void command_line(void **state)
{
    (void)state;
    struct config c = {.recompute = 2};
    struct s4d_texts others = {.n = 0};
    struct s4d_error err;
    int rc = read_line("A --hidden-size 4096 --bandwidth=200Gb/s -b 4M B --set x=1 --set y=-- "
                       "--json -rnone --latency 2us -- --json",
                       &c, &others, &err);
    assert_int_equal(rc, 0);
    assert_int_equal(c.hidden_size, 4096);
    assert_true(c.inner.bandwidth_Bps == 25e9);
    assert_true(c.inner.latency_s == 2e-6);
    assert_int_equal(c.inner.first, 4 << 20);
    assert_int_equal(c.recompute, 0);
    assert_true(c.json);
    assert_int_equal(c.inner.set.n, 2);
    assert_string_equal(c.inner.set.v[1], "y=--");
    assert_int_equal(others.n, 3);
    assert_string_equal(others.v[0], "A");
    assert_string_equal(others.v[1], "B");
    assert_string_equal(others.v[2], "--json");
    assert_int_equal(read_line("-m a -m b --fraction 0.25 --pair 3x4", &c, NULL, &err), 0);
    assert_string_equal(c.machine, "b"); /* the last one holds; the first is freed */
    assert_true(c.fraction == 0.25);
    assert_int_equal(c.pair[0] * 10 + c.pair[1], 34);
    s4d_texts_free(&others);
    s4d_options_free(groups, &c);
    assert_null(c.machine);
    assert_int_equal(c.inner.set.n, 0);
}

static void refuses_line(const char *line, const char *where, const char *text, const char *hint)
{
    struct config c = {.recompute = 2};
    struct s4d_error err;
    if (read_line(line, &c, NULL, &err) != -1)
        fail_msg("taken: %s", line);
    assert_int_equal(err.exit, S4D_EXIT_USAGE);
    assert_string_equal(err.where, where);
    assert_string_equal(err.text, text);
    assert_string_equal(err.hint, hint);
    s4d_options_free(groups, &c);
}

static void command_line_errors(void **state)
{
    (void)state;
    refuses_line("--hidden 4", "", "unknown option '--hidden'", "did you mean --hidden-size?");
    refuses_line("--jsn", "", "unknown option '--jsn'", "did you mean --json?");
    refuses_line("--hel", "", "unknown option '--hel'", "did you mean --help?");
    refuses_line("--zzzzzz=3", "", "unknown option '--zzzzzz'", "--help lists the options");
    refuses_line("-q", "", "unknown option '-q'", "--help lists the options");
    refuses_line("--hidden-size", "--hidden-size", "expected a value, found the end of the line",
                 "");
    refuses_line("-b", "-b", "expected a value, found the end of the line", "");
    refuses_line("--json=yes", "--json", "expected no value", "");
    refuses_line("--hidden-size 4k", "--hidden-size",
                 "expected an integer in [1, 1048576], got '4k'", "write 4096, not 4k or 1e9");
    refuses_line("--hidden-size 0", "--hidden-size", "expected an integer in [1, 1048576], got '0'",
                 "");
    refuses_line("--recompute ful", "--recompute",
                 "expected one of none, selective, full, got 'ful'", "did you mean full?");
    refuses_line("--pair 3", "--pair", "expected AxB", "");
    refuses_line("--latency 2s", "--latency", "expected 0 to 1 in SI units, got '2s'", "");
    refuses_line("-b 3", "--first", "expected 4 to 1073741824 bytes, got '3'", "");
    refuses_line("-b 0", "--first", "expected 4 to 1073741824 bytes, got '0'", "");
    refuses_line("-b 2G", "--first", "expected 4 to 1073741824 bytes, got '2G'", "");
    refuses_line("stray", "", "expected options only, found 'stray'", "");
}

static void printed(const char *line, struct s4d_texts *positional, char *text, size_t size)
{
    struct config c = {.hidden_size = 1024, .recompute = 2, .inner.first = 8};
    FILE *f = tmpfile();
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    dup2(fileno(f), STDOUT_FILENO);
    struct s4d_error err;
    int rc = read_line(line, &c, positional, &err);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    assert_int_equal(rc, 1);
    rewind(f);
    size_t n = fread(text, 1, size - 1, f);
    text[n] = '\0';
    fclose(f);
    s4d_options_free(groups, &c);
}

/* --help shows each option, its choices and the default it has; it is printed, not an error. */
static void help(void **state)
{
    (void)state;
    char text[4096], again[4096];
    printed("--help", NULL, text, sizeof text);
    printed("-h", NULL, again, sizeof again);
    assert_string_equal(text, again);
    assert_non_null(strstr(text, "Link options"));
    assert_non_null(strstr(text, "--hidden-size=N"));
    assert_non_null(strstr(text, "model width (default 1024)"));
    assert_non_null(strstr(text, "what: none, selective, full (default full)"));
    assert_non_null(strstr(text, "-b, --first=SIZE"));
    assert_non_null(strstr(text, "two (default 0x0)"));
    assert_null(strstr(text, "of a link (default"));
    /* All choices in the header: they are not said twice. */
    assert_non_null(strstr(text, "--reduce=sum|max       how (default sum)"));
}

/* What a command calls its arguments is in both usage lines. */
static void usage_names_arguments(void **state)
{
    (void)state;
    char text[4096];
    struct s4d_texts files = {.usage = "OLD NEW"};
    printed("--help", &files, text, sizeof text);
    assert_non_null(strstr(text, "Usage: scale4d test [OPTION...] OLD NEW\n"));
    printed("--usage", &files, text, sizeof text);
    assert_non_null(strstr(text, " OLD NEW\n"));
    files = (struct s4d_texts){.n = 0};
    printed("--help", &files, text, sizeof text);
    assert_non_null(strstr(text, "[OPTION...] [NAME...]\n"));
}

static int read_yaml(const char *text, struct config *c, struct s4d_error *err)
{
    static const char *const skip[] = {"other", NULL};
    struct s4d_yaml_node *root;
    assert_int_equal(s4d_yaml_parse("gpt.yaml", text, strlen(text), &root, err), 0);
    int rc = s4d_options_yaml(groups, root, skip, c, err);
    s4d_yaml_free(root);
    return rc;
}

static void yaml(void **state)
{
    (void)state;
    struct config c = {.recompute = 0};
    struct s4d_error err;
    assert_int_equal(read_yaml("hidden_size: 4096\nrecompute: selective\njson: true\n"
                               "other: {not: ours}\nbandwidth: 25 GB/s\nset: [a=1, b=2]\n"
                               "first: 64 KiB\nrate: 312 TFLOP/s\nmachine: m\npair: 5x6\n",
                               &c, &err),
                     0);
    assert_int_equal(c.hidden_size, 4096);
    assert_int_equal(c.recompute, 1);
    assert_true(c.json);
    assert_true(c.inner.bandwidth_Bps == 25e9);
    assert_true(c.inner.rate == 312e12);
    assert_int_equal(c.inner.first, 65536);
    assert_int_equal(c.inner.set.n, 2);
    assert_string_equal(c.inner.set.v[0], "a=1");
    assert_string_equal(c.machine, "m");
    assert_int_equal(c.pair[1], 6);
    /* What was read, recorded: in table order and SI units. */
    json_t *record = json_object();
    s4d_options_record(groups, &c, record);
    char *text = json_dumps(record, JSON_COMPACT);
    assert_string_equal(text,
                        "{\"hidden_size\":4096,\"recompute\":\"selective\",\"json\":true,"
                        "\"fraction\":0.0,\"machine\":\"m\",\"pair\":\"5x6\",\"reduce\":\"sum\","
                        "\"bandwidth\":25000000000.0,\"latency\":0.0,\"rate\":312000000000000.0,"
                        "\"set\":[\"a=1\",\"b=2\"],\"first\":65536}");
    free(text);
    json_decref(record);
    s4d_options_free(groups, &c);
}

static void refuses_yaml(const char *yaml_text, const char *where, const char *text,
                         const char *hint)
{
    struct config c = {.recompute = 0};
    struct s4d_error err;
    if (read_yaml(yaml_text, &c, &err) != -1)
        fail_msg("taken: %s", yaml_text);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, where);
    assert_string_equal(err.text, text);
    assert_string_equal(err.hint, hint);
    s4d_options_free(groups, &c);
}

static void yaml_errors(void **state)
{
    (void)state;
    refuses_yaml("json: true\n\nhidden_size: 4k\n", "gpt.yaml:3: hidden_size",
                 "expected an integer in [1, 1048576], got '4k'", "write 4096, not 4k or 1e9");
    refuses_yaml("hidden-size: 4\n", "gpt.yaml:1: hidden-size", "unknown key 'hidden-size'",
                 "did you mean hidden_size?");
    refuses_yaml("json: yes\n", "gpt.yaml:1: json", "expected true or false, got 'yes'", "");
    refuses_yaml("first: 64\n", "gpt.yaml:1: first",
                 "expected a size, a decimal number and one of B kB MB GB TB KiB MiB GiB TiB, got "
                 "'64'",
                 "write 40 GB (decimal) or 16 GiB (binary)");
    refuses_yaml("first: 0.5 B\n", "gpt.yaml:1: first",
                 "expected a whole number of bytes, got '0.5 B'", "");
    refuses_yaml("hidden_size: [1]\n", "gpt.yaml:1: hidden_size",
                 "expected one value, found a collection", "");
    refuses_yaml("set: {a: 1}\n", "gpt.yaml:1: set", "expected a list of values, found keys", "");
    refuses_yaml("set:\n - a\n - [b]\n", "gpt.yaml:2: set",
                 "expected one value, found a collection", "");
    refuses_yaml("pair: 3\n", "gpt.yaml:1: pair", "expected AxB", "");
    refuses_yaml("- 1\n", "gpt.yaml:1", "expected keys and values, found a list", "");
}

static void nearest(void **state)
{
    (void)state;
    assert_int_equal(s4d_edit_distance("", "abc"), 3);
    assert_int_equal(s4d_edit_distance("kitten", "sitting"), 3); /* k-s, e-i, +g */
    assert_int_equal(s4d_edit_distance("gpt-5b", "gpt-b5"), 1);  /* a swap */
    assert_int_equal(s4d_edit_distance("A_b", "a-B"), 0);
    const char *const names[] = {"gpt-10b", "gpt-160b", "gpt-5b", "gpt2-124m"};
    assert_string_equal(s4d_nearest("gpt-16b", names, 4), "gpt-10b"); /* the first of equals */
    assert_string_equal(s4d_nearest("gpt2", names, 4), "gpt2-124m");
    const char *const four[] = {"abcd"};
    assert_string_equal(s4d_nearest("abxy", four, 1), "abcd"); /* 2 of 4: a third, rounded up */
    assert_null(s4d_nearest("axyz", four, 1));
    assert_null(s4d_nearest("llama", names, 4));
    assert_null(s4d_nearest("", names, 4));
    struct s4d_error err = {.exit = 1};
    s4d_hint_nearest(&err, "llama", names, 4);
    assert_string_equal(err.hint, "known: gpt-10b, gpt-160b, gpt-5b, gpt2-124m");
    s4d_hint_nearest(&err, "gpt2", names, 4);
    assert_string_equal(err.hint, "did you mean gpt2-124m?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_line),
        cmocka_unit_test(command_line_errors),
        cmocka_unit_test(help),
        cmocka_unit_test(usage_names_arguments),
        cmocka_unit_test(yaml),
        cmocka_unit_test(yaml_errors),
        cmocka_unit_test(ends_of_a_range),
        cmocka_unit_test(nearest),
    };
    return cmocka_run_group_tests_name("option", tests, NULL, NULL);
}
