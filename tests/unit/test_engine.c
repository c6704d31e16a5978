/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: hand-worked sharing, timers, exact scaling. Each case runs in a child, as every
 * simulation does. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/engine.h"
#include "sim/isolate.h"

enum { ENDS = 64 };
struct times {
    double end[ENDS];
    int order[ENDS], n;
};
struct world {
    struct s4d_engine *e;
    struct times *t;
    double rate, latency; /* factors on all rates and all times */
    int flow[8];
};

static void note_end(void *context, int tag)
{
    struct world *w = context;
    w->t->end[tag] = s4d_engine_now_s(w->e);
    w->t->order[w->t->n++] = tag;
}

typedef void (*scenario)(struct world *w);
struct setup {
    scenario run;
    double rate, latency;
};

static int job(void *context, int index, void *result, struct s4d_error *err)
{
    (void)err;
    const struct setup *s = (const struct setup *)context + index;
    struct world w = {
        .e = s4d_engine_create(), .t = result, .rate = s->rate, .latency = s->latency};
    s->run(&w);
    s4d_engine_run(w.e);
    s4d_engine_destroy(w.e);
    return 0;
}

static struct times simulate(scenario run, double rate, double latency)
{
    struct setup s = {run, rate, latency};
    struct times t;
    struct s4d_error err;
    assert_int_equal(s4d_isolated(job, &s, 1, 1, &t, sizeof t, &err, NULL), 0);
    return t;
}

static void near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected)))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

static int flow(struct world *w, int n, ...)
{
    int link[16], weight[16];
    va_list ap;
    va_start(ap, n);
    for (int i = 0; i < n; i++) {
        link[i] = va_arg(ap, int);
        weight[i] = va_arg(ap, int);
    }
    va_end(ap);
    return s4d_engine_flow(w->e, link, weight, n);
}

/* Two flows of 1 GB and 3 GB share 10 GB/s: 5 GB/s each until the first ends at 0.2 s; the other
 * has 2 GB left, which take 0.2 s more. */
static void two_flows(struct world *w)
{
    int l = s4d_engine_link(w->e, 10e9);
    int a = flow(w, 1, l, 1), b = flow(w, 1, l, 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, a, 1e9, note_end, w, 0);
    s4d_engine_start(w->e, b, 3e9, note_end, w, 1);
}

static void test_two_flows(void **state)
{
    (void)state;
    struct times t = simulate(two_flows, 1, 1);
    near(t.end[0], 0.2);
    near(t.end[1], 0.4);
}

/* Weight 3 beside weight 1 on 8 GB/s: equal rates r with 3 r + r = 8, so 2 GB/s each. 2 GB of
 * weight 3 take 1 s; 4 GB of weight 1 have 2 left then, at 8 GB/s: 0.25 s more. */
static void weights(struct world *w)
{
    int l = s4d_engine_link(w->e, 8e9);
    int a = flow(w, 1, l, 3), b = flow(w, 1, l, 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, a, 2e9, note_end, w, 0);
    s4d_engine_start(w->e, b, 4e9, note_end, w, 1);
}

static void test_weights(void **state)
{
    (void)state;
    struct times t = simulate(weights, 1, 1);
    near(t.end[0], 1.0);
    near(t.end[1], 1.25);
}

/* Max-min on links of 10 and 4 GB/s: A crosses both, B the first, C the second. The second is the
 * tighter: A and C get 2 each; B gets the rest of the first, 8. All three move 2 GB: B ends at 0.25
 * s; A and C, still bound by the second, at 1 s. */
static void max_min(struct world *w)
{
    int first = s4d_engine_link(w->e, 10e9), second = s4d_engine_link(w->e, 4e9);
    int a = flow(w, 2, first, 1, second, 1), b = flow(w, 1, first, 1), c = flow(w, 1, second, 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, a, 2e9, note_end, w, 0);
    s4d_engine_start(w->e, b, 2e9, note_end, w, 1);
    s4d_engine_start(w->e, c, 2e9, note_end, w, 2);
}

