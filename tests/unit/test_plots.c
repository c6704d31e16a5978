/* SPDX-License-Identifier: Apache-2.0 */
/* plots/: published numbers, records that survive an interruption, rows, errors, expected rows. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plots/experiment.h"
#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "plots/published.h"
#include "plots/records.h"
#include "plots/report.h"
#include "support/file.h"

static char folder[] = "/tmp/scale4d-plots-XXXXXX";

static const char *path(const char *name)
{
    static char text[4][128];
    static int next;
    char *t = text[next++ % 4];
    snprintf(t, sizeof text[0], "%s/%s", folder, name);
    return t;
}

static const char *put(const char *name, const char *text)
{
    const char *file = path(name);
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    return file;
}

static char *get(const char *name)
{
    static char text[65536];
    FILE *in = fopen(path(name), "r");
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    return text;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

#define HEADER "source,machine,devices,model,system,metric,value,unit,provenance,note\n"

static const char published_csv[] = HEADER
    "arXiv 2502.08145,perlmutter,512,gpt-5b,AxoNN,sustained,80,PFLOP/s,unverified,\"recalled, "
    "\"\"not"
    "\"\" seen\"\n"
    "arXiv 2502.08145,perlmutter,1024,gpt-10b,AxoNN,sustained,200,PFLOP/s,read,abstract\n"
    "arXiv 2502.08145,perlmutter,1024,gpt-10b,AxoNN,peak_fraction,60,%,derived,\n";

static void test_published(void **state)
{
    (void)state;
    struct s4d_published_list list = {0};
    struct s4d_error err;
    assert_int_equal(s4d_published_read(&list, put("p.csv", published_csv), &err), 0);
    assert_int_equal(list.n, 3);
    const struct s4d_published *p = s4d_published_find(&list, "sustained", NULL, "gpt-5b", 512);
    assert_non_null(p);
    assert_string_equal(p->note, "recalled, \"not\" seen");
    assert_false(p->verified);
    p = s4d_published_find(&list, "peak_fraction", NULL, "gpt-10b", 1024);
    assert_non_null(p);
    assert_true(p->verified);
    assert_string_equal(p->note, "");
    assert_null(s4d_published_find(&list, "sustained", NULL, "gpt-10b", 512));
    s4d_published_free(&list);
}

static void refused(const char *text, const char *where, const char *what)
{
    struct s4d_published_list list = {0};
    struct s4d_error err = {0};
    assert_int_equal(s4d_published_read(&list, put("bad.csv", text), &err), -1);
    s4d_published_free(&list);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.where, where));
    if (strstr(err.text, what) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, what);
}

static void test_published_refused(void **state)
{
    (void)state;
    refused("", "bad.csv", "empty");
    refused("source,value\n", "bad.csv:1", "header");
    refused(HEADER "a,b,1,m,s,sustained,1,PFLOP/s,read\n", "bad.csv:2", "10 columns, got 9");
    refused(HEADER "a,b,1,m,s,sustained,1,PFLOP/s,read,\"x\n", "bad.csv:2", "quote");
    refused(HEADER "a,b,1,m,s,sustained,1,TFLOP/s,read,\n", "bad.csv:2", "PFLOP/s");
    refused(HEADER "a,b,1,m,s,speed,1,PFLOP/s,read,\n", "bad.csv:2", "metric");
    refused(HEADER "a,b,1,m,s,sustained,1k,PFLOP/s,read,\n", "bad.csv:2", "value");
    refused(HEADER "a,b,0,m,s,sustained,1,PFLOP/s,read,\n", "bad.csv:2", "devices");
    refused(HEADER "a,b,1,m,s,sustained,1,PFLOP/s,seen,\n", "bad.csv:2", "provenance");
}

/* A record as scale4d plot writes it: 2e14 FLOP/s a GPU is 2e14 / 312e12 of the peak. */
static json_t *record(const char *series, const char *workload, int gpus, double flops_per_s)
{
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:s, s:i, s:{s:f, s:f}, s:{s:s, s:s, s:i}}", "kind",
                     "simulate", "iteration_time_s", 2.0, "flops_per_s", flops_per_s,
                     "peak_fraction", flops_per_s / gpus / 312e12, "memory_peak_bytes", 3e10,
                     "grid", "2x2x2x64", "micro_batch", 4, "exposed_s", "compute", 1.5, "x", 0.5,
                     "experiment", "series", series, "workload", workload, "gpus", gpus);
}

