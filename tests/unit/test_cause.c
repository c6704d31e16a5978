/* SPDX-License-Identifier: Apache-2.0 */
/* Changes made by simulation, and what they are put down to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/track/attribution.h"
#include "support/memory.h"
#include "tests/lib/night_record.h"

/* A night of the replay's machine at these rates, as a suite measures it, and its iteration. */
struct night {
    double gemm, z, x, unseen; /* parts of what they were; unseen: of all, that no rate shows */
    int slow_rank;
    double slow;
};

static struct s4d_night_state state_of(const struct night *n)
{
    struct s4d_night_state s = {.slow = n->slow, .slow_rank = n->slow_rank};
    s4d_rates_plain(&s.rates);
    s4d_rates_apply(&s.rates, "gemm", n->gemm);
    s4d_rates_apply(&s.rates, "z", n->z);
    s4d_rates_apply(&s.rates, "x", n->x);
    return s;
}

static struct s4d_night_rates measured(const struct s4d_replay *r, const struct night *n)
{
    int per_node = r->machine.node.devices, nodes = r->simulation.gpus / per_node;
    double mean = (nodes - 1 + 1 / n->slow) / nodes, gemm_s = r->class_s[S4D_CLASS_GEMM] / n->gemm;
    struct s4d_night_state s = state_of(n);
    struct s4d_night_rates m = {.records = 1,
                                .gemm_flops_per_s = r->gemm_flops / gemm_s,
                                .gemm_s = gemm_s * mean,
                                .attention_s = r->class_s[S4D_CLASS_ATTENTION] * mean,
                                .kernels_s = r->class_s[S4D_CLASS_KERNEL] * mean,
                                .slowest = {"n017", n->slow_rank, false, n->slow, 1},
                                .nodes = nodes,
                                .ranks_per_node = per_node};
    for (int i = 0; i < S4D_STREAMS; i++)
        m.busbw_Bps[i] = r->busbw_Bps[i] > 0 ? r->busbw_Bps[i] * s.rates.stream[i] : NAN;
    return m;
}

struct change {
    struct s4d_attribution a;
    double compute, z, x, slow, ratio; /* what each alone makes of the iteration */
};

static const struct night well = {1, 1, 1, 1, 0, 1};

/* The change from a night where all is well, made on a machine that the attribution is told
 * (known), or has to make of the rates. */
