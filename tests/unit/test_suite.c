/* SPDX-License-Identifier: Apache-2.0 */
/* A night's suite: its file, and the log of what was run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "real/suite.h"
#include "real/suite_log.h"
#include "support/memory.h"

struct config {
    char *workload;
    int iterations;
    bool preflight;
};
static const struct s4d_option options[] = {
    {.name = "workload", .type = S4D_OPT_TEXT, .offset = offsetof(struct config, workload)},
    {.name = "iterations",
     .type = S4D_OPT_INT,
     .offset = offsetof(struct config, iterations),
     .min = 1,
     .max = 100},
    {.name = "preflight", .type = S4D_OPT_FLAG, .offset = offsetof(struct config, preflight)},
    {.name = NULL},
};
static const struct s4d_option_group groups[] = {{.title = "Run", .options = options},
                                                 {.options = NULL}};
static const char *const refused[] = {"preflight", NULL};
static const struct config defaults = {.iterations = 10};
static const struct s4d_suite_options how = {groups, &defaults, sizeof defaults, refused};

static int make(struct s4d_suite *s, const char *text, struct s4d_error *err)
{
    struct s4d_yaml_node *root;
    *s = (struct s4d_suite){0};
    if (s4d_yaml_parse("n.yaml", text, strlen(text), &root, err))
        return -1;
    return s4d_suite_make(s, root, "n", &how, err);
}

/* What stands in an experiment goes over what stands at the top, that over the defaults; a key of
 * the suite is not one of what is run, whatever the tables say. */
static void test_reads(void **state)
{
    (void)state;
    struct s4d_suite s;
    struct s4d_error err;
    assert_int_equal(make(&s,
                          "time_limit: 90 s\nexperiment_time_limit: 20 s\nrepeats: 3\n"
                          "preflight: go-on\nmachine: m\nrates: false\nworkload: top\n"
                          "experiments:\n"
                          "  - {name: a}\n"
                          "  - {name: b, workload: own, iterations: 7, time_limit: 5 s}\n",
                          &err),
                     0);
    assert_string_equal(s.name, "n");
    assert_true(s.time_limit_s == 90 && s.repeats == 3 && !s.rates);
    assert_int_equal(s.preflight, S4D_SUITE_PREFLIGHT_GO_ON);
    assert_string_equal(s.machine, "m");
    assert_int_equal(s.n, 2);
    const struct config *a = s.v[0].config, *b = s.v[1].config;
    assert_string_equal(a->workload, "top");
    assert_string_equal(b->workload, "own");
    assert_int_equal(a->iterations, 10);
    assert_int_equal(b->iterations, 7);
    assert_false(a->preflight);
    assert_true(s.v[0].time_limit_s == 20 && s.v[1].time_limit_s == 5);
    s4d_suite_free(&s);
}

static void refuses(const char *text, const char *where, const char *what)
{
    struct s4d_suite s;
    struct s4d_error err = {0};
    assert_int_equal(make(&s, text, &err), -1);
    s4d_suite_free(&s);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, where);
    if (!strstr(err.text, what) && !strstr(err.hint, what))
        fail_msg("no '%s' in '%s' (%s)", what, err.text, err.hint);
}

static void test_refuses(void **state)
{
    (void)state;
    refuses("repeats: 3\n", "n.yaml:1", "the key experiments is missing");
    refuses("- a\n", "n.yaml:1", "expected keys and values");
    refuses("experiments: []\n", "n.yaml:1: experiments", "expected a list of 1 to");
    refuses("experiments: {name: a}\n", "n.yaml:1: experiments", "expected a list");
    refuses("experiments:\n  - a\n", "n.yaml:2", "expected keys and values");
    refuses("experiments:\n  - {workload: w}\n", "n.yaml:2", "the key name is missing");
    refuses("experiments:\n  - {name: ''}\n", "n.yaml:2: name", "expected a line");
    refuses("experiments:\n  - {name: a}\n  - {name: b}\n  - {name: a}\n", "n.yaml:4: name",
            "the first is in line 2");
    refuses("experiments:\n  - {name: a, iteration: 3}\n", "n.yaml:2: iteration",
            "did you mean iterations?");
    refuses("repeat: 3\nexperiments:\n  - {name: a}\n", "n.yaml:1: repeat",
            "did you mean repeats?");
    refuses("experiments:\n  - {name: a, repeats: 3}\n", "n.yaml:2: repeats", "unknown key");
    refuses("experiments:\n  - {name: a, preflight: true}\n", "n.yaml:2: preflight",
            "an experiment of a suite has none");
    refuses("experiments:\n  - {name: a, iterations: 4k}\n", "n.yaml:2: iterations",
            "expected an integer");
    refuses("repeats: 0\nexperiments:\n  - {name: a}\n", "n.yaml:1: repeats", "expected");
    refuses("time_limit: 90\nexperiments:\n  - {name: a}\n", "n.yaml:1: time_limit", "expected");
    refuses("preflight: maybe\nexperiments:\n  - {name: a}\n", "n.yaml:1: preflight", "go-on");
    refuses("name: \"a\\nb\"\nexperiments:\n  - {name: a}\n", "n.yaml:1: name", "one line");
}

