/* SPDX-License-Identifier: Apache-2.0 */
/* What happened: bytes of every link against closed forms, folded against unfolded, and the
 * critical path, whose steps follow each other without a gap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schedule/build.h"
#include "sim/isolate.h"
#include "sim/simulate.h"
#include "support/memory.h"

static const char single_switch[] =
    "synthetic:topology=single-switch,nodes=64,devices_per_node=1,nic=25GB/s,latency=2us,"
    "peak=100TFLOP/s,memory_bandwidth=1TB/s";
static const char dragonfly[] =
    "synthetic:topology=dragonfly,nodes=128,devices_per_node=4,link=100GB/s,nic=25GB/s,"
    "latency=2us,peak=100TFLOP/s,memory_bandwidth=1TB/s,library=nccl,groups=16,nodes_per_group=8,"
    "switches_per_group=4,switches_per_node=2,local_links_per_switch=6,"
    "global_links_per_group=16,link_bandwidth_Bps=25GB/s";

struct link {
    char name[64], kind[32];
    double capacity_Bps, bytes, busy_s, mean_use, peak_use;
};

struct step {
    char start_ms[32], end_ms[32], stream[16], op[32], cause[16];
    double time_us;
    int rank, last_rank;
};

struct outcome {
    struct s4d_result result;
    double bus_bytes[S4D_STREAMS];
    struct link *link;
    int n_links, cap_links;
    struct step *step;
    int n_steps, cap_steps;
    json_t *summary;
};

static void give_up(const struct s4d_error *err)
{
    fail_msg("%s: %s", err->where, err->text);
}

/* Lines that are neither comments nor the heads of the columns. */
static bool next_line(FILE *in, char *line, int size, bool *first)
{
    while (fgets(line, size, in)) {
        if (line[0] == '#')
            continue;
        if (!*first)
            return true;
        *first = false;
    }
    return false;
}

static void read_links(struct outcome *o, const char *file)
{
    FILE *in = fopen(file, "r");
    char line[512];
    bool first = true;
    assert_non_null(in);
    while (next_line(in, line, sizeof line, &first)) {
        struct link l;
        assert_int_equal(sscanf(line, "%63[^\t]\t%31[^\t]\t%*[^\t]\t%lf\t%lf\t%lf\t%lf\t%lf",
                                l.name, l.kind, &l.capacity_Bps, &l.bytes, &l.busy_s, &l.mean_use,
                                &l.peak_use),
                         7);
        s4d_push(o->link, o->n_links, o->cap_links, l);
    }
    fclose(in);
}

static void read_steps(struct outcome *o, const char *file)
{
    FILE *in = fopen(file, "r");
    char line[512];
    bool first = true;
    assert_non_null(in);
    while (next_line(in, line, sizeof line, &first)) {
        struct step s;
        assert_int_equal(sscanf(line,
                                "%31[^\t]\t%31[^\t]\t%lf\t%d\t%15[^\t]\t%*[^\t]\t%*[^\t]\t%*[^\t]\t"
                                "%31[^\t]\t%*[^\t]\t%15[^\t]\t%d",
                                s.start_ms, s.end_ms, &s.time_us, &s.rank, s.stream, s.op, s.cause,
                                &s.last_rank),
                         8);
        s4d_push(o->step, o->n_steps, o->cap_steps, s);
    }
    fclose(in);
}

/* Simulates with everything asked for; `overlap` in the options' letters. */
static void explain(struct outcome *o, const char *machine, const char *grid_text, bool fold,
                    int micro_batches)
{
    struct s4d_machine m;
    struct s4d_workload w;
    struct s4d_grid grid = s4d_grid_make(1, 1, 1, 1);
    struct s4d_error err = {0};
    char links[] = "/tmp/test_explain.XXXXXX", path[] = "/tmp/test_explain.XXXXXX";
    if (s4d_machine_load(&m, machine, NULL, 0, &err) || s4d_workload_load(&w, "gpt-tiny", &err) ||
        s4d_grid_parse(grid_text, &grid, &err))
        give_up(&err);
    close(mkstemp(links));
    close(mkstemp(path));
    m.device.launch_s.value = 3e-6;
    struct s4d_explain wanted = {.links = links, .critical_path = path, .summary = tmpfile()};
    struct s4d_simulation s = {.machine = &m,
                               .workload = &w,
                               .gpus = s4d_grid_ranks(&grid),
                               .grid = grid,
                               .options = s4d_options_default(),
                               .fold = fold,
                               .workers = 1,
                               .explain = &wanted};
    s.options.micro_batch = 1;
    s.options.global_batch = micro_batches * grid.size[S4D_Z] * grid.size[S4D_DATA];
    *o = (struct outcome){0};
    assert_non_null(wanted.summary);
    if (s4d_simulate(&s, &o->result, &err))
        give_up(&err);
    memcpy(o->bus_bytes, o->result.bus_bytes, sizeof o->bus_bytes);
    read_links(o, links);
    read_steps(o, path);
    rewind(wanted.summary);
    o->summary = json_loadf(wanted.summary, 0, NULL);
    assert_non_null(o->summary);
    fclose(wanted.summary);
    remove(links);
    remove(path);
    s4d_workload_free(&w);
    s4d_machine_free(&m);
}

