/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated against measured: which records belong together, and the errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plots/validate.h"
#include "support/file.h"
#include "support/memory.h"

static void add(struct s4d_records *records, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct s4d_records *records, const char *format, ...)
{
    char text[1024];
    va_list list;
    json_error_t why;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    json_t *record = json_loads(text, 0, &why);
    if (!record)
        fail_msg("%s: %s", text, why.text);
    s4d_push(records->v, records->n, records->cap, record);
}

static void add_measured(struct s4d_records *records, const char *workload, int ranks,
                         const char *grid, const char *samples)
{
    add(records,
        "{\"kind\": \"train\", \"backend\": \"host\", \"seed\": 1, \"threads\": 1, \"workload\": "
        "{\"name\": \"%s\"}, \"gpus\": %d, \"grid\": \"%s\", \"micro_batch\": 1, "
        "\"iteration_time_s\": 9, \"samples_s\": %s, \"exposed_s\": {\"compute\": 0.5}}",
        workload, ranks, grid, samples);
}

static void add_simulated(struct s4d_records *records, const char *workload, int ranks,
                          const char *grid, double t_s)
{
    add(records,
        "{\"kind\": \"simulate\", \"machine\": {\"name\": \"host-2\"}, \"fold\": true, "
        "\"workload\": {\"name\": \"%s\"}, \"gpus\": %d, \"grid\": \"%s\", \"micro_batch\": 1, "
        "\"iteration_time_s\": %g, \"exposed_s\": {\"compute\": 0.25}}",
        workload, ranks, grid, t_s);
}

/* Medians 1 and 2 s, simulated 1.1 and 1.6: errors +10 % and -20 %, mean 15 %, worst 20 %. In the
 * order of workloads as first seen, then of ranks. */
static void errors_of_what_belongs_together(void **state)
{
    (void)state;
    struct s4d_records measured = {0}, simulated = {0};
    struct s4d_validation v;
    struct s4d_error err = {0};
    add_measured(&measured, "b", 2, "1x1x2x1", "[2, 2.5, 1.5, 9, 1]");
    add_measured(&measured, "a", 1, "1x1x1x1", "[1]");
    add_measured(&measured, "b", 1, "1x1x1x1", "[1, 1, 1]");
    add_simulated(&simulated, "b", 1, "1x1x1x1", 1.1);
    add_simulated(&simulated, "b", 2, "1x2x1x1", 7); /* another grid */
    add_simulated(&simulated, "b", 2, "1x1x2x1", 1.6);
    if (s4d_validate(&v, &measured, &simulated, &err))
        fail_msg("%s: %s", err.where, err.text);
    assert_int_equal(v.n, 2);
    assert_int_equal(v.only_measured, 1);
    assert_int_equal(v.only_simulated, 1);
    assert_int_equal(v.row[0].ranks, 1);
    assert_true(fabs(v.row[0].error - 0.1) < 1e-12);
    assert_string_equal(v.row[1].grid, "1x1x2x1");
    assert_true(v.row[1].median_s == 2 && v.row[1].q1_s == 1.5 && v.row[1].q3_s == 2.5);
    assert_true(v.row[1].least_s == 1);
    assert_true(fabs(v.row[1].error + 0.2) < 1e-12);
    assert_true(fabs(v.mean_error - 0.15) < 1e-12);
    assert_true(fabs(v.worst_error - 0.2) < 1e-12);
    s4d_validation_free(&v);
    s4d_records_free(&measured);
    s4d_records_free(&simulated);
}

static char *written(int (*write)(const struct s4d_validation *, const char *, struct s4d_error *),
                     const struct s4d_validation *v)
{
    char *text, file[] = "/tmp/scale4d-validate-XXXXXX";
    size_t n;
    assert_int_equal(close(mkstemp(file)), 0);
    assert_int_equal(write(v, file, NULL), 0);
    assert_int_equal(s4d_file_read(file, &text, &n, NULL), 0);
    remove(file);
    return text;
}

static void what_is_written(void **state)
{
    (void)state;
    struct s4d_records measured = {0}, simulated = {0};
    struct s4d_validation v;
    struct s4d_error err;
    add_measured(&measured, "a", 1, "1x1x1x1", "[0.5, 0.25, 1]");
    add_measured(&measured, "a", 2, "1x1x2x1", "[1]");
    add_simulated(&simulated, "a", 1, "1x1x1x1", 0.4);
    add_simulated(&simulated, "a", 2, "1x1x2x1", 1.3);
    assert_int_equal(s4d_validate(&v, &measured, &simulated, NULL), 0);
    char *data = written(s4d_validation_data, &v), *report = written(s4d_validation_report, &v);
    assert_non_null(
        strstr(data, "\n0\ta\t1\t1x1x1x1\t500\t375\t750\t400\t-20.000\n0\ta\t2\t1x1x2x1\t"));
    assert_non_null(strstr(report, "Mean error 25.0 %, worst 30.0 %"));
    assert_non_null(strstr(report, "| 1 rank | 1 | 20.0 |"));
    assert_non_null(strstr(report, "| 2 ranks | 1 | 30.0 |"));
    assert_non_null(strstr(report, "| a | 1 | 1x1x1x1 | 500.000 | 375.000 to 750.000 | 250.000 | "
                                   "400.000 | -20.0 | 500.000 | 250.000 |"));
    free(data);
    free(report);
    assert_int_equal(s4d_validation_data(&v, "/nowhere/data.tsv", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    s4d_validation_free(&v);
    s4d_records_free(&measured);
    s4d_records_free(&simulated);
}

static void refused(void **state)
{
    (void)state;
    struct s4d_records measured = {0}, simulated = {0}, none = {0}, untimed = {0};
    struct s4d_validation v;
    struct s4d_error err;
    add_measured(&measured, "a", 1, "1x1x1x1", "[1]");
    add_simulated(&simulated, "a", 4, "1x1x4x1", 1);
    add(&untimed, "{\"kind\": \"train\", \"iteration_time_s\": null}");
    const struct {
        const struct s4d_records *measured, *simulated;
        const char *where;
    } cases[] = {{&measured, &simulated, ""},
                 {&simulated, &measured, "MEASURED"},
                 {&measured, &measured, "SIMULATED"},
                 {&untimed, &simulated, "MEASURED"},
                 {&measured, &none, ""},
                 {&none, &none, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(s4d_validate(&v, cases[i].measured, cases[i].simulated, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_DATA);
        assert_string_equal(err.where, cases[i].where);
        s4d_validation_free(&v);
    }
    s4d_records_free(&measured);
    s4d_records_free(&simulated);
    s4d_records_free(&untimed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_of_what_belongs_together),
        cmocka_unit_test(what_is_written),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