static struct change change(const char *machine, const char *text, const struct night *bad,
                            bool known)
{
    struct change c = {.a = {.note = ""}};
    struct s4d_replay r;
    struct s4d_error err = {0};
    json_t *record = night_json(text);
    const struct night alone[] = {well,
                                  {bad->gemm, 1, 1, 1, 0, 1},
                                  {1, bad->z, 1, 1, 0, 1},
                                  {1, 1, bad->x, 1, 0, 1},
                                  {1, 1, 1, 1, bad->slow_rank, bad->slow},
                                  *bad};
    enum { N = sizeof alone / sizeof *alone };
    struct s4d_night_state states[N];
    double time_s[N];
    if (s4d_replay_open(&r, record, &c.a.before,
                        &(struct s4d_replay_options){.machine = (char *)machine, .workers = 2},
                        &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    for (int i = 0; i < N; i++)
        states[i] = state_of(&alone[i]);
    if (s4d_replay_times(&r, states, N, time_s, &err))
        fail_msg("%s: %s (%s)", err.where, err.text, err.hint);
    c.compute = time_s[1] / time_s[0] - 1;
    c.z = time_s[2] / time_s[0] - 1;
    c.x = time_s[3] / time_s[0] - 1;
    c.slow = time_s[4] / time_s[0] - 1;
    c.ratio = c.a.ratio = time_s[N - 1] / time_s[0] / bad->unseen;
    c.a.before = measured(&r, &well);
    c.a.after = measured(&r, bad);
    s4d_replay_free(&r);
    s4d_attribute(
        &c.a, record,
        &(struct s4d_replay_options){.machine = known ? (char *)machine : NULL, .workers = 2});
    json_decref(record);
    double sum = 0;
    for (int i = 0; i < S4D_SPLIT_PARTS; i++)
        sum += c.a.part[i];
    if (c.a.by != S4D_BY_RATES)
        fail_msg("%s", c.a.note);
    night_near(sum, c.ratio - 1, 1e-12);
    return c;
}

static const char plain[] = NIGHT_RECORD("gpt-5b", "64", "1x2x8x4", "32", "none"),
                  overlapping[] = NIGHT_RECORD("gpt-5b", "64", "2x1x8x4", "32",
                                               "oar,ors,oag-forward=across-layers,"
                                               "oag-backward=across-layers");
static const char machine[] = "dgx-a100";

/* Within half a point of the iteration, as the issue asks. */
static const double points = 0.005;

static void check(const struct change *c, double unseen)
{
    const double *part = c->a.part;
    print_message("%+.2f %%: compute %+.2f (%+.2f)  x %+.2f (%+.2f)  z %+.2f (%+.2f)  slow %+.2f "
                  "(%+.2f)  unexplained %+.2f (%+.2f)  %s\n",
                  100 * (c->ratio - 1), 100 * part[S4D_SPLIT_COMPUTE], 100 * c->compute,
                  100 * part[S4D_SPLIT_X], 100 * c->x, 100 * part[S4D_SPLIT_Z], 100 * c->z,
                  100 * part[S4D_SPLIT_SLOW_NODE], 100 * c->slow, 100 * part[S4D_SPLIT_UNEXPLAINED],
                  100 * unseen, c->a.machine);
    night_near(part[S4D_SPLIT_COMPUTE], c->compute, points);
    night_near(part[S4D_SPLIT_Z], c->z, points);
    night_near(part[S4D_SPLIT_X], c->x, points);
    night_near(part[S4D_SPLIT_SLOW_NODE], c->slow, points);
    night_near(part[S4D_SPLIT_UNEXPLAINED], unseen, points);
    night_near(part[S4D_SPLIT_Y], 0, points);
    night_near(part[S4D_SPLIT_DATA], 0, points);
    night_near(part[S4D_SPLIT_OTHER], 0, points);
}

/* The three of the issue on the machine that they were made on, where the parts are exact, and on
 * one made of the rates alone, without overlap and with all of it. */
static void test_three(void **state)
{
    (void)state;
    static const struct night nights[] = {
        {0.97, 1, 1, 1, 0, 1}, {1, 0.88, 1, 1, 0, 1}, {1, 1, 1, 1, 20, 0.9}};
    static const enum s4d_split_part is[] = {S4D_SPLIT_COMPUTE, S4D_SPLIT_Z, S4D_SPLIT_SLOW_NODE};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) {
            struct change c = change(machine, k < 2 ? plain : overlapping, &nights[i], k % 2 == 0);
            check(&c, 0);
            assert_true(c.ratio > 1.005); /* worth the name of a change */
            if (k % 2 == 0)
                night_near(c.a.part[is[i]], c.ratio - 1, 1e-9);
        }
}

/* Several at once, and a night that nobody explains. */
static void test_combined(void **state)
{
    (void)state;
    struct change c = change(machine, plain, &(struct night){0.97, 0.88, 1, 1, 20, 0.95}, true);
    check(&c, 0);
    c = change(machine, overlapping, &(struct night){0.97, 0.88, 0.8, 1, 0, 1}, false);
    check(&c, 0);
    c = change(machine, overlapping, &(struct night){1, 1, 1, 0.96, 0, 1}, false);
    check(&c, 1 / 0.96 - 1);
    assert_true(c.a.part[S4D_SPLIT_Z] == 0 && c.a.part[S4D_SPLIT_COMPUTE] == 0);
    /* 4 % on top of z, of an iteration that is slower already. */
    c = change(machine, plain, &(struct night){1, 0.88, 1, 0.96, 0, 1}, false);
    check(&c, (1 + c.z) / 0.96 - 1 - c.z);
}

/* Rates of z that scatter by 1 % in four records before and since: 1.2533 x 1 % x sqrt(1/4 + 1/4) =
 * 0.886 % of their time; z made 1 / 0.88 - 1 = 13.64 % of it, so its part's error is 0.886 / 13.64
 * = 6.50 % of the part. The change itself is known to 0.3 %: together that of what is unexplained.
 */
static void test_errors(void **state)
{
    (void)state;
    struct change c = change(machine, plain, &(struct night){1, 0.88, 1, 1, 0, 1}, true);
    struct s4d_rate_noise *noise[] = {&c.a.before.noise, &c.a.after.noise};
    json_t *record = night_json(plain);
    for (int i = 0; i < 2; i++)
        noise[i]->busbw[S4D_STREAM_Z_GATHER] = noise[i]->busbw[S4D_STREAM_Z_SCATTER] = 0.01;
    c.a.before.records = c.a.after.records = 4;
    c.a.ratio_error = 0.003;
    s4d_attribute(&c.a, record,
                  &(struct s4d_replay_options){.machine = (char *)machine, .workers = 2});
    double z = 0.00886 / 0.13636 * c.z;
    night_near(c.a.error[S4D_SPLIT_Z], z, 0.01 * z);
    night_near(c.a.error[S4D_SPLIT_UNEXPLAINED], sqrt(z * z + 0.003 * 0.003), 0.01 * z);
    assert_true(c.a.error[S4D_SPLIT_COMPUTE] == 0 && c.a.error[S4D_SPLIT_SLOW_NODE] == 0);
    json_t *said = s4d_attribution_record(&c.a, S4D_IS_TIME);
    assert_non_null(
        strstr(json_string_value(json_object_get(said, "text")), " (+-0.3), unexplained"));
    json_decref(said);
    json_decref(record);
}

/* Where nothing runs beside anything x makes exactly what its all-reduces take, 1 / 0.88 - 1 =
 * 13.64 % longer, and products what they take, 1 / 0.97 - 1 = 3.09 % longer. On two nodes of 10
 * GB/s and 5 us: all-reduces of n bytes, 2 x 1/2 x n / 10e9 + 2 x 5 us each. */
static void test_by_hand(void **state)
{
    (void)state;
    static const char line[] = "synthetic:topology=single-switch,nodes=2,devices_per_node=1,"
                               "nic=10GB/s,latency=5us,peak=10TFLOP/s,memory_bandwidth=500GB/s",
                      text[] = NIGHT_RECORD("gpt-tiny", "2", "2x1x1x1", "1", "none");
    struct s4d_replay r;
    struct s4d_night_rates none = {.records = 0};
    struct s4d_error err = {0};
    struct s4d_result result;
    json_t *record = night_json(text);
    if (s4d_replay_open(&r, record, &none,
                        &(struct s4d_replay_options){.machine = (char *)line, .workers = 1},
                        &err) ||
        s4d_simulate(&r.simulation, &result, &err))
        fail_msg("%s: %s", err.where, err.text);
    double t_s = result.run.iteration_time_s, x_s = result.run.exposed_s[S4D_STREAM_X];
    night_near(result.bus_bytes[S4D_STREAM_X] / r.busbw_Bps[S4D_STREAM_X], x_s, 1e-12);
    struct change x = change(line, text, &(struct night){1, 1, 0.88, 1, 0, 1}, true),
                  gemm = change(line, text, &(struct night){0.97, 1, 1, 1, 0, 1}, true);
    night_near(x.a.part[S4D_SPLIT_X], x_s / t_s * (1 / 0.88 - 1), 1e-9);
    night_near(gemm.a.part[S4D_SPLIT_COMPUTE], r.class_s[S4D_CLASS_GEMM] / t_s * (1 / 0.97 - 1),
               1e-9);
    assert_true(x.a.part[S4D_SPLIT_X] > 0.01 && gemm.a.part[S4D_SPLIT_COMPUTE] > 1e-4);
    s4d_replay_free(&r);
    json_decref(record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_three),
        cmocka_unit_test(test_combined),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
