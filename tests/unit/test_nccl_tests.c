/* SPDX-License-Identifier: Apache-2.0 */
/* Reading nccl-tests' table and JSON, and records of our own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plots/nccl_tests.h"
#include "support/file.h"
#include "support/memory.h"

#define CORPUS "tests/fuzz/corpus/nccl_tests/"

static int parse(struct s4d_nccl_tests *t, const char *text, struct s4d_error *err)
{
    char *copy = s4d_strdup(text);
    *err = (struct s4d_error){0};
    int rc = s4d_nccl_tests_parse(t, copy, strlen(text), "f", err);
    free(copy);
    return rc;
}

static void refused(const char *text, const char *where, const char *said)
{
    struct s4d_nccl_tests t;
    struct s4d_error err;
    assert_int_equal(parse(&t, text, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (strcmp(err.where, where) != 0 || !strstr(err.text, said))
        fail_msg("%s: '%s' is not '%s: ...%s'", err.where, err.text, where, said);
    s4d_nccl_tests_free(&t);
}

static struct s4d_nccl_tests load(const char *file)
{
    struct s4d_nccl_tests t;
    struct s4d_error err = {0};
    if (s4d_nccl_tests_read(&t, file, &err))
        fail_msg("%s: %s", err.where, err.text);
    return t;
}

/* The table and the JSON are of the same run: 9 sizes, 4 MiB in 54.2 us. */
static void test_formats(void **state)
{
    static const char *const files[] = {CORPUS "table.txt", CORPUS "json.json"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct s4d_nccl_tests t = load(files[i]);
        struct s4d_error err = {0};
        assert_string_equal(t.op, "all_reduce");
        assert_int_equal(t.ranks, 8);
        assert_int_equal(t.ranks_per_node, 8);
        assert_int_equal(t.n, 9);
        assert_true(t.row[0].bytes == 8 && t.row[0].bus_factor == 0);
        assert_true(t.row[4].bytes == 4 << 20 && fabs(t.row[4].time_s / 54.2e-6 - 1) < 1e-12);
        assert_true(fabs(t.row[8].bus_factor / 1.75 - 1) < 1e-3);
        assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_reduce", 8, 1.75, &err), 0);
        assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_gather", 8, 0.875, &err), -1);
        assert_non_null(strstr(err.text, "is of 'all_reduce', expected all_gather"));
        assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_reduce", 16, 1.875, &err), -1);
        assert_non_null(strstr(err.text, "is of 8 ranks, expected 16"));
        t.ranks = 0; /* the bandwidths tell it too */
        assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_reduce", 16, 1.875, &err), -1);
        assert_non_null(strstr(err.text, "bus over algorithm bandwidth is 1.75"));
        assert_int_equal(err.exit, S4D_EXIT_DATA);
        s4d_nccl_tests_free(&t);
    }
}

/* No operation, no group, an empty column, a size of 0 (left out), and two nodes. */
static void test_older(void **state)
{
    (void)state;
    struct s4d_nccl_tests t = load(CORPUS "older.txt");
    struct s4d_error err = {0};
    assert_string_equal(t.op, "");
    assert_int_equal(t.ranks, 8);
    assert_int_equal(t.ranks_per_node, 4);
    assert_int_equal(t.n, 4);
    assert_true(fabs(t.row[0].time_s / 230.1e-6 - 1) < 1e-12);
    assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_gather", 8, 0.875, &err), 0);
    assert_int_equal(s4d_nccl_tests_check(&t, "f", "all_reduce", 8, 1.75, &err), -1);
    s4d_nccl_tests_free(&t);
}

#define RECORD(op, bytes)                                                                          \
    "{\"kind\": \"collective\", \"op\": \"" op                                                     \
    "\", \"ranks\": 4, \"groups\": 1, \"bytes\": " bytes ", \"time_s\": 1e-5}\n"