static json_t *record(const char *kind, const char *experiment, int repeat, bool interrupted)
{
    return json_pack("{s:s, s:{s:s, s:s?, s:s, s:i}, s:b}", "kind", kind, "suite", "name", "n",
                     "experiment", experiment, "night", "2026-11-30", "repeat", repeat,
                     "interrupted", interrupted);
}

static int count(const struct s4d_suite_log *log, const char *kind, const char *experiment,
                 int repeat, enum s4d_suite_which which)
{
    return s4d_suite_log_count(log, "n", "2026-11-30", kind, experiment, repeat, which);
}

/* A last line without its end: what was never a record stays as it is, a whole record counts. */
static void test_last_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int records; /* -1: refused */
        const char *after;
    } files[] = {{"my notes", -1, "my notes"},
                 {"{}\nnotes, line 2", -1, "{}\nnotes, line 2"},
                 {"notes\n{\"kind\": \"tra", -1, "notes\n{\"kind\": \"tra"},
                 {"[1, 2]", -1, "[1, 2]"},
                 {"{}\n{\"kind\": \"tra", 1, "{}\n"},
                 {"{\"kind\": \"train\"}", 1, "{\"kind\": \"train\"}\n"},
                 {"", 0, ""}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[] = "/tmp/test_suite_XXXXXX", after[100] = "";
        struct s4d_suite_log log;
        struct s4d_error err;
        ssize_t n = (ssize_t)strlen(files[i].text);
        int fd = mkstemp(file);
        assert_true(write(fd, files[i].text, (size_t)n) == n);
        bool refused = files[i].records < 0;
        assert_int_equal(s4d_suite_log_open(&log, file, &err), refused ? -1 : 0);
        if (refused)
            assert_int_equal(err.exit, S4D_EXIT_DATA);
        else
            assert_int_equal((int)json_array_size(log.records), files[i].records);
        s4d_suite_log_close(&log);
        assert_true(pread(fd, after, sizeof after - 1, 0) >= 0);
        assert_string_equal(after, files[i].after);
        close(fd);
        unlink(file);
    }
}

static void test_log(void **state)
{
    (void)state;
    char file[] = "/tmp/test_suite_XXXXXX";
    struct s4d_suite_log log, other;
    struct s4d_error err;
    int fd = mkstemp(file);
    /* A line of another program, and half a one of a run that was killed. */
    assert_true(write(fd, "{\"kind\": \"other\"}\n{\"kind\": \"tra", 31) == 31);
    close(fd);
    assert_int_equal(s4d_suite_log_open(&log, file, &err), 0);
    assert_int_equal(s4d_suite_log_open(&other, file, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_non_null(strstr(err.text, "another scale4d-run nightly"));
    s4d_suite_log_close(&other);
    assert_null(s4d_suite_log_night(&log, "n"));
    json_t *r[4] = {record("train", "a", 1, false), record("train", "a", 2, true),
                    record("failure", "b", 1, false), record("preflight", NULL, 0, false)};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(s4d_suite_log_add(&log, r[i], &err), 0);
        json_decref(r[i]);
    }
    json_t *state_of = json_pack("{s:s}", "experiment", "b");
    assert_int_equal(s4d_suite_log_run(&log, state_of, &err), 0);
    json_decref(state_of);
    s4d_suite_log_close(&log);

    assert_int_equal(s4d_suite_log_open(&log, file, &err), 0);
    assert_int_equal((int)json_array_size(log.records), 5);
    assert_string_equal(s4d_suite_log_night(&log, "n"), "2026-11-30");
    assert_int_equal(count(&log, "train", "a", 0, S4D_SUITE_ANY), 2);
    assert_int_equal(count(&log, "train", "a", 0, S4D_SUITE_WHOLE), 1);
    assert_int_equal(count(&log, "train", "a", 2, S4D_SUITE_INTERRUPTED), 1);
    assert_int_equal(count(&log, "train", "a", 1, S4D_SUITE_INTERRUPTED), 0);
    assert_int_equal(count(&log, "failure", "a", 0, S4D_SUITE_ANY), 0);
    assert_int_equal(count(&log, NULL, "b", 0, S4D_SUITE_ANY), 1);
    assert_int_equal(count(&log, "preflight", NULL, 0, S4D_SUITE_ANY), 1);
    assert_int_equal(s4d_suite_log_count(&log, "n", "2026-12-01", NULL, "a", 0, S4D_SUITE_ANY), 0);
    json_t *found = s4d_suite_log_state(&log);
    assert_string_equal(json_string_value(json_object_get(found, "experiment")), "b");
    json_decref(found);
    assert_int_equal(s4d_suite_log_end(&log, &err), 0);
    assert_null(s4d_suite_log_state(&log));
    assert_true(s4d_suite_log_last(&log));
    assert_false(s4d_suite_log_last(&log));
    s4d_suite_log_close(&log);

    FILE *out = fopen(file, "a");
    fputs("nonsense\n", out);
    fclose(out);
    assert_int_equal(s4d_suite_log_open(&log, file, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.where, ":6"));
    s4d_suite_log_close(&log);
    unlink(file);
    assert_int_equal(s4d_suite_log_open(&log, "/nonexistent/folder/f", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    s4d_suite_log_close(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_last_line),
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
