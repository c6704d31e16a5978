/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing records: matching by inputs, thresholds, exactness of simulated ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "plots/compare.h"
#include "support/memory.h"

static void add(struct s4d_records *records, const char *json)
{
    json_error_t why;
    json_t *record = json_loads(json, 0, &why);
    if (!record)
        fail_msg("%s: %s", json, why.text);
    s4d_push(records->v, records->n, records->cap, record);
}

#define TRAIN(gpus, rate, more)                                                                    \
    "{\"kind\": \"train\", \"backend\": \"host\", \"machine\": {\"name\": \"host\", \"hash\": "    \
    "\"" more "\"}, "                                                                              \
    "\"workload\": {\"name\": \"gpt-tiny\"}, \"gpus\": " #gpus ", \"grid\": \"1x1x" #gpus          \
    "x1\", \"flops_per_s\": " #rate ", \"provenance\": {\"time\": \"" more "\"}}"
#define SIMULATE(rate, memory)                                                                     \
    "{\"kind\": \"simulate\", \"model_version\": \"1\", \"gpus\": 4, \"flops_per_s\": " #rate      \
    ", \"sim\": {\"ops\": " #memory "}, \"provenance\": {\"time\": " #memory "}}"

static void matches_by_inputs_alone(void **state)
{
    (void)state;
    struct s4d_records old = {0}, new = {0};
    struct s4d_comparison c;
    add(&old, TRAIN(1, 10.0, "a"));
    add(&old, TRAIN(2, 20.0, "b"));
    add(&old, TRAIN(4, 40.0, "c"));
    add(&new, TRAIN(4, 38.0, "d")); /* another order, another hash of the machine's contents */
    add(&new, TRAIN(8, 80.0, "e"));
    add(&new, TRAIN(1, 11.0, "f"));
    assert_int_equal(s4d_compare_records(&c, &old, &new, -0.03, NULL), 0);
    assert_int_equal(c.n, 2);
    assert_ptr_equal(c.pair[0].new, new.v[2]);
    assert_ptr_equal(c.pair[1].new, new.v[0]);
    assert_true(fabs(c.pair[0].gain - 0.1) < 1e-12);
    assert_true(fabs(c.pair[1].gain + 0.05) < 1e-12);
    assert_int_equal(json_array_size(c.only_old), 1);
    assert_int_equal(json_array_size(c.only_new), 1);
    char *label = s4d_inputs_label(json_array_get(c.only_new, 0));
    assert_string_equal(label, "train host gpt-tiny 8 GPUs 1x1x8x1");
    free(label);
    assert_int_equal(c.beyond, 1); /* 38 of 40 */
    assert_true(c.pair[1].beyond);
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&new);
}

/* -5 % is not beyond a threshold of -5 %, nor of -6 %. */
static void a_loss_has_to_be_larger_than_the_threshold(void **state)
{
    (void)state;
    static const struct {
        double threshold;
        int beyond;
    } cases[] = {{-0.04, 1}, {-0.05, 0}, {-0.06, 0}, {0, 1}, {NAN, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_records old = {0}, new = {0};
        struct s4d_comparison c;
        add(&old, TRAIN(4, 32.0, "a"));
        add(&new, TRAIN(4, 30.4, "a")); /* 30.4 / 32 = 0.95 */
        assert_int_equal(s4d_compare_records(&c, &old, &new, cases[i].threshold, NULL), 0);
        assert_int_equal(c.beyond, cases[i].beyond);
        s4d_comparison_free(&c);
        s4d_records_free(&old);
        s4d_records_free(&new);
    }
}

static void a_result_that_is_lost_is_beyond_any_threshold(void **state)
{
    (void)state;
    struct s4d_records old = {0}, new = {0};
    struct s4d_comparison c;
    add(&old, TRAIN(4, 32.0, "a"));
    add(&new, TRAIN(4, null, "a"));
    assert_int_equal(s4d_compare_records(&c, &old, &new, -0.99, NULL), 0);
    assert_int_equal(c.beyond, 1);
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&new);
}

