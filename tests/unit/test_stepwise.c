/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives message by message against numbers worked by hand, and against the coupled flows that
 * they check. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/collective/measure.h"
#include "sim/isolate.h"
#include "tests/lib/quad.h"

static void assert_relative(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* --- a ring of four edges, 1 GB an edge, and two other flows ------------------------------- */

enum { EDGES = 4, COUPLED = 0 };

/* A ring all-gather of four members, edge i over link i of Bps[i]. Flow B (b_B bytes) runs on edge
 * 0 from the start, flow C (c_B) on edge 2 from c_s on. */
struct contest {
    double Bps[EDGES], b_B, c_B, c_s, latency_s;
    int passes; /* COUPLED: one flow over all edges instead */
};
struct ends {
    double ring_s, b_s;
};
struct contesting {
    const struct contest *c;
    struct s4d_engine *engine;
    struct ends *ends;
};

enum { TAG_RING, TAG_B, TAG_C };

static void on_end(void *context, int tag)
{
    struct contesting *x = context;
    if (tag != TAG_C)
        *(tag == TAG_RING ? &x->ends->ring_s : &x->ends->b_s) = s4d_engine_now_s(x->engine);
}

static void start_c(void *context, int tag)
{
    struct contesting *x = context;
    (void)tag;
    s4d_engine_start(x->engine, 2, x->c->c_B, on_end, x, TAG_C);
}

static int contest_job(void *context, int index, void *result, struct s4d_error *err)
{
    struct contesting x = {.c = context, .engine = s4d_engine_create(), .ends = result};
    struct s4d_edge edge[EDGES] = {{0, 1, false}, {1, 2, false}, {2, 3, false}, {3, 0, false}};
    struct s4d_channel channel = {.share = 1, .edge = edge, .n_edges = EDGES};
    struct s4d_channels ring = {.algorithm = &s4d_ring, .n = 1, .channel = &channel, .members = 4};
    struct s4d_cost cost = {.volume_B = 1e9, .latency_s = x.c->latency_s, .efficiency = 1};
    struct s4d_passes passes = {.fixed = x.c->passes};
    struct s4d_messages messages;
    struct s4d_sending sending = {0};
    (void)index, (void)err;
    for (int i = 0; i < EDGES; i++)
        s4d_engine_link(x.engine, x.c->Bps[i]);
    for (int i = 0; i < EDGES; i++)
        s4d_engine_flow(x.engine, &i, (int[]){1}, 1);
    int whole = s4d_engine_flow(x.engine, (int[]){0, 1, 2, 3}, (int[]){1, 1, 1, 1}, EDGES);
    s4d_engine_seal(x.engine);
    s4d_messages_create(&messages, &ring, S4D_OP_ALL_GATHER, &cost);
    for (int i = 0; i < EDGES; i++)
        messages.edge[i].flow = i;
    if (x.c->passes == COUPLED)
        s4d_engine_start(x.engine, whole, cost.volume_B, on_end, &x, TAG_RING);
    else
        s4d_sending_start(&sending, x.engine, &messages, &cost, &passes, on_end, &x, TAG_RING);
    if (x.c->b_B > 0)
        s4d_engine_start(x.engine, 0, x.c->b_B, on_end, &x, TAG_B);
    if (x.c->c_B > 0)
        s4d_engine_timer(x.engine, x.c->c_s, start_c, &x, 0);
    s4d_engine_run(x.engine);
    s4d_sending_free(&sending);
    s4d_messages_free(&messages);
    s4d_engine_destroy(x.engine);
    return 0;
}

static struct ends contest(struct contest c, int passes)
{
    struct ends ends = {0};
    struct s4d_error err = {0};
    c.passes = passes;
    if (s4d_isolated(contest_job, &c, 1, 1, &ends, sizeof ends, &err, NULL))
        fail_msg("%s: %s", err.where, err.text);
    return ends;
}

/* Edge 1 has 10 GB/s, the others 50, and B has 1 GB. The ring is as slow as edge 1: 100 ms. Coupled
 * it takes 10 GB/s of edge 0, so B ends after 25 ms. Blocks are 1/3 GB. In blocks edge 0 is three
 * ahead of edge 1 before it must wait, which is all: B shares with it to the end, 40 ms. Cut in N,
 * a message is 1/(3N) GB, 100/(3N) ms on edge 1, 20/(3N) alone on edges 2 and 3: edge 0 sends three
 * at once, and number k when number k - 3 has gone over edges 1, 2 and 3, at (k - 3) 100/(3N) +
 * 40/(3N). So when B ends, after t ms, edge 0 has sent n = 3 + the whole part of (t - 40/(3N)) /
 * (100/(3N)) + 1 messages, and t = 20 + 20 n/(3N): 25 + 40/(3N), where n = (3N + 8)/4. That is
 * 28.33, 25.83 and 25.21 ms. */
static void test_slow_edge(void **state)
{
    (void)state;
    struct contest c = {.Bps = {50e9, 10e9, 50e9, 50e9}, .b_B = 1e9};
    struct ends coupled = contest(c, COUPLED), blocks = contest(c, 1);
    assert_relative(coupled.b_s, 25e-3, 1e-9);
    assert_relative(coupled.ring_s, 100e-3, 1e-9);
    assert_relative(blocks.b_s, 40e-3, 1e-9);
    assert_relative(blocks.ring_s, 100e-3, 1e-9);
    for (int passes = 4; passes <= 64; passes *= 4) {
        struct ends cut = contest(c, passes);
        assert_relative(cut.b_s, 25e-3 + 40e-3 / (3 * passes), 1e-9);
        assert_relative(cut.ring_s, 100e-3, 1e-9);
        if (passes >= 16)
            assert_relative(cut.b_s, coupled.b_s, passes == 16 ? .05 : .02);
    }
    /* Three steps of 1 us each: on edge 1, which never waits for another. */
    c.latency_s = 3e-6;
    for (int passes = 1; passes <= 64; passes *= 4)
        assert_relative(contest(c, passes).ring_s, 100.003e-3, 1e-9);
}

/* All edges have 50 GB/s; B has 0.5 GB, and so loads edge 0 for 20 ms, then C loads edge 2. Coupled
 * the ring has 25 GB/s throughout: 40 ms. In messages of 1/(3N) GB, 40/(3N) ms when shared, edge 0
 * has sent 3N/2 at 20 ms and edge 2 one more, being up to two ahead of it; the next comes over edge
 * 1, 20/(3N) ms later, and meanwhile C has edge 2 alone. The other 3N/2 - 1 take 40/(3N) ms each:
 * 20 + 20/(3N) + 20 - 40/(3N) = 40 - 20/(3N) ms: 38.33, 39.58, 39.90. In blocks edge 2 has sent two
 * at 20 ms and the third is there: 20 + 13.33 = 33.33 ms, by the same formula. */
static void test_moving_load(void **state)
{
    (void)state;
    struct contest c = {.Bps = {50e9, 50e9, 50e9, 50e9}, .b_B = .5e9, .c_B = 2e9, .c_s = 20e-3};
    struct ends coupled = contest(c, COUPLED);
    assert_relative(coupled.b_s, 20e-3, 1e-9);
    assert_relative(coupled.ring_s, 40e-3, 1e-9);
    for (int passes = 1; passes <= 64; passes *= 4) {
        struct ends cut = contest(c, passes);
        assert_relative(cut.ring_s, 40e-3 - 20e-3 / (3 * passes), 1e-9);
        if (passes >= 16)
            assert_relative(cut.ring_s, coupled.ring_s, passes == 16 ? .05 : .02);
    }
}

/* --- on machines --------------------------------------------------------------------------- */

struct job {
    struct s4d_measurement m;
    double bytes;
};

static int measure_job(void *context, int index, void *result, struct s4d_error *err)
{
    struct job *job = context;
    struct s4d_measured_system system;
    (void)index;
    return s4d_measure_collective(&job->m, &job->bytes, 1, result, &system, err);
}

static struct s4d_measured measure(struct s4d_measurement m, int stepwise, double bytes)
{
    struct job job = {m, bytes};
    struct s4d_measured result = {0};
    struct s4d_error err = {0};
    job.m.stepwise = stepwise;
    if (s4d_isolated(measure_job, &job, 1, 1, &result, sizeof result, &err, NULL))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    return result;
}

/* One group of p. */
static struct s4d_measurement lone(const struct s4d_machine *m, enum s4d_op_kind op, int p,
                                   const struct s4d_algorithm *a)
{
    return (struct s4d_measurement){.machine = m,
                                    .op = op,
                                    .grid = s4d_grid_make(1, 1, p, 1),
                                    .stream = S4D_STREAM_Z_GATHER,
                                    .algorithm = a,
                                    .fold = true};
}

static const char single[] = "synthetic:topology=single-switch,nodes=64,devices_per_node=1,"
                             "nic=50GB/s,latency=1us,peak=1TFLOP/s";
static const double B = 50e9, L = 1e-6, n = 1e8;

/* Alone a ring has no gaps: (p-1)/p n/B and p - 1 latencies, twice for an all-reduce, however it is
 * cut. p (p-1) blocks a time round. */
static void test_ring(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    const int passes[] = {1, 3, 16, S4D_STEPWISE_CHUNK};
    for (int p = 2; p <= 16; p += p < 4 ? 1 : 6)
        for (int i = 0; i < 4; i++) {
            double part = (p - 1.0) / p * n / B + (p - 1) * L;
            int cut = passes[i] == S4D_STEPWISE_CHUNK ? 16 : passes[i];
            struct s4d_measured r =
                measure(lone(&m, S4D_OP_ALL_REDUCE, p, &s4d_ring), passes[i], n);
            assert_relative(r.time_s, 2 * part, 1e-9);
            assert_relative(r.sent.messages, 2.0 * p * (p - 1) * cut, 0);
            assert_int_equal(r.sent.least_passes, cut);
            assert_int_equal(r.sent.most_passes, cut);
            r = measure(lone(&m, S4D_OP_REDUCE_SCATTER, p, &s4d_ring), passes[i], n);
            assert_relative(r.time_s, part, 1e-9);
            r = measure(lone(&m, S4D_OP_ALL_GATHER, p, &s4d_ring), passes[i], n);
            assert_relative(r.time_s, part, 1e-9);
        }
    s4d_machine_free(&m);
}

/* A chain of p - 1 edges fills as long as p - 2 messages take: (1 + (p-2)/N) n/B + (p-1) L, which
 * of eight members in 16 passes is 2.75 + 0.007 ms. */
static void test_chain(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    for (int p = 2; p <= 8; p += 3)
        for (int passes = 1; passes <= 256; passes *= 16)
            assert_relative(measure(lone(&m, S4D_BROADCAST, p, NULL), passes, n).time_s,
                            (1 + (p - 2.0) / passes) * n / B + (p - 1) * L, 1e-9);
    assert_relative(measure(lone(&m, S4D_BROADCAST, 8, NULL), 16, n).time_s, 2.757e-3, 1e-9);
    s4d_machine_free(&m);
}

/* Two nodes: each of the two trees has one edge up, from opposite ends, and one down. A message of
 * half of n/N goes up alone, t = n/(2 N B); then N - 1 times one goes up beside one that comes down
 * on the same NIC, 2 t; the last comes down alone: 2 N t = n/B, no gap. The first step pays L
 * before its message; the second's L passes while the other tree's next message goes up.
 *
 * Deeper trees take time to fill; what that costs falls as 1/N. */
static void test_tree(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, single);
    for (int passes = 1; passes <= 64; passes *= 4)
        assert_relative(measure(lone(&m, S4D_OP_ALL_REDUCE, 2, &s4d_tree), passes, n).time_s,
                        n / B + (passes > 1 ? L : 2 * L), 1e-9);
    for (int p = 4; p <= 16; p += 3) {
        struct s4d_measurement tree = lone(&m, S4D_OP_ALL_REDUCE, p, &s4d_tree);
        double fluid_s = measure(tree, S4D_STEPWISE_OFF, n).time_s, last = INFINITY;
        for (int passes = 16; passes <= 256; passes *= 4) {
            double more = measure(tree, passes, n).time_s / fluid_s - 1;
            if (!(more > -.01 && more < last / 3 && more < 3.2 / passes))
                fail_msg("%d members, %d passes: %g, before %g", p, passes, more, last);
            last = more;
        }
    }
    s4d_machine_free(&m);
}