static void release(struct outcome *o)
{
    free(o->link);
    free(o->step);
    json_decref(o->summary);
}

static void near(double got, double expected, double part, const char *what)
{
    if (!(fabs(got - expected) <= part * fabs(expected)))
        fail_msg("%s: expected %.15g, got %.15g", what, expected, got);
}

static double total_bus_bytes(const struct outcome *o)
{
    double bytes = 0;
    for (int s = 0; s < S4D_STREAMS; s++)
        bytes += o->bus_bytes[s];
    return bytes;
}

/* One device a node and one ring a group: each NIC sends and receives what nccl-tests calls the bus
 * bytes of its rank's collectives: (p-1)/p n of a gather or scatter, 2(p-1)/p n of an all-reduce.
 * All of it is moved in the window, so mean use * capacity * window is the same number. */
static void test_bytes(void **state)
{
    (void)state;
    static const char *const grids[] = {"1x1x4x1", "1x1x1x4", "2x1x1x1",
                                        "1x2x1x1", "2x2x2x2", "1x4x2x2"};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        struct outcome o;
        explain(&o, single_switch, grids[g], true, 2);
        double expected = total_bus_bytes(&o), window_s = o.result.run.iteration_time_s;
        assert_true(expected > 0);
        assert_int_equal(o.n_links, 2 * s4d_grid_ranks(&o.result.grid));
        for (int i = 0; i < o.n_links; i++) {
            const struct link *l = &o.link[i];
            near(l->bytes, expected, 1e-9, l->name);
            near(l->mean_use * l->capacity_Bps * window_s, expected, 1e-6, l->name);
            assert_true(l->peak_use > 0.999 && l->peak_use <= 1);
            assert_true(l->busy_s > 0.999 * l->bytes / l->capacity_Bps && l->busy_s <= window_s);
        }
        release(&o);
    }
}

/* From the ops alone: around a ring of four, of each block of an all-gather or reduce-scatter three
 * copies pass every NIC ((p-1)/p of p blocks), of an all-reduce's buffer 2 * 3/4. */
static void test_ring_of_four(void **state)
{
    (void)state;
    struct outcome o;
    struct s4d_workload w;
    struct s4d_program p;
    struct s4d_error err = {0};
    struct s4d_grid grid = s4d_grid_make(1, 1, 4, 1);
    struct s4d_options options = s4d_options_default();
    options.micro_batch = 1;
    options.global_batch = 4;
    explain(&o, single_switch, "1x1x4x1", true, 1);
    if (s4d_workload_load(&w, "gpt-tiny", &err) || s4d_build(&p, &w.model, &grid, &options, &err))
        give_up(&err);
    double expected = 0;
    for (int i = 0; i < p.n_ops; i++) {
        const struct s4d_op *op = &p.ops[i];
        if (s4d_op_kinds[op->kind].op_class != S4D_CLASS_COLLECTIVE ||
            op->c.collective.members == 1)
            continue;
        double size = s4d_type_bytes[op->c.collective.type];
        double count = (double)op->c.collective.count; /* of a member: of the block, or buffer */
        assert_int_equal(op->c.collective.members, 4);
        expected += op->kind == S4D_OP_ALL_REDUCE ? 2 * 3 / 4.0 * count * size : 3 * count * size;
    }
    near(o.link[0].bytes, expected, 1e-12, o.link[0].name);
    s4d_program_free(&p);
    s4d_workload_free(&w);
    release(&o);
}

static void check_path(const struct outcome *o)
{
    double sum_us = 0;
    assert_true(o->n_steps > 10);
    assert_string_equal(o->step[0].start_ms, "0.000000000");
    for (int i = 0; i < o->n_steps; i++) {
        const struct step *s = &o->step[i];
        sum_us += s->time_us;
        if (i > 0) {
            assert_string_equal(s->start_ms, o->step[i - 1].end_ms);
            assert_int_equal(s->last_rank, o->step[i - 1].rank);
        }
    }
    assert_string_equal(o->step[o->n_steps - 1].op, "adamw");
    /* exactly, but for the last digit printed */
    double rest_us = sum_us - 1e6 * o->result.run.iteration_time_s;
    assert_true(fabs(rest_us) <= 1e-6 * o->n_steps);
}

static double sum_of(const json_t *array)
{
    double sum = 0;
    size_t i;
    json_t *part;
    json_array_foreach((json_t *)array, i, part) sum +=
        json_number_value(json_object_get(part, "time_s"));
    return sum;
}