static void simulated_records_are_the_same_or_not(void **state)
{
    (void)state;
    struct s4d_records old = {0}, same = {0}, other = {0};
    struct s4d_comparison c;
    add(&old, SIMULATE(10.0, 1));
    add(&same, "{\"kind\": \"simulate\", \"model_version\": \"1\", \"gpus\": 4, \"flops_per_s\": "
               "10.0, \"sim\": {\"ops\": 1}, \"provenance\": {\"time\": 7}}");
    add(&other, SIMULATE(10.0, 2)); /* a result deep inside */
    assert_int_equal(s4d_compare_records(&c, &old, &same, NAN, NULL), 0);
    assert_int_equal(c.beyond, 0);
    assert_null(c.pair[0].differs);
    s4d_comparison_free(&c);
    assert_int_equal(s4d_compare_records(&c, &old, &other, NAN, NULL), 0);
    assert_int_equal(c.beyond, 1);
    assert_string_equal(c.pair[0].differs, "sim.ops: 1, 2");
    s4d_comparison_free(&c);
    /* With a threshold that decides, and the difference is still shown. */
    assert_int_equal(s4d_compare_records(&c, &old, &other, -0.03, NULL), 0);
    assert_int_equal(c.beyond, 0);
    assert_non_null(c.pair[0].differs);
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&same);
    s4d_records_free(&other);
}

static void the_same_inputs_twice_go_by_order(void **state)
{
    (void)state;
    struct s4d_records old = {0}, new = {0};
    struct s4d_comparison c;
    add(&old, TRAIN(4, 10.0, "a"));
    add(&old, TRAIN(4, 20.0, "a"));
    add(&new, TRAIN(4, 10.0, "b"));
    add(&new, TRAIN(4, 20.0, "b"));
    add(&new, TRAIN(4, 30.0, "b"));
    assert_int_equal(s4d_compare_records(&c, &old, &new, -0.03, NULL), 0);
    assert_int_equal(c.n, 2);
    assert_true(c.pair[0].gain == 0 && c.pair[1].gain == 0);
    assert_int_equal(json_array_size(c.only_new), 1);
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&new);
}

static void refuses_what_cannot_be_compared(void **state)
{
    (void)state;
    struct s4d_records old = {0}, new = {0}, none = {0}, odd = {0};
    struct s4d_comparison c;
    struct s4d_error err = {0};
    add(&old, TRAIN(4, 10.0, "a"));
    add(&new, TRAIN(2, 10.0, "a"));
    add(&odd, "{\"flops_per_s\": 3}");
    assert_int_equal(s4d_compare_records(&c, &old, &new, NAN, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.hint, "1x1x4x1"));
    s4d_comparison_free(&c);
    assert_int_equal(s4d_compare_records(&c, &old, &none, NAN, &err), -1);
    assert_string_equal(err.where, "NEW");
    s4d_comparison_free(&c);
    assert_int_equal(s4d_compare_records(&c, &odd, &new, NAN, &err), -1);
    assert_string_equal(err.where, "OLD");
    s4d_comparison_free(&c);
    s4d_records_free(&old);
    s4d_records_free(&new);
    s4d_records_free(&odd);
}

static void thresholds_are_parts_or_percents(void **state)
{
    (void)state;
    static const char *const bad[] = {"3%", "0.03", "-101%", "-1.5",  "",     "-",
                                      "-%", "3",    "-3 %",  "-1e-2", "--3%", "-inf"};
    double value;
    struct s4d_error err;
    assert_int_equal(s4d_parse_threshold("-3%", &value, &err), 0);
    assert_true(fabs(value + 0.03) < 1e-15);
    assert_int_equal(s4d_parse_threshold("-0.03", &value, &err), 0);
    assert_true(value == -0.03);
    assert_int_equal(s4d_parse_threshold("0", &value, &err), 0);
    assert_true(value == 0);
    assert_int_equal(s4d_parse_threshold("-100%", &value, &err), 0);
    assert_true(value == -1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (s4d_parse_threshold(bad[i], &value, &err) != -1)
            fail_msg("accepted %s", bad[i]);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_by_inputs_alone),
        cmocka_unit_test(a_loss_has_to_be_larger_than_the_threshold),
        cmocka_unit_test(a_result_that_is_lost_is_beyond_any_threshold),
        cmocka_unit_test(simulated_records_are_the_same_or_not),
        cmocka_unit_test(the_same_inputs_twice_go_by_order),
        cmocka_unit_test(refuses_what_cannot_be_compared),
        cmocka_unit_test(thresholds_are_parts_or_percents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