/* What has no messages that follow one another is what its flows are, in any number of passes. */
static void test_exchanges(void **state)
{
    (void)state;
    struct s4d_machine m, paired;
    load_machine(&m, single);
    load_machine(&paired, "synthetic:topology=single-switch,nodes=8,devices_per_node=2,"
                          "link=200GB/s,nic=50GB/s,latency=1us,peak=1TFLOP/s");
    /* Numbers: test_algorithms.c. */
    double half_s = 0.75 * n / B + 2 * L;
    for (int passes = 1; passes <= 9; passes += 4) {
        assert_relative(measure(lone(&m, S4D_OP_ALL_REDUCE, 4, &s4d_recursive), passes, n).time_s,
                        2 * half_s, 1e-9);
        assert_relative(measure(lone(&m, S4D_OP_ALL_GATHER, 4, &s4d_recursive), passes, n).time_s,
                        half_s, 1e-9);
        assert_relative(
            measure(lone(&m, S4D_OP_REDUCE_SCATTER, 4, &s4d_recursive), passes, n).time_s, half_s,
            1e-9);
        assert_relative(measure(lone(&m, S4D_ALL_TO_ALL, 4, NULL), passes, n).time_s,
                        0.75 * n / B + L, 1e-9);
        assert_relative(measure(lone(&m, S4D_SEND_RECV, 4, NULL), passes, n).time_s, n / B + L,
                        1e-9);
        double level_s = n / 2 / 200e9 + n / 4 / B + 2 * L;
        assert_relative(
            measure(lone(&paired, S4D_OP_ALL_REDUCE, 4, &s4d_hierarchical), passes, n).time_s,
            2 * level_s, 1e-9);
        assert_relative(
            measure(lone(&paired, S4D_OP_ALL_GATHER, 4, &s4d_hierarchical), passes, n).time_s,
            level_s, 1e-9);
        assert_relative(
            measure(lone(&paired, S4D_OP_REDUCE_SCATTER, 4, &s4d_hierarchical), passes, n).time_s,
            level_s, 1e-9);
    }
    s4d_machine_free(&m);
    s4d_machine_free(&paired);
}

