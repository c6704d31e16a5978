/* SPDX-License-Identifier: Apache-2.0 */
/* Records: key order, digits, a reproducible provenance, no secrets, unwritable output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/record.h"

static char *argv_of_test[] = {"scale4d simulate", "--machine", "per\nl\xff", NULL};

static json_t *provenance(void)
{
    return s4d_provenance(3, argv_of_test);
}

static const char *text_of(const json_t *p, const char *key)
{
    return json_string_value(json_object_get(p, key));
}

static void hash(void **state)
{
    (void)state;
    char hex[17];
    /* Reference vectors of FNV-1a 64 (draft-eastlake-fnv, section 6): "", "a", "foobar". */
    s4d_hash("", 0, hex);
    assert_string_equal(hex, "cbf29ce484222325");
    s4d_hash("a", 1, hex);
    assert_string_equal(hex, "af63dc4c8601ec8c");
    s4d_hash("foobar", 6, hex);
    assert_string_equal(hex, "85944171f73967e8");
}

static void reproducible(void **state)
{
    (void)state;
    setenv("SOURCE_DATE_EPOCH", "86400", 1);
    setenv("OMP_NUM_THREADS", "4", 1);
    setenv("SLURM_JOB_ID", "17", 1);
    setenv("SCALE4D_JWT", "secret", 1);
    json_t *p = provenance();
    assert_string_equal(text_of(p, "time"), "1970-01-02T00:00:00Z"); /* one day after 0 */
    assert_string_equal(text_of(p, "host"), "reproducible");
    assert_string_equal(text_of(p, "tool"), "scale4d");
    assert_string_equal(text_of(p, "version"), s4d_version);
    assert_string_equal(text_of(p, "commit"), s4d_commit);
    assert_string_equal(json_string_value(json_array_get(json_object_get(p, "argv"), 2)),
                        "per\nl?"); /* no UTF-8 */
    const json_t *e = json_object_get(p, "environment");
    assert_string_equal(text_of(e, "OMP_NUM_THREADS"), "4");
    assert_null(json_object_get(e, "SLURM_JOB_ID"));
    assert_null(json_object_get(e, "SCALE4D_JWT"));
    json_t *again = provenance();
    char *a = json_dumps(p, 0), *b = json_dumps(again, 0);
    assert_string_equal(a, b);
    free(a);
    free(b);
    json_decref(p);
    json_decref(again);
}

/* What may let somebody in is in no record, whatever word says so, or starts so. */
static void secrets(void **state)
{
    (void)state;
    static const char *const secret[] = {"SCALE4D_JWT",    "SCALE4D_TOKEN",   "NCCL_SECRET_FILE",
                                         "SCALE4D_PASSWD", "SCALE4D_API_KEY", "SCALE4D_AUTH_FILE"};
    enum { N = sizeof secret / sizeof *secret };
    for (int i = 0; i < N; i++)
        setenv(secret[i], "x", 1);
    setenv("SCALE4D_KEYBOARD", "TOKEN=y", 1); /* no word of its name */
    json_t *p = provenance();
    const json_t *e = json_object_get(p, "environment");
    for (int i = 0; i < N; i++) {
        if (json_object_get(e, secret[i]))
            fail_msg("%s is recorded", secret[i]);
        unsetenv(secret[i]);
    }
    assert_string_equal(text_of(e, "SCALE4D_KEYBOARD"), "TOKEN=y");
    unsetenv("SCALE4D_KEYBOARD");
    json_decref(p);
}

static void live(void **state)
{
    (void)state;
    unsetenv("SOURCE_DATE_EPOCH");
    setenv("SLURM_JOB_ID", "17", 1);
    setenv("SLURM_JWT", "secret", 1);
    setenv("OMPI_MCA_orte_precondition_transports", "3326a253213445a6-03c59af202dfbe11", 1);
    setenv("OMPI_MCA_btl", "self,vader", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    json_t *p = provenance();
    int year, n = 0;
    const char *time = text_of(p, "time");
    assert_int_equal(sscanf(time, "%4d-%*2d-%*2dT%*2d:%*2d:%*2dZ%n", &year, &n), 1);
    assert_int_equal(n, 20);
    assert_true(year >= 2024);
    assert_string_not_equal(text_of(p, "host"), "reproducible");
    const json_t *e = json_object_get(p, "environment");
    assert_string_equal(text_of(e, "SLURM_JOB_ID"), "17");
    assert_null(json_object_get(e, "SLURM_JWT"));
    assert_null(json_object_get(e, "OMPI_MCA_orte_precondition_transports"));
    assert_string_equal(text_of(e, "OMPI_MCA_btl"), "self,vader");
    assert_null(json_object_get(e, "OMPI_COMM_WORLD_RANK"));
    assert_null(json_object_get(e, "PATH"));
    json_decref(p);
}

static void writing(void **state)
{
    (void)state;
    json_t *record = json_object();
    json_object_set_new(record, "kind", json_string("simulate"));
    json_object_set_new(record, "b", json_real(0.1));
    json_object_set_new(record, "a", json_integer(3));
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    struct s4d_error err;
    assert_int_equal(s4d_record_write(record, out, &err), 0);
    fclose(out);
    /* 17 digits tell every double from its neighbours. */
    assert_string_equal(text, "{\"kind\": \"simulate\", \"b\": 0.10000000000000001, \"a\": 3}\n");
    free(text);
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    assert_int_equal(s4d_record_write(record, full, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_non_null(strstr(err.text, "No space left"));
    fclose(full);
    json_decref(record);
}

static void printing(void **state)
{
    (void)state;
    setenv("SOURCE_DATE_EPOCH", "0", 1);
    json_t *p = provenance();
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    s4d_provenance_print(p, out);
    fclose(out);
    assert_non_null(strstr(text, "1970-01-01T00:00:00Z"));
    assert_non_null(strstr(text, "\n# scale4d simulate --machine per?l?\n")); /* one line */
    assert_non_null(strstr(text, "# OMP_NUM_THREADS=4\n"));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(*line, '#');
    free(text);
    json_decref(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash), cmocka_unit_test(reproducible), cmocka_unit_test(secrets),
        cmocka_unit_test(live), cmocka_unit_test(writing),      cmocka_unit_test(printing),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
