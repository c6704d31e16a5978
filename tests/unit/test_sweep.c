/* SPDX-License-Identifier: Apache-2.0 */
/* The experiments of a file, and which share of them a process has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plots/sweep.h"
#include "support/share.h"

static struct s4d_yaml_node *root;

static int make(struct s4d_sweep *s, const char *text, struct s4d_error *err)
{
    assert_int_equal(s4d_yaml_parse("s.yaml", text, strlen(text), &root, err), 0);
    return s4d_sweep_make(s, root, err);
}

static void drop(struct s4d_sweep *s)
{
    s4d_sweep_free(s);
    s4d_yaml_free(root);
}

static const char *value(const struct s4d_sweep_entry *e, const char *key)
{
    const char *found = NULL;
    for (int i = 0; i < e->n_mappings; i++) {
        const struct s4d_yaml_node *node = s4d_yaml_get(e->mapping[i], key);
        found = node ? node->text : found;
    }
    return found;
}

/* 2 points x 2 series x (2 x 3): the last key of the product is the fastest, points the slowest. */
static void test_product(void **state)
{
    (void)state;
    struct s4d_sweep s;
    struct s4d_error err;
    assert_int_equal(
        make(&s,
             "machine: m\ngrid: top\npoints:\n  - {name: p, grid: point}\n  - {gpus: 8}\n"
             "series:\n  - {name: a, grid: series}\n  - {name: b}\n"
             "product:\n  overlap: [all, none]\n  micro_batch: [1, 2, 4]\n",
             &err),
        0);
    assert_int_equal(s.n, 24);
    assert_string_equal(s.v[0].name, "p a overlap=all micro_batch=1");
    assert_string_equal(s.v[1].name, "p a overlap=all micro_batch=2");
    assert_string_equal(s.v[3].name, "p a overlap=none micro_batch=1");
    assert_string_equal(s.v[6].name, "p b overlap=all micro_batch=1");
    assert_string_equal(s.v[12].name, "gpus=8 a overlap=all micro_batch=1");
    assert_string_equal(s.v[23].name, "gpus=8 b overlap=none micro_batch=4");
    assert_string_equal(s.v[0].series, "a");
    /* A point goes over its series, a series over the top. */
    assert_string_equal(value(&s.v[0], "grid"), "point");
    assert_string_equal(value(&s.v[12], "grid"), "series");
    assert_string_equal(value(&s.v[23], "grid"), "top");
    assert_string_equal(value(&s.v[23], "micro_batch"), "4");
    assert_string_equal(value(&s.v[4], "machine"), "m");
    drop(&s);
}

/* What a point says of one series goes over the point, there alone, and is in no name. */
static void test_in_series(void **state)
{
    (void)state;
    struct s4d_sweep s;
    struct s4d_error err;
    assert_int_equal(make(&s,
                          "points:\n  - {gpus: 8, grid: point, in_series: {b: {grid: own}}}\n"
                          "  - {gpus: 16, grid: other}\n"
                          "series:\n  - {name: a, against: b}\n  - {name: b, grid: series}\n",
                          &err),
                     0);
    assert_int_equal(s.n, 4);
    assert_string_equal(value(&s.v[0], "grid"), "point");
    assert_string_equal(value(&s.v[1], "grid"), "own");
    assert_string_equal(value(&s.v[3], "grid"), "other");
    assert_string_equal(s.v[1].name, "gpus=8 grid=point b");
    drop(&s);
}

static void test_any_of_three(void **state)
{
    (void)state;
    struct s4d_sweep s;
    struct s4d_error err;
    assert_int_equal(make(&s, "product:\n  set: [[a=1, b=2], c=3]\n", &err), 0);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.v[0].name, "set=a=1,b=2");
    assert_string_equal(s.v[1].name, "set=c=3");
    drop(&s);
    assert_int_equal(make(&s, "points: [{}]\n", &err), 0);
    assert_string_equal(s.v[0].name, "experiment");
    drop(&s);
    assert_int_equal(make(&s, "series: [{name: x}, {name: y}]\n", &err), 0);
    assert_int_equal(s.n, 2);
    drop(&s);
}

static void refused(const char *text, const char *where, const char *what)
{
    struct s4d_sweep s;
    struct s4d_error err;
    assert_int_equal(make(&s, text, &err), -1);
    drop(&s);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (strncmp(err.where, where, strlen(where)) != 0 || strstr(err.text, what) == NULL)
        fail_msg("%s: %s; expected %s: %s", err.where, err.text, where, what);
}

