/* SPDX-License-Identifier: Apache-2.0 */
/* The store of nightly records: what goes in comes out, by series, night and metric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>
#include <sqlite3.h>

#include "plots/track/intake.h"
#include "plots/track/schema.h"
#include "plots/track/store.h"
#include "support/memory.h"

static char folder[] = "/tmp/test_track_store-XXXXXX";
static char *file;

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    file = s4d_asprintf("%s/track.sqlite", folder);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    char *log = s4d_asprintf("%s-wal", file), *shared = s4d_asprintf("%s-shm", file);
    unlink(file);
    unlink(log);
    unlink(shared);
    free(log);
    free(shared);
    return 0;
}

static int remove_folder(void **state)
{
    remove_file(state);
    free(file);
    return rmdir(folder);
}

static struct s4d_store *opened(enum s4d_store_mode mode)
{
    struct s4d_store *store = NULL;
    struct s4d_error err = {0};
    if (s4d_store_open(&store, file, mode, &err))
        fail_msg("%s: %s", err.where, err.text);
    return store;
}

/* A record of a night: `time_s` and twice that are its samples. */
static char *line_of(const char *night, const char *commit, double time_s, const char *more)
{
    return s4d_asprintf(
        "{\"kind\": \"train\", \"backend\": \"host\", \"host_class\": \"c\", \"workload\": "
        "{\"name\": "
        "\"w\"}, \"gpus\": 4, \"grid\": \"1x1x4x1\", \"iteration_time_s\": %.17g, \"samples_s\": "
        "[%.17g, %.17g], \"flops_formula\": 100.0, \"flops_per_s\": %.17g%s, \"provenance\": "
        "{\"host\": \"h1\", \"commit\": \"%s\", \"time\": \"%sT03:00:00Z\", \"environment\": "
        "{\"A\": \"%s\", \"SLURM_JOB_ID\": \"%g\"}}}",
        time_s, time_s, 2 * time_s, 100 / time_s, more, commit, night, commit, time_s);
}

static bool add(struct s4d_store *store, char *line)
{
    struct s4d_error err = {0};
    bool is_new = false;
    if (s4d_store_add(store, line, strlen(line), "test:1", &is_new, &err))
        fail_msg("%s: %s", err.where, err.text);
    free(line);
    return is_new;
}

static void begin(struct s4d_store *store)
{
    assert_int_equal(s4d_store_begin(store, NULL), 0);
}

static void commit(struct s4d_store *store)
{
    assert_int_equal(s4d_store_commit(store, NULL), 0);
}

/* Three nights of one series: samples of the second night are of two records. */
static struct s4d_store *with_nights(void)
{
    struct s4d_store *store = opened(S4D_STORE_WRITE);
    begin(store);
    assert_true(add(store, line_of("2024-03-02", "b", 2, "")));
    assert_true(add(store, line_of("2024-03-01", "a", 1, "")));
    assert_true(add(store, line_of("2024-03-04", "c", 5, ", \"memory_peak_bytes\": 7")));
    assert_true(add(store, line_of("2024-03-02", "b", 3, "")));
    assert_false(add(store, line_of("2024-03-02", "b", 3, "")));
    commit(store);
    return store;
}

/* By hand: of the second night the samples are 2, 4 and 3, 6: median 3.5; those of the records 3
 * and 4.5. flops_per_s is 100 over each sample: 50, 25, 33.3, 16.7: median 29.17. */
static void nights_have_the_samples_of_their_records(void **state)
{
    (void)state;
    struct s4d_store *store = with_nights();
    struct s4d_points p;
    assert_int_equal(s4d_store_points(store, 1, "iteration_time_s", 0, S4D_LAST_NIGHT, &p, NULL),
                     0);
    assert_int_equal(p.n, 3);
    assert_string_equal(p.v[0].date.text, "2024-03-01");
    assert_string_equal(p.v[1].date.text, "2024-03-02");
    assert_string_equal(p.v[2].date.text, "2024-03-04");
    assert_int_equal(p.v[1].n, 4);
    const double samples[] = {2, 4, 3, 6};
    assert_memory_equal(p.v[1].samples, samples, sizeof samples);
    assert_true(p.v[1].median == 3.5);
    assert_int_equal(p.v[1].n_repeats, 2);
    assert_true(p.v[1].repeats[0] == 3 && p.v[1].repeats[1] == 4.5);
    assert_string_equal(p.v[1].commit, "b");
    assert_int_equal(p.metric->direction, -1);
    s4d_points_free(&p);
    assert_int_equal(s4d_store_points(store, 1, "flops_per_s", 0, S4D_LAST_NIGHT, &p, NULL), 0);
    assert_true(fabs(p.v[1].median - (25 + 100 / 3.0) / 2) < 1e-12);
    s4d_points_free(&p);
    /* Only the last record has it. */
    assert_int_equal(s4d_store_points(store, 1, "memory_peak_bytes", 0, S4D_LAST_NIGHT, &p, NULL),
                     0);
    assert_int_equal(p.n, 1);
    assert_true(p.v[0].median == 7);
    s4d_points_free(&p);
    assert_int_equal(s4d_store_points(store, 1, "gemm_s", 0, S4D_LAST_NIGHT, &p, NULL), 0);
    assert_int_equal(p.n, 0);
    s4d_points_free(&p);
    s4d_store_close(store);
}

