/* SPDX-License-Identifier: Apache-2.0 */
/* The time of one fully connected layer on a 2x2x2x2 grid, worked by hand from its op list
 * (test_linear_program.c) on a single switch: one device a node, B = 50 GB/s, L = 500 ns, a gemm of
 * 4096 FLOP in 1 us, other kernels free. A ring all-reduce of n bytes over p takes 2(p-1) L, then
 * moves 2(p-1)/p n; a gather or scatter half of both. In ns:
 *
 *   gather, scatter of 1024 B over z: 500 + 10.24   all-reduce over y, 256 B: 1000 + 5.12
 *   all-reduce over x, 128 B: 1000 + 2.56           over data, 1024 B: 1000 + 20.48
 *   over z and data (4 ranks), 128 B: 3000 + 3.84
 *
 * First iteration:                               Second, from 4514.08:
 *   compute[0] zero          0                      4514.08, once z-data[0] of the first has ended
 *   z-gather[0]              0 -> 510.24            4514.08 -> 5028.16 (*)
 *   z-gather[1]         510.24 -> 1020.48           5028.16 -> 5538.40
 *   compute[1] O        510.24 -> 1510.24           5028.16 -> 6028.16
 *   y[0]               1510.24 -> 2515.36           6028.16 -> 7033.28
 *   compute[3] dI      1510.24 -> 2510.24           6028.16 -> 7028.16
 *   x[0]               2510.24 -> 3512.80           7028.16 -> 8030.72
 *   compute[4] dW      2510.24 -> 3510.24           7028.16 -> 8028.16
 *   z-scatter[0]       3510.24 -> 4020.48           8028.16 -> 8538.40
 *   compute[5] cast    4020.48                      8538.40
 *   data[0]            4020.48 -> 5044.80 (*)       8538.40 -> 9558.88
 *   z-data[0]          1510.24 -> 4514.08           6028.16 -> 9032.00
 *
 * (*) The NIC is shared: data[0] of the first iteration flows from 5020.48 on, z-gather[0] of the
 * second from 5014.08 on. At 5020.48 the gather has 3.84 of its 10.24 ns left: at half rate 7.68,
 * so it ends at 5028.16. The all-reduce has had 3.84 of its 20.48 by then: 5028.16 + 16.64 =
 * 5044.80.
 *
 * Nothing else meets on a NIC. The iterations end at 5044.80 and 9558.88. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/executor.h"
#include "sim/isolate.h"
#include "tests/lib/linear_program.h"

struct setup {
    const char *overlap;
    bool fold;
};

static int simulate(void *context, int index, void *result, struct s4d_error *err)
{
    const struct setup *s = (const struct setup *)context + index;
    struct s4d_machine machine;
    struct s4d_cluster cluster;
    struct s4d_system system;
    struct s4d_program p = linear_program(s4d_grid_make(2, 2, 2, 2), s->overlap, false);
    if (s4d_machine_load(&machine,
                         "synthetic:topology=single-switch,nodes=16,devices_per_node=1,nic=50GB/s,"
                         "latency=500ns,peak=4.096GFLOP/s",
                         NULL, 0, err) ||
        s4d_cluster_create(&cluster, &machine, 16, err) ||
        s4d_system_create(&system, &cluster, &p, ~0u, s->fold, err))
        return -1;
    return s4d_execute(&system, &p, &(struct s4d_kernels){.machine = &machine}, result, err);
}

static struct s4d_run run_layer(const char *overlap, bool fold)
{
    struct setup setup = {overlap, fold};
    struct s4d_run run;
    struct s4d_error err;
    if (s4d_isolated(simulate, &setup, 1, 1, &run, sizeof run, &err, NULL))
        fail_msg("%s: %s", err.where, err.text);
    return run;
}

static void near(double got_s, double expected_ns)
{
    if (!(fabs(1e9 * got_s - expected_ns) <= 1e-9 * expected_ns))
        fail_msg("expected %.12g ns, got %.12g", expected_ns, 1e9 * got_s);
}

/* Of the second iteration, from 5044.80 to 9558.88: computing is compute[1] from 5044.80 on
 * (983.36), compute[3] and compute[4]; then the compute stream waits for the scatter, 510.24, and
 * nothing computes until the iteration ends with data[0], 1020.48. */
static void test_overlapped(void **state)
{
    (void)state;
    for (int fold = 0; fold < 2; fold++) {
        struct s4d_run run = run_layer("all", fold);
        near(run.first_iteration_s, 5044.80);
        near(run.iteration_time_s, 4514.08);
        near(run.exposed_s[S4D_STREAM_COMPUTE], 2983.36);
        near(run.exposed_s[S4D_STREAM_Z_SCATTER], 510.24);
        near(run.exposed_s[S4D_STREAM_DATA], 1020.48);
        near(run.busy_s[S4D_STREAM_Y], 1005.12);
        near(run.busy_s[S4D_STREAM_Z_DATA], 3003.84);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overlapped)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