/* NCCL's constants, rings of uneven edges, groups that share NICs: rings keep step all the same. */
static void test_library(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_quad(&m, 8);
    const struct s4d_grid grids[] = {s4d_grid_make(1, 1, 16, 1), s4d_grid_make(1, 2, 8, 2),
                                     s4d_grid_make(1, 4, 4, 2)};
    for (int i = 0; i < 3; i++)
        for (double bytes = 1e4; bytes < 1e9; bytes *= 100) {
            struct s4d_measurement z = lone(&m, S4D_OP_ALL_GATHER, 2, &s4d_ring);
            z.grid = grids[i];
            assert_relative(measure(z, S4D_STEPWISE_CHUNK, bytes).time_s,
                            measure(z, S4D_STEPWISE_OFF, bytes).time_s, 1e-5);
        }
    /* 16 on four nodes: four channels, so a block is 1/64 of the bytes; Simple's chunk has 2 MiB.
     * Of 1 GB 15,625,000 B in 8; of 20 MB 312,500 B in one. */
    struct s4d_measurement gather = lone(&m, S4D_OP_ALL_GATHER, 16, &s4d_ring);
    assert_int_equal(measure(gather, S4D_STEPWISE_CHUNK, 1e9).sent.most_passes, 8);
    assert_int_equal(measure(gather, S4D_STEPWISE_CHUNK, 2e7).sent.most_passes, 1);
    /* Its trees, LL128: of 64 MiB a channel has 16.8 MB, 29 chunks of 576,000 B. NCCL wants 64
     * x 3.4 / 4 = 54.4 of them, so it halves them once. There are two trees here for each of its
     * channels, of 8.4 MB in messages of 144,000 B: 59. */
    struct s4d_measured tree =
        measure(lone(&m, S4D_OP_ALL_REDUCE, 16, &s4d_tree), S4D_STEPWISE_CHUNK, 67108864);
    assert_int_equal(tree.cost.protocol, S4D_LL128);
    assert_int_equal(tree.sent.most_passes, 59);
    s4d_machine_free(&m);
}

