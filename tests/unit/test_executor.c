/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated executor on hand-made programs and systems, with every time worked out by hand.
 *
 * Kernels and algorithms are this file's own, so that no model of a machine comes in: a compute op
 * takes as many seconds as its `flops` says; a collective pays 1 ms and then moves its bytes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/executor.h"
#include "sim/isolate.h"

static double rate_in_node = 1, rate_across = 1;

double s4d_kernel_time_s(const struct s4d_kernels *k, const struct s4d_program *p,
                         const struct s4d_op *op)
{
    (void)k, (void)p;
    return op->flops;
}

double s4d_kernel_rate_beside(const struct s4d_kernels *k, bool across_nodes)
{
    (void)k;
    return across_nodes ? rate_across : rate_in_node;
}

static struct s4d_cost cost(const struct s4d_machine *m, const struct s4d_channels *ch,
                            enum s4d_op_kind op, double bytes)
{
    (void)m, (void)ch;
    double part = op == S4D_OP_ALL_REDUCE ? 1 : 0.5; /* half as much as sum and copy */
    return (struct s4d_cost){.latency_s = 1e-3, .volume_B = part * bytes, .efficiency = 1};
}

static const struct s4d_algorithm plain = {.name = "plain", .cost = cost};
const struct s4d_algorithm *const s4d_algorithms[] = {&plain, NULL};

const struct s4d_algorithm *s4d_choose_algorithm(const struct s4d_machine *m,
                                                 const struct s4d_channels *ring,
                                                 enum s4d_op_kind op, double bytes)
{
    (void)m, (void)ring, (void)op, (void)bytes;
    return &plain;
}

/* A program is written as a list of ops with at most one wait each. */
enum { OPS = 8 };
struct listing {
    struct s4d_op op[OPS];
    struct s4d_wait wait[OPS];
    int n;
};

static struct s4d_op *add(struct listing *l, enum s4d_op_kind kind, enum s4d_stream stream)
{
    struct s4d_op *op = &l->op[l->n++];
    *op = (struct s4d_op){
        .kind = kind,
        .stream = stream,
        .label = {.phase = S4D_PHASE_FORWARD, .layer = 3, .micro_batch = -1, .name = "part"}};
    return op;
}

static struct s4d_op *compute(struct listing *l, double t_s)
{
    struct s4d_op *op = add(l, S4D_OP_GEMM, S4D_STREAM_COMPUTE);
    op->flops = t_s;
    return op;
}

static struct s4d_op *all_reduce(struct listing *l, int64_t bytes)
{
    struct s4d_op *op = add(l, S4D_OP_ALL_REDUCE, S4D_STREAM_X);
    op->c.collective.axes = S4D_AXIS(S4D_X);
    op->c.collective.type = S4D_U8;
    op->c.collective.count = bytes;
    op->c.collective.members = 2;
    return op;
}

static void wait_for(struct listing *l, int iteration, enum s4d_stream stream, int position)
{
    l->op[l->n - 1].n_waits = 1;
    l->wait[l->n - 1] = (struct s4d_wait){iteration, stream, position, S4D_WAIT_DATA};
}

struct scene {
    struct listing list;
    int ranks;   /* 2: one group; 4: two groups of two, which share the link */
    bool beside; /* of two ranks: another group of both, on stream y, of two nodes and its own link
                  */
    double speed[4];
};
struct outcome {
    struct s4d_run run;
};