static void test_records_survive(void **state)
{
    (void)state;
    struct s4d_records r = {0};
    struct s4d_error err;
    const char *file = path("r.jsonl");
    assert_int_equal(s4d_records_read(&r, file, &err), 0); /* no file yet */
    assert_int_equal(r.n, 0);
    assert_int_equal(s4d_records_append(&r, file, record("a", "m", 1, 1), &err), 0);
    assert_int_equal(s4d_records_append(&r, file, record("b", "m", 1, 2), &err), 0);
    s4d_records_free(&r);
    /* a run that was killed while it wrote */
    FILE *out = fopen(file, "a");
    fputs("{\"kind\": \"simul", out);
    fclose(out);
    assert_int_equal(s4d_records_read(&r, file, &err), 0);
    assert_int_equal(r.n, 2);
    assert_int_equal(s4d_records_write(&r, file, &err), 0); /* the half line is gone */
    s4d_records_free(&r);
    assert_int_equal(s4d_records_read(&r, file, &err), 0);
    assert_int_equal(s4d_records_append(&r, file, record("c", "m", 1, 3), &err), 0);
    s4d_records_free(&r);
    assert_int_equal(s4d_records_read(&r, file, &err), 0);
    assert_int_equal(r.n, 3);
    s4d_records_free(&r);
    /* nor does a half line, however long, spoil what is added behind it */
    out = fopen(file, "a");
    for (int i = 0; i < 3000; i++)
        fputs("{\"k\":", out);
    fclose(out);
    assert_int_equal(s4d_records_append(&r, file, record("d", "m", 1, 4), &err), 0);
    s4d_records_free(&r);
    assert_int_equal(s4d_records_read(&r, file, &err), 0);
    assert_int_equal(r.n, 4);
    s4d_records_free(&r);
    file = put("half.jsonl", "{\"nothing\": \"whole\"");
    assert_int_equal(s4d_records_append(&r, file, record("e", "m", 1, 5), &err), 0);
    s4d_records_free(&r);
    assert_int_equal(s4d_records_read(&r, file, &err), 0);
    assert_int_equal(r.n, 1);
    s4d_records_free(&r);
}

/* What no killed run left stays: a record without its newline, and what is none. */
static void test_records_behind_others(void **state)
{
    (void)state;
    static const char *const kept[] = {"{\"kind\": \"x\"}", "notes\nof mine",
                                       "{\"a\": 1}\n{\"b\": 2}"};
    for (int i = 0; i < 3; i++) {
        struct s4d_records r = {0};
        struct s4d_error err = {0};
        char *text;
        size_t n, before = strlen(kept[i]);
        const char *file = put("others.jsonl", kept[i]);
        assert_int_equal(s4d_records_append(&r, file, record("a", "m", 1, 1), &err), 0);
        s4d_records_free(&r);
        assert_int_equal(s4d_file_read(file, &text, &n, &err), 0);
        assert_memory_equal(text, kept[i], before);
        assert_int_equal(text[before], '\n');
        assert_int_equal(text[before + 1], '{');
        assert_ptr_equal(strchr(text + before + 1, '\n'), text + n - 1);
        free(text);
    }
}