static void test_refused(void **state)
{
    (void)state;
    refused("a: 1\n", "s.yaml:1", "points, series or product");
    refused("- 1\n", "s.yaml:1", "points, series");
    refused("points: []\n", "s.yaml:1: points", "at least one");
    refused("points: [a]\n", "s.yaml:1", "a mapping");
    refused("points:\n  - {name: [x]}\n", "s.yaml:2: name", "a name");
    refused("product: {a: 1}\n", "s.yaml:1: a", "a list");
    refused("product: {a: []}\n", "s.yaml:1: a", "a list");
    refused("points:\n  - {gpus: 4}\nproduct:\n  gpus: [8]\n", "s.yaml:2: gpus", "line 4");
    refused("points:\n  - {name: x}\n  - {name: y}\n  - {name: x}\n", "s.yaml:4", "line 2");
    refused("points:\n  - {gpus: 4}\n  - {gpus: 4}\n", "s.yaml:3", "named 'gpus=4'");
    char many[1024] = "product:\n", key[2] = "a";
    for (; key[0] <= 'f'; key[0]++) /* 10^6 */
        strcat(strcat(strcat(many, " "), key), ": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n");
    refused(many, "s.yaml:1", "at most 100000");
}

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MV2_COMM_WORLD_RANK",
                                        "MV2_COMM_WORLD_SIZE",
                                        "FLUX_TASK_RANK",
                                        "FLUX_JOB_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_ARRAY_TASK_ID",
                                        "SLURM_ARRAY_TASK_MIN",
                                        "SLURM_ARRAY_TASK_MAX",
                                        "SLURM_ARRAY_TASK_COUNT",
                                        "SLURM_ARRAY_TASK_STEP"};

/* With these variables ("A=1 B=2") and none other of a launcher's. */
static int share_of(const char *settings, struct s4d_share *share, struct s4d_error *err)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    char text[512], *rest = NULL;
    snprintf(text, sizeof text, "%s", settings);
    for (char *w = strtok_r(text, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(w, '=');
        *equals = '\0';
        setenv(w, equals + 1, 1);
    }
    return s4d_share_from_environment(share, err);
}

static void test_share(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        int index, of;
    } good[] = {
        {"", 0, 1},
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", 2, 4},
        {"PMI_RANK=0 PMI_SIZE=3", 0, 3},
        /* mpirun's daemons under Slurm: its ranks count. */
        {"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2", 2,
         4},
        {"SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8", 5, 8},
        /* A batch script that starts one process of its own. */
        {"SLURM_PROCID=0 SLURM_NTASKS=8", 0, 1},
        {"SLURM_ARRAY_TASK_ID=4 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=8 "
         "SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_STEP=1",
         3, 8},
        {"SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_MAX=8 "
         "SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_STEP=2",
         2, 4},
        /* Task 1 of 2, rank 1 of 3 in it: share 1 * 3 + 1 of 6. */
        {"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=1 "
         "SLURM_ARRAY_TASK_COUNT=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3",
         4, 6},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct s4d_share share;
        struct s4d_error err = {0};
        if (share_of(good[i].settings, &share, &err) != 0)
            fail_msg("%s: %s", err.where, err.text);
        assert_int_equal(share.index, good[i].index);
        assert_int_equal(share.of, good[i].of);
    }
}

static void test_share_refused(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE"},
        {"OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK"},
        {"PMI_RANK=x PMI_SIZE=4", "PMI_RANK"},
        {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID"},
        {"SLURM_ARRAY_TASK_ID=3", "SLURM_ARRAY_TASK_MIN"},
        /* --array=0,3,7: task 3 is no one's third. */
        {"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=7 "
         "SLURM_ARRAY_TASK_COUNT=3",
         "SLURM_ARRAY_TASK_COUNT"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct s4d_share share;
        struct s4d_error err = {0};
        assert_int_equal(share_of(bad[i][0], &share, &err), -1);
        assert_int_equal(err.exit, S4D_EXIT_USAGE);
        assert_string_equal(err.where, bad[i][1]);
    }
    share_of("", &(struct s4d_share){0}, NULL); /* leaves the environment empty */
}

static void test_share_text(void **state)
{
    (void)state;
    struct s4d_share share;
    struct s4d_error err;
    assert_int_equal(s4d_share_parse("2/8", &share, &err), 0);
    assert_int_equal(share.index, 1);
    assert_int_equal(share.of, 8);
    static const char *const bad[] = {"", "2", "0/8", "9/8", "2/", "/8", "2/8x", "-1/2", "1/0"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(s4d_share_parse(bad[i], &share, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),      cmocka_unit_test(test_in_series),
        cmocka_unit_test(test_any_of_three), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_share),        cmocka_unit_test(test_share_refused),
        cmocka_unit_test(test_share_text),
    };
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