static int run_scene(void *context, int index, void *result, struct s4d_error *err)
{
    struct scene *scene = (struct scene *)context + index;
    struct s4d_program p = {.ops = scene->list.op, .n_ops = scene->list.n};
    for (int i = 0; i < p.n_ops; i++) {
        p.ops[i].position = p.stream_length[p.ops[i].stream]++;
        p.ops[i].waits = &scene->list.wait[i];
    }
    const int link[] = {0, 1}, weight[] = {1}, flow[] = {0, 1}, member[] = {0, 1, 2, 3};
    const bool other = scene->ranks == 4 || scene->beside;
    struct s4d_link_class links[] = {{.capacity_Bps = 10e9, .divisor = 1, .members = 1},
                                     {.capacity_Bps = 10e9, .divisor = 1, .members = 1}};
    struct s4d_flow_class flows[2];
    struct s4d_group_class groups[2];
    struct s4d_rank_class ranks[4];
    for (int i = 0; i < 2; i++) {
        flows[i] = (struct s4d_flow_class){link + (scene->beside ? i : 0), weight, 1, 1, 1.0, 1, 0};
        groups[i] = (struct s4d_group_class){.stream = S4D_STREAM_X,
                                             .member = member + 2 * i,
                                             .n_members = 2,
                                             .groups = 1,
                                             .rate = 1};
        groups[i].by_algorithm[0] = (struct s4d_group_flows){
            &plain,
            {.algorithm = &plain, .members = 2, .nodes = 1, .members_per_node = 2},
            flow + i,
            1};
    }
    if (scene->beside) {
        groups[1].stream = S4D_STREAM_Y;
        groups[1].member = member;
        groups[1].by_algorithm[0].shape.nodes = 2;
    }
    for (int i = 0; i < 4; i++) {
        ranks[i] = (struct s4d_rank_class){.representative = i, .members = 1};
        ranks[i].speed = scene->speed[i] > 0 ? scene->speed[i] : 1;
        ranks[i].group[S4D_STREAM_X] = i / 2;
        ranks[i].group[S4D_STREAM_Y] = 1;
    }
    struct s4d_cluster cluster = {0};
    s4d_rates_plain(&cluster.rates);
    struct s4d_system system = {.cluster = &cluster,
                                .ranks = ranks,
                                .n_ranks = scene->ranks,
                                .groups = groups,
                                .n_groups = other ? 2 : 1,
                                .flows = flows,
                                .n_flows = other ? 2 : 1,
                                .links = links,
                                .n_links = scene->beside ? 2 : 1,
                                .n_limiting = scene->beside ? 2 : 1};
    struct s4d_kernels kernels = {0};
    return s4d_execute(&system, &p, &kernels, &((struct outcome *)result)->run, err);
}

static struct s4d_run simulate(struct scene *scene)
{
    struct outcome out, again;
    struct s4d_error err;
    assert_int_equal(s4d_isolated(run_scene, scene, 1, 1, &out, sizeof out, &err, NULL), 0);
    assert_int_equal(s4d_isolated(run_scene, scene, 1, 1, &again, sizeof again, &err, NULL), 0);
    assert_memory_equal(&out, &again, sizeof out);
    double sum = out.run.exposed_other_s;
    for (int s = 0; s < S4D_STREAMS; s++)
        sum += out.run.exposed_s[s];
    assert_true(fabs(sum - out.run.iteration_time_s) <= 1e-12);
    return out.run;
}

static void near(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-12 * fmax(1e-3, fabs(expected))))
        fail_msg("expected %.17g, got %.17g", expected, got);
}

/* A (10 ms), then an all-reduce of 100 MB on 10 GB/s (1 + 10 ms) beside B (8 ms), then C (5 ms)
 * which needs its result. */
static struct scene overlap(void)
{
    struct scene s = {.ranks = 2};
    compute(&s.list, 10e-3);
    all_reduce(&s.list, 100000000);
    wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 0);
    compute(&s.list, 8e-3);
    compute(&s.list, 5e-3);
    wait_for(&s.list, 0, S4D_STREAM_X, 0);
    return s;
}

/* A 0-10, all-reduce 10-21, B 10-18, C 21-26: 26 ms, of which 3 are exposed. */
static void test_overlap(void **state)
{
    (void)state;
    struct scene s = overlap();
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 26e-3);
    near(run.iteration_time_s, 26e-3);
    near(run.exposed_s[S4D_STREAM_COMPUTE], 23e-3);
    near(run.exposed_s[S4D_STREAM_X], 3e-3);
    near(run.exposed_other_s, 0);
    near(run.busy_s[S4D_STREAM_X], 11e-3);
    near(run.gemm_time_s, 23e-3);
    assert_int_equal(run.slowest_rank, 0);
    assert_int_equal(run.collectives, 1);
}