/* The steps follow each other, and stand for all of the iteration; so do both summaries. */
static void test_critical_path(void **state)
{
    (void)state;
    static const char *const grids[] = {"1x1x1x1", "2x2x2x2", "4x1x4x1"};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (int dragon = 0; dragon < 2; dragon++) {
            struct outcome o;
            explain(&o, dragon ? dragonfly : single_switch, grids[g], true, 3);
            check_path(&o);
            const json_t *path = json_object_get(o.summary, "critical_path");
            double t_s = o.result.run.iteration_time_s;
            near(sum_of(json_object_get(path, "by_stream")), t_s, 1e-12, "by stream");
            near(sum_of(json_object_get(path, "by_op")), t_s, 1e-12, "by op");
            near(sum_of(json_object_get(path, "by_rank")), t_s, 1e-12, "by rank");
            /* The mean over groups that are all alike is what the stream of any rank works. */
            const json_t *bounds = json_object_get(o.summary, "bounds");
            for (size_t i = 0; i < json_array_size(bounds) && !dragon; i++) {
                const json_t *bound = json_array_get(bounds, i);
                const char *name = json_string_value(json_object_get(bound, "stream"));
                for (int s = 0; s < S4D_STREAMS; s++)
                    if (strcmp(s4d_streams[s].name, name) == 0)
                        near(sum_of(json_object_get(bound, "by_links")), o.result.run.busy_s[s],
                             1e-9, name);
            }
            release(&o);
        }
}

/* With one device nothing is waited for: the path is the compute stream. With a network so slow
 * that computing does not count, the streams of communication are nearly all of it. */
static void test_extremes(void **state)
{
    (void)state;
    struct outcome o;
    explain(&o, single_switch, "1x1x1x1", true, 2);
    for (int i = 0; i < o.n_steps; i++)
        assert_string_equal(o.step[i].stream, "compute");
    release(&o);
    explain(&o,
            "synthetic:topology=single-switch,nodes=64,devices_per_node=1,nic=1MB/s,latency=2us,"
            "peak=100TFLOP/s",
            "1x2x1x1", true, 2);
    double communicating_us = 0;
    for (int i = 0; i < o.n_steps; i++)
        communicating_us += strcmp(o.step[i].stream, "compute") != 0 ? o.step[i].time_us : 0;
    assert_true(communicating_us > 0.99e6 * o.result.run.iteration_time_s);
    const json_t *bounds = json_object_get(o.summary, "bounds");
    const json_t *y = json_array_get(bounds, 0);
    assert_string_equal(json_string_value(json_object_get(y, "stream")), "y");
    const json_t *first = json_array_get(json_object_get(y, "by_links"), 0);
    char *links = json_dumps(json_object_get(first, "links"), JSON_COMPACT);
    assert_string_equal(links, "[\"nic-out\",\"nic-in\"]");
    free(links);
    release(&o);
}

/* The mean over a stream's groups of what holds it up, by the kinds of links. */
static void same_bounds(const json_t *a, const json_t *b)
{
    assert_int_equal(json_array_size(a), json_array_size(b));
    for (size_t i = 0; i < json_array_size(a); i++) {
        const json_t *x = json_array_get(a, i), *y = json_array_get(b, i);
        assert_string_equal(json_string_value(json_object_get(x, "stream")),
                            json_string_value(json_object_get(y, "stream")));
        assert_int_equal(json_integer_value(json_object_get(x, "groups")),
                         json_integer_value(json_object_get(y, "groups")));
        near(sum_of(json_object_get(x, "by_links")), sum_of(json_object_get(y, "by_links")), 1e-9,
             json_string_value(json_object_get(x, "stream")));
    }
}

static void test_folded_as_unfolded(void **state)
{
    (void)state;
    static const char *const grids[] = {"2x2x4x4", "1x1x32x2", "4x2x2x1"};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        struct outcome folded, full;
        explain(&folded, dragonfly, grids[g], true, 2);
        explain(&full, dragonfly, grids[g], false, 2);
        assert_true(folded.result.gpu_classes < full.result.gpu_classes);
        assert_int_equal(folded.n_links, full.n_links);
        for (int i = 0; i < full.n_links; i++) {
            const struct link *a = &folded.link[i], *b = &full.link[i];
            assert_string_equal(a->name, b->name);
            near(a->bytes, b->bytes, 1e-9, a->name);
            near(a->busy_s, b->busy_s, 1e-7, a->name);
            near(a->mean_use, b->mean_use, 1e-7, a->name);
            near(a->peak_use, b->peak_use, 1e-6, a->name);
        }
        check_path(&full);
        check_path(&folded);
        same_bounds(json_object_get(folded.summary, "bounds"),
                    json_object_get(full.summary, "bounds"));
        release(&folded);
        release(&full);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_ring_of_four),
        cmocka_unit_test(test_critical_path),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_folded_as_unfolded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