/* As many bytes as a disk has left: nothing of a line that has no room stays. */
static void test_records_without_room(void **state)
{
    (void)state;
    struct s4d_records r = {0};
    struct s4d_error err = {0};
    struct stat about, after;
    struct rlimit before, small;
    const char *file = path("full.jsonl");
    assert_int_equal(s4d_records_append(&r, file, record("a", "m", 1, 1), &err), 0);
    assert_int_equal(stat(file, &about), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = (rlim_t)about.st_size + 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = s4d_records_append(&r, file, record("b", "m", 1, 2), &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    s4d_records_free(&r);
    assert_int_equal(stat(file, &after), 0);
    assert_int_equal(after.st_size, about.st_size);
}

static void test_records_refused(void **state)
{
    (void)state;
    struct s4d_records r = {0};
    struct s4d_error err = {0};
    const char *file = put("bad.jsonl", "{\"kind\": 1}\nnot json\n{}\n");
    assert_int_equal(s4d_records_read(&r, file, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.where, "bad.jsonl:2"));
    assert_non_null(strstr(err.text, "one JSON object a line: ")); /* and what was found */
    assert_non_null(strstr(err.text, " in column "));
    s4d_records_free(&r);
    assert_int_equal(s4d_records_write(&r, "/nonexistent/r.jsonl", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    assert_int_equal(s4d_records_append(&r, "/nonexistent/r.jsonl", record("a", "m", 1, 1), &err),
                     -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    s4d_records_free(&r);
}

static const char experiment_yaml[] = "title: Weak scaling\n"
                                      "machine: perlmutter\n"
                                      "tolerance_percent: 1\n"
                                      "global_batch: 8192\n"
                                      "assumed: [\"global batch: not printed\"]\n"
                                      "points:\n"
                                      "  - {workload: gpt-10b, gpus: 1024}\n"
                                      "  - {workload: gpt-5b, gpus: 512, recompute: none}\n"
                                      "series:\n"
                                      "  - {name: all, title: every overlap, overlap: all}\n";
static const char *const others[] = {"global_batch", "overlap", "recompute", NULL};

static void read_experiment(struct s4d_experiment *e)
{
    struct s4d_error err = {0};
    put("experiment.yaml", experiment_yaml);
    if (s4d_experiment_read(e, folder, others, &err))
        fail_msg("%s: %s", err.where, err.text);
}

static void test_experiment(void **state)
{
    (void)state;
    struct s4d_experiment e;
    read_experiment(&e);
    assert_string_equal(e.paper, "tmp");
    assert_string_equal(e.name, folder + 5);
    assert_string_equal(e.machine, "perlmutter");
    assert_int_equal(e.assumed.n, 1);
    assert_int_equal(e.n_points, 2);
    assert_int_equal(e.point[1].gpus, 512);
    assert_string_equal(s4d_yaml_get(e.point[1].node, "recompute")->text, "none");
    assert_int_equal(e.n_series, 1);
    assert_string_equal(e.series[0].title, "every overlap");
    s4d_experiment_free(&e);
}

static void experiment_refused(const char *text, const char *where, const char *what)
{
    struct s4d_experiment e;
    struct s4d_error err = {0};
    put("experiment.yaml", text);
    assert_int_equal(s4d_experiment_read(&e, folder, others, &err), -1);
    s4d_experiment_free(&e);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    if (strstr(err.where, where) == NULL || strstr(err.text, what) == NULL)
        fail_msg("'%s: %s' lacks '%s' or '%s'", err.where, err.text, where, what);
}

#define TOP    "title: T\nmachine: m\ntolerance_percent: 1\n"
#define POINTS "points: [{workload: w, gpus: 1}]\n"
#define SERIES "series: [{name: a, title: A}]\n"

static void test_experiment_refused(void **state)
{
    (void)state;
    experiment_refused(TOP POINTS SERIES "overlp: all\n", "experiment.yaml:6", "unknown key");
    experiment_refused("title: T\nmachine: m\n" POINTS SERIES, "experiment.yaml",
                       "tolerance_percent");
    experiment_refused(TOP SERIES, "experiment.yaml", "points");
    experiment_refused(TOP POINTS, "experiment.yaml", "series");
    experiment_refused(TOP "points: []\n" SERIES, "experiment.yaml:4: points", "at least one");
    experiment_refused(TOP "points: [3]\n" SERIES, "experiment.yaml:4", "mapping");
    experiment_refused(TOP "points: [{workload: w}]\n" SERIES, "experiment.yaml:4", "gpus");
    experiment_refused(TOP "points: [{workload: w, gpus: 4k}]\n" SERIES, "gpus", "4k");
    experiment_refused(TOP "points: [{workload: w, gpus: 1}, {workload: w, gpus: 1}]\n" SERIES,
                       "experiment.yaml:4", "twice");
    experiment_refused(TOP POINTS "series: [{name: a b, title: A}]\n", "name", "one word");
    experiment_refused(TOP POINTS "series: [{name: a, title: A}, {name: a, title: B}]\n",
                       "experiment.yaml:5", "second series");
    experiment_refused("- 1\n", "experiment.yaml:1", "mapping");
    experiment_refused(TOP POINTS "series: [{name: a, title: A, against: b}]\n", "against",
                       "another series");
    experiment_refused(TOP POINTS "series: [{name: a, title: A, against: a}]\n", "against",
                       "another series");
    experiment_refused(TOP "points: [{workload: w, gpus: 1, in_series: {a: {gpus: 2}}}]\n" SERIES,
                       "gpus", "another one");
}

struct scene {
    struct s4d_experiment e;
    struct s4d_published_list published;
    struct s4d_records records;
};

static void set_scene(struct scene *s)
{
    struct s4d_error err;
    *s = (struct scene){0};
    read_experiment(&s->e);
    assert_int_equal(s4d_published_read(&s->published, put("p.csv", published_csv), &err), 0);
    const char *file = path("scene.jsonl");
    unlink(file);
    assert_int_equal(
        s4d_records_append(&s->records, file, record("all", "gpt-5b", 512, 88e15), &err), 0);
    assert_int_equal(
        s4d_records_append(&s->records, file, record("all", "gpt-10b", 1024, 180e15), &err), 0);
}

static void clear_scene(struct scene *s)
{
    s4d_experiment_free(&s->e);
    s4d_published_free(&s->published);
    s4d_records_free(&s->records);
}

/* 180 of a published 200 PFLOP/s: 10 % too slow. 180e15 / 1024 / 312e12 = 56.34 % of the peak, of
 * a published 60 %: -6.10 %. 88 of 80, unverified: +10 %, in no mean. */
static void test_errors(void **state)
{
    (void)state;
    struct scene s;
    set_scene(&s);
    const struct s4d_published *p =
        s4d_published_find(&s.published, "sustained", NULL, "gpt-10b", 1024);
    const json_t *r = s4d_figure_record(&s.records, &s.e.series[0], &s.e.point[0]);
    assert_float_equal(s4d_figure_error(p, r), -10, 1e-9);
    p = s4d_published_find(&s.published, "peak_fraction", NULL, "gpt-10b", 1024);
    assert_float_equal(s4d_figure_error(p, r), -6.0998, 1e-4);
    assert_true(isnan(s4d_figure_error(NULL, r)));
    assert_true(isnan(s4d_figure_error(p, NULL)));
    struct s4d_error err;
    assert_int_equal(s4d_report(&s.e, &s.records, &s.published, path("report.md"), &err), 0);
    const char *report = get("report.md");
    assert_non_null(
        strstr(report, "| gpt-5b | 512 | sustained | 80 PFLOP/s | unverified | 88 | +10.0 % |"));
    assert_non_null(
        strstr(report, "| gpt-10b | 1024 | sustained | 200 PFLOP/s | read | 180 | -10.0 % |"));
    assert_non_null(
        strstr(report, "all: mean |error| of sustained FLOP/s 10.0 % over 1 verified point\n"));
    assert_non_null(strstr(report, "compute 75.0, x 25.0"));
    assert_non_null(strstr(report, "global batch: not printed"));
    assert_int_equal(s4d_report(&s.e, &s.records, &s.published, "/nonexistent/r.md", &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_OUTPUT);
    clear_scene(&s);
}

static void test_data(void **state)
{
    (void)state;
    struct scene s;
    struct s4d_error err;
    set_scene(&s);
    assert_int_equal(s4d_figure_data(&s.e, &s.records, &s.published, NULL, path("data.tsv"), &err),
                     0);
    assert_string_equal(
        get("data.tsv"),
        "series\tworkload\tgpus\tsustained_PFLOPs\tpeak_percent\tgrid\tmicro_batch\titeration_s\t"
        "provenance\n"
        "all\tgpt-5b\t512\t88\t55.088\t2x2x2x64\t4\t2\tsimulated\n"
        "all\tgpt-10b\t1024\t180\t56.34\t2x2x2x64\t4\t2\tsimulated\n"
        "published\tgpt-5b\t512\t80\tnan\t-\t0\tnan\tunverified\n"
        "published\tgpt-10b\t1024\t200\t60\t-\t0\tnan\tread\n");
    s.records.n--; /* a point without a record */
    assert_int_equal(s4d_figure_data(&s.e, &s.records, &s.published, NULL, path("d2.tsv"), &err),
                     -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "gpt-10b on 1024 GPUs"));
    s.records.n++;
    clear_scene(&s);
}

static void test_expected(void **state)
{
    (void)state;
    struct scene s;
    struct s4d_error err;
    set_scene(&s);
    char data[128];
    snprintf(data, sizeof data, "%s", path("data.tsv"));
    assert_int_equal(s4d_figure_data(&s.e, &s.records, &s.published, NULL, data, &err), 0);
    unlink(path("expected.tsv"));
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_int_equal(s4d_figure_expected(&s.e, data, true, &err), 0);
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), 0);
    char expected[4096];
    snprintf(expected, sizeof expected, "%s", get("expected.tsv"));
    assert_null(strstr(expected, "published\t"));

    /* 88 against 88.8 is within 1 %, against 89 it is not */
    char *number = strstr(expected, "\t88\t");
    assert_non_null(number);
    char changed[4160];
    snprintf(changed, sizeof changed, "%.*s\t88.8\t%s", (int)(number - expected), expected,
             number + 4);
    put("expected.tsv", changed);
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), 0);
    snprintf(changed, sizeof changed, "%.*s\t89\t%s", (int)(number - expected), expected,
             number + 4);
    put("expected.tsv", changed);
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_CHECK);
    assert_non_null(strstr(err.where, "expected.tsv:2"));

    /* another grid is a difference, and so is a row more or less */
    put("expected.tsv", expected);
    strstr(expected, "2x2x2x64")[0] = '4';
    put("expected.tsv", expected);
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), -1);
    strstr(expected, "4x2x2x64")[0] = '2';
    strrchr(expected, 'a')[0] = '\0'; /* cuts inside the last row */
    put("expected.tsv", expected);
    assert_int_equal(s4d_figure_expected(&s.e, data, false, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_CHECK);
    clear_scene(&s);
}

static void test_gnuplot(void **state)
{
    (void)state;
    struct s4d_error err;
    const char *data = put("it's.tsv", "1\t2\n2\t3\n");
    const char *script = put("good.gp", "plot data using 1:2 with lines\n");
    assert_int_equal(s4d_gnuplot(script, data, path("it's"), &err), 0);
    struct stat info;
    assert_int_equal(stat(path("it's.png"), &info), 0);
    assert_true(info.st_size > 0);
    assert_int_equal(stat(path("it's.svg"), &info), 0);
    assert_int_equal(stat(path("it's.pdf"), &info), 0);
    script = put("bad.gp", "plto data\n");
    assert_int_equal(s4d_gnuplot(script, data, path("bad"), &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DEVICE);
    assert_non_null(strstr(err.text, "plto"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_published_refused),
        cmocka_unit_test(test_records_survive),
        cmocka_unit_test(test_records_behind_others),
        cmocka_unit_test(test_records_without_room),
        cmocka_unit_test(test_records_refused),
        cmocka_unit_test(test_experiment),
        cmocka_unit_test(test_experiment_refused),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_expected),
        cmocka_unit_test(test_gnuplot),
    };
    return cmocka_run_group_tests_name("plots", tests, make_folder, remove_folder);
}