/* Rank 1 at half speed: A 0-20, so the all-reduce runs 20-31; its B 20-36, its C 36-46. The second
 * iteration repeats that: 46 ms, all of it rank 1 computing. */
static void test_late_arriver(void **state)
{
    (void)state;
    struct scene s = overlap();
    s.speed[1] = 0.5;
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 46e-3);
    near(run.iteration_time_s, 46e-3);
    near(run.exposed_s[S4D_STREAM_COMPUTE], 46e-3);
    assert_int_equal(run.slowest_rank, 1);
}

/* Computing keeps half its rate beside a collective, from the rank's own arrival. Equal ranks: B's
 * 8 ms of work get 5.5 ms during the all-reduce (10-21), 2.5 are left: B 10-23.5, C 23.5-28.5. With
 * rank 1 at half speed, it starts at 20: rank 1's 16 ms of B get 5.5 until 31, 10.5 are left: 41.5;
 * C to 51.5. Rank 0, arrived at 10, works at half rate until its B ends at 26 (without that: 18),
 * and waits. */
static void test_rate_beside(void **state)
{
    (void)state;
    rate_in_node = 0.5;
    struct scene s = overlap();
    near(simulate(&s).iteration_time_s, 28.5e-3);
    s.speed[1] = 0.5;
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 51.5e-3);
    near(run.iteration_time_s, 51.5e-3);
    assert_int_equal(run.slowest_rank, 1);
    rate_in_node = 1;
}

/* Beside two collectives at once computing keeps what the worse of them leaves, not the part of the
 * part. A 0-10, then all-reduces in the node and across nodes, each on its own link, 10-21. B has 8
 * ms: 5.5 at half rate until 21, 2.5 left: 23.5, C 28.5. (0.8 x 0.5 would give 24.6 and 29.6, 0.8
 * alone B 20 and C 26.) */
static void test_beside_two(void **state)
{
    (void)state;
    static const double rates[][2] = {{0.5, 0.8}, {0.8, 0.5}};
    for (int i = 0; i < 2; i++) {
        rate_in_node = rates[i][0];
        rate_across = rates[i][1];
        struct scene s = {.ranks = 2, .beside = true};
        compute(&s.list, 10e-3);
        all_reduce(&s.list, 100000000);
        wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 0);
        all_reduce(&s.list, 100000000)->stream = S4D_STREAM_Y;
        wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 0);
        compute(&s.list, 8e-3);
        compute(&s.list, 5e-3);
        wait_for(&s.list, 0, S4D_STREAM_X, 0);
        struct s4d_run run = simulate(&s);
        near(run.first_iteration_s, 28.5e-3);
        near(run.iteration_time_s, 28.5e-3);
    }
    rate_in_node = rate_across = 1;
}

/* Two collectives of one size and two kinds on one stream: 1 + 10 ms for the all-reduce of 100 MB,
 * 1 + 5 ms for the reduce-scatter that moves half of that, in either order; then 1 + 4 ms for
 * an all-reduce of 40 MB: 22 ms. */
static void test_two_kinds(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene s = {.ranks = 2};
        for (int k = 0; k < 2; k++) {
            struct s4d_op *op = all_reduce(&s.list, k == i ? 100000000 : 50000000);
            op->kind = k == i ? S4D_OP_ALL_REDUCE : S4D_OP_REDUCE_SCATTER;
        }
        all_reduce(&s.list, 40000000);
        struct s4d_run run = simulate(&s);
        near(run.first_iteration_s, 22e-3);
        near(run.iteration_time_s, 22e-3);
        near(run.busy_s[S4D_STREAM_X], 22e-3);
    }
}

