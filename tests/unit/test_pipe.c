/* SPDX-License-Identifier: Apache-2.0 */
/* Messages and batches simulated: closed forms by hand, folded and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/executor.h"
#include "sim/explain.h"
#include "sim/isolate.h"
#include "sim/scenario.h"
#include "support/memory.h"
#include "tests/lib/pipe.h"

struct scene {
    enum pipe_pattern pattern;
    bool batched, stepwise;
    const char *machine;
    struct s4d_grid grid;
    int n, ranks, most_ops;
};

/* Of one simulation: end times of both iterations, [rank][iteration][op]; NaN: none. */
struct listener {
    const struct s4d_system *system;
    double *start_s, *end_s; /* by rank class */
    int ops;
};

static void on_start(void *context, int rank_class, int op, int iteration, double start_s)
{
    struct listener *l = context;
    l->start_s[(rank_class * 2 + iteration) * l->ops + op] = start_s;
}

static void on_end(void *context, int rank_class, int op, int iteration, double end_s)
{
    struct listener *l = context;
    l->end_s[(rank_class * 2 + iteration) * l->ops + op] = end_s;
}

static size_t times(const struct scene *s)
{
    return (size_t)(s->ranks * 2 * s->most_ops);
}

static int simulate(const struct scene *s, const struct s4d_cluster *cluster,
                    const struct s4d_machine *m, const struct s4d_program *p, bool fold,
                    double *out, struct s4d_error *err)
{
    struct s4d_system system;
    struct s4d_run run;
    struct s4d_kernels kernels = {m};
    if (s4d_system_create(&system, cluster, p, ~0u, fold, err))
        return -1;
    size_t n = times(s);
    double *both = s4d_malloc(2 * n * sizeof *both);
    for (size_t i = 0; i < 2 * n; i++)
        both[i] = NAN;
    struct listener l = {&system, both, both + n, s->most_ops};
    struct s4d_observer observer = {.ended = on_end, .started = on_start, .context = &l};
    int rc = s4d_execute_observed(&system, p, &kernels, &observer, &run, err);
    size_t row = 2 * (size_t)s->most_ops;
    for (int r = 0; r < s->ranks && rc == 0; r++) {
        size_t from = (size_t)system.class_of_rank[r] * row;
        memcpy(out + (size_t)r * row, l.start_s + from, row * sizeof *out);
        memcpy(out + n + (size_t)r * row, l.end_s + from, row * sizeof *out);
    }
    out[2 * n] = system.n_ranks;
    free(both);
    s4d_system_free(&system);
    return rc;
}

static int job(void *context, int index, void *result, struct s4d_error *err)
{
    const struct scene *s = context;
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    struct s4d_machine m;
    struct s4d_cluster cluster;
    struct pipe pipe;
    if (s4d_machine_load(&m, s->machine, NULL, 0, err))
        return -1;
    pipe_make(&pipe, s->pattern, &s->grid, s->n, s->batched);
    int rc = s4d_scenario_cluster(&cluster, &m, s->ranks, &scenario, err);
    if (rc == 0) {
        rc = simulate(s, &cluster, &m, &pipe.program[0], index == 1, result, err);
        s4d_cluster_destroy(&cluster);
    }
    s4d_scenario_free(&scenario);
    pipe_free(&pipe);
    s4d_machine_free(&m);
    return rc;
}

/* Start and end of every op by rank, unfolded, which equals folded to 1e-9; *classes of ranks then.
 * Caller frees. */
static double *run(struct scene *s, int *classes)
{
    struct s4d_error errors[2];
    s->ranks = s4d_grid_ranks(&s->grid);
    s->most_ops = 8;
    size_t n = 2 * times(s) + 1;
    double *both = s4d_malloc(2 * n * sizeof *both);
    if (s4d_isolated(job, s, 2, 2, both, n * sizeof *both, errors, NULL) != 0) {
        const struct s4d_error *e = errors[0].exit ? &errors[0] : &errors[1];
        fail_msg("%s: %s", e->where, e->text);
    }
    for (size_t i = 0; i + 1 < n; i++) {
        double full = both[i], folded = both[n + i];
        if (isnan(full) != isnan(folded) || fabs(full - folded) > 1e-9 * fabs(full))
            fail_msg("time %d: %.15g, folded %.15g", (int)i, full, folded);
    }
    assert_true(both[n - 1] == s->ranks);
    *classes = (int)both[2 * n - 1];
    return both;
}

