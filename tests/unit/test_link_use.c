/* SPDX-License-Identifier: Apache-2.0 */
/* What links carry, from events and shares written by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/link_use.h"

static double share[2]; /* of each link, as the engine would say */

void s4d_system_use(const struct s4d_system *s, const struct s4d_engine *e, double *use)
{
    (void)e;
    for (int i = 0; i < s->n_links; i++)
        use[i] = share[i];
}

static void tell(struct s4d_link_uses *u, bool begins, int flow, double now_s)
{
    static const struct s4d_cost cost = {.volume_B = 100, .efficiency = 1};
    s4d_link_uses_flow(u, &(struct s4d_flow_event){begins, flow, flow, 0, 1, &cost, now_s});
}

static void rates(struct s4d_link_uses *u, double first, double second)
{
    share[0] = first;
    share[1] = second;
    s4d_link_uses_rates(u, NULL);
}

/* How long the stream was held up by these kinds of links. */
static double bound_s(const struct s4d_link_uses *u, enum s4d_stream stream, uint32_t kinds)
{
    double sum_s = 0;
    for (int i = 0; i < u->n_bounds; i++)
        if (u->bound[i].stream == stream && u->bound[i].kinds == kinds)
            sum_s += u->bound[i].group_s;
    return sum_s;
}

static void near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

/* Flow 0 of a group of x crosses an out (bit 0) and an in (bit 1), flow 1 of one of y the in.
 *
 *   from to  out       in   flows
 *   -3   0   1         1    0     before the window: of no count
 *   0    2   1 + 1e-9  .6   0     x is held up by the out; the solver's noise is no use above 1
 *   2    5   1 - 5e-7  .9   0, 1  noise of the solver: the out is full; y is held up by nothing
 *   5    6   1 - 2e-6  .3   0     the out is not full
 *   6    8   1 - 2e-6  1    0     after the window
 *
 * Peaks are 1 and .9 (neither the first nor the last), the in is occupied for 2 x .6 + 3 x .9 + .3
 * = 4.2 s of 6. */
static void test_peak_and_threshold(void **state)
{
    (void)state;
    const int link[] = {0, 1}, weight[] = {1, 1};
    struct s4d_link cluster_links[] = {{1, "nic-out"}, {1, "nic-in"}};
    struct s4d_cluster cluster = {.links = cluster_links, .n_links = 2};
    struct s4d_link_class links[] = {{1, 1, 0, 1}, {1, 1, 1, 1}};
    struct s4d_flow_class flows[] = {{link, weight, 2, 2, 1.0, 1, 0},
                                     {link + 1, weight, 1, 1, 1.0, 1, 0}};
    struct s4d_group_class groups[] = {{.stream = S4D_STREAM_X, .groups = 1},
                                       {.stream = S4D_STREAM_Y, .groups = 1}};
    struct s4d_system system = {.cluster = &cluster,
                                .groups = groups,
                                .n_groups = 2,
                                .flows = flows,
                                .n_flows = 2,
                                .links = links,
                                .n_links = 2,
                                .n_limiting = 2};
    struct s4d_link_uses u;
    s4d_link_uses_create(&u, &system, NULL);
    tell(&u, true, 0, -3);
    rates(&u, 1, 1);
    s4d_link_uses_window(&u, true, 0);
    rates(&u, 1 + 1e-9, 0.6);
    tell(&u, true, 1, 2);
    rates(&u, 1 - 5e-7, 0.9);
    tell(&u, false, 1, 5);
    rates(&u, 1 - 2e-6, 0.3);
    s4d_link_uses_window(&u, false, 6);
    rates(&u, 1 - 2e-6, 1);
    tell(&u, false, 0, 8);
    assert_true(u.link[0].peak == 1 && u.link[1].peak == 0.9);
    near(u.link[0].busy_s, 6);
    near(u.link[1].busy_s, 6);
    near(u.link[1].occupied_s, 4.2);
    near(u.link[0].bytes, 100);
    near(u.link[1].bytes, 200);
    assert_string_equal(u.kind[0], "nic-out");
    near(bound_s(&u, S4D_STREAM_X, 1), 5);
    near(bound_s(&u, S4D_STREAM_X, 0), 1);
    near(bound_s(&u, S4D_STREAM_Y, 0), 3);
    assert_int_equal(u.n_bounds, 3);
    s4d_link_uses_free(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peak_and_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