/* The same seen from the early rank, which is reported where all end together: A, all-reduce, B,
 * and a second all-reduce that needs B and that the next A needs. Rank 0's B is at half rate from
 * its arrival at 10 on: 10-26, though the all-reduce runs 20-31. Rank 1's B ends at 41.5 as above;
 * the second all-reduce ends at 52.5. Rank 0 computes 10 + 16 ms and waits the other 26.5. */
static void test_slowed_from_arrival(void **state)
{
    (void)state;
    rate_in_node = 0.5;
    struct scene s = {.ranks = 2, .speed = {1, 0.5}};
    compute(&s.list, 10e-3);
    wait_for(&s.list, -1, S4D_STREAM_X, 1);
    all_reduce(&s.list, 100000000);
    wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 0);
    compute(&s.list, 8e-3);
    all_reduce(&s.list, 100000000);
    wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 1);
    struct s4d_run run = simulate(&s);
    near(run.iteration_time_s, 52.5e-3);
    assert_int_equal(run.slowest_rank, 0);
    near(run.exposed_s[S4D_STREAM_COMPUTE], 26e-3);
    near(run.exposed_s[S4D_STREAM_X], 26.5e-3);
    near(run.busy_s[S4D_STREAM_X], 22e-3);
    rate_in_node = 1;
}

/* The all-reduce opens the iteration and A (10 ms) needs it. Free to run ahead it starts its second
 * round at 11: A 11-21, all-reduce 11-22, A 22-32: 11 ms an iteration. If it must wait for the A of
 * the iteration before: 21 ms. */
static void test_wait_of_iteration_before(void **state)
{
    (void)state;
    struct scene s = {.ranks = 2};
    all_reduce(&s.list, 100000000);
    compute(&s.list, 10e-3);
    wait_for(&s.list, 0, S4D_STREAM_X, 0);
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 21e-3);
    near(run.iteration_time_s, 11e-3);
    near(run.exposed_s[S4D_STREAM_X], 1e-3);
    s = (struct scene){.ranks = 2};
    all_reduce(&s.list, 100000000);
    wait_for(&s.list, -1, S4D_STREAM_COMPUTE, 0);
    compute(&s.list, 10e-3);
    wait_for(&s.list, 0, S4D_STREAM_X, 0);
    run = simulate(&s);
    near(run.first_iteration_s, 21e-3);
    near(run.iteration_time_s, 21e-3);
    near(run.exposed_s[S4D_STREAM_X], 11e-3);
}

/* Two groups whose flows share the link, 5 GB/s each: the all-reduce takes 1 + 20 ms. */
static void test_shared_link(void **state)
{
    (void)state;
    struct scene s = overlap();
    s.ranks = 4;
    struct s4d_run run = simulate(&s);
    near(run.iteration_time_s, 36e-3);
    near(run.busy_s[S4D_STREAM_X], 21e-3);
    assert_int_equal(run.collectives, 2);
    /* The second group 4 ms behind (ranks 2, 3 at speed 10/14): alone 11-14 ms at 10 GB/s: 30 MB,
     * then the latency of the other until 15: 40 MB; 60 MB left at 5 GB/s: 27 ms. The other has 40
     * MB left then: 4 ms at 10 GB/s: 31 ms. B there: 14-25.2, C 31-38. */
    s.speed[2] = s.speed[3] = 10.0 / 14.0;
    run = simulate(&s);
    near(run.first_iteration_s, 38e-3);
    assert_int_equal(run.slowest_rank, 2);
}

/* The iteration ends with adamw where there is one: what comes after belongs to the next. */
static void test_ends_with_adamw(void **state)
{
    (void)state;
    struct scene s = overlap();
    add(&s.list, S4D_OP_ADAMW, S4D_STREAM_COMPUTE)->flops = 2e-3;
    add(&s.list, S4D_OP_ADD, S4D_STREAM_COMPUTE)->flops = 4e-3;
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 28e-3);
    near(run.iteration_time_s, 32e-3);
}