static double end_of(const struct scene *s, const double *t, int rank, int iteration, int op)
{
    return t[times(s) + (size_t)((rank * 2 + iteration) * s->most_ops + op)];
}

static double start_of(const struct scene *s, const double *t, int rank, int iteration, int op)
{
    return t[(rank * 2 + iteration) * s->most_ops + op];
}

static void near(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-9 * expected))
        fail_msg("expected %.12g, found %.12g", expected, found);
}

#define SWITCH                                                                                     \
    "synthetic:topology=single-switch,nodes=16,devices_per_node=1,nic=50GB/s,latency=2us,"         \
    "peak=100TFLOP/s"

static struct s4d_grid grid_of(int stages, int z)
{
    struct s4d_grid grid = s4d_grid_make(1, 1, z, 1);
    grid.size[S4D_PIPE] = stages;
    return grid;
}

/* Ring: computing is free on this machine. Every rank sends 4 * 10^6 numbers, 16 MB, out of its own
 * NIC into the next one's, and receives as many: all messages go on at once, at 50 GB/s both ways:
 * 2 us + 16e6 / 50e9 s = 322 us an iteration, whatever the number of stages. */
static void test_ring(void **state)
{
    (void)state;
    for (int stages = 2; stages <= 4; stages += 2)
        for (int z = 1; z <= 4; z += 3) {
            struct scene s = {.pattern = PIPE_RING,
                              .batched = true,
                              .machine = SWITCH,
                              .grid = grid_of(stages, z),
                              .n = 4000000};
            int classes;
            double *t = run(&s, &classes);
            for (int r = 0; r < s.ranks; r++)
                for (int op = 0; op < 2; op++) {
                    assert_true(start_of(&s, t, r, 0, op) == 0);
                    near(end_of(&s, t, r, 0, op), 322e-6);
                    near(end_of(&s, t, r, 1, op), 644e-6);
                }
            assert_int_equal(classes, stages); /* ranks of a stage are alike */
            free(t);
        }
}

/* Both, of four stages: forward 16 MB, backward 2 MB in the same direction of other NICs: stage 1
 * sends 18 MB through its NIC, and so does stage 2; both messages share it until the small one is
 * through. Max-min: 25 GB/s each. Small: 2 MB in 80 us; then the large one, of which 14 MB are
 * left, has the NIC for itself: 280 us. Stage 0 sends only forward, into stage 1's NIC, into which
 * stage 2 sends backward: the same there. So every message of 16 MB ends at 2 + 80 + 280 = 362 us,
 * but from stage 2 to 3, out of whose NIC comes what stage 2 sends backward, too: also 362. The
 * batch of stage 3, which receives forward and sends backward, ends then as well; all do. */
static void test_both(void **state)
{
    (void)state;
    struct scene s = {.pattern = PIPE_BOTH,
                      .batched = true,
                      .machine = SWITCH,
                      .grid = grid_of(4, 2),
                      .n = 4000000};
    int classes;
    double *t = run(&s, &classes);
    for (int r = 0; r < s.ranks; r++) {
        int stage = r / 2, batch = stage == 0 || stage == 3 ? 2 : 4;
        for (int op = 1; op <= batch; op++) {
            assert_true(start_of(&s, t, r, 0, op) == 0);
            near(end_of(&s, t, r, 0, op), 362e-6); /* the whole batch at once */
            near(end_of(&s, t, r, 1, op), 724e-6);
        }
    }
    assert_int_equal(classes, 4);
    free(t);
}

/* Lines: a message after another down the pipe, 16 MB and 322 us each, and back, 2 MB and 42 us.
 * Stage s of four has its numbers after 322 s us; stage 3 sends back at 966 us, and what stage s
 * then receives is there after 966 + 42 (3 - s) us. */