static void the_last_nights_up_to_a_day(void **state)
{
    (void)state;
    static const struct {
        int nights;
        const char *until;
        const char *first;
        int n;
    } cases[] = {
        {0, NULL, "2024-03-01", 3},         {1, NULL, "2024-03-04", 1},
        {2, NULL, "2024-03-02", 2},         {9, NULL, "2024-03-01", 3},
        {1, "2024-03-03", "2024-03-02", 1}, {2, "2024-03-03", "2024-03-01", 2},
        {0, "2024-03-01", "2024-03-01", 1}, {5, "2024-02-29", NULL, 0},
    };
    struct s4d_store *store = with_nights();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct s4d_points p;
        int until = S4D_LAST_NIGHT;
        if (cases[i].until)
            assert_int_equal(s4d_date_parse(cases[i].until, &until), 0);
        assert_int_equal(
            s4d_store_points(store, 1, "flops_per_s", cases[i].nights, until, &p, NULL), 0);
        assert_int_equal(p.n, cases[i].n);
        if (p.n)
            assert_string_equal(p.v[0].date.text, cases[i].first);
        s4d_points_free(&p);
    }
    s4d_store_close(store);
}

static void what_is_not_committed_is_not_there(void **state)
{
    (void)state;
    struct s4d_series_list list;
    s4d_store_close(with_nights());
    struct s4d_store *store = opened(S4D_STORE_WRITE);
    begin(store);
    assert_true(add(store, line_of("2024-03-05", "d", 9, "")));
    assert_true(add(store, line_of("2024-03-05", "d", 9, ", \"precision\": \"bf16\"")));
    s4d_store_close(store);
    store = opened(S4D_STORE_READ);
    assert_int_equal(s4d_store_series(store, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].records, 4);
    assert_int_equal(list.v[0].nights, 3);
    assert_string_equal(s4d_date(list.v[0].last).text, "2024-03-04");
    s4d_series_list_free(&list);
    s4d_store_close(store);
}

static int first_of(void *to, const struct s4d_stored *r)
{
    *(char **)to = s4d_strdup(r->line);
    return 7;
}