/* A's wait is met by an all-reduce that waits for what follows A. */
static void test_deadlock(void **state)
{
    (void)state;
    struct scene s = {.ranks = 2};
    all_reduce(&s.list, 1000);
    wait_for(&s.list, 0, S4D_STREAM_COMPUTE, 1);
    compute(&s.list, 1e-3);
    wait_for(&s.list, 0, S4D_STREAM_X, 0);
    compute(&s.list, 1e-3);
    struct outcome out;
    struct s4d_error err;
    assert_int_equal(s4d_isolated(run_scene, &s, 1, 1, &out, sizeof out, &err, NULL), 1);
    assert_int_equal(err.exit, S4D_EXIT_BUG);
    assert_string_equal(err.text,
                        "deadlock: rank 0, iteration 0: gemm part (forward layer 3), op 0 of "
                        "stream compute waits for all-reduce part (forward layer 3), op 0 of "
                        "stream x of iteration 0");
}

/* Four rounds an iteration: 11 ms of computing, then an all-reduce (1 ms, then 100 MB). */
static struct scene rounds(int ranks)
{
    struct scene s = {.ranks = ranks};
    for (int i = 0; i < 4; i++) {
        compute(&s.list, 11e-3);
        wait_for(&s.list, i == 0 ? -1 : 0, S4D_STREAM_X, i == 0 ? 3 : i - 1);
        all_reduce(&s.list, 100000000);
        wait_for(&s.list, 0, S4D_STREAM_COMPUTE, i);
    }
    return s;
}

/* A slower device can make an iteration faster: it brings groups that share a link out of step, and
 * each then moves its data while the other computes. (Known of real machines: Afzal, Hager,
 * Wellein, "Desynchronization and Wave Pattern Formation in MPI-Parallel and Hybrid Memory-Bound
 * Programs", ISC 2020. A search over small programs finds it wherever links are shared and little
 * is hidden: gpt-tiny on 8 GCDs of Frontier, grid 2x1x2x2, overlap none, is 3.9 % faster with GCD 4
 * at 0.8, folded or not, and message by message 3.9 % as well.)
 *
 * In step the two groups share the link each time, 20 ms: 11 + 1 + 20 = 32 a round, 128 an
 * iteration. With rank 3 at 0.8 its group computes 13.75. Group 0 sends from 12 on, group 1 from
 * 14.75: 2.75 ms alone, so group 0 ends at 14.75 + 2 x 7.25 = 29.25, and group 1, with 2.75 left,
 * at 32. Next they send from 41.25 and 46.75: 55.75 and 61.25; from 67.75 and 76: 79.5 and 87.75;
 * from 91.5 and, after the end of that at 101.5, from 102.5 to 112.5, when the iteration ends. Then
 * group 0 comes up from behind: from 113.5 to 123.5; from 127.25 (group 1) and 135.5: 139 and
 * 147.25; from 153.75 and 159.25: 168.25 and 173.75; from 183 and 185.75: 200.25 and 203, where
 * group 0 is done; group 1 sends from 215 to 225. 112.5 ms instead of 128.
 *
 * Alone on the link the slower group takes what it must: 24.75 a round instead of 22. */
static void test_out_of_step(void **state)
{
    (void)state;
    struct scene s = rounds(4);
    struct s4d_run run = simulate(&s);
    near(run.first_iteration_s, 128e-3);
    near(run.iteration_time_s, 128e-3);
    s.speed[3] = 0.8;
    run = simulate(&s);
    near(run.first_iteration_s, 112.5e-3);
    near(run.iteration_time_s, 112.5e-3);
    assert_int_equal(run.slowest_rank, 2);
    s = rounds(2);
    near(simulate(&s).iteration_time_s, 88e-3);
    s.speed[1] = 0.8;
    near(simulate(&s).iteration_time_s, 99e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_out_of_step),
        cmocka_unit_test(test_late_arriver),
        cmocka_unit_test(test_rate_beside),
        cmocka_unit_test(test_beside_two),
        cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_slowed_from_arrival),
        cmocka_unit_test(test_wait_of_iteration_before),
        cmocka_unit_test(test_shared_link),
        cmocka_unit_test(test_ends_with_adamw),
        cmocka_unit_test(test_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