static void test_lines(void **state)
{
    (void)state;
    struct scene s = {
        .pattern = PIPE_LINES, .machine = SWITCH, .grid = grid_of(4, 2), .n = 4000000};
    int classes;
    double *t = run(&s, &classes);
    for (int r = 0; r < s.ranks; r++) {
        int stage = r / 2;
        if (stage > 0)
            near(end_of(&s, t, r, 0, 0), 322e-6 * stage);
        if (stage < 3)
            near(end_of(&s, t, r, 0, stage > 0 ? 3 : 1), (966 + 42 * (3 - stage)) * 1e-6);
    }
    assert_int_equal(classes, 4);
    free(t);
}

/* Four stages of two on nodes of four, where not all ranks of a stage are alike, with NCCL's
 * constants: folded as unfolded, which run() checks. */
static void test_folded(void **state)
{
    (void)state;
    static const char *const machines[] = {"perlmutter", "frontier", "alps"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        for (int pattern = 0; pattern < PIPE_SUMS; pattern++) {
            struct scene s = {.pattern = (enum pipe_pattern)pattern,
                              .batched = true,
                              .machine = machines[i],
                              .grid = grid_of(4, 4),
                              .n = 400000};
            int classes;
            double *t = run(&s, &classes);
            assert_in_range(classes, 4, 16);
            assert_true(end_of(&s, t, 0, 1, 0) > 10e-6);
            free(t);
        }
}

static void expect(struct scene s, int exit, const char *text)
{
    struct s4d_error errors[1];
    s.ranks = s4d_grid_ranks(&s.grid);
    s.most_ops = 8;
    double *t = s4d_malloc((2 * times(&s) + 1) * sizeof *t);
    assert_int_not_equal(
        s4d_isolated(job, &s, 1, 1, t, (2 * times(&s) + 1) * sizeof *t, errors, NULL), 0);
    assert_int_equal(errors[0].exit, exit);
    if (!strstr(errors[0].text, text))
        fail_msg("expected '%s', got '%s'", text, errors[0].text);
    free(t);
}

/* All send first. And what is not simulated says so. */
static void test_errors(void **state)
{
    (void)state;
    struct scene ring = {.pattern = PIPE_RING, .machine = SWITCH, .grid = grid_of(4, 1), .n = 16};
    expect(
        ring, S4D_EXIT_BUG,
        "deadlock: rank 0, iteration 0: send numbers (forward), op 0 of stream p2p-forward waits "
        "for rank 1, which does not receive it");
    struct scene sums = {.pattern = PIPE_SUMS,
                         .batched = true,
                         .machine = SWITCH,
                         .grid = s4d_grid_make(1, 2, 1, 1),
                         .n = 16};
    expect(sums, S4D_EXIT_DATA, "batch 1: a batch of more than one collective cannot be simulated");
}

/* Links, critical path, timeline and summary are of one program: of several it is said at once. */
static void test_not_explained(void **state)
{
    (void)state;
    struct s4d_grid grid = grid_of(2, 1);
    struct s4d_scenario scenario = {.placement = {.seed = 1}};
    struct s4d_error err = {0};
    struct s4d_machine m;
    struct s4d_cluster cluster;
    struct s4d_system system;
    struct s4d_run run;
    struct pipe pipe;
    assert_int_equal(s4d_machine_load(&m, SWITCH, NULL, 0, &err), 0);
    assert_int_equal(s4d_scenario_cluster(&cluster, &m, 2, &scenario, &err), 0);
    pipe_make(&pipe, PIPE_RING, &grid, 16, true);
    assert_int_equal(s4d_system_create(&system, &cluster, &pipe.program[1], ~0u, true, &err), 0);
    struct s4d_explain wanted = {.summary = stdout};
    struct s4d_kernels kernels = {&m};
    assert_int_equal(
        s4d_execute_explained(&system, &pipe.program[1], &kernels, &wanted, &run, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_non_null(strstr(err.text, "a pipe of 2 stages with programs of their own"));
    assert_string_not_equal(err.hint, "");
    s4d_system_free(&system);
    pipe_free(&pipe);
    s4d_cluster_destroy(&cluster);
    s4d_scenario_free(&scenario);
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),   cmocka_unit_test(test_both),
        cmocka_unit_test(test_lines),  cmocka_unit_test(test_folded),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_not_explained)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