static void test_max_min(void **state)
{
    (void)state;
    struct times t = simulate(max_min, 1, 1);
    near(t.end[0], 1.0);
    near(t.end[1], 0.25);
    near(t.end[2], 1.0);
}

/* A ring of four edges, 1 GB each, is one coupled flow over all of them; edge 1 has 10 GB/s, the
 * others 50. A flow of 1 GB on edge 0: the ring is bound to 10 by edge 1 and ends at 100 ms; the
 * other gets 40 and ends at 25 ms. */
static void ring_slow_edge(struct world *w)
{
    int l[4];
    for (int i = 0; i < 4; i++)
        l[i] = s4d_engine_link(w->e, i == 1 ? 10e9 : 50e9);
    int ring = flow(w, 4, l[0], 1, l[1], 1, l[2], 1, l[3], 1), other = flow(w, 1, l[0], 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, ring, 1e9, note_end, w, 0);
    s4d_engine_start(w->e, other, 1e9, note_end, w, 1);
}

static void start_second(void *context, int tag)
{
    struct world *w = context;
    s4d_engine_start(w->e, w->flow[tag], 0.5e9, note_end, w, tag);
}

/* All edges 50 GB/s: 0.5 GB on edge 0 from 0, 0.5 GB on edge 2 from 20 ms. The ring has 25 GB/s in
 * both spans and ends, as both others do, at 20 and 40 ms. */
static void ring_moving_load(struct world *w)
{
    int l[4];
    for (int i = 0; i < 4; i++)
        l[i] = s4d_engine_link(w->e, 50e9);
    int ring = flow(w, 4, l[0], 1, l[1], 1, l[2], 1, l[3], 1);
    w->flow[1] = flow(w, 1, l[0], 1);
    w->flow[2] = flow(w, 1, l[2], 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, ring, 1e9, note_end, w, 0);
    start_second(w, 1);
    s4d_engine_timer(w->e, 0.02, start_second, w, 2);
}

static void test_rings(void **state)
{
    (void)state;
    struct times t = simulate(ring_slow_edge, 1, 1);
    near(t.end[0], 0.1);
    near(t.end[1], 0.025);
    t = simulate(ring_moving_load, 1, 1);
    near(t.end[0], 0.04);
    near(t.end[1], 0.02);
    near(t.end[2], 0.04);
}

static void cancel_and_set(void *context, int tag)
{
    struct world *w = context;
    note_end(w, tag);
    s4d_engine_timer(w->e, s4d_engine_now_s(w->e), note_end, w, 5); /* now: fires at once */
    s4d_engine_timer(w->e, 0.9, note_end, w, 6);
}

static void timers(struct world *w)
{
    s4d_engine_seal(w->e);
    s4d_engine_timer(w->e, 3e-9, note_end, w, 1);
    s4d_engine_timer(w->e, 1e-9, note_end, w, 0);
    struct s4d_timer *never = s4d_engine_timer(w->e, 0.25, note_end, w, 3);
    s4d_engine_timer(w->e, 0.5, cancel_and_set, w, 4);
    s4d_engine_cancel(w->e, never);
    s4d_engine_timer(w->e, 0.75, note_end, w, 7);
}

static void test_timers(void **state)
{
    (void)state;
    struct times t = simulate(timers, 1, 1);
    const int order[] = {0, 1, 4, 5, 7, 6};
    assert_int_equal(t.n, 6);
    assert_memory_equal(t.order, order, sizeof order);
    near(t.end[0], 1e-9);
    near(t.end[1], 3e-9);
    near(t.end[5], 0.5);
    near(t.end[6], 0.9);
}

/* A tangle: 32 flows of uneven sizes and weights over 8 links, started by timers a few microseconds
 * apart, each flow started again while it runs, fractions of a byte. */
static void start_tangle(void *context, int tag)
{
    struct world *w = context;
    s4d_engine_start(w->e, w->flow[tag % 8], 12345.678 * (1 + tag % 7), note_end, w, tag);
}