static void records_come_back_and_are_found(void **state)
{
    (void)state;
    struct s4d_store *store = with_nights();
    struct s4d_error err = {0};
    char *line = NULL, *again = NULL, *want = line_of("2024-03-01", "a", 1, "");
    int64_t id;
    assert_int_equal(s4d_store_records(store, 1, INT_MIN, INT_MAX, first_of, &line, NULL), 7);
    assert_string_equal(line, want); /* the oldest, though it was added second */
    assert_string_equal(s4d_store_hash(store, 2).text + 16, "");
    assert_int_equal(s4d_store_find(store, s4d_store_hash(store, 2).text, &id, NULL), 0);
    assert_int_equal(id, 2);
    char part[8] = "";
    memcpy(part, s4d_store_hash(store, 2).text, 7);
    assert_int_equal(s4d_store_find(store, part, &id, NULL), 0);
    assert_int_equal(id, 2);
    assert_int_equal(s4d_store_record(store, 2, &again, NULL), 0);
    assert_string_equal(again, want);
    free(again);
    assert_int_equal(s4d_store_record(store, 99, &again, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    free(line);
    free(want);
    s4d_store_close(store);
}

/* Variables of launchers are other ones every night: they are no part of the environment. */
static void environments_differ_where_something_else_than_the_job_does(void **state)
{
    (void)state;
    struct s4d_store *store = with_nights();
    struct s4d_points p;
    json_t *object;
    assert_int_equal(s4d_store_points(store, 1, "flops_per_s", 0, S4D_LAST_NIGHT, &p, NULL), 0);
    assert_int_not_equal(p.v[0].environment, p.v[1].environment); /* A is the commit */
    assert_int_equal(s4d_store_environment(store, p.v[1].environment, &object, NULL), 0);
    const json_t *variables = json_object_get(object, "environment");
    assert_string_equal(json_string_value(json_object_get(variables, "A")), "b");
    assert_null(json_object_get(variables, "SLURM_JOB_ID"));
    json_decref(object);
    s4d_points_free(&p);
    s4d_store_close(store);
}

static void an_accepted_change_restarts_the_history(void **state)
{
    (void)state;
    struct s4d_store *store = with_nights();
    struct s4d_points p;
    struct s4d_error err = {0};
    struct s4d_annotation a = {.day = -1,
                               .restarts = true,
                               .commit = "c",
                               .text = "t",
                               .author = "me",
                               .time = "2024-03-05T00:00:00Z"};
    begin(store);
    assert_int_equal(s4d_store_annotate(store, &a, NULL), 0);
    assert_string_equal(s4d_date(a.day).text, "2024-03-04");
    a.restarts = false;
    assert_int_equal(s4d_date_parse("2024-03-02", &a.day), 0);
    assert_int_equal(s4d_store_annotate(store, &a, NULL), 0); /* a note restarts nothing */
    a.day = -1;
    a.commit = "none";
    assert_int_equal(s4d_store_annotate(store, &a, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    commit(store);
    assert_int_equal(s4d_store_points(store, 1, "flops_per_s", 0, S4D_LAST_NIGHT, &p, NULL), 0);
    assert_int_equal(p.v[0].restart, 0);
    assert_int_equal(p.v[1].restart, 0);
    assert_int_equal(p.v[2].restart, 1);
    s4d_points_free(&p);
    struct s4d_annotation_list list;
    assert_int_equal(s4d_store_annotations(store, &list, NULL), 0);
    assert_int_equal(list.n, 2);
    assert_string_equal(list.v[1].commit, "c");
    s4d_annotation_list_free(&list);
    s4d_store_close(store);
}

static void pruning_keeps_annotations_and_what_they_are_of(void **state)
{
    (void)state;
    struct s4d_store *store = with_nights();
    struct s4d_annotation a = {.series = 1, .commit = "", .text = "t", .author = "", .time = ""};
    struct s4d_series_list list;
    int64_t records;
    int day;
    assert_int_equal(s4d_date_parse("2024-03-02", &day), 0);
    a.day = day;
    begin(store);
    assert_int_equal(s4d_store_annotate(store, &a, NULL), 0);
    assert_int_equal(s4d_store_prune(store, 0, day, &records, NULL), 0);
    assert_int_equal(records, 1);
    assert_int_equal(s4d_store_prune(store, 2, INT_MAX, &records, NULL), 0); /* another series */
    assert_int_equal(records, 0);
    assert_int_equal(s4d_store_prune(store, 1, INT_MAX, &records, NULL), 0);
    assert_int_equal(records, 3);
    commit(store);
    assert_int_equal(s4d_store_shrink(store, NULL), 0);
    assert_int_equal(s4d_store_series(store, &list, NULL), 0);
    assert_int_equal(list.n, 0);
    begin(store);
    assert_true(add(store, line_of("2024-03-09", "a", 1, "")));
    commit(store);
    assert_int_equal(s4d_store_series(store, &list, NULL), 0);
    assert_int_equal(list.n, 1);
    assert_int_equal(list.v[0].id, 1);
    s4d_series_list_free(&list);
    s4d_store_close(store);
}

/* Two records whose hashes are the same are two: made so in the database. */
static void a_hash_alone_does_not_make_two_records_one(void **state)
{
    (void)state;
    sqlite3 *db;
    s4d_store_close(with_nights());
    struct s4d_intake in;
    char *line = line_of("2024-03-07", "z", 4, "");
    assert_int_equal(s4d_intake(&in, line, strlen(line), "test:1", NULL), 0);
    char *sql = s4d_asprintf("UPDATE record SET hash = %lld WHERE id = 1", (long long)in.hash);
    s4d_intake_free(&in);
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    free(sql);
    struct s4d_store *store = opened(S4D_STORE_WRITE);
    begin(store);
    assert_true(add(store, s4d_strdup(line)));
    assert_false(add(store, line));
    commit(store);
    s4d_store_close(store);
}

static void tables_are_strict_and_stamped(void **state)
{
    (void)state;
    sqlite3 *db;
    s4d_store_close(with_nights());
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE record SET night = 'x'", NULL, NULL, NULL),
                     SQLITE_CONSTRAINT);
    sqlite3_stmt *s;
    static const struct {
        const char *pragma;
        const char *value;
    } rows[] = {{"PRAGMA application_id", "1395934324"}, /* 0x53344474, "S4Dt" */
                {"PRAGMA user_version", "1"},
                {"PRAGMA journal_mode", "wal"},
                {"PRAGMA integrity_check", "ok"},
                {"SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
                 "AND NOT strict AND name NOT LIKE 'sqlite_%'",
                 "0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sqlite3_prepare_v2(db, rows[i].pragma, -1, &s, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(s), SQLITE_ROW);
        assert_string_equal((const char *)sqlite3_column_text(s, 0), rows[i].value);
        sqlite3_finalize(s);
    }
    sqlite3_close(db);
}

static int number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int value = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return value;
}

/* What a version adds comes to what is there; a step that fails leaves the version before. */
static void an_older_store_is_brought_up_to_date(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7)",
        "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 5",
        "UPDATE a SET y = x + y; CREATE TABLE b (z INTEGER) STRICT",
        "CREATE TABLE c (z INTEGER) STRICT; INSERT INTO nowhere VALUES (1)"};
    sqlite3 *db;
    struct s4d_error err = {0};
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(s4d_schema_migrate(db, file, rows, 1, &err), 0);
    assert_int_equal(number(db, "PRAGMA user_version"), 1);
    assert_int_equal(number(db, "PRAGMA application_id"), S4D_APPLICATION_ID);
    assert_int_equal(s4d_schema_migrate(db, file, rows, 3, &err), 0);
    assert_int_equal(number(db, "PRAGMA user_version"), 3);
    assert_int_equal(number(db, "SELECT y FROM a"), 12);
    assert_int_equal(s4d_schema_migrate(db, file, rows, 3, &err), 0); /* nothing to do */
    assert_int_equal(number(db, "SELECT y FROM a"), 12);
    assert_int_equal(s4d_schema_migrate(db, file, rows, 4, &err), -1);
    assert_int_equal(number(db, "PRAGMA user_version"), 3);
    assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema WHERE name = 'c'"), 0);
    assert_int_equal(s4d_schema_migrate(db, file, rows, 2, &err), -1); /* of the future */
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    sqlite3_close(db);
}

/* Reading 60 nights is a search in one index, not a scan. */
static void a_history_is_one_indexed_query(void **state)
{
    (void)state;
    sqlite3 *db;
    sqlite3_stmt *s;
    s4d_store_close(with_nights());
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "EXPLAIN QUERY PLAN SELECT id, numbers FROM record WHERE series = 1 AND "
                           "night <= 9 AND night >= 1 ORDER BY night, time, id",
                           -1, &s, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    assert_non_null(strstr((const char *)sqlite3_column_text(s, 3),
                           "SEARCH record USING INDEX record_by_night (series=? AND night>? AND "
                           "night<?)"));
    sqlite3_finalize(s);
    sqlite3_close(db);
}

static void days_are_of_the_calendar(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int day;
    } good[] = {{"1970-01-01", 0},
                {"1969-12-31", -1},
                {"2000-02-29", 11016}, /* 30 years of 365 days, 7 leap days, 59 */
                {"2024-03-01", 19783}};
    static const char *const bad[] = {"",           "2024-02-30", "2023-02-29",  "2024-13-01",
                                      "2024-3-1",   "20240301",   "2024-03-01 ", "2024-03-01T",
                                      "-024-03-01", "2024-00-10", "2024-01-00"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int day;
        assert_int_equal(s4d_date_parse(good[i].text, &day), 0);
        assert_int_equal(day, good[i].day);
        assert_string_equal(s4d_date(day).text, good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int day = 7;
        assert_int_equal(s4d_date_parse(bad[i], &day), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nights_have_the_samples_of_their_records, remove_file),
        cmocka_unit_test_teardown(the_last_nights_up_to_a_day, remove_file),
        cmocka_unit_test_teardown(what_is_not_committed_is_not_there, remove_file),
        cmocka_unit_test_teardown(records_come_back_and_are_found, remove_file),
        cmocka_unit_test_teardown(environments_differ_where_something_else_than_the_job_does,
                                  remove_file),
        cmocka_unit_test_teardown(an_accepted_change_restarts_the_history, remove_file),
        cmocka_unit_test_teardown(pruning_keeps_annotations_and_what_they_are_of, remove_file),
        cmocka_unit_test_teardown(a_hash_alone_does_not_make_two_records_one, remove_file),
        cmocka_unit_test_teardown(tables_are_strict_and_stamped, remove_file),
        cmocka_unit_test_teardown(an_older_store_is_brought_up_to_date, remove_file),
        cmocka_unit_test_teardown(a_history_is_one_indexed_query, remove_file),
        cmocka_unit_test(days_are_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