/* Sums by the switch fill a tree of four edges in a node (member, switch, head, switch, member),
 * and longer ones between nodes. The flow without its filling says what is left when they are full;
 * where a NIC is the limit, messages may use what a coupled flow leaves idle before. */
static void test_nvls(void **state)
{
    (void)state;
    struct s4d_machine m;
    load_machine(&m, "dgx-h100");
    for (int p = 8; p <= 32; p *= 2) {
        struct s4d_measurement nvls = lone(&m, S4D_OP_ALL_REDUCE, p, &s4d_nvls);
        struct s4d_measured fluid = measure(nvls, S4D_STEPWISE_OFF, 1e9);
        double fluid_s = fluid.time_s - fluid.cost.fill_s, last = 1;
        for (int passes = 16; passes <= 256; passes *= 4) {
            double more = fabs(measure(nvls, passes, 1e9).time_s / fluid_s - 1);
            if (!(more < last && more < 4.0 / passes))
                fail_msg("%d members, %d passes: %g, before %g", p, passes, more, last);
            last = more;
        }
    }
    s4d_machine_free(&m);
}

static void test_refused(void **state)
{
    (void)state;
    struct s4d_machine m;
    struct s4d_error err = {0};
    struct s4d_measured result;
    struct s4d_measured_system system;
    load_machine(&m, single);
    struct s4d_measurement large = lone(&m, S4D_OP_ALL_REDUCE, 64, &s4d_ring);
    large.stepwise = 1000;
    double bytes = n;
    /* 64 x 126 x 1000. */
    assert_int_equal(s4d_measure_collective(&large, &bytes, 1, &result, &system, &err), -1);
    assert_int_equal(err.exit, S4D_EXIT_DATA);
    assert_string_equal(err.where, "--stepwise");
    assert_string_equal(err.text, "expected at most 4194304 messages, found 8064000");
    s4d_machine_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_edge), cmocka_unit_test(test_moving_load),
        cmocka_unit_test(test_ring),      cmocka_unit_test(test_chain),
        cmocka_unit_test(test_tree),      cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_library),   cmocka_unit_test(test_nvls),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