static void tangle(struct world *w)
{
    int l[8];
    for (int i = 0; i < 8; i++)
        l[i] = s4d_engine_link(w->e, w->rate * (10e9 + 1.7e9 * i));
    for (int i = 0; i < 8; i++)
        w->flow[i] = flow(w, 3, l[i], 1 + i % 3, l[(i + 3) % 8], 2, l[(i + 5) % 8], 1);
    s4d_engine_seal(w->e);
    for (int i = 0; i < 32; i++)
        s4d_engine_timer(w->e, w->latency * 3.3e-7 * (i % 13), start_tangle, w, i);
}

static void test_scaling(void **state)
{
    (void)state;
    struct times one = simulate(tangle, 1, 1), again = simulate(tangle, 1, 1),
                 fast = simulate(tangle, 2, 0.5);
    assert_int_equal(one.n, 32);
    assert_memory_equal(&one, &again, sizeof one);
    for (int i = 0; i < 32; i++) {
        assert_true(one.end[i] > 0);
        near(fast.end[i], one.end[i] / 2);
    }
}

/* Ten thousand timers, all but every 500th cancelled. */
static void many_timers(struct world *w)
{
    static struct s4d_timer *timer[10000];
    s4d_engine_seal(w->e);
    for (int i = 0; i < 10000; i++)
        timer[i] = s4d_engine_timer(w->e, 1e-6 * ((i * 7919) % 10000), note_end, w, i % 2 ? 0 : 1);
    for (int i = 0; i < 10000; i++)
        if (i % 500 != 0)
            s4d_engine_cancel(w->e, timer[i]);
}

static void test_many_timers(void **state)
{
    (void)state;
    struct times t = simulate(many_timers, 1, 1);
    assert_int_equal(t.n, 20);
}

/* A chain of flows of a fraction of a byte, 1e-11 s each, late on the clock: neither lost nor hung.
 */
static void chain_next(void *context, int tag)
{
    struct world *w = context;
    note_end(w, tag);
    if (tag < ENDS - 1)
        s4d_engine_start(w->e, w->flow[0], 0.5, chain_next, w, tag + 1);
}

static void tiny_chain(struct world *w)
{
    w->flow[0] = flow(w, 1, s4d_engine_link(w->e, 50e9), 1);
    s4d_engine_seal(w->e);
    s4d_engine_timer(w->e, 100, chain_next, w, 0);
}

static void test_tiny_flows(void **state)
{
    (void)state;
    struct times t = simulate(tiny_chain, 1, 1);
    assert_int_equal(t.n, ENDS);
    near(t.end[0], 100);
    near(t.end[ENDS - 1], 100 + 63 * 1e-11);
}

/* More bytes than SimGrid's counter holds at once: 1e16 and 1e15 on 1 PB/s. At half each the
 * smaller ends at 2 s; 9e15 of the other are left, 9 s more. */
static void huge_flows(struct world *w)
{
    int l = s4d_engine_link(w->e, 1e15);
    int a = flow(w, 1, l, 1), b = flow(w, 1, l, 1);
    s4d_engine_seal(w->e);
    s4d_engine_start(w->e, a, 1e16, note_end, w, 0);
    s4d_engine_start(w->e, b, 1e15, note_end, w, 1);
}

static void test_huge_flows(void **state)
{
    (void)state;
    struct times t = simulate(huge_flows, 1, 1);
    assert_int_equal(t.n, 2);
    near(t.end[1], 2);
    near(t.end[0], 11);
}

static int misbehave(void *context, int index, void *result, struct s4d_error *err)
{
    (void)context;
    *(int *)result = 10 * index;
    if (index == 1)
        raise(SIGSEGV);
    if (index == 2)
        return s4d_fail(err, S4D_EXIT_DATA, "the place", "the text");
    return 0;
}

static void count_done(void *context, int index)
{
    *(int *)context += index;
}