static void test_records(void **state)
{
    (void)state;
    struct s4d_nccl_tests t;
    struct s4d_error err;
    assert_int_equal(
        parse(&t, RECORD("all_gather", "1024") "\n" RECORD("all_gather", "2048"), &err), 0);
    assert_string_equal(t.op, "all_gather");
    assert_true(t.ranks == 4 && t.n == 2 && t.row[1].bytes == 2048);
    assert_true(fabs(t.row[1].time_s / 1e-5 - 1) < 1e-12);
    s4d_nccl_tests_free(&t);
    refused(RECORD("all_gather", "8") RECORD("all_reduce", "8"), "f:2", "of one operation");
    refused(RECORD("all_gather", "8") "{\"kind\": \"collec", "f:2", "is not JSON");
    refused("{\"kind\": \"simulate\"}", "f:1", "of kind collective, got 'simulate'");
    refused(RECORD("all_gather", "-8"), "f:1", "size: expected bytes");
}

#define COLUMNS "#  size count type redop root time algbw busbw #wrong\n"
#define ROW     " 1024 256 float sum -1 10.0 0.10 0.18 0\n"
#define END     "# Avg bus bandwidth : 1\n"

static void test_tables(void **state)
{
    (void)state;
    struct s4d_nccl_tests t;
    struct s4d_error err;
    assert_int_equal(parse(&t, COLUMNS ROW "warning: nothing\n" END, &err), 0);
    assert_true(t.n == 1 && t.ranks == 0 && t.op[0] == '\0');
    s4d_nccl_tests_free(&t);
    refused("", "f", "empty");
    refused(" \n\t\n", "f", "empty");
    refused("hello\n", "f", "neither a table of nccl-tests nor JSON");
    refused(COLUMNS ROW, "f", "is cut off after 1 rows");
    refused(COLUMNS ROW " 2048 512 float sum\n" END, "f:3", "expected 9 columns, got 4");
    refused(COLUMNS END, "f", "no measurement");
    refused(ROW COLUMNS END, "f:1", "before the line that names the columns");
    refused("# size count type redop root time algbw busbw speed\n" ROW END, "f:1",
            "unknown column 'speed'");
    refused("# size count type redop root cputime time\n" ROW END, "f:1", "the processor's time");
    refused("# size time_of_day timer\n" ROW END, "f:1", "unknown column 'time_of_day'");
    refused(COLUMNS " 1024 256 float sum -1 fast 0.10 0.18 0\n" END, "f:2", "got 'fast'");
    refused(COLUMNS " 1024 256 float sum -1 0.00 0.10 0.18 0\n" END, "f:2", "above 0");
    refused(COLUMNS " 1024 256 float sum -1 nan 0.10 0.18 0\n" END, "f:2", "got 'nan'");
    refused(
        "#  Rank 0 Group 0 Pid 1 on a device 0\n#  Rank 1 Group 1 Pid 2 on a device 1\n" COLUMNS ROW
            END,
        "f:2", "groups ran side by side");
    refused("# all_reduce, 2 groups of 4 ranks side by side\n" COLUMNS ROW END, "f:1",
            "groups ran side by side");
}

static void test_json(void **state)
{
    (void)state;
    refused("{\"version\": 2, \"results\": [{\"size\": 8", "f:1", "is not JSON");
    refused("{\"version\": 2}", "f", "expected the JSON of nccl-tests");
    refused("{\"results\": 3}", "f", "expected a list of results");
    refused("{\"results\": []}", "f", "no measurement");
    refused("{\"results\": []} {}", "f", "more behind it");
    refused("{\"results\": [{\"size\": 8, \"out_of_place\": null}]}", "f: results[0]", "time in");
    refused("{\"results\": [{\"size\": 8, \"out_of_place\": {\"cpu_time\": 1}}]}", "f: results[0]",
            "the processor's time");
    refused("{\"config\": {\"devices\": [{\"group\": 0}, {\"group\": 1}]}, \"results\": []}", "f",
            "side by side");
    struct s4d_nccl_tests t;
    struct s4d_error err;
    assert_int_equal(parse(&t,
                           "{\"args\": [\"/x/sendrecv_perf\"], \"results\": [{\"size\": 8, "
                           "\"out_of_place\": null, \"in_place\": {\"time\": 2.5}}]}",
                           &err),
                     0);
    assert_string_equal(t.op, "send_recv");
    assert_true(t.n == 1 && fabs(t.row[0].time_s / 2.5e-6 - 1) < 1e-12);
    s4d_nccl_tests_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats), cmocka_unit_test(test_older),
        cmocka_unit_test(test_records), cmocka_unit_test(test_tables),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