static void test_isolated(void **state)
{
    (void)state;
    int results[5] = {-1, -1, -1, -1, -1}, sum = 0;
    struct s4d_error errors[5];
    assert_int_equal(
        s4d_isolated(misbehave, &sum, 5, 3, results, sizeof results[0], errors, count_done), 2);
    assert_int_equal(sum, 10);
    assert_int_equal(results[0], 0);
    assert_int_equal(results[4], 40);
    assert_int_equal(errors[4].exit, 0);
    assert_int_equal(errors[1].exit, S4D_EXIT_BUG);
    assert_non_null(strstr(errors[1].text, "Segmentation fault"));
    assert_int_equal(errors[2].exit, S4D_EXIT_DATA);
    assert_string_equal(errors[2].where, "the place");
    assert_string_equal(errors[2].text, "the text");
}

/* The max-min scene as a watcher sees it: until 0.25 s the first link is full with A's 2 and B's 8
 * GB/s, the second with A's and C's 2; from then to 1 s only A is left on the first. */
static void note_usage(void *context, int tag)
{
    struct world *w = context;
    tag = s4d_engine_now_s(w->e) < 0.5 ? 10 : 12;
    w->t->end[tag] = s4d_engine_usage_Bps(w->e, 0);
    w->t->end[tag + 1] = s4d_engine_usage_Bps(w->e, 1);
}

static void usage(struct world *w)
{
    max_min(w);
    s4d_engine_watch(w->e, note_usage, w);
}

static void test_usage(void **state)
{
    (void)state;
    struct times t = simulate(usage, 1, 1);
    near(t.end[10], 10e9);
    near(t.end[11], 4e9);
    near(t.end[12], 2e9);
    near(t.end[13], 4e9);
}

/* A flow's end is d = t1 + bytes / 10 GB/s, milliseconds after a timer at t2 > t1, both in the
 * first microseconds: the clock goes there in one step, t2 + (d - t2), which in doubles is above d
 * by more than the precision that was right at t2. (Found by computing just that for random
 * numbers.) */
static const struct {
    double t1, t2, bytes;
} long_steps[] = {
    {1.609e-05, 1.612e-05, 16591990}, {1.349e-05, 1.424e-05, 59241406},
    {1.278e-05, 1.34e-05, 21811200},  {1.764e-05, 1.78e-05, 11483227},
    {1.64e-05, 1.738e-05, 83724324},  {1.893e-05, 1.895e-05, 32816478},
};
enum { LONG_STEPS = sizeof long_steps / sizeof *long_steps };

static void begin_long(void *context, int tag)
{
    struct world *w = context;
    s4d_engine_start(w->e, w->flow[0], long_steps[tag].bytes, note_end, w, 0);
}

static void do_nothing(void *context, int tag)
{
    (void)context;
    (void)tag;
}

static void long_step(struct world *w)
{
    int i = (int)w->latency;
    w->flow[0] = flow(w, 1, s4d_engine_link(w->e, 10e9), 1);
    s4d_engine_seal(w->e);
    s4d_engine_timer(w->e, long_steps[i].t1, begin_long, w, i);
    s4d_engine_timer(w->e, long_steps[i].t2, do_nothing, w, 0);
}

static void test_long_steps(void **state)
{
    (void)state;
    for (int i = 0; i < LONG_STEPS; i++) {
        struct times t = simulate(long_step, 1, i);
        assert_int_equal(t.n, 1);
        near(t.end[0], long_steps[i].t1 + long_steps[i].bytes / 10e9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_flows),   cmocka_unit_test(test_weights),
        cmocka_unit_test(test_max_min),     cmocka_unit_test(test_rings),
        cmocka_unit_test(test_timers),      cmocka_unit_test(test_scaling),
        cmocka_unit_test(test_many_timers), cmocka_unit_test(test_tiny_flows),
        cmocka_unit_test(test_huge_flows),  cmocka_unit_test(test_isolated),
        cmocka_unit_test(test_usage),       cmocka_unit_test(test_long_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
